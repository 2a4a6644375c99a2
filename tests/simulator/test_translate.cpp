// CUDA's own syntax, rewritten for the simulator.
#include "tandem/simulator/translate/translate.h"
#include "tests/support/catch.h"

using tandem::simulator::translate_cuda;
using tandem::test::ContainsText;

namespace {

/// What becomes of one piece of source, without the two lines put before it.
std::string translated(const std::string& source) {
  const std::string text = translate_cuda(source, "a.cu");
  const std::string head = "#include \"tandem/kernels/device/shared.h\"\n#line 1 \"a.cu\"\n";
  REQUIRE(text.starts_with(head));
  return text.substr(head.size());
}

std::string refusal(const std::string& source) {
  try {
    translate_cuda(source, "a.cu");
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing refused";
}

}  // namespace

TEST_CASE("launches become calls") {
  CHECK(translated("k<<<1, 32>>>(x, 2);") == "::tandem::simulator::configure(k, 1, 32)(x, 2);");
  CHECK(translated("a::k<float, N> <<<g, dim3(1, (2 > 1)), n * sizeof(int), s>>> ();") ==
        "::tandem::simulator::configure(a::k<float, N>, g, dim3(1, (2 > 1)), n * sizeof(int), s) ();");
  CHECK(translated("x = 1; k<<<f(a, b),\n c>>>(y);") == "x = 1; ::tandem::simulator::configure(k, f(a, b),\n c)(y);");
}

TEST_CASE("shared declarations become macros") {
  CHECK(translated("__shared__ float t[32][33];") == "TANDEM_SHARED(float, t, [32][33]);");
  CHECK(translated("  __shared__ int n;") == "  TANDEM_SHARED(int, n, );");
  CHECK(translated("__shared__ T a, b[2];") == "TANDEM_SHARED(T, a, );TANDEM_SHARED(T, b, [2]);");
  CHECK(translated("__shared__ __align__(16) half s[N * 2];") == "TANDEM_SHARED(half, s, [N * 2]);");
  CHECK(translated("extern __shared__ unsigned char bytes[];") == " TANDEM_DYNAMIC_SHARED(unsigned char, bytes);");
}

TEST_CASE("comments, literals and other words are left alone, and lines keep their numbers") {
  for (const std::string text :
       {"// k<<<1, 2>>>(x); __shared__ int a;\n", "/* __shared__ int a; */", "f(\"k<<<1>>>()\", '<', 1'000);",
        "R\"(__shared__ int a;)\" x", "my__shared__ = a << 1 >> 2;"}) {
    CHECK(translated(text) == text);
  }
  CHECK(translated("__shared__\n float a[2];\nint b;") == "TANDEM_SHARED(float, a, [2]);\n\nint b;");
}

TEST_CASE("what cannot be read is refused with file and line") {
  CHECK(refusal("\n\nk<<<1, 2(x);") == "a.cu:3: '>>>' is missing");
  CHECK(refusal("\n <<<1, 2>>>(x);") == "a.cu:2: no kernel before <<<");
  CHECK_THAT(refusal("__shared__ int a = 3;"), ContainsText("shared memory cannot be initialised"));
  CHECK_THAT(refusal("__shared__ float a[2]"), ContainsText("a.cu:1: ';' is missing"));
}
