# Training on a CUDA device against training on the CPU, on one and two ranks. The label is that of the simulated suite.
if(NOT TANDEM_HAS_MPI OR NOT TANDEM_HAS_CUDA)
  return()
endif()
add_executable(tandem_cuda_training_tests ${CMAKE_CURRENT_LIST_DIR}/mpi/cuda_training.cpp
  ${CMAKE_CURRENT_LIST_DIR}/../comm/mpi/main.cpp)
target_link_libraries(tandem_cuda_training_tests PRIVATE tandem_test_support tandem::tandem)
target_precompile_headers(tandem_cuda_training_tests REUSE_FROM tandem_test_headers)
if(TANDEM_CUDA_IS_SIMULATED)
  add_dependencies(simulated_suite tandem_cuda_training_tests)
endif()
set(TANDEM_MPI_TEST_SECONDS 240)
foreach(ranks 1 2)
  tandem_mpi_test(NAME "train: CUDA follows the CPU, ${ranks} ranks" RANKS ${ranks}
    COMMAND $<TARGET_FILE:tandem_cuda_training_tests>)
  set_tests_properties("train: CUDA follows the CPU, ${ranks} ranks" PROPERTIES LABELS simulated)
endforeach()
set(TANDEM_MPI_TEST_SECONDS 60)
