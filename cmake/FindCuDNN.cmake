# Finds cudnn.h, and the library's file where there is one: CuDNN_INCLUDE_DIR, CuDNN_LIBRARY (may be missing),
# CuDNN_VERSION. Looks in the system, beside the CUDA toolkit, and where `pip install nvidia-cudnn-cu13` puts them.
include(TandemPythonPackages)
tandem_nvidia_python_packages(python_folders)
find_path(CuDNN_INCLUDE_DIR NAMES cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${python_folders} PATH_SUFFIXES include)
find_library(CuDNN_LIBRARY NAMES libcudnn.so.9 HINTS ${CUDAToolkit_LIBRARY_DIR} ${python_folders} PATH_SUFFIXES lib)
mark_as_advanced(CuDNN_INCLUDE_DIR CuDNN_LIBRARY)

if(EXISTS ${CuDNN_INCLUDE_DIR}/cudnn_version.h)
  file(STRINGS ${CuDNN_INCLUDE_DIR}/cudnn_version.h version_lines
    REGEX "#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) +[0-9]+")
  string(REGEX REPLACE "#define CUDNN_[A-Z]+ +" "" version_numbers "${version_lines}")
  list(JOIN version_numbers "." CuDNN_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CuDNN REQUIRED_VARS CuDNN_INCLUDE_DIR VERSION_VAR CuDNN_VERSION)
