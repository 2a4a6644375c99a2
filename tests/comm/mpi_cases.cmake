# Tests that run as several ranks under mpirun. Other libraries use tandem_mpi_test() as well.
if(NOT TANDEM_HAS_MPI)
  return()
endif()

# Settings for mpirun come by environment, so that the commands are the same for Open MPI and MPICH: root and more ranks
# than cores as in scripts/mpi.env, and unbound ranks.
file(STRINGS ${PROJECT_SOURCE_DIR}/scripts/mpi.env TANDEM_MPI_TEST_ENVIRONMENT REGEX "^[A-Z]")
list(APPEND TANDEM_MPI_TEST_ENVIRONMENT
  OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_base_warn_component_unused=0 OMP_NUM_THREADS=1)
set(TANDEM_MPI_TEST_SECONDS 120)
list(APPEND TANDEM_MPI_TEST_ENVIRONMENT ${TANDEM_SANITIZER_ENVIRONMENT})
if(TANDEM_SANITIZE)
  set(TANDEM_MPI_TEST_SECONDS 240)
endif()

# tandem_mpi_test(NAME name RANKS n COMMAND program args... [EXPECT code lines pattern])
# A hang ends after TANDEM_MPI_TEST_SECONDS, whatever state mpirun is in.
function(tandem_mpi_test)
  cmake_parse_arguments(CASE "" "NAME;RANKS" "COMMAND;EXPECT" ${ARGN})
  set(run ${TANDEM_MPI_TEST_SECONDS} ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${CASE_RANKS} ${CASE_COMMAND})
  if(CASE_EXPECT)
    list(PREPEND run ${PROJECT_SOURCE_DIR}/tests/comm/mpi/expect_exit.sh ${CASE_EXPECT})
  else()
    list(PREPEND run timeout -k 5)
  endif()
  add_test(NAME "${CASE_NAME}" COMMAND ${run})
  set_tests_properties("${CASE_NAME}" PROPERTIES
    ENVIRONMENT "${TANDEM_MPI_TEST_ENVIRONMENT}" PROCESSORS ${CASE_RANKS} SKIP_RETURN_CODE 77 TIMEOUT 300)
endfunction()

set(directory ${CMAKE_CURRENT_LIST_DIR}/mpi)
add_executable(tandem_comm_mpi_tests ${directory}/main.cpp ${directory}/all_reduce.cpp ${directory}/collectives.cpp
  ${directory}/data_parallel.cpp ${directory}/device_tensors.cpp ${directory}/device_window.cpp ${directory}/huge.cpp
  ${directory}/messages.cpp ${directory}/progress.cpp ${directory}/shared_tensors.cpp ${directory}/timing.cpp
  ${directory}/unreadable_memory.cpp ${CMAKE_CURRENT_LIST_DIR}/collective_checks.cpp)
if(TANDEM_CUDA_IS_SIMULATED)
  # The file of faults comes last: after its last test no kernel is launched any more.
  target_sources(tandem_comm_mpi_tests PRIVATE ${directory}/nccl_collectives.cpp ${directory}/nccl_group_simulated.cpp
    ${directory}/device_faults.cpp)
  set_source_files_properties(${directory}/device_faults.cpp ${directory}/nccl_group_simulated.cpp PROPERTIES
    INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/simulator/include)
endif()
if(TANDEM_HAS_NCCL)
  target_sources(tandem_comm_mpi_tests PRIVATE ${directory}/nccl_group.cpp ${directory}/nccl_collectives.cpp
    ${directory}/nccl_group_real.cpp)
endif()
target_link_libraries(tandem_comm_mpi_tests PRIVATE tandem_test_support tandem::comm)
target_precompile_headers(tandem_comm_mpi_tests REUSE_FROM tandem_test_headers)
add_dependencies(unit_suite tandem_comm_mpi_tests)
add_executable(tandem_comm_exit_program ${directory}/exit_program.cpp)
add_executable(tandem_comm_few_threads_program ${directory}/few_threads_program.cpp)
target_link_libraries(tandem_comm_few_threads_program PRIVATE MPI::MPI_CXX)
add_executable(tandem_comm_hang_program ${directory}/hang_program.cpp)
foreach(program tandem_comm_exit_program tandem_comm_few_threads_program tandem_comm_hang_program)
  target_link_libraries(${program} PRIVATE tandem::comm)
endforeach()

