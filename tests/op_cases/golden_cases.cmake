# What the GPU, real or simulated, computes for the op table, against recordings: docs/golden-outputs.md.
if(NOT TANDEM_HAS_CUDA)
  return()
endif()
add_executable(op_table_recorder ${CMAKE_CURRENT_LIST_DIR}/golden/main.cpp)
target_link_libraries(op_table_recorder PRIVATE tandem_op_table CLI11::CLI11)

set(own_recording ${CMAKE_CURRENT_BINARY_DIR}/own_recording.json)
add_test(NAME "golden: record" COMMAND op_table_recorder --record ${own_recording})
add_test(NAME "golden: replay in reverse order" COMMAND op_table_recorder --replay ${own_recording})
add_test(NAME "golden: replay tests/golden" COMMAND op_table_recorder --replay ${PROJECT_SOURCE_DIR}/tests/golden)
set_tests_properties("golden: record" PROPERTIES FIXTURES_SETUP own_recording)
set_tests_properties("golden: replay in reverse order" PROPERTIES FIXTURES_REQUIRED own_recording
  ENVIRONMENT TANDEM_SIMULATOR_ORDER=reverse)
set_tests_properties("golden: record" "golden: replay in reverse order" "golden: replay tests/golden" PROPERTIES
  LABELS simulated SKIP_RETURN_CODE 77)
if(TANDEM_CUDA_IS_SIMULATED)
  add_dependencies(simulated_suite op_table_recorder)
endif()
