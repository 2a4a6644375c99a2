# The README shows examples/train.cpp as it is. Run as: cmake -DREPOSITORY=... -P shown_program.cmake
file(READ ${REPOSITORY}/README.md page)
file(READ ${REPOSITORY}/examples/train.cpp program)
string(FIND "${page}" "```cpp\n${program}```\n" at)
if(at EQUAL -1)
  message(FATAL_ERROR "README.md shows another program than examples/train.cpp: copy that there")
endif()
