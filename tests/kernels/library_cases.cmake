# Libraries that pretend to be cuBLAS and cuDNN, in builds that know their headers.
function(tandem_fake_vendor_library name source)
  tandem_fake_library(tandem_kernels_tests ${name} ${source} ${ARGN})
  string(TOLOWER "tandem_fake_${name}" library)
  target_link_libraries(${library} PRIVATE tandem::core CUDA::cudart_static)
  target_include_directories(${library} SYSTEM PRIVATE
    ${CUDAToolkit_INCLUDE_DIRS} ${CuBLAS_INCLUDE_DIR} ${CuDNN_INCLUDE_DIR})
endfunction()

if(TANDEM_HAS_CUBLAS AND TANDEM_HAS_CUDNN)
  set(fake_cublas ${CMAKE_CURRENT_LIST_DIR}/fake_cublas/cublas.cpp)
  set(fake_cudnn ${CMAKE_CURRENT_LIST_DIR}/fake_cudnn/cudnn.cpp)
  tandem_fake_vendor_library(CUBLAS ${fake_cublas} FAKE_CUBLAS_MAJOR=${CuBLAS_VERSION_MAJOR})
  tandem_fake_vendor_library(CUBLAS_TOO_OLD ${fake_cublas} FAKE_CUBLAS_MAJOR=9)
  tandem_fake_vendor_library(CUBLAS_TOO_NEW ${fake_cublas} FAKE_CUBLAS_MAJOR=99)
  tandem_fake_vendor_library(CUDNN ${fake_cudnn} FAKE_CUDNN_VERSION=91900)
  tandem_fake_vendor_library(CUDNN_TOO_OLD ${fake_cudnn} FAKE_CUDNN_VERSION=8907)
  tandem_fake_vendor_library(CUDNN_TOO_NEW ${fake_cudnn} FAKE_CUDNN_VERSION=100200)
  target_sources(tandem_kernels_tests PRIVATE ${CMAKE_CURRENT_LIST_DIR}/fake_cublas/cublas_calls.cpp
    ${CMAKE_CURRENT_LIST_DIR}/fake_cudnn/cudnn_calls.cpp)
endif()
