# The example of docs/adding-an-op.md, as it stands there: its files are taken out of the page, compiled as those of the
# libraries are, and linked with the programs of tests, which then run this op alone. In preset `cpu` that is the op table
# on the CPU and the layer; in `simulated` the op table on the device, and the lint.
find_program(TANDEM_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
mark_as_advanced(TANDEM_PYTHON)
if(NOT TANDEM_PYTHON OR TANDEM_SANITIZE)
  return()
endif()

# tandem_example_program(program tests SOURCES file ... [LIBRARIES lib ...]): the program `tests` with these sources in it
function(tandem_example_program program tests)
  cmake_parse_arguments(PARSE_ARGV 2 EXAMPLE "" "" "SOURCES;LIBRARIES")
  add_executable(${program} ${EXAMPLE_SOURCES} $<TARGET_OBJECTS:${tests}>)
  target_include_directories(${program} BEFORE PRIVATE ${example}/include)
  target_precompile_headers(${program} REUSE_FROM tandem_test_headers)
  target_link_libraries(${program} PRIVATE tandem_example_op tandem_test_support ${EXAMPLE_LIBRARIES})
endfunction()

set(page ${PROJECT_SOURCE_DIR}/docs/adding-an-op.md)
set(extract ${PROJECT_SOURCE_DIR}/scripts/extract_example.py)
set(example ${CMAKE_CURRENT_BINARY_DIR}/adding_an_op)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page} ${extract}
  ${PROJECT_SOURCE_DIR}/autograd/functions.h ${PROJECT_SOURCE_DIR}/layers/layers.h)
execute_process(COMMAND ${TANDEM_PYTHON} ${extract} ${page} ${example} COMMAND_ERROR_IS_FATAL ANY)
file(STRINGS ${example}/files.txt sources REGEX "\\.(cpp|cu)$")
list(TRANSFORM sources PREPEND ${example}/)

set(library_sources ${sources})
list(FILTER library_sources EXCLUDE REGEX "^${example}/tests/|\\.cu$")
set(cuda_sources ${sources})
list(FILTER cuda_sources INCLUDE REGEX "\\.cu$")
if(TANDEM_CUDA_IS_SIMULATED)
  tandem_simulated_sources(${cuda_sources})
  tandem_simulated_headers(${cuda_sources})
endif()
if(TANDEM_HAS_CUDA)
  list(APPEND library_sources ${cuda_sources})
endif()
add_library(tandem_example_op OBJECT ${library_sources})
set_target_properties(tandem_example_op PROPERTIES POSITION_INDEPENDENT_CODE ON COMPILE_OPTIONS "")
target_include_directories(tandem_example_op BEFORE PRIVATE ${example}/include)
target_precompile_headers(tandem_example_op REUSE_FROM tandem_library_headers)
target_link_libraries(tandem_example_op PUBLIC tandem::tandem)
if(TANDEM_CUDA_IS_SIMULATED)
  target_link_libraries(tandem_example_op PUBLIC tandem::simulator)
endif()

set(op_case ${example}/tests/op_cases/hard_tanh_cases.cpp)
if(TANDEM_HAS_CUDA)
  tandem_example_program(tandem_example_op_tests tandem_op_cases_tests SOURCES ${op_case} LIBRARIES tandem_op_table)
  add_test(NAME "docs: the example of adding an op, on CUDA"
    COMMAND tandem_example_op_tests "[cuda]" -w NoAssertions -c hard_tanh)
  set(tests "docs: the example of adding an op, on CUDA")
  if(TARGET tandem_lint_tests)
    tandem_example_program(tandem_example_lint_tests tandem_lint_tests
      SOURCES ${example}/tests/lint/hard_tanh_cases.cpp LIBRARIES tandem::simulator)
    add_test(NAME "docs: the example of adding an op, its memory traffic"
      COMMAND tandem_example_lint_tests "kernels move*" -w NoAssertions -c hard_tanh)
    list(APPEND tests "docs: the example of adding an op, its memory traffic")
    add_dependencies(simulated_suite tandem_example_lint_tests)
  endif()
  if(TANDEM_CUDA_IS_SIMULATED)
    add_dependencies(simulated_suite tandem_example_op_tests)
    set_tests_properties(${tests} PROPERTIES LABELS simulated)
  endif()
else()
  tandem_example_program(tandem_example_op_tests tandem_op_cases_tests
    SOURCES ${op_case} ${example}/tests/layers/test_hard_tanh.cpp LIBRARIES tandem_op_table)
  add_test(NAME "docs: the example of adding an op, on the CPU"
    COMMAND tandem_example_op_tests "[op_table]" -w NoAssertions -c hard_tanh)
  add_test(NAME "docs: the example of adding an op, its layer" COMMAND tandem_example_op_tests "*HardTanh*" -w NoAssertions)
endif()
