// What is encoded is what a reader of PNG files finds.
#include "tandem/core/out.h"
#include "tandem/data/decode_image.h"
#include "tandem/data/encode_png.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("an image is in its PNG file byte for byte") {
  if (!data::can_encode_png()) {
    CHECK_THAT(error_of([] { data::encode_png(Tensor::zeros({3, 2, 2}, {.dtype = DType::u8})); }),
               ContainsText("has no libpng"));
    return;
  }
  const std::int64_t channels = GENERATE(1, 3);
  const Tensor image = Tensor::empty({channels, 5, 7}, {.dtype = DType::u8});
  for (std::int64_t i = 0; i < image.numel(); ++i)
    Out(image).data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 37 + 11);
  const auto read = data::detail::decode_png(data::encode_png(image), "image", 1000);
  CHECK(read.height == 5);
  CHECK(read.width == 7);
  const std::vector<int> values = image.to_vector<int>();
  for (std::size_t y = 0; y < 5; ++y) {
    for (std::size_t x = 0; x < 7; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        const std::size_t plane = channels == 1 ? 0 : c;
        CHECK(int(read.pixels[(y * 7 + x) * 3 + c]) == values[plane * 35 + y * 7 + x]);
      }
    }
  }
  CHECK_THAT(error_of([] { data::encode_png(Tensor::zeros({2, 4, 4}, {.dtype = DType::u8})); }),
             ContainsText("needs an image u8 [1,H,W] or [3,H,W], got u8[2, 4, 4]"));
  CHECK_THAT(error_of([] { data::encode_png(Tensor::zeros({3, 4, 4})); }), ContainsText("got f32[3, 4, 4]"));
}
