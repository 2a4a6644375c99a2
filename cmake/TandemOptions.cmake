# What can be chosen, and compiler settings shared by all libraries.
set(TANDEM_AUTO_VALUES AUTO ON OFF)

set(TANDEM_CUDA OFF CACHE STRING "CUDA device: OFF, ON (nvcc) or SIMULATED (kernels run on the CPU)")
set_property(CACHE TANDEM_CUDA PROPERTY STRINGS OFF ON SIMULATED)
if(NOT TANDEM_CUDA MATCHES "^(OFF|ON|SIMULATED)$")
  message(FATAL_ERROR "TANDEM_CUDA is '${TANDEM_CUDA}': choose OFF, ON or SIMULATED")
endif()
set(TANDEM_SIMULATOR_MODE race CACHE STRING
  "What kernels are compiled with where TANDEM_CUDA is SIMULATED: race (every access is checked) or plain (fast)")
set_property(CACHE TANDEM_SIMULATOR_MODE PROPERTY STRINGS race plain)
if(NOT TANDEM_SIMULATOR_MODE MATCHES "^(race|plain)$")
  message(FATAL_ERROR "TANDEM_SIMULATOR_MODE is '${TANDEM_SIMULATOR_MODE}': choose race or plain")
endif()

foreach(feature MPI GLOO NCCL CUBLAS CUDNN ONEDNN PNG JPEG CAIRO)
  set(TANDEM_${feature} AUTO CACHE STRING "Use ${feature}: AUTO (where found), ON (required) or OFF")
  set_property(CACHE TANDEM_${feature} PROPERTY STRINGS ${TANDEM_AUTO_VALUES})
  if(NOT TANDEM_${feature} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "TANDEM_${feature} is '${TANDEM_${feature}}': choose AUTO, ON or OFF")
  endif()
endforeach()

option(TANDEM_DEVELOPMENT_BUILD "Build the tests and treat warnings as errors" OFF)
option(TANDEM_BUILD_TESTS "Build the tests of a development build" ON)
option(TANDEM_WERROR "Warnings are errors in development builds; OFF for compilers that nobody has tried" ON)
# A project that this one is a part of gets the libraries, for any machine, and nothing else.
option(TANDEM_BUILD_APPS "Build the programs under apps/" ${PROJECT_IS_TOP_LEVEL})
option(TANDEM_NATIVE "Compile for this machine's instruction set (-march=native)" ${PROJECT_IS_TOP_LEVEL})
option(TANDEM_INSTALL "Install the libraries, their headers and the CMake package" ${PROJECT_IS_TOP_LEVEL})
option(TANDEM_SHARED "Build shared libraries instead of archives" "${BUILD_SHARED_LIBS}")
set(TANDEM_LIBRARY_KIND STATIC)
set(TANDEM_CUDA_RUNTIME CUDA::cudart_static)
if(TANDEM_SHARED)
  set(TANDEM_LIBRARY_KIND SHARED)
  set(TANDEM_CUDA_RUNTIME CUDA::cudart)  # one for all of them
endif()
# Several builds of the CPU's kernels (cmake/TandemInstructionSets.cmake), where one for this machine is not wanted.
set(TANDEM_CAN_CHOOSE_INSTRUCTIONS OFF)
if(TANDEM_SHARED AND NOT TANDEM_NATIVE AND CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(TANDEM_CAN_CHOOSE_INSTRUCTIONS ON)
endif()
option(TANDEM_INSTRUCTION_SETS "Build the kernels for AVX2 and AVX-512 as well; glibc loads those that the processor can run"
  ${TANDEM_CAN_CHOOSE_INSTRUCTIONS})
if(TANDEM_INSTRUCTION_SETS AND NOT TANDEM_CAN_CHOOSE_INSTRUCTIONS)
  message(FATAL_ERROR "TANDEM_INSTRUCTION_SETS needs TANDEM_SHARED=ON, TANDEM_NATIVE=OFF, Linux and x86_64")
endif()
set(TANDEM_SANITIZE OFF CACHE STRING
  "Sanitizers: OFF, ADDRESS (AddressSanitizer and UndefinedBehaviorSanitizer) or THREAD (ThreadSanitizer)")
set_property(CACHE TANDEM_SANITIZE PROPERTY STRINGS OFF ADDRESS THREAD)
if(NOT TANDEM_SANITIZE MATCHES "^(OFF|ADDRESS|THREAD)$")
  message(FATAL_ERROR "TANDEM_SANITIZE is '${TANDEM_SANITIZE}': choose OFF, ADDRESS or THREAD")
endif()
if(TANDEM_SANITIZE AND TANDEM_CUDA STREQUAL "SIMULATED" AND TANDEM_SIMULATOR_MODE STREQUAL "race")
  message(FATAL_ERROR "TANDEM_SANITIZE and race mode both take hold of memory accesses; add -DTANDEM_SIMULATOR_MODE=plain")
endif()
if(TANDEM_SANITIZE STREQUAL "THREAD" AND TANDEM_CUDA STREQUAL "SIMULATED")
  message(FATAL_ERROR "ThreadSanitizer knows nothing of the simulator's threads; choose TANDEM_CUDA=OFF")
endif()

# These hold below this folder. Without extensions no sum is rounded less often than the source says.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# Nor may a project that this one is a part of hide what shared libraries export, or compile several files as one, whose
# local names then meet.
foreach(setting CMAKE_CXX_VISIBILITY_PRESET CMAKE_CUDA_VISIBILITY_PRESET)
  if(${setting})
    set(${setting} default)
  endif()
endforeach()
set(CMAKE_VISIBILITY_INLINES_HIDDEN OFF)
set(CMAKE_UNITY_BUILD OFF)

# What else is set for a whole build is for the project at its top to choose.
if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  find_program(TANDEM_CCACHE ccache)
  mark_as_advanced(TANDEM_CCACHE)
  if(TANDEM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # What ccache must be told before it keeps what was compiled with a precompiled header; and to go by the contents of
    # headers (CCACHE_DEPEND), not by what the preprocessor makes of them: GCC keeps in a precompiled header a checksum of
    # each header with #pragma once, comments and all, and reads the header a second time if that is of another version.
    set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 ${TANDEM_CCACHE})
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${TANDEM_CCACHE})
  endif()
