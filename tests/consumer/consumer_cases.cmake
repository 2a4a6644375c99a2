# Programs of another project, which use the library installed from this build, or its sources (see check_program.sh).
set(consumer_environment CXX=${CMAKE_CXX_COMPILER} ${TANDEM_MPI_TEST_ENVIRONMENT} LAUNCHER=${TANDEM_CCACHE} SHARED=${TANDEM_SHARED}
  # What ccache needs to keep anything here (cmake/TandemOptions.cmake), in another clone as well.
  CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1)
if(TANDEM_HAS_MPI)
  list(APPEND consumer_environment "MPIEXEC=${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG}")
endif()
if(TANDEM_CUDA_IS_SIMULATED)
  list(APPEND consumer_environment DEVICE=cuda)
elseif(TANDEM_CUDA STREQUAL "ON")
  list(APPEND consumer_environment CUDA=ON CUDACXX=${CMAKE_CUDA_COMPILER})
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT TANDEM_CUDA_IS_SIMULATED)  # others are compiled with -g
  list(APPEND consumer_environment BINARIES=1)
endif()

# tandem_consumer_test(name what folder): `what` of check_program.sh
function(tandem_consumer_test name what folder)
  add_test(NAME "${name}" COMMAND ${PROJECT_SOURCE_DIR}/tests/consumer/check_program.sh ${what} ${PROJECT_SOURCE_DIR}
    ${PROJECT_BINARY_DIR} ${CMAKE_CURRENT_BINARY_DIR}/consumer/${folder})
  set_tests_properties("${name}" PROPERTIES ENVIRONMENT "${consumer_environment}" TIMEOUT 300 SKIP_RETURN_CODE 77 ${ARGN})
  if(TANDEM_CUDA_IS_SIMULATED)
    set_property(TEST "${name}" APPEND PROPERTY LABELS simulated)
  endif()
endfunction()

tandem_consumer_test("consumer: the installed tree is complete and can be moved" install installed
  FIXTURES_SETUP installed)
# The page's program runs on simulated GPUs as well.
find_program(TANDEM_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
mark_as_advanced(TANDEM_PYTHON)
if(TANDEM_PYTHON AND NOT TANDEM_SANITIZE)
  tandem_consumer_test("docs: a program of your own, by find_package, on one rank and on two" page installed
    FIXTURES_REQUIRED installed)
endif()
if(TANDEM_HAS_CUDA AND TANDEM_PYTHON AND NOT TANDEM_SANITIZE)
  tandem_consumer_test("docs: an element-wise function of your own in a .cu file" functor installed FIXTURES_REQUIRED installed)
endif()
if(TANDEM_CUDA_IS_SIMULATED)
  return()
endif()
tandem_consumer_test("consumer: find_package, on one rank and on two" cmake installed FIXTURES_REQUIRED installed)
tandem_consumer_test("consumer: pkg-config, on one rank and on two" pkg-config installed FIXTURES_REQUIRED installed)
if(TANDEM_SANITIZE OR TANDEM_CUDA STREQUAL "ON")  # the rest has nothing of CUDA in it
  return()
endif()
if(TANDEM_PYTHON)
  tandem_consumer_test("docs: lists of modules, weights of another model, freezing and hooks" modules installed
    FIXTURES_REQUIRED installed)
endif()
if(TANDEM_PYTHON AND TANDEM_HAS_PNG)
  if(TANDEM_HAS_MPI AND TANDEM_BUILD_APPS)  # its commands are theirs
    tandem_consumer_test("docs: tutorial, its programs, answers and commands" tutorial installed FIXTURES_REQUIRED installed)
  endif()
  tandem_consumer_test("consumer: the programs of examples/ learn, on one rank and on two" examples installed
    FIXTURES_REQUIRED installed)
endif()
add_test(NAME "docs: the README shows examples/train.cpp"
  COMMAND ${CMAKE_COMMAND} -DREPOSITORY=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_LIST_DIR}/shown_program.cmake)
add_test(NAME "docs: the programs of examples/ are short"
  COMMAND ${CMAKE_COMMAND} -DREPOSITORY=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_LIST_DIR}/example_lengths.cmake)
if(TANDEM_PYTHON AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # whose pace the limits are of
  add_test(NAME "consumer: what programs include is compiled in a moment" COMMAND ${TANDEM_PYTHON}
    ${CMAKE_CURRENT_LIST_DIR}/check_compile_time.py ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} ${CMAKE_CXX_COMPILER})
  set_tests_properties("consumer: what programs include is compiled in a moment" PROPERTIES TIMEOUT 300)
endif()
tandem_consumer_test("consumer: a part of another project leaves that as it is" configure part)
# (Three minutes on two cores where the compiler cache knows none of it: without optimization.)
tandem_consumer_test("consumer: a part of another project is compiled with it, on one rank and on two" subproject compiled_part
  TIMEOUT 1500 PROCESSORS 2 LABELS long)
