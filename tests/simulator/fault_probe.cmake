# fault_probe: the planted faults and the correct kernels as a program of their own, for compute-sanitizer on a GPU
# (scripts/gpu_check.sh). In the simulated build it shows that the script finds what a tool reports.
if(NOT TANDEM_HAS_CUDA)
  return()
endif()
set(fault_probe_sources fault_probe/main.cpp planted_fault.cpp race_faults.cu memory_faults.cu barrier_faults.cu
  async_copy_faults.cu correct_block_kernels.cu correct_warp_kernels.cu correct_copy_kernels.cu correct_polling_kernels.cu
  correct_ticket_kernels.cu)
list(TRANSFORM fault_probe_sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
add_executable(fault_probe EXCLUDE_FROM_ALL ${fault_probe_sources})
target_link_libraries(fault_probe PRIVATE tandem::core)
if(TANDEM_CUDA_IS_SIMULATED)
  set_target_properties(fault_probe PROPERTIES EXCLUDE_FROM_ALL OFF)  # tests of the whole build run it
  target_link_libraries(fault_probe PRIVATE tandem::simulator)
  add_dependencies(simulated_suite fault_probe)
else()
  # -G: nothing is optimised, or else a fault might go with the code that it is in.
  target_compile_options(fault_probe PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-G>)
  target_link_libraries(fault_probe PRIVATE CUDA::cudart_static)
endif()
