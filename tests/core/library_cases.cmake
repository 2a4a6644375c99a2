# Libraries of several versions, one that does not tell its version, and one that has nothing of what is looked for.
foreach(kind "STRANGER" "SILENT;0" "TOO_OLD;305" "GOOD;410" "TOO_NEW;500")
  list(POP_FRONT kind name)
  set(definition)
  if(NOT kind STREQUAL "")
    set(definition FAKE_VERSION=${kind})
  endif()
  tandem_fake_library(tandem_core_tests ${name} ${CMAKE_CURRENT_LIST_DIR}/fake_library/version.cpp ${definition})
endforeach()
