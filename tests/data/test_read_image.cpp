// Image files: each kind decoded as it is meant, and one error for each that is not sound.
#include "tandem/data/read_image.h"

#include "tests/data/image_files.h"
#include "tests/support/catch.h"

#include <cmath>

using namespace tandem;
using namespace tandem::data;
using namespace tandem::test;

#if TANDEM_HAS_PNG || TANDEM_HAS_JPEG
namespace {

/// The colours of a file, pixel by pixel.
std::vector<std::vector<int>> colors(const std::filesystem::path& file) {
  const Tensor image = read_image(file);
  const Tensor pixels = image.view({3, -1}).permute(std::vector<int>{1, 0}).contiguous();
  const auto values = pixels.to_vector<std::int32_t>();
  std::vector<std::vector<int>> result;
  for (std::size_t i = 0; i < values.size(); i += 3) result.push_back({values[i], values[i + 1], values[i + 2]});
  return result;
}

using Colors = std::vector<std::vector<int>>;

std::string error_of_file(const TemporaryFolder& folder, const Bytes& bytes, const ReadImageOptions& options = {}) {
  const auto file = folder.write("image.png", bytes);
  const std::string error = error_of([&] { read_image(file, options); });
  CHECK(error.find('\n') == std::string::npos);
  CHECK(error.rfind(file.string() + ": ", 0) == 0);
  return error;
}

}  // namespace
#endif

#if TANDEM_HAS_PNG
TEST_CASE("PNG files of each colour type and depth have the colours that they mean") {
  const TemporaryFolder folder;
  const auto colors_of = [&](const Png& png) { return colors(folder.write("image.png", png_file(png))); };
  CHECK(colors_of({2, 2, 8, 2, {{1, 2, 3, 4, 5, 6}, {7, 8, 9, 255, 0, 128}}}) ==
        Colors{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {255, 0, 128}});
  CHECK(colors_of({1, 2, 16, 2, {{0, 0, 0x80, 0x80, 0xff, 0xff, 0x40, 0x40, 1, 1, 2, 2}}}) ==
        Colors{{0, 128, 255}, {64, 1, 2}});
  CHECK(colors_of({1, 3, 8, 0, {{0, 77, 255}}}) == Colors{{0, 0, 0}, {77, 77, 77}, {255, 255, 255}});
  CHECK(colors_of({1, 2, 16, 0, {{0x20, 0x20, 0xff, 0xff}}}) == Colors{{32, 32, 32}, {255, 255, 255}});
  CHECK(colors_of({1, 4, 1, 0, {{0b10100000}}}) == Colors{{255, 255, 255}, {0, 0, 0}, {255, 255, 255}, {0, 0, 0}});
  CHECK(colors_of({1, 2, 4, 0, {{0x3f}}}) == Colors{{51, 51, 51}, {255, 255, 255}});
  const Bytes palette = png_chunk("PLTE", {9, 8, 7, 200, 100, 50});
  CHECK(colors_of({1, 3, 8, 3, {{1, 0, 1}}, palette}) == Colors{{200, 100, 50}, {9, 8, 7}, {200, 100, 50}});
  CHECK(colors_of({1, 3, 1, 3, {{0b01000000}}, palette}) == Colors{{9, 8, 7}, {200, 100, 50}, {9, 8, 7}});
}

TEST_CASE("transparency of a PNG file is left out") {
  const TemporaryFolder folder;
  const auto colors_of = [&](const Png& png) { return colors(folder.write("image.png", png_file(png))); };
  CHECK(colors_of({1, 2, 8, 6, {{1, 2, 3, 0, 4, 5, 6, 128}}}) == Colors{{1, 2, 3}, {4, 5, 6}});
  CHECK(colors_of({1, 2, 8, 4, {{50, 0, 60, 255}}}) == Colors{{50, 50, 50}, {60, 60, 60}});
  const Bytes palette = png_chunk("PLTE", {9, 8, 7, 200, 100, 50}) + png_chunk("tRNS", {0, 255});
  CHECK(colors_of({1, 2, 8, 3, {{0, 1}}, palette}) == Colors{{9, 8, 7}, {200, 100, 50}});
}

