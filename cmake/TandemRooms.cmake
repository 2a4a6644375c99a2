# One library per room, found by convention, so that a new file needs no edit here:
#   foo.cpp, foo_reference.cpp, foo_cpu.cpp   always
#   foo_onednn.cpp, foo_mpi.cpp, foo_nccl.cpp, foo_cublas.cpp, foo_cudnn.cpp
#                                             only where that library is in the build
#   foo_cuda.cpp, foo.cu                      only with the CUDA device; .cu only where there is device code
# A room links only against the rooms it may use: an include from elsewhere does not link.
include(GNUInstallDirs)

# tandem_room(NAME core [DEPENDS tandem::x ...] [PRIVATE lib ...])
function(tandem_room)
  cmake_parse_arguments(ROOM "" "NAME" "DEPENDS;PRIVATE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cu)
  foreach(feature ONEDNN MPI NCCL CUBLAS CUDNN CUDA)
    if(NOT TANDEM_HAS_${feature})
      string(TOLOWER ${feature} suffix)
      list(FILTER sources EXCLUDE REGEX "_${suffix}\\.cpp$")
    endif()
  endforeach()
  if(TANDEM_HAS_CUDA)
    list(APPEND sources ${cuda_sources})
  endif()

  add_library(tandem_${ROOM_NAME} STATIC ${sources})
  add_library(tandem::${ROOM_NAME} ALIAS tandem_${ROOM_NAME})
  set_target_properties(tandem_${ROOM_NAME} PROPERTIES EXPORT_NAME ${ROOM_NAME} POSITION_INDEPENDENT_CODE ON)
  target_precompile_headers(tandem_${ROOM_NAME} REUSE_FROM tandem_room_headers)
  target_include_directories(tandem_${ROOM_NAME} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tandem>)
  target_link_libraries(tandem_${ROOM_NAME} PUBLIC tandem_settings ${ROOM_DEPENDS} PRIVATE ${ROOM_PRIVATE})
  # Headers of CUDA are for those that are named after it.
  set(device_sources ${sources})
  list(FILTER device_sources INCLUDE REGEX "(\\.cu|_(cuda|nccl|cublas|cudnn)\\.cpp)$")
  if(TANDEM_CUDA_IS_SIMULATED)
    tandem_simulated_sources(${cuda_sources})
    tandem_simulated_headers(${cuda_sources})
    tandem_source_settings(FILES ${device_sources} INCLUDES ${PROJECT_SOURCE_DIR}/simulator/include)
    target_link_libraries(tandem_${ROOM_NAME} PRIVATE $<LINK_ONLY:tandem::simulator>)
  elseif(TANDEM_HAS_CUDA)
    list(FILTER device_sources EXCLUDE REGEX "\\.cu$")  # nvcc knows the way
    tandem_source_settings(FILES ${device_sources} INCLUDES ${CUDAToolkit_INCLUDE_DIRS})
    target_link_libraries(tandem_${ROOM_NAME} PRIVATE $<LINK_ONLY:CUDA::cudart_static>)
  endif()
endfunction()
