# tandem_simulated_test(name source.cu ... [LIBRARIES lib ...] [ORDERS order ...])
#
# Builds a program from .cu files in CUDA's own syntax (and .cpp files) that runs on the simulated GPU, and adds a test of it
# for each order of threads: forward, reverse and three random ones unless ORDERS says otherwise. The program has a main()
# of its own, or gets one from LIBRARIES (Catch2's, say); a fault ends it with a message that names kernel, file, line, block
# and thread.
function(tandem_simulated_test name)
  cmake_parse_arguments(TEST "" "" "LIBRARIES;ORDERS" ${ARGN})
  if(NOT TEST_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tandem_simulated_test(${name}): give at least one source file")
  endif()
  if(NOT TEST_ORDERS)
    set(TEST_ORDERS forward reverse random:1 random:2 random:3)
  endif()

  set(sources)
  foreach(source ${TEST_UNPARSED_ARGUMENTS})
    get_filename_component(path ${source} ABSOLUTE)
    if(NOT path MATCHES "\\.cu$")
      list(APPEND sources ${path})
      continue()
    endif()
    get_filename_component(base ${path} NAME_WE)
    set(translated ${CMAKE_CURRENT_BINARY_DIR}/${name}.translated/${base}.cu.cpp)
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${name}.translated)
    add_custom_command(OUTPUT ${translated} COMMAND tandem::translate_cuda ${path} ${translated}
      DEPENDS ${path} tandem::translate_cuda COMMENT "Translating ${source} for the simulator" VERBATIM)
    set_source_files_properties(${translated} PROPERTIES COMPILE_OPTIONS "${TANDEM_SIMULATED_KERNEL_OPTIONS}")
    list(APPEND sources ${translated})
  endforeach()

  add_executable(${name} ${sources})
  target_compile_features(${name} PRIVATE cxx_std_20)
  # Sources may include headers that lie beside them.
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE tandem::simulator ${TEST_LIBRARIES})
  foreach(order ${TEST_ORDERS})
    add_test(NAME "${name} (${order})" COMMAND ${name})
    set_tests_properties("${name} (${order})" PROPERTIES ENVIRONMENT TANDEM_SIMULATOR_ORDER=${order})
  endforeach()
endfunction()
