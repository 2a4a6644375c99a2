# A warning ends a development build, unless TANDEM_WERROR is off; other builds do not ask for warnings.
# Run as: cmake -DREPOSITORY=... -DWORK=... -DGENERATOR=... -P werror_cases.cmake
cmake_minimum_required(VERSION 3.24)
file(REMOVE_RECURSE ${WORK})
file(WRITE ${WORK}/CMakeLists.txt "
cmake_minimum_required(VERSION 3.24)
project(warning LANGUAGES CXX)
include(${REPOSITORY}/cmake/TandemOptions.cmake)
add_library(warning OBJECT warning.cpp)
target_link_libraries(warning PRIVATE tandem_settings)
")
file(WRITE ${WORK}/warning.cpp "void f() { int unused; }\n")

# expect(name result warns option...): 0 if it builds, and whether the compiler warns
function(expect name result warns)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${WORK} -B ${WORK}/${name} -G ${GENERATOR} ${ARGN}
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/${name}
    RESULT_VARIABLE built OUTPUT_VARIABLE text ERROR_VARIABLE text)
  string(FIND "${text}" "unused" found)
  if((result EQUAL 0 AND NOT built EQUAL 0) OR (NOT result EQUAL 0 AND built EQUAL 0))
    message(SEND_ERROR "${name} (${ARGN}): the build ends with ${built}:\n${text}")
  elseif((warns AND found LESS 0) OR (NOT warns AND found GREATER_EQUAL 0))
    message(SEND_ERROR "${name} (${ARGN}): the compiler says:\n${text}")
  endif()
endfunction()
expect(development 1 TRUE -DTANDEM_DEVELOPMENT_BUILD=ON)
expect(tolerant 0 TRUE -DTANDEM_DEVELOPMENT_BUILD=ON -DTANDEM_WERROR=OFF)
expect(release 0 FALSE)