TEST_CASE("images are read as grey where that is asked for") {
  const TemporaryFolder folder;
  const auto file = folder.write("image.png", plain_png(2, 3, {100, 150, 200}));
  const Tensor grey = read_image(file, {.channels = 1});
  CHECK(grey.shape() == Shape({1, 2, 3}));
  CHECK(grey.to_vector<std::int32_t>() == std::vector<std::int32_t>(6, 141));  // 29.9 + 88.05 + 22.8, rounded
  CHECK_THAT(error_of([&] { read_image(file, {.channels = 4}); }), ContainsText("4 channels asked for"));
}

TEST_CASE("PNG files that are not sound are one error each") {
  const TemporaryFolder folder;
  const Bytes whole = plain_png(8, 8);
  for (std::size_t size = 1; size + 13 < whole.size(); size += 7)  // of IEND nothing is missed
    CHECK(error_of_file(folder, Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))) != "no error");
  Bytes flipped = whole;
  flipped[45] ^= 0x10;  // in IDAT, against its checksum
  CHECK_THAT(error_of_file(folder, flipped), ContainsText("not a sound PNG file: "));
  CHECK_THAT(error_of_file(folder, png_file({.height = 0x7fffffff, .width = 0x7fffffff})),
             ContainsText("not a sound PNG file: "));
  CHECK_THAT(error_of_file(folder, png_file({.height = 20000, .width = 20000})),
             ContainsText("20000 x 20000 pixels are more than max_pixels, 100000000; "));
  CHECK_THAT(error_of_file(folder, plain_png(8, 8), {.max_pixels = 63}), ContainsText("more than max_pixels, 63"));
  CHECK(error_of_file(folder, png_file({.height = 4, .width = 4, .rows = {{1, 2, 3}}})) != "no error");  // too few rows
  CHECK_THAT(error_of_file(folder, png_file({1, 1, 8, 3, {{0}}})), ContainsText("not a sound PNG file"));  // no palette
}
#else
TEST_CASE("a PNG file is refused by builds without libpng") {
  const TemporaryFolder folder;
  const auto file = folder.write("image.png", plain_png(2, 2));
  CHECK(error_of([&] { read_image(file); }) ==
        file.string() +
            ": is a PNG file, and this build of Tandem has no libpng: install libpng-dev and build it again");
}
#endif

#if TANDEM_HAS_JPEG
TEST_CASE("JPEG files of each colour space have the colours that they mean, up to rounding") {
  const TemporaryFolder folder;
  const auto check_color = [&](const Jpeg& jpeg, const std::vector<int>& expected) {
    const auto all = colors(folder.write("image.jpg", jpeg_file(jpeg)));
    CHECK(all.size() == jpeg.height * jpeg.width);
    for (const auto& color : all)
      for (std::size_t c = 0; c < 3; ++c) REQUIRE(std::abs(color[c] - expected[c]) <= 2);
  };
  check_color({}, {10, 20, 30});
  check_color({.height = 9, .width = 21, .color = {200, 100, 50}}, {200, 100, 50});
  check_color({.color = {200, 100, 50}, .progressive = true}, {200, 100, 50});
  check_color({.stored = JCS_RGB, .color = {200, 100, 50}}, {200, 100, 50});
  check_color({.pixels = JCS_GRAYSCALE, .stored = JCS_GRAYSCALE, .color = {77}}, {77, 77, 77});
  // Inks, and with Adobe's marker light: 255 less of each.
  check_color({.pixels = JCS_CMYK, .stored = JCS_CMYK, .color = {55, 155, 205, 0}}, {200, 100, 50});
  check_color({.pixels = JCS_CMYK, .stored = JCS_CMYK, .color = {55, 155, 205, 128}}, {100, 50, 25});
  check_color({.pixels = JCS_CMYK, .stored = JCS_CMYK, .color = {200, 100, 50, 255}, .adobe = true}, {200, 100, 50});
  check_color({.pixels = JCS_CMYK, .stored = JCS_YCCK, .color = {200, 100, 50, 128}, .adobe = true}, {100, 50, 25});
}