set(usual_seconds ${TANDEM_MPI_TEST_SECONDS})
foreach(ranks 1 2 3 4 5 6 7 8)
  set(command $<TARGET_FILE:tandem_comm_mpi_tests>)
  if(ranks GREATER 5 OR (TANDEM_SANITIZE AND ranks GREATER 1))  # several ranks a core, or slow ones
    set(TANDEM_MPI_TEST_SECONDS 800)
  endif()
  tandem_mpi_test(NAME "comm: all collectives on ${ranks} ranks" RANKS ${ranks} COMMAND ${command} "~[cuda]~[.]")
  set_property(TEST "comm: all collectives on ${ranks} ranks" APPEND PROPERTY LABELS unit)
  if(ranks GREATER 5 OR (TANDEM_SANITIZE AND ranks MATCHES "[245]"))  # what 3 do as well
    set_property(TEST "comm: all collectives on ${ranks} ranks" APPEND PROPERTY LABELS long)
  endif()
  set_tests_properties("comm: all collectives on ${ranks} ranks" PROPERTIES TIMEOUT 900)
  if(TANDEM_HAS_CUDA AND ranks LESS 6)
    tandem_mpi_test(NAME "comm: device tensors on ${ranks} ranks" RANKS ${ranks} COMMAND ${command} "[cuda]~[.]")
  endif()
endforeach()
set(TANDEM_MPI_TEST_SECONDS ${usual_seconds})

if(NOT TANDEM_SANITIZE AND NOT TANDEM_CUDA_IS_SIMULATED)  # whose memory is several times as much
  set(TANDEM_MPI_TEST_SECONDS 1800)
  tandem_mpi_test(NAME "comm: more bytes than an int counts" RANKS 2 COMMAND $<TARGET_FILE:tandem_comm_mpi_tests> "[.huge]")
  set(TANDEM_MPI_TEST_SECONDS ${usual_seconds})
  set_tests_properties("comm: more bytes than an int counts" PROPERTIES LABELS long RUN_SERIAL ON TIMEOUT 1900)
  # On a busy machine Open MPI's MPI_Ireduce took more than 100 s.
  set_property(TEST "comm: more bytes than an int counts" APPEND PROPERTY ENVIRONMENT TANDEM_COMM_TIMEOUT=600)
endif()

# tandem_hang_case(NAME BACKEND LABELS... ARGS...): who is named where a rank does not do its part.
find_package(Python3 COMPONENTS Interpreter QUIET)
function(tandem_hang_case name)
  if(NOT Python3_Interpreter_FOUND)
    return()
  endif()
  cmake_parse_arguments(CASE "" "" "ARGS;LABELS" ${ARGN})
  add_test(NAME "comm: ${name}" COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/comm/mpi/check_hangs.py
    ${MPIEXEC_EXECUTABLE} $<TARGET_FILE:tandem_comm_hang_program> ${CASE_ARGS})
  if(TANDEM_SANITIZE AND NOT CASE_ARGS STREQUAL "native")  # the same watchdog
    set(CASE_LABELS long)
  endif()
  set_tests_properties("comm: ${name}" PROPERTIES ENVIRONMENT "${TANDEM_MPI_TEST_ENVIRONMENT}" PROCESSORS 2 TIMEOUT 1500
    SKIP_RETURN_CODE 77 LABELS "${CASE_LABELS}")
endfunction()

tandem_hang_case("a rank that does not do its part is named, by native" ARGS native)
tandem_hang_case("a rank that does not do its part is named, by a ring of messages"
  ARGS native --algorithm ring stopped returns receive cycle)
tandem_hang_case("a rank that does not do its part is named, by mpi" ARGS mpi stopped killed returns order)
tandem_hang_case("ranks that compare their messages, by native" ARGS native --checks parts message)
tandem_hang_case("ranks that compare what they do, by mpi" ARGS mpi --checks root count dtype order parts message)
if(TANDEM_HAS_GLOO)
  tandem_hang_case("a rank that does not do its part is named, by gloo" ARGS gloo stopped killed returns)
  tandem_hang_case("ranks that compare what they do, by gloo" ARGS gloo --checks root count dtype order parts message)
endif()
foreach(backend native mpi gloo)
  if(NOT backend STREQUAL gloo OR TANDEM_HAS_GLOO)
    tandem_hang_case("a rank is named without /dev/shm and reading of memory, by ${backend}"
      ARGS ${backend} --full-shm --no-reading stopped killed)
    tandem_hang_case("a rank that does not do its part is named, 20 times, by ${backend}" LABELS long
      ARGS ${backend} --repeats 20)
  endif()
endforeach()

set(exits $<TARGET_FILE:tandem_comm_exit_program>)
tandem_mpi_test(NAME "comm: a program that succeeds" RANKS 3 COMMAND ${exits} EXPECT 0 0 "error")
tandem_mpi_test(NAME "comm: an agreed error is one line and exit code 2" RANKS 3 COMMAND ${exits} agreed
  EXPECT 2 1 "^error: rank 1: no such file: train.bin. rank 2: no such file: train.bin$")
