# The targets of scripts/fuzz.sh on the inputs that are kept (corpus/TARGET): those that reached the most, and those that failed
# once. Any compiler builds them; new inputs are what the fuzzer is for.
if(NOT TANDEM_BUILD_APPS OR TANDEM_CUDA_IS_SIMULATED)
  return()
endif()
file(GLOB fuzz_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/fuzz_*.cpp)
foreach(source ${fuzz_sources})
  get_filename_component(name ${source} NAME_WE)
  string(REPLACE "fuzz_" "" target ${name})
  add_executable(${name} ${source} ${CMAKE_CURRENT_LIST_DIR}/run_inputs.cpp)
  target_link_libraries(${name} PRIVATE cifar_train_parts)  # which brings the folder of config_file.h
  target_precompile_headers(${name} REUSE_FROM tandem_test_headers)
  add_test(NAME "fuzz: kept inputs of ${target}" COMMAND ${name} ${CMAKE_CURRENT_LIST_DIR}/corpus/${target})
  set_tests_properties("fuzz: kept inputs of ${target}" PROPERTIES TIMEOUT 60 LABELS unit)
  add_dependencies(unit_suite ${name})
endforeach()
