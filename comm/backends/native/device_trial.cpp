// Rounds of the trial.
#include "tandem/comm/backends/native/device_trial.h"

#include "tandem/comm/backends/keep_for_ever.h"
#include "tandem/comm/backends/native/obstacle.h"
#include "tandem/core/error.h"
#include "tandem/core/out.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <string_view>
#include <thread>
#include <utility>

namespace tandem::comm {

namespace {

constexpr std::int64_t kSlots = DeviceWindow::kSlots;
/// Longer than ranks take to tell each other that they have written: who does not wait reads too early.
constexpr std::chrono::milliseconds kLate{10};

/// Of any two ranks each is late in some round while the other is not: in two rounds for each bit of their numbers.
bool is_late(int round, int rank) { return ((rank >> (round / 2)) & 1) == round % 2; }

int rounds_of(int ranks) {
  int bits = 0;
  while ((1 << bits) < ranks) ++bits;
  return std::max(kDeviceMarks, 2 * bits);
}

DeviceMark mark_of(int round) { return static_cast<DeviceMark>(round % kDeviceMarks); }

/// Another one in each round, of each rank and at each place. A sum over the ranks is exact.
std::int64_t number(int round, int rank, std::int64_t slot, int place, std::int64_t index) {
  return (((round + 1) * std::int64_t{100} + rank) * 10 + slot * 3 + place) * 1000 + index;
}

/// Throws Error where that takes longer.
void wait_for(const Event& event, std::chrono::milliseconds limit, std::string_view what) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!event.is_done()) {
    require(std::chrono::steady_clock::now() < deadline, "the GPU has waited for {} for {} s", what,
            std::chrono::duration<double>(limit).count());
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

const std::int64_t* numbers_of(const Tensor& on_host, std::int64_t row, std::int64_t numbers) {
  return on_host.data<std::int64_t>() + row * numbers;
}

}  // namespace

DeviceTrial::DeviceTrial(DeviceWindow& window, const Place& place, std::int64_t segment_bytes)
    : window_(window), own_(place), segment_bytes_(segment_bytes), ends_(static_cast<std::size_t>(place.size) + 1) {}

std::string DeviceTrial::run(Backend& backend, std::chrono::milliseconds limit) {
  std::string obstacle;
  for (int round = 0; round < rounds_of(own_.size) && obstacle.empty(); ++round) {
    obstacle = obstacle_to(backend, [&] { write(round); });
    if (obstacle.empty()) obstacle = obstacle_to(backend, [&] { read(round, limit); });
  }
  return obstacle;
}

bool DeviceTrial::is_idle_on_all(Backend& backend) const {
  return obstacle_to(backend,
                     [&] {
                       Event end;
                       end.record(window_.stream());
                       wait_for(end, std::chrono::seconds(1), "its own work");
                     })
      .empty();
}

void DeviceTrial::keep_for_ever() {
  for (const Tensor* const tensor : {&written_, &read_, &sums_})
    detail::keep_for_ever(std::make_shared<const Tensor>(*tensor));
}

std::byte* DeviceTrial::place_of(int rank, std::uint64_t slot, int place) const {
  if (place == 2) return window_.result_slot(rank, slot);
  return window_.input_slot(rank, slot) + (place == 0 ? 0 : segment_bytes_ - kBytes);
}

std::int64_t* DeviceTrial::row(const Tensor& tensor, int rank, std::uint64_t slot, int place) {
  const std::int64_t index = (rank * kSlots + static_cast<std::int64_t>(slot)) * kPlaces + place;
  return Out(tensor).data<std::int64_t>() + index * kNumbers;
}

void DeviceTrial::write(int round) {
  if (!read_.defined()) {
    const TensorOptions options{.dtype = DType::i64, .device = window_.stream().device()};
    read_ = Tensor::zeros({own_.size * kSlots * kPlaces, kNumbers}, options);
    sums_ = Tensor::zeros({kSlots, kNumbers}, options);
  }
  const Tensor numbers = Tensor::empty({kSlots * kPlaces * kNumbers}, {.dtype = DType::i64});
  auto* to = Out(numbers).data<std::int64_t>();
  for (std::int64_t slot = 0; slot < kSlots; ++slot)
    for (int place = 0; place < kPlaces; ++place)
      for (std::int64_t i = 0; i < kNumbers; ++i) *to++ = number(round, own_.rank, slot, place, i);
  written_ = numbers.to(read_.device());
  Event ready;
  ready.record(current_stream(read_.device()));
  window_.stream().wait(ready);
  if (is_late(round, own_.rank)) window_.hold_up(kLate);
  for (std::uint64_t slot = 0; slot < DeviceWindow::kSlots; ++slot) {
    // Where a slot has no more than the numbers, its two ends are one place.
    for (int place = 0; place < kPlaces; ++place)
      window_.copy(row(written_, 0, slot, place), place_of(own_.rank, slot, place), kBytes);
    window_.record(mark_of(round), slot);
  }
}

void DeviceTrial::read(int round, std::chrono::milliseconds limit) {
  for (int rank = 0; rank < own_.size; ++rank) {
    for (std::uint64_t slot = 0; slot < DeviceWindow::kSlots; ++slot) {
      if (rank != own_.rank) window_.wait_for(rank, mark_of(round), slot);
      for (int place = 0; place < kPlaces; ++place)
        window_.copy(place_of(rank, slot, place), row(read_, rank, slot, place), kBytes);
    }
    ends_[static_cast<std::size_t>(rank)].record(window_.stream());
  }
  for (std::int64_t slot = 0; slot < kSlots; ++slot)
    window_.reduce(static_cast<std::uint64_t>(slot), segment_bytes_ - kBytes, kNumbers, DType::i64, ReduceOp::sum,
                   Out(sums_).data<std::int64_t>() + slot * kNumbers);
  ends_.back().record(window_.stream());
  for (std::size_t i = 0; i < ends_.size(); ++i)
    wait_for(ends_[i], limit, i + 1 < ends_.size() ? fmt::format("that of rank {}", i) : "a kernel");
  compare(round);
}

void DeviceTrial::compare(int round) const {
  const Tensor found = read_.to(Device{}), sums = sums_.to(Device{});
  for (int rank = 0; rank < own_.size; ++rank)
    for (std::int64_t slot = 0; slot < kSlots; ++slot)
      for (int place = 0; place < kPlaces; ++place) {
        // The end of the smallest slot is its beginning, and was written last.
        const int last = place == 0 && segment_bytes_ == kBytes ? 1 : place;
        const auto* const numbers = numbers_of(found, (rank * kSlots + slot) * kPlaces + place, kNumbers);
        const auto is_from = [&](int when) {
          return std::ranges::all_of(std::views::iota(std::int64_t{0}, kNumbers),
                                     [&](std::int64_t i) { return numbers[i] == number(when, rank, slot, last, i); });
        };
        if (is_from(round)) continue;
        require(round == 0 || !is_from(round - 1),
                "the GPU has read in the memory of rank {} what was there before: it did not wait for its event", rank);
        fail("the GPU has not read in the memory of rank {} what that rank has written there", rank);
      }
  for (std::int64_t slot = 0; slot < kSlots; ++slot)
    for (std::int64_t i = 0; i < kNumbers; ++i) {
      std::int64_t sum = 0;
      for (int rank = 0; rank < own_.size; ++rank) sum += number(round, rank, slot, 1, i);
      require(numbers_of(sums, slot, kNumbers)[i] == sum,
              "a kernel has not read in the memory of other ranks what these have written there");
    }
}

}  // namespace tandem::comm
