# Runs of cifar_train that are killed at named points, whose disk fails them, or whose folder is removed.
if(NOT COMMAND whole_run OR TANDEM_CUDA_IS_SIMULATED)  # no programs or no python3; nothing here is a device's
  return()
endif()

# cifar_train, which a variable of the environment kills in a range of the profiler.
add_executable(cifar_train_to_kill ${PROJECT_SOURCE_DIR}/apps/cifar_train/main.cpp ${CMAKE_CURRENT_LIST_DIR}/kill_in_range.cpp)
target_link_libraries(cifar_train_to_kill PRIVATE cifar_train_parts)
target_precompile_headers(cifar_train_to_kill REUSE_FROM tandem_program_headers)

# For LD_PRELOAD in front of a program: no sanitizer may be in it.
add_library(failing_files MODULE ${CMAKE_CURRENT_LIST_DIR}/failing_files.cpp)
target_link_libraries(failing_files PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(failing_files PROPERTIES PREFIX "")

# disk_case(name case [argument...])
function(disk_case name)
  whole_run("${name}" check_disks.py ${ARGN})
endfunction()

# Other programs than cifar_train: killed_case(name case kills)
function(killed_case name case kills)
  add_test(NAME "cifar_train: ${name}"
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/apps/check_resume.py $<TARGET_FILE:cifar_train_to_kill>
      ${case} ${kills} $<TARGET_FILE:failing_files>
    WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  set_tests_properties("cifar_train: ${name}" PROPERTIES
    ENVIRONMENT "${app_environment}" SKIP_RETURN_CODE 77 TIMEOUT 900 PROCESSORS 2)
  if(kills GREATER 5)
    set_property(TEST "cifar_train: ${name}" APPEND PROPERTY LABELS long)
  endif()
endfunction()

disk_case("disk that fills up" full)
disk_case("disk without inodes" inodes)
disk_case("disk that becomes read-only" read_only)
disk_case("read-only run directory" read_only_at_start)
disk_case("full device for a log, limit on the size of files" limits)
disk_case("run directory that is removed" removed)
if(TANDEM_HAS_MPI)
  disk_case("run directory that is removed, two ranks" removed_ranks)
endif()

# A preloaded library comes before the sanitizers' own, which they refuse.
if(TANDEM_SANITIZE)
  # Whole runs that take minutes with sanitizers; other disks and folders fail shorter ones.
  foreach(case "disk that fills up" "disk without inodes" "disk that becomes read-only"
      "full device for a log, limit on the size of files" "run directory that is removed" "run directory that is removed, two ranks")
    if(TEST "cifar_train: ${case}")
      set_property(TEST "cifar_train: ${case}" APPEND PROPERTY LABELS long)
    endif()
  endforeach()
  return()
endif()
disk_case("calls on files that fail" errors $<TARGET_FILE:failing_files>)
disk_case("disk that takes seconds" slow $<TARGET_FILE:failing_files>)
disk_case("temporary files of killed runs" temporaries $<TARGET_FILE:failing_files>)
killed_case("killed in each phase, batch norm" phases 5)
killed_case("killed in each phase, fp16" phases_fp16 5)
killed_case("killed 25 times in each phase by turns" phases 25)
killed_case("killed 25 times in each phase by turns, fp16" phases_fp16 25)
if(TANDEM_HAS_MPI)
  killed_case("two ranks killed in each phase" phases_ranks 5)
  killed_case("two ranks killed in each phase, fp16, batch norm" phases_ranks_fp16 5)
  killed_case("two ranks killed 25 times in each phase by turns" phases_ranks 25)
  killed_case("two ranks killed 25 times in each phase by turns, fp16" phases_ranks_fp16 25)
endif()
