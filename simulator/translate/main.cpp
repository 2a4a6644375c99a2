// translate_cuda IN.cu OUT.cu: rewrites CUDA's own syntax for the simulator. Exit code 2 where it cannot.
#include "tandem/simulator/translate/translate.h"

#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: translate_cuda IN.cu OUT.cu\n");
    return 2;
  }
  std::ifstream in(arguments[1], std::ios::binary);
  const std::string source{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad()) {
    std::fprintf(stderr, "translate_cuda: cannot read %s\n", arguments[1]);
    return 2;
  }
  try {
    const std::string translated = tandem::simulator::translate_cuda(source, arguments[1]);
    std::ofstream out(arguments[2], std::ios::binary);
    out << translated;
    out.close();
    if (out) return 0;
    std::fprintf(stderr, "translate_cuda: cannot write %s\n", arguments[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "translate_cuda: %s\n", error.what());
  }
  return 2;
}
