# Runs on several hosts, which are network namespaces of this machine: skipped, with the reason, where it allows none.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(NOT TANDEM_HAS_MPI OR NOT Python3_Interpreter_FOUND OR TANDEM_CUDA_IS_SIMULATED)
  return()
endif()

# tandem_host_case(NAME LABELS... ARGS...)
function(tandem_host_case name)
  cmake_parse_arguments(CASE "" "" "ARGS;LABELS" ${ARGN})
  if(TANDEM_SANITIZE AND NOT CASE_ARGS STREQUAL "trains-quickly")
    set(CASE_LABELS long)
  endif()
  add_test(NAME "hosts: ${name}" COMMAND timeout -k 5 600 ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/hosts/check_hosts.py
    ${MPIEXEC_EXECUTABLE} $<TARGET_FILE_DIR:cifar_train> ${CASE_ARGS})
  set_tests_properties("hosts: ${name}" PROPERTIES ENVIRONMENT "${TANDEM_MPI_TEST_ENVIRONMENT}" PROCESSORS 2 TIMEOUT 620
    SKIP_RETURN_CODE 77 LABELS "${CASE_LABELS}")
endfunction()

find_program(SETPRIV setpriv)
if(SETPRIV)
  add_test(NAME "hosts: where no namespaces are allowed tests are skipped, and say why"
    COMMAND ${SETPRIV} --bounding-set=-sys_admin,-net_admin ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/hosts/check_hosts.py
    ${MPIEXEC_EXECUTABLE} $<TARGET_FILE_DIR:cifar_train> trains-quickly)
  set_tests_properties("hosts: where no namespaces are allowed tests are skipped, and say why" PROPERTIES TIMEOUT 60
    PASS_REGULAR_EXPRESSION "skipped: no network namespaces here .unshare: unshare failed: Operation not permitted.; they need root"
    SKIP_REGULAR_EXPRESSION "setpriv: ")
endif()

tandem_host_case("two hosts train the bits of one rank alone" ARGS trains-quickly)
tandem_host_case("messages go over the network of --iface" ARGS uses-interface)
tandem_host_case("a wrong --iface is refused by each host" LABELS long ARGS refuses-interface)
tandem_host_case("ranks that do not reach each other are named" ARGS connectivity)
tandem_host_case("a host that cannot be reached ends the run" ARGS unreachable-host)
set(hang_program --hang-program $<TARGET_FILE:tandem_comm_hang_program>)
tandem_host_case("a rank of another host that does not do its part is named"
  ARGS names-ranks-of-hosts ${hang_program} --ways stopped killed returns)
tandem_host_case("a rank of another host that is stopped in training is named" ARGS stopped-in-training)
tandem_host_case("two-level and flat sums are right" LABELS long ARGS adds-up)
tandem_host_case("a slow link is used as well as Open MPI's best algorithm does" LABELS long ARGS shaped --rounds 3)
tandem_host_case("a link that is cut is noticed by mpirun" LABELS long ARGS cut-noticed-by-mpirun)
add_test(NAME "hosts: two hosts of a Slurm cluster train under srun" COMMAND timeout -k 5 300 ${Python3_EXECUTABLE}
  ${PROJECT_SOURCE_DIR}/tests/hosts/check_slurm.py ${MPIEXEC_EXECUTABLE} $<TARGET_FILE_DIR:cifar_train>)
set_tests_properties("hosts: two hosts of a Slurm cluster train under srun" PROPERTIES
  ENVIRONMENT "${TANDEM_MPI_TEST_ENVIRONMENT}" PROCESSORS 2 TIMEOUT 320 SKIP_RETURN_CODE 77 LABELS long)
foreach(backend native mpi gloo)
  if(NOT backend STREQUAL gloo OR TANDEM_HAS_GLOO)
    tandem_host_case("two and three hosts train, by ${backend}" LABELS long ARGS trains --backend ${backend})
    tandem_host_case("a host whose link is cut is named, by ${backend}" LABELS long ARGS cut --backend ${backend})
    tandem_host_case("a rank of another host that does not do its part is named, 3 times, by ${backend}" LABELS long
      ARGS names-ranks-of-hosts ${hang_program} --backend ${backend} --repeats 3)
    tandem_host_case("where mpirun is killed nothing is left, by ${backend}" LABELS long ARGS launcher-killed --backend ${backend})
  endif()
endforeach()
