# One library per folder, found by convention, so that a new file needs no edit here:
#   foo.cpp, foo_reference.cpp, foo_cpu.cpp   always
#   foo_onednn.cpp, foo_mpi.cpp, foo_gloo.cpp, foo_nccl.cpp, foo_cublas.cpp, foo_cudnn.cpp, foo_png.cpp, foo_jpeg.cpp,
#   foo_cairo.cpp                             only where that library is in the build
#   foo_no_mpi.cpp, foo_no_onednn.cpp, ...    only where it is not: the same functions, which tell what to install
#   foo_linux.cpp, foo_no_linux.cpp           only on Linux, and only on other systems
#   foo_cuda.cpp, foo.cu                      only with the CUDA device; .cu only where there is device code
# It links only against those it may use: an include from elsewhere does not link.
include(GNUInstallDirs)

# tandem_include_directories(target PUBLIC|PRIVATE): where "tandem/<library>/..." is: in the source tree by links in
# include/tandem, which leave the libraries' folders where a reader looks for them; installed under that very path.
function(tandem_include_directories target scope)
  target_include_directories(${target} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()

# tandem_library_properties(target name): what all libraries have; `name` stands behind tandem:: in the installed package.
# Shared ones find each other beside themselves. Before 1.0 a minor version may break what was linked with another.
function(tandem_library_properties target name)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON DEFINE_SYMBOL ""
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} INSTALL_RPATH $ORIGIN)
  # Who links code with sanitizers in it needs their libraries.
  target_link_options(${target} INTERFACE $<INSTALL_INTERFACE:${TANDEM_SANITIZER_FLAGS}>)
endfunction()

# tandem_library(NAME core [DEPENDS tandem::x ...] [PRIVATE lib ...] [PRIVATE_HEADERS lib ...]): PRIVATE_HEADERS are
# libraries without code, which nobody needs who links this one
function(tandem_library)
  cmake_parse_arguments(LIBRARY "" "NAME" "DEPENDS;PRIVATE;PRIVATE_HEADERS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cu)
  foreach(feature ONEDNN MPI GLOO NCCL CUBLAS CUDNN PNG JPEG CAIRO CUDA LINUX)
    string(TOLOWER ${feature} suffix)
    set(absent ${sources})
    list(FILTER absent INCLUDE REGEX "_no_${suffix}\\.cpp$")
    if(TANDEM_HAS_${feature})
      list(FILTER sources EXCLUDE REGEX "_no_${suffix}\\.cpp$")
    else()
      list(FILTER sources EXCLUDE REGEX "_${suffix}\\.cpp$")
      list(APPEND sources ${absent})
    endif()
  endforeach()
  if(TANDEM_HAS_CUDA)
    list(APPEND sources ${cuda_sources})
  endif()

  add_library(tandem_${LIBRARY_NAME} ${TANDEM_LIBRARY_KIND} ${sources})
  add_library(tandem::${LIBRARY_NAME} ALIAS tandem_${LIBRARY_NAME})
  set_property(GLOBAL APPEND PROPERTY TANDEM_LIBRARIES ${LIBRARY_NAME})
  tandem_library_properties(tandem_${LIBRARY_NAME} ${LIBRARY_NAME})
  target_precompile_headers(tandem_${LIBRARY_NAME} REUSE_FROM tandem_library_headers)
  tandem_include_directories(tandem_${LIBRARY_NAME} PUBLIC)
  target_compile_features(tandem_${LIBRARY_NAME} PUBLIC cxx_std_20)
  target_link_libraries(tandem_${LIBRARY_NAME} PUBLIC ${LIBRARY_DEPENDS} PRIVATE ${LIBRARY_PRIVATE})
  foreach(library tandem_settings ${LIBRARY_PRIVATE_HEADERS})
    target_link_libraries(tandem_${LIBRARY_NAME} PRIVATE $<BUILD_INTERFACE:${library}>)
  endforeach()
  # Errors of other libraries name the line of the call, by its path in this tree.
  set(callers ${sources})
  list(FILTER callers INCLUDE REGEX "_(mpi|nccl|cublas|cudnn|cuda)\\.cpp$")
  set_property(SOURCE ${callers} APPEND PROPERTY COMPILE_OPTIONS -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
  # Headers of CUDA are for those that are named after it.
  set(device_sources ${sources})
  list(FILTER device_sources INCLUDE REGEX "(\\.cu|_(cuda|nccl|cublas|cudnn)\\.cpp)$")
  if(TANDEM_CUDA_IS_SIMULATED)
    tandem_simulated_sources(${cuda_sources})
    tandem_simulated_headers(${cuda_sources})
    tandem_source_settings(FILES ${device_sources} INCLUDES ${PROJECT_SOURCE_DIR}/simulator/include)
    target_link_libraries(tandem_${LIBRARY_NAME} PRIVATE $<LINK_ONLY:tandem::simulator>)
  elseif(TANDEM_HAS_CUDA)
    list(FILTER device_sources EXCLUDE REGEX "\\.cu$")  # nvcc knows the way
    tandem_source_settings(FILES ${device_sources} INCLUDES ${CUDAToolkit_INCLUDE_DIRS})
    target_link_libraries(tandem_${LIBRARY_NAME} PRIVATE $<LINK_ONLY:${TANDEM_CUDA_RUNTIME}>)
  endif()
endfunction()
