# Libraries: required small ones, and optional ones that are used where found.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Threads REQUIRED)

# Sets TANDEM_HAS_<feature> to 0 or 1; an ON that is not found is an error that says what to install.
function(tandem_optional feature found hint)
  if(TANDEM_${feature} STREQUAL "OFF" OR NOT found)
    if(TANDEM_${feature} STREQUAL "ON")
      message(FATAL_ERROR "TANDEM_${feature}=ON, but it was not found: ${hint}")
    endif()
    set(TANDEM_HAS_${feature} 0 PARENT_SCOPE)
  else()
    set(TANDEM_HAS_${feature} 1 PARENT_SCOPE)
  endif()
endfunction()

set(MPI_CXX_FOUND FALSE)
if(NOT TANDEM_MPI STREQUAL "OFF")
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI COMPONENTS CXX QUIET)
endif()
tandem_optional(MPI "${MPI_CXX_FOUND}" "install libopenmpi-dev and openmpi-bin")

set(OneDNN_FOUND FALSE)
if(NOT TANDEM_ONEDNN STREQUAL "OFF")
  find_package(OneDNN QUIET)
endif()
tandem_optional(ONEDNN "${OneDNN_FOUND}" "install libdnnl-dev")

set(TANDEM_HAS_CUDA 0)
set(TANDEM_CUDA_IS_SIMULATED 0)
if(TANDEM_CUDA STREQUAL "ON")
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 90a)
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  # CMake before 3.26 does not know that nvcc has had C++20 since 12.0.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(TANDEM_HAS_CUDA 1)
endif()

if(TANDEM_CUDA STREQUAL "SIMULATED")
  include(TandemSimulator)
  set(TANDEM_HAS_CUDA 1)
  set(TANDEM_CUDA_IS_SIMULATED 1)
endif()

# Only the header: programs look for the library when they need it. NCCL's ranks find each other over MPI.
set(NCCL_FOUND FALSE)
if(TANDEM_CUDA STREQUAL "ON" AND TANDEM_HAS_MPI AND NOT TANDEM_NCCL STREQUAL "OFF")
  find_package(NCCL 2.14 QUIET)
endif()
tandem_optional(NCCL "${NCCL_FOUND}" "it takes nccl.h of 2.14 or newer (libnccl-dev), TANDEM_CUDA=ON and MPI")

# cuBLAS and cuDNN, too, are headers to the build and files to look for at run time.
set(CuBLAS_FOUND FALSE)
if(TANDEM_CUDA STREQUAL "ON" AND NOT TANDEM_CUBLAS STREQUAL "OFF")
  find_package(CuBLAS 12 QUIET)
endif()
tandem_optional(CUBLAS "${CuBLAS_FOUND}" "it takes cublas_v2.h of the CUDA toolkit (libcublas-dev) and TANDEM_CUDA=ON")

set(CuDNN_FOUND FALSE)
if(TANDEM_CUDA STREQUAL "ON" AND NOT TANDEM_CUDNN STREQUAL "OFF")
  find_package(CuDNN 9 QUIET)
endif()
tandem_optional(CUDNN "${CuDNN_FOUND}" "it takes cudnn.h of version 9 (pip install nvidia-cudnn-cu13) and TANDEM_CUDA=ON")

target_compile_definitions(tandem_settings INTERFACE TANDEM_HAS_CUDA=${TANDEM_HAS_CUDA})

# tandem_source_settings(FILES file ... [FEATURES feature ...] [DEFINITIONS a=b ...] [INCLUDES folder ...]): tells these
# files which features are there (TANDEM_HAS_<feature>), and where foreign headers are. Not whole targets: all other files
# then compile alike in builds with and without those libraries, which share the compiler cache.
function(tandem_source_settings)
  cmake_parse_arguments(SET "" "" "FILES;FEATURES;DEFINITIONS;INCLUDES" ${ARGN})
  foreach(feature ${SET_FEATURES})
    list(APPEND SET_DEFINITIONS TANDEM_HAS_${feature}=${TANDEM_HAS_${feature}})
  endforeach()
  list(FILTER SET_DEFINITIONS EXCLUDE REGEX "-NOTFOUND$")  # properties that a library's target lacks
  list(FILTER SET_INCLUDES EXCLUDE REGEX "-NOTFOUND$")
  list(TRANSFORM SET_INCLUDES PREPEND "-isystem;")
  if(SET_FILES)
    set_property(SOURCE ${SET_FILES} APPEND PROPERTY COMPILE_DEFINITIONS ${SET_DEFINITIONS})
    set_property(SOURCE ${SET_FILES} APPEND PROPERTY COMPILE_OPTIONS ${SET_INCLUDES})
  endif()
endfunction()
