# The CPU's kernels for several instruction sets, in a portable build with shared libraries: glibc (2.33 or later) looks
# for a library in glibc-hwcaps/x86-64-v4 and -v3 first, if the processor has these instructions: AVX-512, and AVX2 with
# FMA and F16C. https://gitlab.com/x86-psABIs/x86-64-ABI says what the levels have.

# tandem_instruction_sets(target): libraries of the same name and sources as `target` in folders beside it. The code for
# GPUs is not compiled again.
function(tandem_instruction_sets target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "\\.cu$|cmake_pch")
  # So that nobody else's copy of an inline function, for another instruction set, stands in for its own.
  target_compile_options(${target} PRIVATE -fvisibility-inlines-hidden)
  foreach(level x86-64-v3 x86-64-v4)
    set(variant ${target}_${level})
    add_library(${variant} SHARED ${sources})
    foreach(property INCLUDE_DIRECTORIES COMPILE_FEATURES COMPILE_OPTIONS LINK_LIBRARIES POSITION_INDEPENDENT_CODE
        DEFINE_SYMBOL VERSION SOVERSION)
      get_target_property(value ${target} ${property})
      if(NOT value MATCHES "-NOTFOUND$")
        set_property(TARGET ${variant} PROPERTY ${property} "${value}")
      endif()
    endforeach()
    if(TANDEM_CUDA STREQUAL "ON")
      target_sources(${variant} PRIVATE $<FILTER:$<TARGET_OBJECTS:${target}>,INCLUDE,\\.cu\\.o$>)
    endif()
    target_compile_options(${variant} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-march=${level}>)
    target_precompile_headers(${variant} PRIVATE ${TANDEM_PRECOMPILED_HEADERS})
    set_target_properties(${variant} PROPERTIES OUTPUT_NAME ${target} INSTALL_RPATH $ORIGIN/../..
      LIBRARY_OUTPUT_DIRECTORY $<TARGET_FILE_DIR:${target}>/glibc-hwcaps/${level})
    # Who runs a program of this build gets them as well.
    add_dependencies(${target} ${variant})
    if(TANDEM_INSTALL)
      install(TARGETS ${variant} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/glibc-hwcaps/${level} NAMELINK_SKIP)
    endif()
  endforeach()
endfunction()
