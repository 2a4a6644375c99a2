# Precompiled headers: half of a build's time would go into reading the standard library, fmt, json, Catch2 and the
# tensor again and again. Of our own only what nearly every file includes is among them: a change of it compiles
# everything anew anyway. Angle brackets keep this tree's path out of them, so that clones share the compiler cache. No
# more than pays: each file takes a moment for each megabyte of them. Sources include what they need all the same.
set(TANDEM_PRECOMPILED_HEADERS <algorithm> <array> <cmath> <cstdint> <functional> <memory> <numeric> <optional> <span>
  <string> <string_view> <utility> <vector> <fmt/core.h> <tandem/core/tensor.h>)

# tandem_precompile(name headers [POSITION_INDEPENDENT] [OPTIONS option ...] [LIBRARIES lib ...]): headers that targets
# compiled alike take by target_precompile_headers(target REUSE_FROM name); the libraries say where they are
function(tandem_precompile name headers)
  cmake_parse_arguments(PARSE_ARGV 2 SET "POSITION_INDEPENDENT" "" "OPTIONS;LIBRARIES")
  set(source ${PROJECT_BINARY_DIR}/${name}.cpp)
  file(GENERATE OUTPUT ${source} CONTENT "")
  add_library(${name} OBJECT ${source})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ${SET_POSITION_INDEPENDENT})
  target_link_libraries(${name} PRIVATE tandem_settings fmt::fmt ${SET_LIBRARIES})
  tandem_include_directories(${name} PRIVATE)
  target_compile_options(${name} PRIVATE ${SET_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${headers})
endfunction()

# What programs and tests are compiled with: they take longer to compile than to run, as what takes their time is in the
# libraries.
set(TANDEM_PROGRAM_OPTIONS $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
if(TANDEM_SANITIZE)  # which make the optimizer take half of the time
  set(TANDEM_PROGRAM_OPTIONS $<$<COMPILE_LANGUAGE:CXX>:-O0>)
endif()

# For libraries, for programs, and for the .cu files of the simulated device.
tandem_precompile(tandem_library_headers "${TANDEM_PRECOMPILED_HEADERS}" POSITION_INDEPENDENT)
if(TANDEM_BUILD_APPS OR TANDEM_DEVELOPMENT_BUILD)
  tandem_precompile(tandem_program_headers "${TANDEM_PRECOMPILED_HEADERS};<nlohmann/json.hpp>"
    OPTIONS ${TANDEM_PROGRAM_OPTIONS} LIBRARIES nlohmann_json::nlohmann_json)
endif()
if(TANDEM_CUDA_IS_SIMULATED)
  tandem_precompile(tandem_kernel_headers
    "${TANDEM_PRECOMPILED_HEADERS};<tandem/core/cuda/launch.h>;<tandem/kernels/device/dispatch.h>" POSITION_INDEPENDENT
    OPTIONS ${TANDEM_SIMULATED_KERNEL_OPTIONS} LIBRARIES tandem_simulator)
endif()
