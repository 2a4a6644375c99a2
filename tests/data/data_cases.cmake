# The download script, tested without a network.
find_program(TANDEM_BASH bash)
mark_as_advanced(TANDEM_BASH)
if(TANDEM_BASH)
  add_test(NAME "data: get_data.sh" COMMAND ${TANDEM_BASH} ${CMAKE_CURRENT_SOURCE_DIR}/data/get_data_cases.sh
                                            ${PROJECT_SOURCE_DIR})
  set_tests_properties("data: get_data.sh" PROPERTIES TIMEOUT 300)
endif()
