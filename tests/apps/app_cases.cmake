# Command-line tests of the programs. cifar_train: options, config files, bad input on one rank and on two, and short trainings.
if(NOT TANDEM_BUILD_APPS)
  return()
endif()

if(NOT TANDEM_CUDA_IS_SIMULATED)  # these know nothing of devices
  file(GLOB app_test_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/test_*.cpp)
  tandem_source_settings(FILES ${CMAKE_CURRENT_LIST_DIR}/test_tables.cpp DEFINITIONS TANDEM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_executable(tandem_apps_tests ${app_test_sources})
  # cifar_train_parts first: its tests include its headers without a folder.
  target_link_libraries(tandem_apps_tests PRIVATE tandem_test_support cifar_train_parts conv_bench_parts tandem_program_parts
    tandem_doctor_parts allreduce_bench_parts sgd_lab_parts study_parts)
  target_precompile_headers(tandem_apps_tests REUSE_FROM tandem_test_headers)
  tandem_discover_tests(tandem_apps_tests apps)
endif()

find_package(Python3 COMPONENTS Interpreter QUIET)
if(NOT Python3_Interpreter_FOUND)
  message(STATUS "No python3: the command-line tests of the programs are left out")
  return()
endif()

set(app_files ${CMAKE_CURRENT_BINARY_DIR}/app_files)
add_test(NAME "cifar_train: make files"
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/make_files.py ${app_files})
set_tests_properties("cifar_train: make files" PROPERTIES FIXTURES_SETUP app_files)

set(app_environment ${TANDEM_SANITIZER_ENVIRONMENT})
if(TANDEM_HAS_MPI)
  list(APPEND app_environment TANDEM_MPIEXEC=${MPIEXEC_EXECUTABLE})
endif()

# app_case(NAME text [PROGRAM target] [EXIT n] [RANKS n] [OUT text...] [ERR text...] [NOT_ERR text...] [COLUMNS n] [ENVIRONMENT a=b...]
#   [NEEDS_CUDA] ARGS arg...): of cifar_train, unless another PROGRAM is named
function(app_case)
  cmake_parse_arguments(CASE "NEEDS_CUDA" "NAME;PROGRAM;EXIT;RANKS;COLUMNS" "OUT;ERR;NOT_ERR;ENVIRONMENT;ARGS" ${ARGN})
  set(expected)
  if(NOT DEFINED CASE_PROGRAM)
    set(CASE_PROGRAM cifar_train)
  endif()
  if(CASE_NEEDS_CUDA)
    set(expected --needs-cuda $<TARGET_FILE:device_query>)
  endif()
  foreach(pair "EXIT;--exit" "RANKS;--ranks" "COLUMNS;--max-columns")
    list(GET pair 0 key)
    list(GET pair 1 option)
    if(DEFINED CASE_${key})
      list(APPEND expected ${option} ${CASE_${key}})
    endif()
  endforeach()
  foreach(pair "OUT;--out" "ERR;--err" "NOT_ERR;--not-err")
    list(GET pair 0 key)
    list(GET pair 1 option)
    foreach(text IN LISTS CASE_${key})
      list(APPEND expected "${option}=${text}")
    endforeach()
  endforeach()
  set(begin $<TARGET_FILE:${CASE_PROGRAM}>)
  if(CASE_PROGRAM STREQUAL "cifar_train")
    list(APPEND begin --no-run-dir)  # a --run-dir behind it counts
  endif()
  set(command ${begin})
  foreach(arg IN LISTS CASE_ARGS)
    list(APPEND command "${arg}")
    if(arg STREQUAL ":")
      list(APPEND command ${begin})
    endif()
  endforeach()
  if(CASE_RANKS GREATER 1 AND NOT TANDEM_HAS_MPI)
    return()
  endif()
  add_test(NAME "${CASE_PROGRAM}: ${CASE_NAME}"
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/apps/run_case.py ${expected} -- ${command}
    WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  set(environment ${app_environment} ${CASE_ENVIRONMENT})
  set_tests_properties("${CASE_PROGRAM}: ${CASE_NAME}" PROPERTIES
    ENVIRONMENT "${environment}" FIXTURES_REQUIRED app_files SKIP_RETURN_CODE 77 TIMEOUT 120)
endfunction()

# bad_input(NAME text ERR text... ARGS arg...): exit code 2 and one line that has these texts, on one rank and on two. That two
# ranks agree on one line is tested by itself (comm/mpi_cases.cmake, and the cases of two ranks that are no bad_input); starting
# MPI a hundred times is long.
function(bad_input)
  cmake_parse_arguments(CASE "" "NAME" "ERR;ARGS" ${ARGN})
  foreach(ranks 1 2)
    app_case(NAME "${CASE_NAME}, ranks ${ranks}" EXIT 2 RANKS ${ranks} ERR ${CASE_ERR} ARGS ${CASE_ARGS})
  endforeach()
  if(TEST "cifar_train: ${CASE_NAME}, ranks 2")
    set_property(TEST "cifar_train: ${CASE_NAME}, ranks 2" APPEND PROPERTY LABELS long)
  endif()
endfunction()

include(${CMAKE_CURRENT_LIST_DIR}/option_cases.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/file_cases.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/conv_bench_cases.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/other_cases.cmake)

add_test(NAME "apps: scripts and pages give options that there are"
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/check_options.py ${PROJECT_SOURCE_DIR}
    $<TARGET_FILE:cifar_train> $<TARGET_FILE:conv_bench> $<TARGET_FILE:train_bench> $<TARGET_FILE:device_query> $<TARGET_FILE:tandem_doctor> $<TARGET_FILE:allreduce_bench> $<TARGET_FILE:sgd_lab> $<TARGET_FILE:study>)
set_tests_properties("apps: scripts and pages give options that there are" PROPERTIES
  ENVIRONMENT "${TANDEM_SANITIZER_ENVIRONMENT}" TIMEOUT 60)

if(TANDEM_CUDA_IS_SIMULATED)
  include(${CMAKE_CURRENT_LIST_DIR}/simulated_cases.cmake)
endif()

# whole_run(name script argument...)
function(whole_run name script)
  add_test(NAME "cifar_train: ${name}"
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/apps/${script} $<TARGET_FILE:cifar_train> ${ARGN}
    WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  set_tests_properties("cifar_train: ${name}" PROPERTIES
    ENVIRONMENT "${app_environment}" SKIP_RETURN_CODE 77 TIMEOUT 900 PROCESSORS 2)
endfunction()

# Whole runs, checked by their logs.
function(training_case name)
  whole_run("${name}" check_training.py ${ARGN})
endfunction()

training_case("learns synthetic images" learning)
# Many steps, which show the sanitizers no more than the few of the other runs do.
set_property(TEST "cifar_train: learns synthetic images" APPEND PROPERTY LABELS no-asan)
training_case("same run, same bits" determinism)
training_case("weights and logs" files)
training_case("logs of several runs" logs)
training_case("full disks" full_disks)
training_case("images of your own" own_images)
training_case("first layers of images" whitening)
if(TANDEM_HAS_PNG)
  if(TANDEM_HAS_JPEG)
    set(jpeg jpeg)
  endif()
  training_case("images of your own are classified" prediction ${jpeg})
endif()
add_test(NAME "apps: PyPI's safetensors reads our files, and we read its"
  COMMAND ${CMAKE_COMMAND} -E env "PYTHONPATH=${PROJECT_SOURCE_DIR}/build/python-packages" ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_LIST_DIR}/check_safetensors.py $<TARGET_FILE:cifar_train> ${CMAKE_CURRENT_BINARY_DIR}/safetensors)
set_tests_properties("apps: PyPI's safetensors reads our files, and we read its" PROPERTIES
  ENVIRONMENT "${app_environment}" SKIP_RETURN_CODE 77 TIMEOUT 300)

# The whole texts of errors. They are of this build: what it has decides which choices an error lists.
if(NOT TANDEM_CUDA_IS_SIMULATED)
  set(features)
  foreach(feature MPI ONEDNN PNG CUDA NCCL)
    if(TANDEM_HAS_${feature})
      list(APPEND features ${feature})
    endif()
  endforeach()
  add_test(NAME "apps: errors read as recorded" COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/check_error_messages.py
    $<TARGET_FILE_DIR:cifar_train> ${PROJECT_SOURCE_DIR}/scripts ${features})
  set_tests_properties("apps: errors read as recorded" PROPERTIES ENVIRONMENT "${app_environment}" TIMEOUT 300)
endif()

# tandem_case(name case): the commands of `tandem`, and what shells make of its completion
function(tandem_case name case)
  add_test(NAME "tandem: ${name}" COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/apps/check_tandem.py ${case}
    $<TARGET_FILE_DIR:cifar_train>)
  set_tests_properties("tandem: ${name}" PROPERTIES ENVIRONMENT "${app_environment}" SKIP_RETURN_CODE 77 TIMEOUT 240)
endfunction()

foreach(shell bash zsh fish)
  tandem_case("completion in ${shell}" ${shell})
endforeach()
tandem_case("help pages" help)
tandem_case("data from a file" data)
tandem_case("a machine with faults" doctor)
if(TANDEM_HAS_MPI)
  tandem_case("training on two ranks" ranks)
endif()
training_case("run directories" run_directories)
training_case("profiles" profile)
training_case("traces" trace)
training_case("config round trip" config)
training_case("empty paths" empty_paths)
training_case("standard output that cannot be written" standard_output)
training_case("half precision" precision)
training_case("fewer threads than replicas" few_threads)
# The sanitizers' own memory is beyond any limit of the address space.
set_property(TEST "cifar_train: fewer threads than replicas" APPEND PROPERTY LABELS no-asan)
whole_run("bars on terminals, plain lines in files" check_terminal.py)
# Of what is written when; it takes long with sanitizers.
set_property(TEST "cifar_train: bars on terminals, plain lines in files" APPEND PROPERTY LABELS no-asan)
whole_run("waits for whoever reads what it prints" check_slow_reader.py)
whole_run("validation, averages and details" check_evaluation.py 1)
if(TANDEM_HAS_MPI)
  whole_run("validation, averages and details, two ranks" check_evaluation.py 2)
endif()
if(TANDEM_HAS_MPI)
  whole_run("runs are looked at from outside" check_looks.py $<TARGET_FILE:tandem_doctor>)
endif()
if(TANDEM_HAS_MPI)
  training_case("synchronous SGD is exact, mpi" exact_sgd mpi)
  training_case("synchronous SGD is exact, native" exact_sgd native)
  set_property(TEST "cifar_train: synchronous SGD is exact, mpi" "cifar_train: synchronous SGD is exact, native"
    APPEND PROPERTY LABELS no-asan)
  training_case("uneven batches and accumulation are exact" exact_uneven)
  training_case("replicas have the bits of as many processes" replicas)
  training_case("canonical mode has the same bits on any number of ranks" canonical)
  set_property(TEST "cifar_train: canonical mode has the same bits on any number of ranks" APPEND PROPERTY LABELS no-asan)
  set(canonical_cases four)
  if(TANDEM_HAS_GLOO)
    training_case("canonical mode has the same bits, gloo" canonical gloo)
    set_property(TEST "cifar_train: canonical mode has the same bits, gloo" APPEND PROPERTY LABELS no-asan)
    list(APPEND canonical_cases four-gloo)
  endif()
  foreach(case ${canonical_cases})
    training_case("canonical mode has the same bits, ${case}" canonical ${case})
    set_property(TEST "cifar_train: canonical mode has the same bits, ${case}" APPEND PROPERTY LABELS long)
  endforeach()
endif()

# Runs that end otherwise than by their last epoch.
foreach(case not_finite stopped unwritable)
  whole_run("ends, ${case}" check_endings.py ${case} 1)
  whole_run("ends, ${case}, two replicas" check_endings.py ${case} 1 2)
  if(TANDEM_HAS_MPI)
    whole_run("ends, ${case}, two ranks" check_endings.py ${case} 2)
  endif()
endforeach()

# Runs that are killed at random moments and gone on with.
function(resume_case name)
  whole_run("${name}" check_resume.py ${ARGN})
endfunction()

resume_case("killed and gone on with, same bits" f32)
resume_case("killed and gone on with, same bits, fp16" fp16)
resume_case("damaged checkpoints" damage)
resume_case("checkpoints of other settings and runs" settings)
resume_case("stopped by signals, same bits" signals)
resume_case("parts of an epoch, gone on with, same bits" parts)
resume_case("killed 50 times" f32 50)
resume_case("killed 25 times, fp16" fp16 25)
set_property(TEST "cifar_train: killed 50 times" "cifar_train: killed 25 times, fp16" APPEND PROPERTY LABELS long)
if(TANDEM_HAS_MPI)
  resume_case("two ranks killed and gone on with, same bits" ranks)
  resume_case("two ranks stopped by signals, same bits" signals_to_ranks)
  resume_case("two ranks stopped by timeout, same bits" timeout)
  resume_case("two ranks, parts of an epoch, gone on with, same bits" parts_of_ranks)
  resume_case("another number of ranks, same curve" world_size)
  resume_case("two ranks killed 25 times" ranks 25)
  resume_case("two ranks killed 25 times, fp16" ranks_fp16 25)
  set_property(TEST "cifar_train: two ranks killed 25 times" "cifar_train: two ranks killed 25 times, fp16"
    APPEND PROPERTY LABELS long)
endif()

if(TANDEM_SANITIZE)  # what these run is run by shorter tests as well
  foreach(case "same run, same bits" "half precision" "uneven batches and accumulation are exact"
      "replicas have the bits of as many processes" "validation, averages and details, two ranks"
      "ends, not_finite, two ranks" "ends, unwritable, two ranks" "killed and gone on with, same bits, fp16"
      "checkpoints of other settings and runs" "two ranks stopped by signals, same bits"
      "two ranks stopped by timeout, same bits" "another number of ranks, same curve" "logs of several runs"
      "validation, averages and details")
    if(TEST "cifar_train: ${case}")
      set_property(TEST "cifar_train: ${case}" APPEND PROPERTY LABELS long)
    endif()
  endforeach()
  foreach(case "apps: errors read as recorded" "tandem: a machine with faults")
    if(TEST "${case}")
      set_property(TEST "${case}" APPEND PROPERTY LABELS long)
    endif()
  endforeach()
endif()
