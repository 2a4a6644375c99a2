# Libraries of several versions, one that does not report its version, and one that has nothing of what is looked for.
foreach(kind "STRANGER" "SILENT;0" "TOO_OLD;305" "GOOD;410" "TOO_NEW;500")
  list(POP_FRONT kind name)
  set(definition)
  if(NOT kind STREQUAL "")
    set(definition FAKE_VERSION=${kind})
  endif()
  tandem_fake_library(tandem_core_tests ${name} ${CMAKE_CURRENT_LIST_DIR}/fake_library/version.cpp ${definition})
endforeach()

# Libraries that pretend to be CUPTI: one that plays records back, twice, of several versions, and one without a clock.
foreach(kind "CUPTI;130001" "CUPTI_SELDOM;130001" "CUPTI_12;26" "CUPTI_TOO_OLD;18" "CUPTI_TOO_NEW;140100" "CUPTI_BARE;130001")
  list(GET kind 0 name)
  list(GET kind 1 version)
  string(COMPARE EQUAL ${name} CUPTI_BARE is_bare)
  tandem_fake_library(tandem_core_tests ${name} ${CMAKE_CURRENT_LIST_DIR}/fake_cupti/cupti.cpp
    FAKE_CUPTI_VERSION=${version} FAKE_CUPTI_IS_BARE=${is_bare})
  string(TOLOWER tandem_fake_${name} library)
  tandem_include_directories(${library} PRIVATE)
  target_compile_features(${library} PRIVATE cxx_std_20)
endforeach()

# Tensors as text, beside NumPy where the system's Python has it (77 where not), and in the debugger.
if(NOT TANDEM_HAS_CUDA)
  add_executable(tandem_print_runner ${CMAKE_CURRENT_LIST_DIR}/print/print_runner.cpp)
  target_link_libraries(tandem_print_runner PRIVATE tandem::core)
  find_program(TANDEM_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
  mark_as_advanced(TANDEM_PYTHON)
  if(TANDEM_PYTHON)
    add_test(NAME "core: tensors are printed as NumPy prints them" COMMAND ${TANDEM_PYTHON}
      ${CMAKE_CURRENT_LIST_DIR}/print/compare_numpy.py $<TARGET_FILE:tandem_print_runner>)
    set_tests_properties("core: tensors are printed as NumPy prints them" PROPERTIES SKIP_RETURN_CODE 77 LABELS no-asan)
    set(gdb_sources ${CMAKE_CURRENT_LIST_DIR}/print/gdb_program.cpp)
    add_executable(tandem_gdb_program ${gdb_sources} ${CMAKE_CURRENT_LIST_DIR}/print/gdb_leaf.cpp)
    target_link_libraries(tandem_gdb_program PRIVATE tandem::core)
    # The libraries' files have no debug information, and clang is not to leave out what it takes them to have.
    set_source_files_properties(${gdb_sources} PROPERTIES
      COMPILE_OPTIONS "-g;-O0;$<$<CXX_COMPILER_ID:Clang>:-fstandalone-debug>")
    add_test(NAME "core: gdb shows tensors" COMMAND ${TANDEM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/print/check_gdb.py
      ${PROJECT_SOURCE_DIR}/scripts/gdb_printers.py $<TARGET_FILE:tandem_gdb_program>)
    set_tests_properties("core: gdb shows tensors" PROPERTIES SKIP_RETURN_CODE 77 LABELS no-asan)
  endif()
endif()
