# Event files, read by PyPI's tensorboard, which setup.sh --tests gets; tests that lack it say so and are skipped (77), but not
# where CI=true.
if(NOT TANDEM_CUDA_IS_SIMULATED)
  add_executable(write_events ${CMAKE_CURRENT_LIST_DIR}/writers/tensorboard/write_events.cpp)
  target_link_libraries(write_events PRIVATE tandem::train)
  target_precompile_headers(write_events REUSE_FROM tandem_program_headers)
  find_program(TANDEM_PATH_PYTHON NAMES python3 NO_CACHE)
  if(TANDEM_PATH_PYTHON AND TANDEM_BUILD_APPS)
    add_test(NAME "train: TensorBoard reads all events" COMMAND ${CMAKE_COMMAND} -E env
      "PYTHONPATH=${PROJECT_SOURCE_DIR}/build/python-packages" ${TANDEM_PATH_PYTHON}
      ${CMAKE_CURRENT_LIST_DIR}/writers/tensorboard/check_events.py $<TARGET_FILE:write_events> $<TARGET_FILE:cifar_train>)
    set_tests_properties("train: TensorBoard reads all events" PROPERTIES
      ENVIRONMENT "${TANDEM_SANITIZER_ENVIRONMENT}" SKIP_RETURN_CODE 77 TIMEOUT 300)
  endif()
endif()

# Training on several ranks: on a CUDA device against the CPU, and in half precision. The label is that of the simulated
# suite.
if(NOT TANDEM_HAS_MPI)
  return()
endif()
# tandem_train_mpi_tests(target source name RANKS n...): the tests of a file in mpi/, on each of these numbers of ranks
function(tandem_train_mpi_tests target source name)
  cmake_parse_arguments(CASE "" "" "RANKS" ${ARGN})
  add_executable(${target} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/mpi/${source}
    ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../comm/mpi/main.cpp)
  target_link_libraries(${target} PRIVATE tandem_test_support tandem::tandem)
  target_precompile_headers(${target} REUSE_FROM tandem_test_headers)
  if(TANDEM_CUDA_IS_SIMULATED)
    add_dependencies(simulated_suite ${target})
  endif()
  foreach(ranks ${CASE_RANKS})
    set(case "train: ${name}, ${ranks} ranks")
    tandem_mpi_test(NAME "${case}" RANKS ${ranks} COMMAND $<TARGET_FILE:${target}>)
    if(TANDEM_CUDA_IS_SIMULATED)
      set_tests_properties("${case}" PROPERTIES LABELS simulated)
    endif()
  endforeach()
endfunction()

set(TANDEM_MPI_TEST_SECONDS 240)
if(TANDEM_HAS_CUDA)
  tandem_train_mpi_tests(tandem_cuda_training_tests cuda_training.cpp "CUDA follows the CPU" RANKS 1 2)
  if(TANDEM_CUDA_IS_SIMULATED OR TANDEM_HAS_NCCL)
    tandem_train_mpi_tests(tandem_cuda_graph_mpi_tests cuda_graph.cpp "CUDA graphs" RANKS 2)
    set(kind $<IF:$<BOOL:${TANDEM_CUDA_IS_SIMULATED}>,simulated,real>)
    target_sources(tandem_cuda_graph_mpi_tests PRIVATE ${CMAKE_CURRENT_LIST_DIR}/../comm/mpi/nccl_group_${kind}.cpp)
    if(TANDEM_CUDA_IS_SIMULATED)  # instead of the toolkit's headers
      target_sources(tandem_cuda_graph_mpi_tests PRIVATE ${CMAKE_CURRENT_LIST_DIR}/mpi/cuda_graph_simulated.cpp)
      set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/../comm/mpi/nccl_group_simulated.cpp
        ${CMAKE_CURRENT_LIST_DIR}/mpi/cuda_graph_simulated.cpp PROPERTIES
        INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/simulator/include)
    endif()
  endif()
endif()
tandem_train_mpi_tests(tandem_mixed_precision_mpi_tests mixed_precision.cpp "half precision" RANKS 2 3)
if(NOT TANDEM_CUDA_IS_SIMULATED)  # nothing of it is about devices
  tandem_train_mpi_tests(tandem_uneven_batch_mpi_tests uneven_batch.cpp "uneven batches" RANKS 1 2 4)
endif()
set(TANDEM_MPI_TEST_SECONDS 60)
