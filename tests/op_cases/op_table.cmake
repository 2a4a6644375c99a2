# The op table, for the programs that walk it: objects, because cases put themselves into the table.
file(GLOB op_table_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/op_*.cpp ${CMAKE_CURRENT_LIST_DIR}/*_cases.cpp
  ${CMAKE_CURRENT_LIST_DIR}/golden/golden_*.cpp)
add_library(tandem_op_table OBJECT ${op_table_sources})
target_link_libraries(tandem_op_table PUBLIC tandem::tandem nlohmann_json::nlohmann_json)
target_precompile_headers(tandem_op_table REUSE_FROM tandem_test_headers)
if(TANDEM_CUDA_IS_SIMULATED)
  target_link_libraries(tandem_op_table PUBLIC tandem::simulator)
endif()
