# tandem_nvidia_python_packages(result): the folders of NVIDIA's Python packages that the PATH's python3 sees, each with an
# include/ and a lib/ where it has such (nvidia/cudnn, nvidia/nccl, nvidia/cu13 ...). A library that is loaded from there
# by its full path finds the others that it needs: they know each other by paths relative to their own.
function(tandem_nvidia_python_packages result)
  find_program(python NAMES python3 python NO_CACHE)
  set(folders)
  if(python)
    execute_process(COMMAND ${python} -c "import nvidia; print(';'.join(nvidia.__path__))"
      OUTPUT_VARIABLE roots OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    foreach(root ${roots})
      file(GLOB packages LIST_DIRECTORIES true ${root}/*)
      list(APPEND folders ${packages})
    endforeach()
  endif()
  set(${result} ${folders} PARENT_SCOPE)
endfunction()

# tandem_python_folders(result): where the PATH's python3 looks for packages. A package may put C++ headers into include/
# there.
function(tandem_python_folders result)
  find_program(python NAMES python3 python NO_CACHE)
  set(folders)
  if(python)
    execute_process(COMMAND ${python} -c "import sys; print(';'.join(path for path in sys.path if path))"
      OUTPUT_VARIABLE folders OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  set(${result} ${folders} PARENT_SCOPE)
endfunction()
