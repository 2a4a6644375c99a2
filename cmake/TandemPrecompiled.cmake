# Precompiled headers: half of a build's time would go into reading the standard library, fmt and Catch2 again and
# again. Only headers of others are among them, so they never change; sources include what they need all the same.
set(TANDEM_PRECOMPILED_HEADERS <algorithm> <array> <cmath> <cstdint> <functional> <memory> <numeric> <optional> <span>
  <string> <string_view> <utility> <vector> <fmt/core.h>)

# tandem_precompile(name headers [POSITION_INDEPENDENT] [library ...]): headers that targets compiled alike take by
# target_precompile_headers(target REUSE_FROM name); [library ...] says where they are
function(tandem_precompile name headers)
  cmake_parse_arguments(PARSE_ARGV 2 SET "POSITION_INDEPENDENT" "" "")
  set(source ${PROJECT_BINARY_DIR}/${name}.cpp)
  file(GENERATE OUTPUT ${source} CONTENT "")
  add_library(${name} OBJECT ${source})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ${SET_POSITION_INDEPENDENT})
  target_link_libraries(${name} PRIVATE tandem_settings fmt::fmt $<TARGET_NAME_IF_EXISTS:OpenMP::OpenMP_CXX> ${SET_UNPARSED_ARGUMENTS})
  target_precompile_headers(${name} PRIVATE ${headers})
endfunction()
