# New ops, as a reader of docs/adding-an-op.md makes them: compiled as the libraries are, and linked with the programs of
# tests, which then run this op alone. In preset `cpu` that is the op table on the CPU, the layer, and the examples in
# headers; in `simulated` the op table on the device, and the lint. One op is the example as it stands in the page, the
# other is made by scripts/new_op.py.
find_program(TANDEM_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
mark_as_advanced(TANDEM_PYTHON)
if(NOT TANDEM_PYTHON OR TANDEM_SANITIZE)
  return()
endif()

# tandem_new_op(name folder): compiles the files that lie in `folder`, and leaves tests to link in `new_op_tests`
function(tandem_new_op name folder)
  file(STRINGS ${folder}/files.txt sources REGEX "\\.(cpp|cu)$")
  list(TRANSFORM sources PREPEND ${folder}/)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "^${folder}/tests/")
  set(new_op_tests ${tests} PARENT_SCOPE)
  set(cuda_sources ${sources})
  list(FILTER cuda_sources INCLUDE REGEX "\\.cu$")
  list(REMOVE_ITEM sources ${tests} ${cuda_sources})
  if(TANDEM_HAS_CUDA)
    list(APPEND sources ${cuda_sources})
  endif()
  if(TANDEM_CUDA_IS_SIMULATED)
    tandem_simulated_sources(${cuda_sources})
    tandem_simulated_headers(${cuda_sources})
  endif()
  add_library(tandem_${name} OBJECT ${sources})
  # The options of libraries, not those of programs.
  set_target_properties(tandem_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON COMPILE_OPTIONS "")
  target_include_directories(tandem_${name} BEFORE PRIVATE ${folder}/include)
  target_precompile_headers(tandem_${name} REUSE_FROM tandem_library_headers)
  target_link_libraries(tandem_${name} PUBLIC tandem::tandem $<$<BOOL:${TANDEM_CUDA_IS_SIMULATED}>:tandem::simulator>)
endfunction()

# tandem_new_op_examples(folder): adds a program of the examples in the op's headers to `new_op_tests`
function(tandem_new_op_examples folder)
  set(program ${folder}/tests/examples/examples.cpp)
  set(make_program ${PROJECT_SOURCE_DIR}/tests/examples/make_program.py)
  file(MAKE_DIRECTORY ${folder}/tests/examples)
  file(STRINGS ${folder}/files.txt headers REGEX "\\.h$")
  list(TRANSFORM headers PREPEND ${folder}/)
  add_custom_command(OUTPUT ${program}
    COMMAND ${TANDEM_PYTHON} ${make_program} ${scripts} ${program} ${folder}
    DEPENDS ${make_program} ${scripts}/header_examples.py ${headers} VERBATIM)
  set(new_op_tests ${new_op_tests} ${program} PARENT_SCOPE)
endfunction()

# tandem_new_op_test(name folder program "test name" SOURCES regex SPEC tests SECTION section): a test of the program with
# those tests of the op in it; it must check something
function(tandem_new_op_test name folder program test)
  cmake_parse_arguments(PARSE_ARGV 4 OP "" "SPEC;SECTION;SOURCES" "")
  set(sources ${new_op_tests})
  list(FILTER sources INCLUDE REGEX "^${folder}/tests/(${OP_SOURCES})/")
  set(target tandem_${name}_in_${program})
  add_executable(${target} ${sources} $<TARGET_OBJECTS:tandem_${program}>)
  target_include_directories(${target} BEFORE PRIVATE ${folder}/include)
  target_precompile_headers(${target} REUSE_FROM tandem_test_headers)
  target_link_libraries(${target} PRIVATE tandem_${name} tandem_op_table tandem_test_support)
  add_test(NAME ${test} COMMAND ${target} ${OP_SPEC} -c ${OP_SECTION})
  if(TANDEM_CUDA STREQUAL "ON")
    set_tests_properties(${test} PROPERTIES SKIP_RETURN_CODE 77)
  else()
    set_tests_properties(${test} PROPERTIES FAIL_REGULAR_EXPRESSION "- none -")
  endif()
  if(TANDEM_CUDA_IS_SIMULATED)
    add_dependencies(simulated_suite ${target})
    set_tests_properties(${test} PROPERTIES LABELS simulated)
  endif()
endfunction()

set(page ${PROJECT_SOURCE_DIR}/docs/adding-an-op.md)
set(scripts ${PROJECT_SOURCE_DIR}/scripts)
set(example ${CMAKE_CURRENT_BINARY_DIR}/adding_an_op/example)
set(generated ${CMAKE_CURRENT_BINARY_DIR}/adding_an_op/generated)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page} ${scripts}/extract_example.py ${scripts}/new_op.py
  ${PROJECT_SOURCE_DIR}/autograd/functions.h ${PROJECT_SOURCE_DIR}/layers/layers.h)
execute_process(COMMAND ${TANDEM_PYTHON} ${scripts}/extract_example.py ${page} ${example} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${TANDEM_PYTHON} ${scripts}/new_op.py soft_clip --family elementwise --option largest=0.5 --layer SoftClipping
  --into ${generated} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

tandem_new_op(example_op ${example})
if(TANDEM_HAS_CUDA)
  tandem_new_op_test(example_op ${example} op_cases_tests "docs: the example of adding an op, on CUDA"
    SOURCES op_cases SPEC "[cuda]" SECTION hard_tanh)
  if(TARGET tandem_lint_tests)
    tandem_new_op_test(example_op ${example} lint_tests "docs: the example of adding an op, its memory traffic"
      SOURCES lint SPEC "kernels move*" SECTION hard_tanh)
  endif()
else()
  tandem_new_op_examples(${example})
  tandem_new_op_test(example_op ${example} op_cases_tests "docs: the example of adding an op, on the CPU"
    SOURCES op_cases|layers|examples SPEC "[op_table],*HardTanh*,*.h:*" SECTION hard_tanh)
endif()

tandem_new_op(generated_op ${generated})
if(TANDEM_HAS_CUDA)
  tandem_new_op_test(generated_op ${generated} op_cases_tests "scripts: a new op of new_op.py, on CUDA"
    SOURCES op_cases SPEC "[cuda]" SECTION soft_clip)
else()
  tandem_new_op_examples(${generated})
  tandem_new_op_test(generated_op ${generated} op_cases_tests "scripts: a new op of new_op.py, on the CPU"
    SOURCES op_cases|layers|examples SPEC "[op_table],*SoftClipping*,*.h:*" SECTION soft_clip)
endif()
