# The examples in the comments of headers: one program that runs them, on the CPU and in one process.
find_program(TANDEM_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
mark_as_advanced(TANDEM_PYTHON)
if(TANDEM_HAS_CUDA OR NOT TANDEM_PYTHON)
  return()
endif()
set(example_source ${CMAKE_CURRENT_BINARY_DIR}/examples/examples.cpp)
set(example_scripts ${CMAKE_CURRENT_LIST_DIR}/make_program.py ${PROJECT_SOURCE_DIR}/scripts/header_examples.py)
set(libraries core kernels autograd layers optim comm data train)
list(TRANSFORM libraries PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE header_patterns)
list(TRANSFORM header_patterns APPEND /*.h)
file(GLOB_RECURSE example_headers CONFIGURE_DEPENDS ${header_patterns} ${PROJECT_SOURCE_DIR}/include/tandem/*.h)
add_custom_command(OUTPUT ${example_source}
  COMMAND ${TANDEM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/make_program.py ${PROJECT_SOURCE_DIR}/scripts ${example_source}
  DEPENDS ${example_scripts} ${example_headers} VERBATIM)
add_executable(tandem_example_tests ${example_source})
target_precompile_headers(tandem_example_tests REUSE_FROM tandem_test_headers)
target_link_libraries(tandem_example_tests PRIVATE tandem_test_support tandem::tandem)
add_test(NAME "examples in headers" COMMAND tandem_example_tests WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/examples)
# An example's tuning file is for one build: what an older one left is not read.
add_test(NAME "examples in headers: without old files"
  COMMAND ${CMAKE_COMMAND} -E rm -f ${CMAKE_CURRENT_BINARY_DIR}/examples/tuning.json)
set_tests_properties("examples in headers: without old files" PROPERTIES FIXTURES_SETUP example_files)
set_tests_properties("examples in headers" PROPERTIES FIXTURES_REQUIRED example_files)