endif()

# Settings every target of ours is compiled with; nothing is put into CMAKE_CXX_FLAGS.
add_library(tandem_settings INTERFACE)
target_compile_features(tandem_settings INTERFACE cxx_std_20)
# Nobody here reads the flags of floating-point exceptions. While they count, GCC makes no vectors of a loop with a
# choice in it unless instructions have masks: with AVX2 and SSE alone exp, erf, GELU and more ran element by element.
# clang has it so by default. tests/scripts/test_vector_loops.py looks at what compilers make of them.
target_compile_options(tandem_settings INTERFACE
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fno-trapping-math>)
if(TANDEM_NATIVE)
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-march=native TANDEM_HAS_MARCH_NATIVE)
  if(TANDEM_HAS_MARCH_NATIVE)
    target_compile_options(tandem_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=native>)
  endif()
endif()
# nvcc: our constexpr functions run on the device, too, and fmt 9 must not be evaluated at compile time. This holds for
# who includes our headers in a .cu file as well: core/CMakeLists.txt hands it on.
set(TANDEM_NVCC_OPTIONS $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
set(TANDEM_NVCC_DEFINITIONS
  $<$<COMPILE_LANGUAGE:CUDA>:FMT_USE_CONSTEXPR=1> "$<$<COMPILE_LANGUAGE:CUDA>:FMT_CONSTEVAL=>")
target_compile_options(tandem_settings INTERFACE ${TANDEM_NVCC_OPTIONS})
target_compile_definitions(tandem_settings INTERFACE ${TANDEM_NVCC_DEFINITIONS})
if(NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  # Errors of CUDA name a line of the source, by its path in this tree. A compiler cache would not share what has this
  # option among clones, and scripts/build.sh has it compile files by relative paths.
  target_compile_options(tandem_settings INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)
endif()
if(TANDEM_DEVELOPMENT_BUILD)
  target_compile_options(tandem_settings INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wundef>)
  if(TANDEM_WERROR)
    target_compile_options(tandem_settings INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings>")
    if(NOT TANDEM_SANITIZE)
      target_compile_options(tandem_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
    endif()
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 sees overlapping copies in `"text" + std::string` (GCC bug 105329).
    target_compile_options(tandem_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  endif()
endif()
set(TANDEM_SANITIZER_FLAGS)
if(TANDEM_SANITIZE STREQUAL "ADDRESS")
  set(TANDEM_SANITIZER_FLAGS -fsanitize=address,undefined)
elseif(TANDEM_SANITIZE STREQUAL "THREAD")
  set(TANDEM_SANITIZER_FLAGS -fsanitize=thread)
endif()
if(TANDEM_SANITIZE)
  # Instrumented code makes GCC see uninitialised values and overflows that are not there (in <regex>, for one); the
  # sanitizers look, and the other builds' warnings are errors.
  target_compile_options(tandem_settings INTERFACE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized -Wno-stringop-overflow>)
  target_compile_options(tandem_settings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-g1 ${TANDEM_SANITIZER_FLAGS} -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  target_link_options(tandem_settings INTERFACE ${TANDEM_SANITIZER_FLAGS})
  # Sources know the sanitizer by the macro that GCC defines; clang has __has_feature() alone.
  target_compile_definitions(tandem_settings INTERFACE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:Clang,AppleClang>>:__SANITIZE_${TANDEM_SANITIZE}__=1>)
  if(TANDEM_SANITIZE STREQUAL "ADDRESS")
    target_sources(tandem_settings INTERFACE
      $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:${CMAKE_CURRENT_LIST_DIR}/sanitizer_defaults.cpp>)
  endif()
endif()