tandem_mpi_test(NAME "comm: an error of one rank ends all ranks" RANKS 3 COMMAND ${exits} lone
  EXPECT 2 1 "^error: rank 2: label 12 is out of range$")
tandem_mpi_test(NAME "comm: an error of one rank during an all-reduce ends all ranks" RANKS 3 COMMAND ${exits} in-flight
  EXPECT 2 1 "^error: rank 2: label 12 is out of range$")
tandem_mpi_test(NAME "comm: a group of MPI's that is dropped with a work under way leaves others usable" RANKS 3
  COMMAND ${exits} dropped EXPECT 0 0 "error")
tandem_mpi_test(NAME "comm: a rank ends by an error while its progress thread moves works on" RANKS 3
  COMMAND ${exits} threaded EXPECT 2 1 "^error: rank 2: label 12 is out of range$")
foreach(kept group work)
  tandem_mpi_test(NAME "comm: nobody waits for a rank that keeps its ${kept} until its process ends" RANKS 3
    COMMAND ${exits} keeps-${kept} EXPECT 0 0 "error")
endforeach()
tandem_mpi_test(NAME "comm: where MPI takes calls of one thread at a time a progress thread is refused" RANKS 2
  COMMAND $<TARGET_FILE:tandem_comm_few_threads_program>
  EXPECT 2 1 "^error: progress thread: backend native: MPI takes calls of one thread at a time .level 2. MPI_THREAD_MULTIPLE is 3.. choose progress poll$")
tandem_mpi_test(NAME "comm: backend self refuses several ranks" RANKS 2 COMMAND ${exits} self
  EXPECT 2 1 "^error: backend self is for one process, but mpirun started 2: choose auto, mpi(,| or) native")
# Ranks that may not read each other's memory; nor may MPI then.
tandem_mpi_test(NAME "comm: ranks that cannot read each other's memory copy twice, and say so once" RANKS 2
  COMMAND ${exits} refused
  EXPECT 0 1 "^note: ranks cannot read each other's memory, and copy large data twice: rank 0: cannot read 8 bytes")
tandem_mpi_test(NAME "comm: ranks whose data others cannot read copy them twice, and say so once" RANKS 2
  COMMAND ${exits} refused-later
  EXPECT 0 1 "^note: ranks cannot read each other's memory, and copy large data twice: rank 0 has data where the system")
tandem_mpi_test(NAME "comm: a wish of one rank alone that cannot be understood ends all ranks" RANKS 2 COMMAND ${exits} own-wish
  EXPECT 2 1 "^error: rank 1: TANDEM_SINGLE_COPY=sometimes: choose auto, on or off$")
tandem_mpi_test(NAME "comm: single copies that were asked for and cannot be had are an error" RANKS 2
  COMMAND ${exits} refused EXPECT 2 1 "^error: TANDEM_SINGLE_COPY=on: rank 0: cannot read 8 bytes")
set_property(TEST "comm: single copies that were asked for and cannot be had are an error"
  APPEND PROPERTY ENVIRONMENT TANDEM_SINGLE_COPY=on)
set_property(TEST "comm: ranks that cannot read each other's memory copy twice, and say so once"
  "comm: ranks whose data others cannot read copy them twice, and say so once"
  "comm: single copies that were asked for and cannot be had are an error"
  APPEND PROPERTY ENVIRONMENT OMPI_MCA_btl_vader_single_copy_mechanism=none)
tandem_mpi_test(NAME "comm: where one rank can share no blocks, none is mapped" RANKS 3 COMMAND ${exits} unshared
  EXPECT 0 1 "^no blocks: -1$")
if(NOT TANDEM_SANITIZE)  # whose addresses have no limit
  tandem_mpi_test(NAME "comm: a rank that can map no block of others ends all ranks" RANKS 3 COMMAND ${exits} unmapped
    EXPECT 2 1 "^error: rank 1: cannot map a block of 4194304 bytes of rank 0: Cannot allocate memory$")
