// The layouts of convolution by warpgroups, exhaustively: lines in swizzled tiles, boxes of pixels, blocks of threads.
#include "tandem/kernels/conv/warpgroup/plan.h"
#include "tests/kernels/conv_support.h"
#include "tests/support/catch.h"

#include <set>

namespace tandem::test {
namespace {

namespace warpgroup = kernels::cuda::warpgroup;
using warpgroup::PixelBox;

}  // namespace

TEST_CASE("a swizzled tile has one place for each byte, and eight lines' vectors in all banks", "[conv]") {
  constexpr int kLines = 256, kVectors = device::kLineBytes / 16;
  std::set<int> places;
  for (int line = 0; line < kLines; ++line)
    for (int byte = 0; byte < device::kLineBytes; ++byte) {
      const int place = device::line_place(line, byte);
      CHECK(place / device::kLineBytes == line);  // stays in its line
      CHECK(place % 16 == byte % 16);             // and vectors of 16 bytes stay whole
      places.insert(place);
    }
  CHECK(places.size() == kLines * device::kLineBytes);
  for (int line = 0; line < kLines; line += device::kSwizzledLines)
    for (int vector = 0; vector < kVectors; ++vector) {
      std::set<int> banks;
      for (int i = 0; i < device::kSwizzledLines; ++i)
        banks.insert(device::line_place(line + i, vector * 16) % 128 / 16);
      CHECK(banks.size() == 8);
    }
}

TEST_CASE("descriptors hold what the hardware reads", "[conv]") {
  using device::Lines;
  for (unsigned address = 0; address < 227 * 1024; address += device::kSwizzledBytes)
    for (const int chunk : {8192, 16384, 32768})
      for (unsigned step = 0; step < 4; ++step)
        for (const Lines lines : {Lines::along_depth, Lines::along_rows}) {
          const unsigned begin = address + step * device::depth_step(lines);
          const std::uint64_t d =
              device::advanced(device::operand_descriptor(lines, address, chunk), step * device::depth_step(lines));
          CHECK((d & 0x3fff) == begin / 16);
          CHECK((d >> 14 & 3) == 0);
          if (lines == Lines::along_rows) CHECK((d >> 16 & 0x3fff) == static_cast<unsigned>(chunk) / 16);
          CHECK((d >> 32 & 0x3fff) == 1024 / 16);
          CHECK(d >> 46 == std::uint64_t{1} << 16);  // swizzle of 128 bytes, base offset 0
        }
  for (unsigned address = 0; address < 4096; address += 16) {
    CHECK((address + device::padding_to_swizzle(address)) % device::kSwizzledBytes == 0);
    CHECK(device::padding_to_swizzle(address) < device::kSwizzledBytes);
  }
}

TEST_CASE("boxes cover every pixel once, and few pixels that are not there", "[conv]") {
  for (const int pixels : {warpgroup::kWeightPixels, warpgroup::kImagePixels})
    for (int images = 1; images <= 5; ++images)
      for (int lines = 1; lines <= 20; ++lines)
        for (int columns = 1; columns <= 20; ++columns) {
          INFO(pixels << " of " << images << " x " << lines << " x " << columns);
          const PixelBox box = warpgroup::choose_box(pixels, images, lines, columns);
          REQUIRE(box.images() * box.lines() * box.columns() == pixels);
          std::vector<int> covered(static_cast<std::size_t>(images * lines * columns));
          std::int64_t boxes = 0;
          for (int image = 0; image < images; image += box.images())
            for (int line = 0; line < lines; line += box.lines())
              for (int column = 0; column < columns; column += box.columns(), ++boxes)
                for (int row = 0; row < pixels; ++row) {
                  const warpgroup::BoxPixel in = box.pixel(row);
                  const int i = image + in.image, l = line + in.line, c = column + in.column;
                  if (i < images && l < lines && c < columns)
                    ++covered[static_cast<std::size_t>((i * lines + l) * columns + c)];
                }
          REQUIRE(boxes == warpgroup::boxes_of(box, images, lines, columns));
          REQUIRE(std::all_of(covered.begin(), covered.end(), [](int times) { return times == 1; }));
        }
  // A copy of a tile brings rows in the order of its sizes, innermost first.
  const PixelBox box{1, 2, 4};
  for (int row = 0; row < 128; ++row) CHECK(box.pixel(row) == warpgroup::BoxPixel{row / 64, row / 16 % 4, row % 16});
  const auto box_for = [](int pixels, std::int64_t n, std::int64_t h, std::int64_t w) {
    return warpgroup::choose_box(pixels, n, h, w);
  };
  CHECK(box_for(128, 512, 32, 32) == PixelBox{0, 2, 5});
  CHECK(box_for(128, 512, 16, 16) == PixelBox{0, 3, 4});
  CHECK(box_for(128, 512, 8, 8) == PixelBox{1, 3, 3});
  CHECK(box_for(128, 512, 4, 4) == PixelBox{3, 2, 2});
  CHECK(box_for(128, 1, 1, 500) == PixelBox{0, 0, 7});
}

TEST_CASE("blocks of warpgroups fit into shared memory and registers", "[conv]") {
  const auto check = [](auto shape) {
    using Shape = decltype(shape);
    CHECK(Shape::kDynamicBytes <= 227 * 1024);
    CHECK(Shape::kStageBytes % device::kSwizzledBytes == 0);
    CHECK(Shape::kLeftBytes % device::kSwizzledBytes == 0);
    CHECK(Shape::kBlockThreads == 384);
    CHECK(Shape::kColumns <= 256);  // rows of one copy
    CHECK(Shape::kSharedBytes % 16 == 0);
  };
  check(warpgroup::WideImageBlock{});
  check(warpgroup::ImageBlock{});
  check(warpgroup::WideWeightBlock{});
  check(warpgroup::WeightBlock{});
}

TEST_CASE("the gradient of weights is cut into parts that meet every box once", "[conv]") {
  for (const ConvCase& one : {square_case(512, 256, 8, 8, 256, 3, 1), square_case(1, 8, 3, 3, 8, 1, 0),
                              square_case(128, 128, 16, 16, 256, 3, 1), square_case(7, 64, 9, 31, 64, 3, 1)}) {
    const warpgroup::WeightParts plan(one.geometry());
    INFO(one.text());
    CHECK(plan.parts >= 1);
    CHECK((plan.parts - 1) * plan.part_boxes < plan.boxes);
    CHECK(plan.parts * plan.part_boxes >= plan.boxes);
  }
  CHECK(warpgroup::WeightParts(square_case(512, 256, 8, 8, 256, 3, 1).geometry()).tiles == 18);
}

}  // namespace tandem::test