TEST_CASE("JPEG files that are not sound are one error each") {
  const TemporaryFolder folder;
  for (const bool progressive : {false, true}) {
    const Bytes file = jpeg_file({.height = 40, .width = 40, .progressive = progressive});
    for (std::size_t size = 3; size + 3 < file.size(); size += 11)
      CHECK_THAT(error_of_file(folder, Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size))),
                 ContainsText("not a sound JPEG file: "));
  }
  const Bytes whole = jpeg_file({.height = 40, .width = 40});
  const Bytes ended_early(whole.begin(), whole.end() - 20);  // and as if that were its end
  CHECK_THAT(error_of_file(folder, ended_early + Bytes{0xff, 0xd9}), ContainsText("not a sound JPEG file: "));
  CHECK_THAT(error_of_file(folder, {0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2}), ContainsText("not a sound JPEG file: "));
  Bytes huge = jpeg_file({});
  for (std::size_t i = 0; i + 8 < huge.size(); ++i) {
    if (huge[i] == 0xff && huge[i + 1] == 0xc0) huge[i + 5] = huge[i + 7] = 0xff;  // SOF0: height and width
  }
  CHECK_THAT(error_of_file(folder, huge), ContainsText("65296 x 65296 pixels are more than max_pixels, 100000000; "));
}

TEST_CASE("a JPEG file of a thousand passes is refused") {
  const TemporaryFolder folder;
  const Bytes whole = jpeg_file({.progressive = true});
  // The last scan, again and again.
  std::size_t last = 0;
  for (std::size_t i = 0; i + 1 < whole.size(); ++i)
    if (whole[i] == 0xff && whole[i + 1] == 0xda) last = i;
  const auto at = [&](std::size_t place) { return whole.begin() + static_cast<std::ptrdiff_t>(place); };
  Bytes many(whole.begin(), at(last));
  for (int i = 0; i < 1000; ++i) many.insert(many.end(), at(last), whole.end() - 2);
  many = many + Bytes{0xff, 0xd9};
  CHECK_THAT(error_of_file(folder, many), ContainsText("not a sound JPEG file: "));
}
#else
TEST_CASE("a JPEG file is refused by builds without libjpeg") {
  const TemporaryFolder folder;
  const auto file = folder.write("image.jpg", {0xff, 0xd8, 0xff, 0xe0});
  CHECK(error_of([&] { read_image(file); }) ==
        file.string() +
            ": is a JPEG file, and this build of Tandem has no libjpeg: install libjpeg-dev and build it again");
}
#endif

TEST_CASE("what is no image, is not there or cannot be read is one error with the path") {
  const TemporaryFolder folder;
  const auto error_with = [](const std::filesystem::path& file) { return error_of([&] { read_image(file); }); };
  const auto text = folder.write("text.png", {'h', 'e', 'l', 'l', 'o'});
  CHECK(error_with(text) ==
        text.string() + ": is neither a PNG nor a JPEG file by its first bytes; replace the file, or remove it");
  CHECK_THAT(error_with(folder / "none.png"), ContainsText("none.png: no such file"));
  CHECK_THAT(error_with(folder.path()), ContainsText("is a directory"));
  CHECK_THAT(error_with(folder.write("empty.jpg", {})), ContainsText("empty.jpg: is empty"));
}

#if TANDEM_HAS_PNG && TANDEM_HAS_JPEG
TEST_CASE("what a file holds is told by its first bytes, not by its name") {
  const TemporaryFolder folder;
  CHECK(colors(folder.write("really.jpg", plain_png(1, 1))) == Colors{{10, 20, 30}});
  CHECK(read_image(folder.write("really.png", jpeg_file({}))).shape() == Shape({3, 16, 16}));
}
#endif

