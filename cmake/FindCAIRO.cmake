# Finds cairo, which draws charts as PNG files. Defines CAIRO_FOUND, CAIRO_VERSION, CAIRO_LIBRARIES and the target CAIRO::CAIRO.
find_path(CAIRO_INCLUDE_DIR cairo/cairo.h)
find_library(CAIRO_LIBRARY cairo)
if(CAIRO_INCLUDE_DIR)
  file(STRINGS ${CAIRO_INCLUDE_DIR}/cairo/cairo-version.h lines REGEX "define CAIRO_VERSION_(MAJOR|MINOR|MICRO) +[0-9]+")
  list(TRANSFORM lines REPLACE "[^0-9]+" "")
  list(JOIN lines "." CAIRO_VERSION)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAIRO REQUIRED_VARS CAIRO_LIBRARY CAIRO_INCLUDE_DIR VERSION_VAR CAIRO_VERSION)
set(CAIRO_LIBRARIES ${CAIRO_LIBRARY})
mark_as_advanced(CAIRO_INCLUDE_DIR CAIRO_LIBRARY)
if(CAIRO_FOUND AND NOT TARGET CAIRO::CAIRO)
  add_library(CAIRO::CAIRO UNKNOWN IMPORTED)
  # <cairo/cairo.h> includes its neighbours without a folder, as quoted names.
  set_target_properties(CAIRO::CAIRO PROPERTIES IMPORTED_LOCATION ${CAIRO_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${CAIRO_INCLUDE_DIR})
endif()
