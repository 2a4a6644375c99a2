# Libraries that pretend to be cuBLAS and cuDNN, in builds that know their headers.
function(tandem_fake_vendor_library program name source)
  tandem_fake_library(${program} ${name} ${source} ${ARGN})
  string(TOLOWER "tandem_fake_${name}" library)
  target_link_libraries(${library} PRIVATE tandem::core CUDA::cudart_static)
  target_include_directories(${library} SYSTEM PRIVATE
    ${CUDAToolkit_INCLUDE_DIRS} ${CuBLAS_INCLUDE_DIR} ${CuDNN_INCLUDE_DIR})
endfunction()

if(TANDEM_HAS_CUBLAS AND TANDEM_HAS_CUDNN)
  set(fake_cublas ${CMAKE_CURRENT_LIST_DIR}/fake_cublas/cublas.cpp)
  tandem_fake_vendor_library(tandem_kernels_tests CUBLAS ${fake_cublas} FAKE_CUBLAS_MAJOR=${CuBLAS_VERSION_MAJOR})
  tandem_fake_vendor_library(tandem_kernels_tests CUBLAS_TOO_OLD ${fake_cublas} FAKE_CUBLAS_MAJOR=9)
  tandem_fake_vendor_library(tandem_kernels_tests CUBLAS_TOO_NEW ${fake_cublas} FAKE_CUBLAS_MAJOR=99)
  target_sources(tandem_kernels_tests PRIVATE ${CMAKE_CURRENT_LIST_DIR}/fake_cublas/cublas_calls.cpp
    ${CMAKE_CURRENT_LIST_DIR}/fake_cudnn/installed_cudnn.cpp)

  # A program of its own: a process works with one cuDNN, and the other tests work with the one that is installed.
  add_executable(tandem_cudnn_tests ${CMAKE_CURRENT_LIST_DIR}/fake_cudnn/cudnn_calls.cpp)
  target_precompile_headers(tandem_cudnn_tests REUSE_FROM tandem_test_headers)
  target_link_libraries(tandem_cudnn_tests PRIVATE tandem_test_support tandem::kernels CUDA::cudart_static)
  set(fake_cudnn ${CMAKE_CURRENT_LIST_DIR}/fake_cudnn/cudnn.cpp)
  tandem_fake_vendor_library(tandem_cudnn_tests CUDNN ${fake_cudnn} FAKE_CUDNN_VERSION=91900)
  tandem_fake_vendor_library(tandem_cudnn_tests CUDNN_LATER ${fake_cudnn} FAKE_CUDNN_VERSION=92800)
  tandem_fake_vendor_library(tandem_cudnn_tests CUDNN_TOO_OLD ${fake_cudnn} FAKE_CUDNN_VERSION=8907)
  tandem_fake_vendor_library(tandem_cudnn_tests CUDNN_TOO_NEW ${fake_cudnn} FAKE_CUDNN_VERSION=100200)
  # Each refuses the other's library.
  foreach(program tandem_kernels_tests tandem_cudnn_tests)
    target_compile_definitions(${program} PRIVATE "FAKE_CUBLAS=\"$<TARGET_FILE:tandem_fake_cublas>\""
      "FAKE_CUDNN=\"$<TARGET_FILE:tandem_fake_cudnn>\"")
    add_dependencies(${program} tandem_fake_cublas tandem_fake_cudnn)
  endforeach()
  tandem_discover_tests(tandem_cudnn_tests kernels)
endif()
