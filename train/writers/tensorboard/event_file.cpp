// Whole buffers at once; what a full disk leaves of one is cut off again.
#include "tandem/train/writers/tensorboard/event_file.h"

#include "tandem/core/error.h"
#include "tandem/layers/file.h"
#include "tandem/train/process_info.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <system_error>

namespace tandem::train::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "events.out.tfevents.";

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 0xff);
  return text;
}

/// The largest SECONDS of the event files in a folder; 0 without any.
std::int64_t newest_seconds(const std::string& folder) {
  std::int64_t newest = 0;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    std::int64_t seconds = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), seconds);
    newest = std::max(newest, seconds);
  }
  return newest;
}

std::string text_of(int error) { return std::generic_category().message(error); }

}  // namespace

std::uint32_t masked_crc32c(std::string_view data) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(data.data(), data.size());
  const auto sum = static_cast<std::uint32_t>(crc.checksum());
  return (sum >> 15 | sum << 17) + 0xa282ead8u;
}

EventFile EventFile::in(const std::string& folder) {
  for (std::int64_t seconds = std::max<std::int64_t>(std::time(nullptr), newest_seconds(folder) + 1);; ++seconds) {
    const std::string name = fmt::format("{}{:010}.{}.{}", kPrefix, seconds, host_name(), ::getpid());
    const std::string path = (fs::path(folder) / name).string();
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) return {path, descriptor};
    const int error = errno;
    require(error == EEXIST, "{}: cannot write: {}; {}", path, text_of(error), layers::remedy_of(error));
  }
}

EventFile::~EventFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

EventFile::EventFile(EventFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      waiting_(std::move(other.waiting_)),
      waiting_records_(std::exchange(other.waiting_records_, 0)) {}

EventFile& EventFile::operator=(EventFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(waiting_, other.waiting_);
  std::swap(waiting_records_, other.waiting_records_);
  return *this;
}

void EventFile::drop_waiting() {
  waiting_.clear();
  waiting_records_ = 0;
}

void EventFile::take_waiting(EventFile& other) {
  waiting_ += std::exchange(other.waiting_, {});
  waiting_records_ += std::exchange(other.waiting_records_, 0);
}

bool EventFile::is_removed() const {
  struct stat status{};
  return ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 0;
}

void EventFile::add(std::string_view record) {
  const std::string length = little_endian(record.size(), 8);
  waiting_ += length;
  waiting_ += little_endian(masked_crc32c(length), 4);
  waiting_ += record;
  waiting_ += little_endian(masked_crc32c(record), 4);
  ++waiting_records_;
}

void EventFile::flush() {
  const std::string data = std::exchange(waiting_, {});
  waiting_records_ = 0;
  struct stat before{};
  const bool can_be_cut = ::fstat(descriptor_, &before) == 0 && S_ISREG(before.st_mode);
  for (std::size_t done = 0; done < data.size();) {
    const ssize_t put = ::write(descriptor_, data.data() + done, data.size() - done);
    if (put > 0) done += static_cast<std::size_t>(put);
    if (put > 0 || (put < 0 && errno == EINTR)) continue;
    const int error = errno;
    if (can_be_cut && done > 0) [[maybe_unused]]
      const int cut = ::ftruncate(descriptor_, before.st_size);
    fail("{}: cannot write: {}; {}", path_, text_of(error), layers::remedy_of(error));
  }
}

}  // namespace tandem::train::detail
