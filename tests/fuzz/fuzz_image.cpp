// Image files of any bytes are decoded within the limit of pixels, or refused with an Error.
//
// libpng refuses what its checksums do not fit: they are put right behind each change, so that changes reach the
// decoder.
#include "tandem/core/error.h"
#include "tandem/data/read_image.h"
#include "tests/fuzz/input_file.h"

#if defined(TANDEM_LIBFUZZER)
#include <zlib.h>
#endif

namespace {

constexpr std::int64_t kMostPixels = 1 << 16;
}  // namespace

#if defined(TANDEM_LIBFUZZER)  // not where recorded inputs are run alone
namespace {

constexpr std::size_t kPngBeginning = 8, kAround = 12;  // bytes of a chunk beside its contents: size, kind, checksum

std::uint32_t read_big_endian(const std::uint8_t* at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 | at[3];
}

/// Each chunk's checksum becomes that of what it holds.
void mend_checksums(std::uint8_t* data, std::size_t size) {
  if (size < kPngBeginning || data[0] != 0x89) return;
  for (std::size_t at = kPngBeginning; at + kAround <= size;) {
    const std::size_t length = read_big_endian(data + at);
    if (length > size - at - kAround) return;
    const uLong sum = crc32(0, data + at + 4, static_cast<uInt>(length + 4));
    for (int i = 0; i < 4; ++i) data[at + 8 + length + static_cast<std::size_t>(i)] = sum >> (24 - 8 * i) & 0xff;
    at += length + kAround;
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned int seed) {
  const std::size_t changed = LLVMFuzzerMutate(data, size, most);
  if (seed % 8 != 0) mend_checksums(data, changed);  // wrong ones must be refused, too
  return changed;
}
#endif

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tandem::fuzz::InputFile file;
  file.fill(data, size);
  for (const int channels : {3, 1}) {
    try {
      const tandem::Tensor image =
          tandem::data::read_image(file.path(), {.channels = channels, .max_pixels = kMostPixels});
      tandem::fuzz::expect(image.numel() >= channels && image.numel() <= channels * kMostPixels);
    } catch (const tandem::Error&) {  // refused
    }
  }
  return 0;
}
