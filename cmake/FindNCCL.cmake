# Finds nccl.h, and the library's file where there is one: NCCL_INCLUDE_DIR, NCCL_LIBRARY (may be missing), NCCL_VERSION.
# Looks beside the CUDA toolkit, where `pip install nvidia-nccl-cu13` puts them, and in the system.
include(TandemPythonPackages)
tandem_nvidia_python_packages(python_folders)
find_path(NCCL_INCLUDE_DIR NAMES nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${python_folders} PATH_SUFFIXES include)
find_library(NCCL_LIBRARY NAMES libnccl.so.2 HINTS ${CUDAToolkit_LIBRARY_DIR} ${python_folders} PATH_SUFFIXES lib)
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)

if(NCCL_INCLUDE_DIR)
  file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h version_lines REGEX "#define NCCL_(MAJOR|MINOR|PATCH) +[0-9]+")
  string(REGEX REPLACE "#define NCCL_[A-Z]+ +" "" version_numbers "${version_lines}")
  list(JOIN version_numbers "." NCCL_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)
