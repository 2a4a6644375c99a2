# Finds oneDNN by header and library and makes the target OneDNN::dnnl. oneDNN's own package file is not used: Debian's
# insists on OpenCL headers that the CPU library does not need.
find_path(OneDNN_INCLUDE_DIR NAMES dnnl.hpp PATH_SUFFIXES oneapi/dnnl)
find_library(OneDNN_LIBRARY NAMES dnnl)
mark_as_advanced(OneDNN_INCLUDE_DIR OneDNN_LIBRARY)

if(OneDNN_INCLUDE_DIR)
  foreach(header dnnl_version.h oneapi/dnnl/dnnl_version.h)
    if(EXISTS ${OneDNN_INCLUDE_DIR}/${header})
      file(STRINGS ${OneDNN_INCLUDE_DIR}/${header} version_lines REGEX "#define DNNL_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
      if(version_lines)
        string(REGEX REPLACE "#define DNNL_VERSION_[A-Z]+ +" "" version_numbers "${version_lines}")
        list(JOIN version_numbers "." OneDNN_VERSION)
      endif()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN REQUIRED_VARS OneDNN_LIBRARY OneDNN_INCLUDE_DIR VERSION_VAR OneDNN_VERSION)

if(OneDNN_FOUND AND NOT TARGET OneDNN::dnnl)
  add_library(OneDNN::dnnl UNKNOWN IMPORTED)
  set_target_properties(OneDNN::dnnl PROPERTIES
    IMPORTED_LOCATION ${OneDNN_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${OneDNN_INCLUDE_DIR})
endif()
