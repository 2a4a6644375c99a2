# What the simulator needs, and how a .cu file is compiled for it: by the C++ compiler, as C++.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  message(FATAL_ERROR "TANDEM_CUDA=SIMULATED needs g++ (its instrumentation and its libbacktrace), not ${CMAKE_CXX_COMPILER_ID}")
endif()
find_package(Boost COMPONENTS context)
if(NOT Boost_CONTEXT_FOUND)
  message(FATAL_ERROR "TANDEM_CUDA=SIMULATED needs Boost.Context: install libboost-context-dev")
endif()

# -g1 for the lines of faults; alignment checks call the simulator; kernels that look alike stay apart.
set(TANDEM_SIMULATED_KERNEL_OPTIONS -g1 -Wno-unknown-pragmas -fno-strict-aliasing -fno-ipa-icf)
if(NOT TANDEM_SANITIZE)
  list(APPEND TANDEM_SIMULATED_KERNEL_OPTIONS -fsanitize=alignment)
endif()
if(TANDEM_SIMULATOR_MODE STREQUAL "race")
  # Every access calls a hook of ours; the ThreadSanitizer library is not linked. Accesses stay what the source says: not
  # merged, and not made wider. memcpy() and its like are functions of the simulator, not glibc's fortified ones.
  list(APPEND TANDEM_SIMULATED_KERNEL_OPTIONS -O1 -fsanitize=thread --param=tsan-instrument-func-entry-exit=0
    --param=tsan-distinguish-volatile=1 -U_FORTIFY_SOURCE -fno-tree-vectorize -fno-tree-slp-vectorize -fno-store-merging)
endif()

# tandem_simulated_sources(file ...): compile these .cu files for the simulator, in the calling directory.
function(tandem_simulated_sources)
  if(ARGN)
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX SKIP_PRECOMPILE_HEADERS ON
      COMPILE_OPTIONS "${TANDEM_SIMULATED_KERNEL_OPTIONS}")
  endif()
endfunction()

# tandem_simulated_headers(file ...): give the .cu files of a library, which are compiled by other options than its .cpp
# files, precompiled headers of their own.
function(tandem_simulated_headers)
  set(headers ${PROJECT_BINARY_DIR}/CMakeFiles/tandem_kernel_headers.dir/cmake_pch.hxx)
  foreach(source ${ARGN})
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -Winvalid-pch -include ${headers})
    set_property(SOURCE ${source} APPEND PROPERTY OBJECT_DEPENDS ${headers}.gch)
  endforeach()
endfunction()

include(TandemSimulatedTest)
