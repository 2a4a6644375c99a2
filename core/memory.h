// What memory is used for: byte counts, current and peak, by purpose.
#pragma once

#include "tandem/core/device.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

/// What a block of memory serves. Every Storage carries one.
enum class MemoryTag : std::uint8_t { parameters, gradients, optimizer, activations, workspace, data, comm };

/// How many tags there are; they count from 0.
constexpr int kMemoryTagCount = 7;

/// "parameters", "gradients" and so on: the name of the enumerator.
constexpr std::string_view name_of(MemoryTag tag) {
  constexpr std::string_view kNames[] = {"parameters", "gradients", "optimizer", "activations",
                                         "workspace",  "data",      "comm"};
  return kNames[static_cast<int>(tag)];
}

/// Bytes in live storages. A tag's peak is its own high-water mark, so peaks of tags need not add up to `peak_total`.
struct MemoryStats {
  std::array<std::int64_t, kMemoryTagCount> current{};  ///< bytes that are live, by tag
  std::array<std::int64_t, kMemoryTagCount> peak{};     ///< the most there were, by tag
  std::int64_t current_total = 0;                       ///< bytes of all tags that are live
  std::int64_t peak_total = 0;                          ///< the most there were of all tags at a time

  std::int64_t current_of(MemoryTag tag) const { return current[static_cast<std::size_t>(tag)]; }  ///< bytes of a tag
  std::int64_t peak_of(MemoryTag tag) const { return peak[static_cast<std::size_t>(tag)]; }  ///< the most of a tag
};

/// A snapshot for one device over all threads of this process. Pinned host memory counts as the CPU's.
MemoryStats memory_stats(Device device = {});

/// Lets every peak of every device start again from the current value.
void reset_peak_memory();

/// The tags that have bytes on a device, largest first, for messages: "activations 1.2 GiB, workspace 64 KiB";
/// "nothing" where no storage holds any.
std::string largest_memory_tags(Device device);

/// "512 bytes", "1.5 KiB", "139.8 GiB".
std::string format_memory(std::int64_t bytes);

/// The tag that new storages of this thread get; MemoryTag::activations unless a scope says otherwise.
MemoryTag current_memory_tag();

/// Tags the storages made by this thread while it lives.
/// Example:
///     #include "tandem/core/tensor.h"
///     reset_peak_memory();
///     {
///       const MemoryTagScope scope(MemoryTag::workspace);
///       const Tensor buffer = Tensor::empty({1024, 1024});
///     }
///     const std::string most = format_memory(memory_stats().peak_of(MemoryTag::workspace));  // "4.0 MiB"
class MemoryTagScope {
 public:
  /// Ends with the scope, which gives back the tag there was before.
  explicit MemoryTagScope(MemoryTag tag);
  ~MemoryTagScope();
  MemoryTagScope(const MemoryTagScope&) = delete;
  MemoryTagScope& operator=(const MemoryTagScope&) = delete;

 private:
  MemoryTag previous_;
};

/// While it lives, storages made by this thread start filled with 0xff bytes: NaN in every floating dtype, so that an
/// element nobody wrote shows. For tests.
class PoisonScope {
 public:
  PoisonScope();
  ~PoisonScope();
  PoisonScope(const PoisonScope&) = delete;
  PoisonScope& operator=(const PoisonScope&) = delete;

 private:
  bool previous_;
};

namespace detail {
void count_memory(Device device, MemoryTag tag, std::int64_t bytes);
bool poison_new_storages();

/// For a timeline (timeline.h), while one is recorded: which storages are live.
void note_storage(const void* storage, Device device, MemoryTag tag, std::int64_t bytes);
void forget_storage(const void* storage) noexcept;
}  // namespace detail

}  // namespace tandem
