# Where there are several builds of the kernels: which one is loaded. The dynamic loader's own option leaves some out; it
# takes none that the processor cannot run.
if(TANDEM_INSTRUCTION_SETS)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=ld-linux-x86-64.so.2
    OUTPUT_VARIABLE loader OUTPUT_STRIP_TRAILING_WHITESPACE)
  file(STRINGS /proc/cpuinfo processor REGEX "^flags" LIMIT_COUNT 1)
  # tandem_instruction_set_test(mask expected): with the folders of `mask` alone
  function(tandem_instruction_set_test mask expected)
    add_test(NAME "kernels: those for ${expected} are loaded from ${mask}"
      COMMAND ${loader} --glibc-hwcaps-mask ${mask} $<TARGET_FILE:tandem_kernels_tests> "the kernels that were loaded*")
    set_tests_properties("kernels: those for ${expected} are loaded from ${mask}" PROPERTIES
      ENVIRONMENT "TANDEM_EXPECTED_INSTRUCTION_SET=${expected};GLIBC_TUNABLES=")
  endfunction()
  tandem_instruction_set_test(x86-64-v2 baseline)
  if(processor MATCHES " avx2 ")
    tandem_instruction_set_test(x86-64-v3 AVX2)
  endif()
  if(processor MATCHES " avx512vl ")
    tandem_instruction_set_test(x86-64-v4:x86-64-v3 AVX-512)
  endif()
endif()
