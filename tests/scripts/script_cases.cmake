# scripts/gpu_check.sh without a GPU, with stand-ins for the tools. In the simulated build its search for planted faults
# runs the real ones.
find_program(TANDEM_BASH bash)
if(NOT TANDEM_BASH)
  return()
endif()
set(probe)
if(TANDEM_SIMULATOR_MODE STREQUAL "race" AND TANDEM_CUDA_IS_SIMULATED)
  set(probe $<TARGET_FILE:fault_probe>)
endif()
add_test(NAME "scripts: gpu_check.sh"
  COMMAND ${TANDEM_BASH} ${CMAKE_CURRENT_LIST_DIR}/gpu_check_cases.sh ${PROJECT_SOURCE_DIR} ${probe})
set_tests_properties("scripts: gpu_check.sh" PROPERTIES TIMEOUT 300)
if(TANDEM_CUDA_IS_SIMULATED)
  set_tests_properties("scripts: gpu_check.sh" PROPERTIES LABELS simulated)
endif()
