# Finds the headers of NVIDIA's cudnn-frontend: CuDNNFrontend_INCLUDE_DIR, CuDNNFrontend_VERSION. Looks in the system,
# beside the CUDA toolkit, and where `pip install --no-deps nvidia-cudnn-frontend` puts them.
include(TandemPythonPackages)
tandem_python_folders(python_folders)
find_path(CuDNNFrontend_INCLUDE_DIR NAMES cudnn_frontend.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${python_folders}
  PATH_SUFFIXES include)
mark_as_advanced(CuDNNFrontend_INCLUDE_DIR)

if(EXISTS ${CuDNNFrontend_INCLUDE_DIR}/cudnn_frontend_version.h)
  file(STRINGS ${CuDNNFrontend_INCLUDE_DIR}/cudnn_frontend_version.h version_lines
    REGEX "#define CUDNN_FRONTEND_(MAJOR|MINOR|PATCH)_VERSION +[0-9]+")
  string(REGEX REPLACE "#define CUDNN_FRONTEND_[A-Z]+_VERSION +" "" version_numbers "${version_lines}")
  list(JOIN version_numbers "." CuDNNFrontend_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CuDNNFrontend REQUIRED_VARS CuDNNFrontend_INCLUDE_DIR
  VERSION_VAR CuDNNFrontend_VERSION)
