# scripts/check_all.sh with short steps. scripts/gpu_check.sh without a GPU, with stand-ins for the tools; in the simulated
# build only its search for planted faults, which runs the real ones, and launches are written down for the table of
# occupancy.
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
set_tests_properties("scripts: gpu_check.sh" PROPERTIES TIMEOUT 900 LABELS "long;no-asan")
if(TANDEM_CUDA_IS_SIMULATED)
  set_tests_properties("scripts: gpu_check.sh" PROPERTIES LABELS simulated)
endif()
add_test(NAME "scripts: offline_bundle.sh"
  COMMAND ${TANDEM_BASH} ${CMAKE_CURRENT_LIST_DIR}/offline_bundle_cases.sh ${PROJECT_SOURCE_DIR})
set_tests_properties("scripts: offline_bundle.sh" PROPERTIES TIMEOUT 300)
add_test(NAME "scripts: build_docs.sh" COMMAND ${TANDEM_BASH} ${CMAKE_CURRENT_LIST_DIR}/build_docs_cases.sh ${PROJECT_SOURCE_DIR})
add_test(NAME "scripts: run_ctest.sh"
  COMMAND ${TANDEM_BASH} ${CMAKE_CURRENT_LIST_DIR}/run_ctest_cases.sh ${PROJECT_SOURCE_DIR})
add_test(NAME "scripts: check_all.sh"
  COMMAND ${TANDEM_BASH} ${CMAKE_CURRENT_LIST_DIR}/check_all_cases.sh ${PROJECT_SOURCE_DIR})

# (A toolkit that is installed as the system's own has its headers there.)
if(TANDEM_HAS_CUDA AND CMAKE_GENERATOR STREQUAL "Ninja" AND NOT CUDAToolkit_INCLUDE_DIRS STREQUAL "/usr/include")
  add_test(NAME "scripts: CUDA's headers are those of the build"
    COMMAND ${TANDEM_BASH} ${CMAKE_CURRENT_LIST_DIR}/cuda_headers_cases.sh ${PROJECT_BINARY_DIR})
  if(TANDEM_CUDA_IS_SIMULATED)
    set_tests_properties("scripts: CUDA's headers are those of the build" PROPERTIES LABELS simulated)
  endif()
endif()

add_test(NAME "scripts: long tests only where they are wanted"
  COMMAND ${TANDEM_BASH} ${CMAKE_CURRENT_LIST_DIR}/tier_cases.sh ${PROJECT_SOURCE_DIR})
add_test(NAME "scripts: stages of continuous integration"
  COMMAND ${TANDEM_BASH} ${CMAKE_CURRENT_LIST_DIR}/ci_cases.sh ${PROJECT_SOURCE_DIR})
add_test(NAME "scripts: arguments" COMMAND ${TANDEM_BASH} ${CMAKE_CURRENT_LIST_DIR}/argument_cases.sh ${PROJECT_SOURCE_DIR})
set_tests_properties("scripts: arguments" PROPERTIES TIMEOUT 300)

add_test(NAME "scripts: warnings are errors unless TANDEM_WERROR=OFF"
  COMMAND ${CMAKE_COMMAND} -DREPOSITORY=${PROJECT_SOURCE_DIR} -DWORK=${CMAKE_CURRENT_BINARY_DIR}/werror
    -DGENERATOR=${CMAKE_GENERATOR} -P ${CMAKE_CURRENT_LIST_DIR}/werror_cases.cmake)

