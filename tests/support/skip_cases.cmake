# What a test program returns and prints where test cases are skipped.
add_executable(tandem_skip_program ${CMAKE_CURRENT_LIST_DIR}/skip_program.cpp)
target_link_libraries(tandem_skip_program PRIVATE tandem_test_support)
target_precompile_headers(tandem_skip_program REUSE_FROM tandem_test_headers)
foreach(case "[skipped]=77=skipped: 2 of 2 test cases" "[skipped],[passes]=0=skipped: 2 of 3 test cases"
    "[passes]=0=1 assertion" "[skipped],[fails]=1=skipped: 2 of 3 test cases" "[fails_and_skips]=1=1 failed"
    "[fails_77_times]=1=77 failed")
  string(REPLACE "=" ";" parts "${case}")
  list(GET parts 0 tags)
  list(GET parts 1 code)
  list(GET parts 2 text)
  add_test(NAME "support: exit code of ${tags}" COMMAND bash -c
    "out=$(\"$0\" '${tags}'); code=$?; echo \"$out\"; [ $code -eq ${code} ] && grep -q '${text}' <<<\"$out\""
    $<TARGET_FILE:tandem_skip_program>)
endforeach()
