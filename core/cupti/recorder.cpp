// Buffers that CUPTI fills, in threads of its own.
#include "tandem/core/cupti/recorder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <mutex>
#include <new>
#include <utility>

namespace tandem::cupti {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;
/// A kernel takes half a kilobyte with the records of its call: about half a million of them. Later ones are dropped.
constexpr int kMostBuffers = 64;

struct Buffer {
  std::unique_ptr<std::uint8_t[]> bytes;
  std::size_t valid_bytes = 0;
};

/// CUPTI's callbacks are told nothing of whose they are.
struct Buffers {
  std::mutex mutex;
  decltype(Library::dropped_records) dropped_records = nullptr;  // of the recorder that lives
  int given = 0;
  std::vector<Buffer> complete;
  std::int64_t dropped = 0;
};

Buffers& buffers() {
  static auto* const all = new Buffers;  // outlives CUPTI's threads
  return *all;
}

/// Since the last call. Without the mutex: CUPTI may hold locks of its own as it calls back.
std::int64_t count_dropped(void* context, std::uint32_t stream) {
  Buffers& all = buffers();
  std::unique_lock lock(all.mutex);
  const auto dropped_records = all.dropped_records;
  lock.unlock();
  std::size_t dropped = 0;
  const bool is_told = dropped_records != nullptr && dropped_records(context, stream, &dropped) == kSuccess;
  return is_told ? static_cast<std::int64_t>(dropped) : 0;
}

void request_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  Buffers& all = buffers();
  const std::lock_guard lock(all.mutex);
  *most_records = 0;  // as many as there is room for
  *bytes = kBufferBytes;
  *buffer = all.given < kMostBuffers ? new (std::nothrow) std::uint8_t[kBufferBytes] : nullptr;
  if (*buffer != nullptr) {
    ++all.given;
  } else {
    *bytes = 0;  // CUPTI counts what it drops then
  }
}

void complete_buffer(void* context, std::uint32_t stream, std::uint8_t* bytes, std::size_t /*size*/,
                     std::size_t valid_bytes) {
  Buffer buffer{std::unique_ptr<std::uint8_t[]>(bytes), valid_bytes};
  const std::int64_t dropped = count_dropped(context, stream);
  Buffers& all = buffers();
  const std::lock_guard lock(all.mutex);
  if (all.dropped_records == nullptr) return;  // too late
  all.dropped += dropped;
  if (buffer.bytes != nullptr) all.complete.push_back(std::move(buffer));
}

void begin_buffers(const Library* library) {
  Buffers& all = buffers();
  const std::lock_guard lock(all.mutex);
  all.dropped_records = library == nullptr ? nullptr : library->dropped_records;
  all.given = 0;
  all.complete.clear();
  all.dropped = 0;
}

/// Those that were filled, and how many records found no room.
std::pair<std::vector<Buffer>, std::int64_t> take_buffers() {
  const std::int64_t dropped = count_dropped(nullptr, 0);  // where no buffer was handed out any more
  Buffers& all = buffers();
  const std::lock_guard lock(all.mutex);
  return {std::exchange(all.complete, {}), std::exchange(all.dropped, 0) + dropped};
}

std::string notes_of(std::int64_t error_ns, std::int64_t dropped, const RecordReader& reader) {
  std::string notes = fmt::format("clocks agree within {:.2f} us", 1e-3 * static_cast<double>(error_ns));
  if (dropped > 0) notes += fmt::format("; dropped records: {} (profile fewer steps)", dropped);
  if (reader.without_times() > 0)
    notes += fmt::format("; kernels or copies without times, left out: {}", reader.without_times());
  if (reader.broken_buffers() > 0)
    notes += fmt::format("; buffers that could not be read to their ends: {}", reader.broken_buffers());
  return notes;
}

}  // namespace

Recorder::Recorder(std::shared_ptr<const Library> library) : library_(std::move(library)) {
  begin_buffers(library_.get());
  try {
    library_->check(library_->register_callbacks(request_buffer, complete_buffer), "cuptiActivityRegisterCallbacks");
    // Calls are recorded as well: only then does CUPTI tell which of them came from which range.
    for (const RecordKind kind :
         {RecordKind::external_correlation, RecordKind::runtime_call, RecordKind::driver_call, RecordKind::kernel,
          RecordKind::copy, RecordKind::copy_between_devices, RecordKind::fill}) {
      library_->check(library_->enable(kind), "cuptiActivityEnable");
      enabled_.push_back(kind);
    }
    first_ = read_clocks(*library_);
  } catch (const std::exception&) {
    disable();
    throw;
  }
}

Recorder::~Recorder() { disable(); }

void Recorder::disable() noexcept {
  for (const RecordKind kind : std::exchange(enabled_, {})) library_->disable(kind);
  begin_buffers(nullptr);
}

Recording Recorder::stop() {
  const ClockReading last = read_clocks(*library_);
  library_->check(library_->flush(kFlushAll), "cuptiActivityFlushAll");
  const auto [complete, dropped] = take_buffers();
  RecordReader reader(*library_);
  for (const Buffer& buffer : complete) reader.read(buffer.bytes.get(), buffer.valid_bytes);
  Recording recording;
  recording.activities = reader.activities(first_, last);
  recording.notes = notes_of(std::max(first_.error_ns, last.error_ns), dropped, reader);
  return recording;
}

}  // namespace tandem::cupti