if(TANDEM_CCACHE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_test(NAME "scripts: a changed comment in a precompiled header, with ccache"
    COMMAND ${CMAKE_COMMAND} -DREPOSITORY=${PROJECT_SOURCE_DIR} -DWORK=${CMAKE_CURRENT_BINARY_DIR}/ccache
      -DGENERATOR=${CMAKE_GENERATOR} -P ${CMAKE_CURRENT_LIST_DIR}/ccache_cases.cmake)
endif()

find_program(TANDEM_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
mark_as_advanced(TANDEM_PYTHON)
if(TANDEM_PYTHON)
  add_test(NAME "scripts: libraries in Python packages are found"
    COMMAND ${CMAKE_COMMAND} -DREPOSITORY=${PROJECT_SOURCE_DIR} -DWORK=${CMAKE_CURRENT_BINARY_DIR}/find_packages
      -DPYTHON=${TANDEM_PYTHON} -P ${CMAKE_CURRENT_LIST_DIR}/find_packages_cases.cmake)
  add_test(NAME "scripts: registers and occupancy" COMMAND ${TANDEM_PYTHON}
    ${CMAKE_CURRENT_LIST_DIR}/test_kernel_resources.py ${PROJECT_SOURCE_DIR}/scripts ${probe})
  if(TANDEM_CUDA_IS_SIMULATED)
    set_tests_properties("scripts: registers and occupancy" PROPERTIES LABELS simulated)
  endif()
endif()
if(TANDEM_PYTHON AND NOT TANDEM_HAS_CUDA)
  add_test(NAME "scripts: faults of style are found"
    COMMAND ${TANDEM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/test_check_style.py ${PROJECT_SOURCE_DIR}/scripts)
  add_test(NAME "scripts: the planted faults have their places in the sources"
    COMMAND ${TANDEM_PYTHON} ${PROJECT_SOURCE_DIR}/scripts/mutations.py --list)
  add_test(NAME "scripts: the umbrella headers include what users of each library do"
    COMMAND ${TANDEM_PYTHON} ${PROJECT_SOURCE_DIR}/scripts/umbrella_headers.py)
  add_test(NAME "scripts: umbrella headers that have gone stale are found"
    COMMAND ${TANDEM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/test_umbrella_headers.py ${PROJECT_SOURCE_DIR}/scripts)
  add_test(NAME "scripts: includes that are lacking are found"
    COMMAND ${TANDEM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/test_check_includes.py ${PROJECT_SOURCE_DIR}/scripts)
  set_tests_properties("scripts: faults of style are found" "scripts: includes that are lacking are found" PROPERTIES
    SKIP_RETURN_CODE 77)  # without git
  add_test(NAME "scripts: several runs of a recipe"
    COMMAND ${TANDEM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/test_speed_run.py ${PROJECT_SOURCE_DIR}/scripts)
  add_test(NAME "scripts: a recipe's ideas one after another"
    COMMAND ${TANDEM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/test_speed_run_ladder.py ${PROJECT_SOURCE_DIR}/scripts)
  add_test(NAME "scripts: a recipe in PyTorch"
    COMMAND ${TANDEM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/test_torch_speed_run.py ${PROJECT_SOURCE_DIR}/scripts)
  set_tests_properties("scripts: a recipe in PyTorch" PROPERTIES SKIP_RETURN_CODE 77 LABELS no-asan)
  add_test(NAME "scripts: loops over functions become vectors"
    COMMAND ${TANDEM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/test_vector_loops.py ${PROJECT_BINARY_DIR})
  set_tests_properties("scripts: loops over functions become vectors" PROPERTIES SKIP_RETURN_CODE 77 LABELS no-asan)
  add_test(NAME "scripts: new_op.py" COMMAND ${TANDEM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/test_new_op.py ${PROJECT_SOURCE_DIR})
  add_test(NAME "scripts: faults of headers and their examples are found" COMMAND ${TANDEM_PYTHON}
    ${CMAKE_CURRENT_LIST_DIR}/test_check_headers.py ${PROJECT_SOURCE_DIR} ${CMAKE_CXX_COMPILER})
  add_test(NAME "scripts: the parts of the documentation's site"
    COMMAND ${TANDEM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/test_docs_site.py ${PROJECT_SOURCE_DIR}/scripts)
  add_test(NAME "scripts: the tables of flags and of the environment"
    COMMAND ${TANDEM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/test_reference_pages.py ${PROJECT_SOURCE_DIR}/scripts)
  add_test(NAME "scripts: names in the documentation"
    COMMAND ${TANDEM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/test_check_docs.py ${PROJECT_SOURCE_DIR}/scripts)
endif()
# What pages show; headers of the simulator, which some of it includes, are for g++, and some of the tests that have pages for MPI and PNG.
if(TANDEM_PYTHON AND TANDEM_BUILD_APPS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND TANDEM_HAS_MPI AND TANDEM_HAS_PNG
    AND NOT TANDEM_HAS_CUDA AND NOT TANDEM_SANITIZE)
  add_test(NAME "docs: each snippet of a page has a rule, and compiles"
    COMMAND ${TANDEM_PYTHON} ${PROJECT_SOURCE_DIR}/scripts/check_snippets.py --quick --build ${PROJECT_BINARY_DIR})
  add_test(NAME "scripts: faults of snippets are found" COMMAND ${TANDEM_PYTHON}
    ${CMAKE_CURRENT_LIST_DIR}/test_check_snippets.py ${PROJECT_SOURCE_DIR}/scripts ${PROJECT_BINARY_DIR})
  set_tests_properties("docs: each snippet of a page has a rule, and compiles" "scripts: faults of snippets are found" PROPERTIES
    ENVIRONMENT CXX=${CMAKE_CXX_COMPILER} TIMEOUT 300 SKIP_RETURN_CODE 77)
endif()
# What programs say of their options depends on what they were built with.
if(TANDEM_PYTHON AND TANDEM_BUILD_APPS AND TANDEM_HAS_MPI AND TANDEM_HAS_GLOO AND TANDEM_HAS_ONEDNN AND NOT TANDEM_HAS_CUDA)
  add_test(NAME "docs: the tables of flags and of the environment"
    COMMAND ${TANDEM_PYTHON} ${PROJECT_SOURCE_DIR}/scripts/reference_pages.py ${PROJECT_BINARY_DIR})
endif()
if(TANDEM_PYTHON AND TANDEM_BUILD_APPS)
  add_test(NAME "scripts: conv_bench, one process per contestant" COMMAND ${TANDEM_PYTHON}
    ${CMAKE_CURRENT_LIST_DIR}/test_merge_conv_bench.py ${PROJECT_SOURCE_DIR}/scripts $<TARGET_FILE:conv_bench>)
  add_test(NAME "scripts: comparison with PyTorch" COMMAND ${TANDEM_PYTHON}
    ${CMAKE_CURRENT_LIST_DIR}/test_torch_comparison.py ${PROJECT_SOURCE_DIR}/scripts $<TARGET_FILE:conv_bench>)
  set_tests_properties("scripts: comparison with PyTorch" PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300
    ENVIRONMENT "OMP_NUM_THREADS=1")
endif()