endif()
# GPUs that read each other's memory, and what is said where they cannot.
if(TANDEM_CUDA_IS_SIMULATED)
  tandem_mpi_test(NAME "comm: device memory is shared in random order, as late as streams allow" RANKS 3
    COMMAND $<TARGET_FILE:tandem_comm_mpi_tests> "[device window]~[.]")
  set_property(TEST "comm: device memory is shared in random order, as late as streams allow" APPEND PROPERTY
    ENVIRONMENT TANDEM_SIMULATOR_STREAMS=deferred TANDEM_SIMULATOR_ORDER=random:7)
  tandem_mpi_test(NAME "comm: device memory is shared in segments of the usual size" RANKS 3
    COMMAND $<TARGET_FILE:tandem_comm_mpi_tests> "[device window][large]")
  if(TANDEM_SANITIZE)
    set_property(TEST "comm: device memory is shared in segments of the usual size" APPEND PROPERTY LABELS long)
  endif()
  tandem_mpi_test(NAME "comm: GPUs that share memory say nothing" RANKS 2 COMMAND ${exits} devices
    EXPECT 0 1 "^note: |^the sum is right$")
  tandem_mpi_test(NAME "comm: GPUs whose memory cannot be opened go by host memory, and say so" RANKS 2
    COMMAND ${exits} devices-one-refused
    EXPECT 0 2 "^note: tensors of GPUs go through host memory: rank 1: cannot open the GPU memory of rank 0: .*cudaErrorMapBufferObjectFailed|^the sum is right$")
  tandem_mpi_test(NAME "comm: a rank that gives a tensor of the CPU where others give those of GPUs is named" RANKS 2
    COMMAND ${exits} devices-mixed
    EXPECT 2 1 "^error: rank 0: all_reduce sum f32.1000. between GPUs on rank 0 meets all_reduce sum f32.1000. by host memory on rank 1: ")
  tandem_mpi_test(NAME "comm: GPUs that read other memory than that of the ranks go by host memory, and say so" RANKS 3
    COMMAND ${exits} devices-one-foreign
    EXPECT 0 2 "^note: tensors of GPUs go through host memory: rank 1: the GPU has not read in the memory of rank 0 what that rank has written there$|^the sum is right$")
  tandem_mpi_test(NAME "comm: GPUs that do not wait for each other's events go by host memory, and say so" RANKS 3
    COMMAND ${exits} devices-one-unordered
    EXPECT 0 2 "^note: tensors of GPUs go through host memory: rank 1: the GPU has (not )?read in the memory of rank [02] what (was there before: it did not wait for its event|that rank has written there)$|^the sum is right$")
  tandem_mpi_test(NAME "comm: GPUs that wait for each other's events for ever go by host memory, and say so" RANKS 3
    COMMAND ${exits} devices-one-stuck
    EXPECT 0 2 "^note: tensors of GPUs go through host memory: rank 1: the GPU has waited for that of rank 0 for 10 s$|^the sum is right$")
  set_property(TEST "comm: GPUs that do not wait for each other's events go by host memory, and say so"
    "comm: GPUs that wait for each other's events for ever go by host memory, and say so"
    APPEND PROPERTY ENVIRONMENT TANDEM_SIMULATOR_STREAMS=deferred)
  tandem_mpi_test(NAME "comm: a rank on the CPU has the others' GPUs go by host memory" RANKS 2
    COMMAND ${exits} devices-one-on-cpu
    EXPECT 0 2 "^note: tensors of GPUs go through host memory: rank 1 computes on the CPU$|^the sum is right$")
  tandem_mpi_test(NAME "comm: shared memory of GPUs that was asked for and cannot be had is an error" RANKS 2
    COMMAND ${exits} devices-one-refused
    EXPECT 2 1 "^error: TANDEM_CUDA_IPC=on: rank 1: cannot open the GPU memory of rank 0: ")
  set_property(TEST "comm: shared memory of GPUs that was asked for and cannot be had is an error"
    APPEND PROPERTY ENVIRONMENT TANDEM_CUDA_IPC=on)
  tandem_mpi_test(NAME "comm: shared memory of GPUs that is refused goes unmentioned" RANKS 2
    COMMAND ${exits} devices-one-refused EXPECT 0 1 "^note: |^the sum is right$")
  set_property(TEST "comm: shared memory of GPUs that is refused goes unmentioned"
    APPEND PROPERTY ENVIRONMENT TANDEM_CUDA_IPC=off)
  tandem_mpi_test(NAME "comm: a wish for shared memory of GPUs that cannot be understood is an error" RANKS 2
    COMMAND ${exits} devices EXPECT 2 1 "^error: TANDEM_CUDA_IPC=sometimes: choose auto, on or off$")
  set_property(TEST "comm: a wish for shared memory of GPUs that cannot be understood is an error"
    APPEND PROPERTY ENVIRONMENT TANDEM_CUDA_IPC=sometimes)
  tandem_hang_case("a rank that does not do its part is named, by native between GPUs"
    ARGS native --device stopped killed returns count order)
endif()
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_PHYSICAL_CORES)
if(cores GREATER 1)
  tandem_mpi_test(NAME "comm: a binding that was asked for is left alone" RANKS 2 COMMAND --bind-to core ${exits} threads
    EXPECT 0 2 "^rank [01] of 2: 1 threads on 1 cores$")
endif()
