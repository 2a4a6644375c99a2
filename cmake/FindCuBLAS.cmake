# Finds cublas_v2.h, and the library's file where there is one: CuBLAS_INCLUDE_DIR, CuBLAS_LIBRARY (may be missing),
# CuBLAS_VERSION, CuBLAS_VERSION_MAJOR. Looks beside the CUDA toolkit, where `pip install nvidia-cublas` puts them, and in
# the system.
include(TandemPythonPackages)
tandem_nvidia_python_packages(python_folders)
find_path(CuBLAS_INCLUDE_DIR NAMES cublas_v2.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${python_folders} PATH_SUFFIXES include)
mark_as_advanced(CuBLAS_INCLUDE_DIR CuBLAS_LIBRARY)

if(CuBLAS_INCLUDE_DIR)
  file(STRINGS ${CuBLAS_INCLUDE_DIR}/cublas_api.h version_lines REGEX "#define CUBLAS_VER_(MAJOR|MINOR|PATCH) +[0-9]+")
  string(REGEX REPLACE "#define CUBLAS_VER_[A-Z]+ +" "" version_numbers "${version_lines}")
  list(GET version_numbers 0 CuBLAS_VERSION_MAJOR)
  list(JOIN version_numbers "." CuBLAS_VERSION)
  find_library(CuBLAS_LIBRARY NAMES libcublas.so.${CuBLAS_VERSION_MAJOR}
    HINTS ${CUDAToolkit_LIBRARY_DIR} ${python_folders} PATH_SUFFIXES lib)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CuBLAS REQUIRED_VARS CuBLAS_INCLUDE_DIR VERSION_VAR CuBLAS_VERSION)
