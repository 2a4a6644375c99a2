# A change of a comment alone in a precompiled header: ccache must not bring the one compiled before, as GCC would then
# read the header a second time in spite of its #pragma once.
# Run as: cmake -DREPOSITORY=... -DWORK=... -DGENERATOR=... -P ccache_cases.cmake
cmake_minimum_required(VERSION 3.24)
file(REMOVE_RECURSE ${WORK})
file(WRITE ${WORK}/CMakeLists.txt "
cmake_minimum_required(VERSION 3.24)
project(precompiled LANGUAGES CXX)
include(${REPOSITORY}/cmake/TandemOptions.cmake)
if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  message(FATAL_ERROR \"ccache is not used\")
endif()
add_library(precompiled OBJECT first.cpp second.cpp)
target_precompile_headers(precompiled PRIVATE <header.h>)
target_include_directories(precompiled PRIVATE \${CMAKE_CURRENT_SOURCE_DIR})
")
set(ENV{CCACHE_DIR} ${WORK}/cache)
set(ENV{CCACHE_BASEDIR} ${WORK})
file(WRITE ${WORK}/first.cpp "")
foreach(comment first other)
  file(WRITE ${WORK}/header.h "// ${comment}\n#pragma once\nclass Once {};\n")
  # Not the same text as in the round before, so that only the precompiled header can come from the cache.
  file(WRITE ${WORK}/second.cpp "#include \"header.h\"\nOnce ${comment};\n")
  # ccache takes more care of a header that has just been written.
  execute_process(COMMAND touch -d "1 hour ago" ${WORK}/header.h ${WORK}/second.cpp COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${WORK} -B ${WORK}/build -G ${GENERATOR}
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build --clean-first COMMAND_ERROR_IS_FATAL ANY)
endforeach()