TEST_CASE("a resized image of one colour stays that colour, and one of its own size stays as it is") {
  const Tensor plain = Tensor::full({2, 37, 23}, 93, {.dtype = DType::u8});
  for (const ImageSize size : {ImageSize{5, 5}, ImageSize{64, 80}, ImageSize{1, 1}, ImageSize{37, 50}}) {
    for (const ImageFit fit : {ImageFit::crop, ImageFit::stretch}) {
      const Tensor resized = resize_image(plain, size, fit);
      CHECK(resized.shape() == Shape({2, size.height, size.width}));
      const auto values = resized.to_vector<std::int32_t>();
      CHECK(values == std::vector<std::int32_t>(values.size(), 93));
    }
  }
  std::vector<std::uint8_t> bytes(6);
  for (std::size_t i = 0; i < 6; ++i) bytes[i] = static_cast<std::uint8_t>(40 * i);
  const Tensor image = Tensor::from(bytes, {1, 2, 3});
  CHECK(resize_image(image, {2, 3}).to_vector<std::uint8_t>() == bytes);
}

TEST_CASE("resizing is bilinear, and antialiased where images shrink") {
  // Pillow 13: Image.fromarray(row).resize((n, 1), Image.BILINEAR).
  const auto resized = [](const std::vector<std::uint8_t>& row, std::int64_t count) {
    const Tensor image = Tensor::from(row, {1, 1, static_cast<std::int64_t>(row.size())});
    return resize_image(image, {1, count}, ImageFit::stretch).to_vector<std::int32_t>();
  };
  CHECK(resized({0, 100}, 4) == std::vector<std::int32_t>{0, 25, 75, 100});
  // New pixel 0 of 2 stands over 0 and 1: weights 3/8, 3/8 and 1/8 of the next, over their sum of 7/8.
  CHECK(resized({0, 70, 140, 210}, 2) == std::vector<std::int32_t>{50, 160});
  // A pattern of every other pixel becomes grey.
  CHECK(resized({0, 200, 0, 200, 0, 200, 0, 200}, 2) == std::vector<std::int32_t>{93, 107});
}

TEST_CASE("columns are resized as rows are") {
  std::vector<std::uint8_t> bytes(7 * 9);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>((i * 89) % 256);
  const Tensor image = Tensor::from(bytes, {1, 7, 9});
  const Tensor turned = image.transpose(1, 2).contiguous();
  const auto rows = resize_image(image, {4, 12}, ImageFit::stretch).to_vector<std::int32_t>();
  const auto columns =
      resize_image(turned, {12, 4}, ImageFit::stretch).transpose(1, 2).contiguous().to_vector<std::int32_t>();
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK(std::abs(rows[i] - columns[i]) <= 1);  // sums in another order
}

TEST_CASE("cropping takes the middle of an image of another shape") {
  // Columns of 0, 0, 50, 100, 150, 200, 255, 255 in two rows: the middle square is 100 and 150.
  const std::vector<std::uint8_t> row{0, 0, 50, 100, 150, 200, 255, 255};
  Tensor image = Tensor::empty({1, 2, 8}, {.dtype = DType::u8});
  for (int y = 0; y < 2; ++y) image.select(1, y).copy_from(Tensor::from(row, {1, 8}));
  CHECK(resize_image(image, {2, 2}).to_vector<std::int32_t>() == std::vector<std::int32_t>{100, 150, 100, 150});
  CHECK(resize_image(image, {2, 2}, ImageFit::stretch).to_vector<std::int32_t>() !=
        std::vector<std::int32_t>{100, 150, 100, 150});
  CHECK(resize_image(image, {8, 2}).shape() == Shape({1, 8, 2}));
}

TEST_CASE("what cannot be resized is refused") {
  CHECK_THAT(error_of([] { resize_image(Tensor::zeros({3, 4, 4}), {2, 2}); }),
             ContainsText("resize_image: needs an image u8 [C, H, W] on the CPU, got f32[3, 4, 4]"));
  CHECK_THAT(error_of([] { resize_image(Tensor::zeros({3, 4, 4}, {.dtype = DType::u8}), {0, 2}); }),
             ContainsText("resize_image: size 0 x 2 must be 1 x 1 or more"));
  // At once, before anything of that size is worked out.
  constexpr std::int64_t kHuge = std::int64_t{1} << 30;
  CHECK_THROWS_AS(resize_image(Tensor::zeros({3, 4, 4}, {.dtype = DType::u8}), {kHuge, kHuge}), Error);
}
