# Parity with PyTorch: run_parity.py makes the cases, parity_runner runs them, run_parity.py compares. Where the system's
# Python has no torch the tests say so and are skipped (77).
file(GLOB parity_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
add_executable(parity_runner ${parity_sources})
target_link_libraries(parity_runner PRIVATE tandem::train nlohmann_json::nlohmann_json)
target_precompile_headers(parity_runner REUSE_FROM tandem_program_headers)

find_program(TANDEM_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
mark_as_advanced(TANDEM_PYTHON)
if(TANDEM_PYTHON)
  foreach(group ops layers optimizers short_training training)
    add_test(NAME "parity: ${group}"
      COMMAND ${TANDEM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/run_parity.py --runner $<TARGET_FILE:parity_runner> ${group})
    set_tests_properties("parity: ${group}" PROPERTIES SKIP_RETURN_CODE 77 LABELS parity TIMEOUT 1800
      PROCESSORS 2)
  endforeach()
  # Minutes of PyTorch's time, and nothing that the other groups would not show the sanitizers.
  set_property(TEST "parity: training" APPEND PROPERTY LABELS long no-asan)
  set_property(TEST "parity: short_training" APPEND PROPERTY LABELS no-asan)
  if(TANDEM_SANITIZE)  # the op table and the layers' own tests run the same code
    set_property(TEST "parity: ops" "parity: layers" "parity: optimizers" APPEND PROPERTY LABELS long)
  endif()
  add_test(NAME "parity: safetensors files" COMMAND ${TANDEM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/test_safetensors_file.py)
  add_test(NAME "parity: kinks are seen" COMMAND ${TANDEM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/test_kinks.py)
  set_tests_properties("parity: safetensors files" "parity: kinks are seen" PROPERTIES
    SKIP_RETURN_CODE 77 LABELS "parity;no-asan")
  add_test(NAME "parity: recipes" COMMAND ${TANDEM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/test_recipes.py $<TARGET_FILE:cifar_train>)
  set_tests_properties("parity: recipes" PROPERTIES SKIP_RETURN_CODE 77 LABELS "parity;no-asan")
  add_test(NAME "parity: PyTorch goes on from checkpoints" COMMAND ${TANDEM_PYTHON}
    ${CMAKE_CURRENT_LIST_DIR}/test_checkpoint_to_pytorch.py $<TARGET_FILE:cifar_train>)
  set_tests_properties("parity: PyTorch goes on from checkpoints" PROPERTIES SKIP_RETURN_CODE 77 LABELS "parity;no-asan"
    TIMEOUT 600)
else()
  message(STATUS "  no /usr/bin/python3: tests against PyTorch are left out")
endif()
