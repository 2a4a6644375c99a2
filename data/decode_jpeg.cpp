// JPEG by libjpeg(-turbo). It reports errors by a jump, which must not pass objects with destructors: the members of
// Decompressor that call it have none in their frames, and all that is allocated belongs to their callers.
#include "tandem/core/error.h"
#include "tandem/data/decode_image.h"

#include <array>
#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>  // needs <cstdio>

#include <jerror.h>

namespace tandem::data::detail {

namespace {

/// What libjpeg calls on errors and warnings; it finds this by the member that comes first.
struct Messages {
  jpeg_error_mgr manager{};
  std::jmp_buf return_point{};
  std::array<char, JMSG_LENGTH_MAX> text{};
  bool damaged = false;
};

Messages& messages_of(j_common_ptr info) { return *reinterpret_cast<Messages*>(info->err); }

[[noreturn]] void stop_reading(j_common_ptr info) {
  Messages& messages = messages_of(info);
  if (!messages.damaged) info->err->format_message(info, messages.text.data());
  messages.damaged = true;
  std::longjmp(messages.return_point, 1);
}

/// Keeps the first warning that pixels were made up. libjpeg goes on after these.
void keep_warning(j_common_ptr info, int level) {
  if (level >= 0 || messages_of(info).damaged) return;
  switch (info->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_BOGUS_PROGRESSION:
      info->err->format_message(info, messages_of(info).text.data());
      messages_of(info).damaged = true;
      break;
    default:
      break;
  }
}

/// A small file can make a progressive image of any number of passes over all its pixels.
void limit_scans(j_common_ptr info) {
  constexpr int kMostScans = 500;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  Messages& messages = messages_of(info);
  std::snprintf(messages.text.data(), messages.text.size(), "more than %d passes over its pixels", kMostScans);
  messages.damaged = true;
  std::longjmp(messages.return_point, 1);
}

class Decompressor {
 public:
  Decompressor() {
    info_.err = jpeg_std_error(&messages_.manager);
    messages_.manager.error_exit = stop_reading;
    messages_.manager.emit_message = keep_warning;
    progress_.progress_monitor = limit_scans;
  }
  ~Decompressor() { jpeg_destroy_decompress(&info_); }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  /// False if it goes wrong, as the others.
  bool read_header(const std::uint8_t* bytes, std::size_t size) {
    if (setjmp(messages_.return_point) != 0) return false;  // NOLINT(cert-err52-cpp): see above
    jpeg_create_decompress(&info_);
    info_.progress = &progress_;
    jpeg_mem_src(&info_, bytes, static_cast<unsigned long>(size));
    jpeg_read_header(&info_, TRUE);
    const bool four_inks = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = four_inks ? JCS_CMYK : JCS_RGB;
    return true;
  }

  /// Writes height() rows of width() * components() bytes.
  bool read_pixels(std::uint8_t* pixels) {
    if (setjmp(messages_.return_point) != 0) return false;  // NOLINT(cert-err52-cpp)
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = pixels + std::size_t{info_.output_scanline} * info_.output_width * components();
      jpeg_read_scanlines(&info_, &row, 1);
    }
    jpeg_finish_decompress(&info_);
    return !messages_.damaged;
  }

  std::int64_t height() const { return info_.image_height; }
  std::int64_t width() const { return info_.image_width; }
  std::size_t components() const { return info_.out_color_space == JCS_CMYK ? 4 : 3; }
  bool inverted() const { return info_.saw_Adobe_marker != FALSE; }
  const char* problem() const { return messages_.text.data(); }

 private:
  jpeg_decompress_struct info_{};
  jpeg_progress_mgr progress_{};
  Messages messages_;
};

/// Four bytes per pixel of CMYK to three.
std::vector<std::uint8_t> mix_inks(const std::vector<std::uint8_t>& inks, bool inverted) {
  std::vector<std::uint8_t> rgb(inks.size() / 4 * 3);
  for (std::size_t i = 0; i < inks.size() / 4; ++i) {
    const auto light = [&](std::size_t c) { return inverted ? inks[4 * i + c] : 255 - inks[4 * i + c]; };
    for (std::size_t c = 0; c < 3; ++c) rgb[3 * i + c] = static_cast<std::uint8_t>((light(c) * light(3) + 127) / 255);
  }
  return rgb;
}

}  // namespace

RgbImage decode_jpeg(std::span<const std::uint8_t> bytes, const std::string& path, std::int64_t max_pixels) {
  Decompressor decompressor;
  require(decompressor.read_header(bytes.data(), bytes.size()), "{}: not a sound JPEG file: {}; {}", path,
          decompressor.problem(), kImageAdvice);
  check_pixels(path, decompressor.height(), decompressor.width(), max_pixels);
  RgbImage result{decompressor.height(), decompressor.width(), {}};
  result.pixels.resize(static_cast<std::size_t>(result.height * result.width) * decompressor.components());
  require(decompressor.read_pixels(result.pixels.data()), "{}: not a sound JPEG file: {}; {}", path,
          decompressor.problem(), kImageAdvice);
  if (decompressor.components() == 4) result.pixels = mix_inks(result.pixels, decompressor.inverted());
  return result;
}

}  // namespace tandem::data::detail
