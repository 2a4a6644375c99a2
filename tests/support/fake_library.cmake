# tandem_fake_library(target NAME source definition...): a shared library that pretends to be another, for tests of how it
# is looked for. The program `target` gets its path as FAKE_<NAME>.
function(tandem_fake_library target name source)
  string(TOLOWER "tandem_fake_${name}" library)
  add_library(${library} MODULE ${source})
  target_compile_definitions(${library} PRIVATE ${ARGN})
  target_compile_definitions(${target} PRIVATE "FAKE_${name}=\"$<TARGET_FILE:${library}>\"")
  add_dependencies(${target} ${library})
endfunction()
