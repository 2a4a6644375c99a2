// Collectives between GPUs, without any: windows of host memory, whose ranks take turns in one thread.
#include "tandem/comm/backends/native/collective_agreement.h"
#include "tandem/comm/backends/native/device_engine.h"
#include "tandem/comm/transports/shared_memory/shared_memory.h"
#include "tandem/core/out.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace tandem;
using namespace tandem::comm;
using tandem::test::ContainsText;
using tandem::test::error_of;

namespace {

constexpr std::int64_t kSegment = 256, kResult = 256;

using Memory = std::vector<std::vector<float>>;  // by rank

/// Of f32 sums. Copies can fail.
class HostWindow final : public DeviceWindow {
 public:
  explicit HostWindow(std::shared_ptr<Memory> memory) : memory_(std::move(memory)) {}

  std::string handle() const override { return ""; }
  void open(std::span<const std::string>) override {}
  void close() override {}
  const Stream& stream() const override { return stream_; }
  std::byte* input_slot(int rank, std::uint64_t segment) const override {
    return at(rank) + static_cast<std::int64_t>(segment % kSlots) * kSegment;
  }
  std::byte* result_slot(int rank, std::uint64_t segment) const override {
    return at(rank) + kSlots * kSegment + static_cast<std::int64_t>(segment % kSlots) * kResult;
  }
  void record(DeviceMark, std::uint64_t) override {}
  void wait_for(int, DeviceMark, std::uint64_t) override {}
  void copy(const void* from, void* to, std::int64_t bytes) override {
    require(!fails, "the copy engine has lost its way");
    if (bytes > 0) std::memmove(to, from, static_cast<std::size_t>(bytes));
  }
  void hold_up(std::chrono::milliseconds) override {}
  void reduce(std::uint64_t segment, std::int64_t begin, std::int64_t count, DType, ReduceOp, void* output) override {
    for (std::int64_t i = 0; i < count; ++i) {
      float total = 0;
      for (int rank = 0; rank < static_cast<int>(memory_->size()); ++rank)
        total += reinterpret_cast<const float*>(input_slot(rank, segment) + begin)[i];
      static_cast<float*>(output)[i] = total;
    }
  }

  bool fails = false;

 private:
  std::byte* at(int rank) const {
    return reinterpret_cast<std::byte*>((*memory_)[static_cast<std::size_t>(rank)].data());
  }

  std::shared_ptr<Memory> memory_;
  Stream stream_;
};

/// Writes down which bytes of the output it would write, and touches none.
class LedgerWindow final : public DeviceWindow {
 public:
  LedgerWindow(std::uintptr_t output, std::int64_t bytes) : output_(output), bytes_(bytes) {}

  std::string handle() const override { return ""; }
  void open(std::span<const std::string>) override {}
  void close() override {}
  const Stream& stream() const override { return stream_; }
  std::byte* input_slot(int, std::uint64_t) const override { return nullptr; }
  std::byte* result_slot(int, std::uint64_t) const override { return nullptr; }
  void record(DeviceMark, std::uint64_t) override {}
  void wait_for(int, DeviceMark, std::uint64_t) override {}
  void copy(const void*, void* to, std::int64_t bytes) override { note(to, bytes); }
  void hold_up(std::chrono::milliseconds) override {}
  void reduce(std::uint64_t, std::int64_t, std::int64_t count, DType dtype, ReduceOp, void* output) override {
    note(output, count * size_of(dtype));
  }

  std::int64_t written = 0;  ///< bytes, one after another
  bool has_gap = false;

 private:
  void note(const void* to, std::int64_t bytes) {
    const auto at = reinterpret_cast<std::uintptr_t>(to);
    if (at < output_ || at >= output_ + static_cast<std::uintptr_t>(bytes_)) return;  // a slot
    has_gap = has_gap || at != output_ + static_cast<std::uintptr_t>(written);
    written += bytes;
  }

  std::uintptr_t output_;
  std::int64_t bytes_;
  Stream stream_;
};

struct Ranks {
  explicit Ranks(int count)
      : shared(SharedMemory::create(count * DeviceEngine::area_bytes())),
        slots(std::make_shared<Memory>(static_cast<std::size_t>(count), std::vector<float>(256))) {
    for (int rank = 0; rank < count; ++rank) {
      auto window = std::make_unique<HostWindow>(slots);
      windows.push_back(window.get());
      engines.push_back(std::make_unique<DeviceEngine>(std::move(window), shared, rank, count, peers,
                                                       DeviceSegments{.bytes = kSegment}));
      tensors.push_back(Tensor::full({1000}, rank + 1.0));
    }
  }

  std::shared_ptr<DeviceOperation> start(int rank) { return start(rank, tensors[static_cast<std::size_t>(rank)]); }
  std::shared_ptr<DeviceOperation> start(int rank, const Tensor& tensor) {
    Event ready;
    ready.record(Stream());
    return engine(rank).start(in_place(CollectiveKind::all_reduce, Out(tensor)), ready);
  }
  DeviceEngine& engine(int rank) { return *engines[static_cast<std::size_t>(rank)]; }

  PeerProcesses peers;
  std::shared_ptr<SharedMemory> shared;
  std::shared_ptr<Memory> slots;
  std::vector<HostWindow*> windows;
  std::vector<std::unique_ptr<DeviceEngine>> engines;
  std::vector<Tensor> tensors;
};

std::string fault_of(const std::shared_ptr<DeviceOperation>& operation) {
  return error_of([&] {
    if (operation->fault) std::rethrow_exception(operation->fault);
  });
}

/// A collective of some f32 elements, on GPUs or not.
std::shared_ptr<AnnouncedCollective> announced(bool is_on_gpu, std::int64_t count = 8,
                                               CollectiveKind kind = CollectiveKind::all_reduce) {
  auto one = std::make_shared<AnnouncedCollective>();
  one->collective = {.kind = kind, .dtype = DType::f32, .counts = {count}};
  one->is_on_gpu = is_on_gpu;
  return one;
}

std::string fault_of(const std::shared_ptr<AnnouncedCollective>& one) {
  return error_of([&] {
    if (one->fault) std::rethrow_exception(one->fault);
  });
}

/// Agreements of ranks that take turns in one thread.
struct Agreements {
  explicit Agreements(int ranks) : areas(static_cast<std::size_t>(ranks)) {
    std::vector<AnnouncementArea*> pointers;
    for (auto& area : areas) pointers.push_back((area = std::make_unique<AnnouncementArea>()).get());
    for (int rank = 0; rank < ranks; ++rank) of.emplace_back(pointers, rank);
  }
  std::vector<std::unique_ptr<AnnouncementArea>> areas;
  std::vector<CollectiveAgreement> of;
};

}  // namespace

TEST_CASE("device engine: ranks that take turns sum what they have") {
  for (const int count : {2, 3}) {
    Ranks ranks(count);
    std::vector<std::shared_ptr<DeviceOperation>> operations;
    for (int rank = 0; rank < count; ++rank) operations.push_back(ranks.start(rank));
    for (int turn = 0; turn < 100; ++turn)
      for (int rank = 0; rank < count; ++rank) ranks.engine(rank).poll();
    for (int rank = 0; rank < count; ++rank) {
      CHECK(operations[static_cast<std::size_t>(rank)]->is_complete());
      CHECK(ranks.tensors[static_cast<std::size_t>(rank)].to_vector<float>() ==
            std::vector<float>(1000, count == 2 ? 3.0F : 6.0F));
    }
  }
}

TEST_CASE("device engine: the rank that failed is named, also by those that hear of it from others") {
  Ranks ranks(3);
  std::vector<std::shared_ptr<DeviceOperation>> operations;
  ranks.windows[1]->fails = true;
  operations.push_back(ranks.start(0));
  operations.push_back(ranks.start(1));
  ranks.engine(0).poll();  // learns it, and fails; only then comes rank 2, which asks rank 0 first
  operations.push_back(ranks.start(2));
  ranks.engine(2).poll();
  CHECK(fault_of(operations[0]) == "all_reduce sum f32[1000]: rank 1 failed in it: the copy engine has lost its way");
  CHECK(fault_of(operations[1]) == "the copy engine has lost its way");
  CHECK(fault_of(operations[2]) == "all_reduce sum f32[1000]: rank 1 failed in it: the copy engine has lost its way");
  // Nothing more goes there, and nobody waits.
  for (int rank = 0; rank < 3; ++rank) CHECK(ranks.start(rank)->fault != nullptr);
}

TEST_CASE("device engine: what all GPUs have done before a rank fails is no failure") {
  Ranks ranks(2);
  const auto first = ranks.start(0), other = ranks.start(1);
  for (int turn = 0; turn < 100; ++turn) {
    ranks.engine(1).poll();
    ranks.engine(0).poll();
  }
  REQUIRE(first->is_complete());
  ranks.windows[1]->fails = true;
  const auto second = ranks.start(1);
  CHECK(second->fault != nullptr);
  CHECK(first->fault == nullptr);
  CHECK_THAT(fault_of(ranks.start(0)), ContainsText("rank 1 failed in it: the copy engine"));
}

TEST_CASE("device engine: a rank that gives its group up with a sum under way is named") {
  Ranks ranks(2);
  const auto first = ranks.start(0), other = ranks.start(1);
  ranks.windows[1] = nullptr;
  ranks.engines[1].reset();
  ranks.engine(0).poll();
  CHECK(fault_of(first) == "all_reduce sum f32[1000]: rank 1 has given it up");
}

TEST_CASE("device engine: of more bytes than 2^32 all are written, each once") {
  constexpr std::int64_t kCount = 1'500'000'007;
  const std::uintptr_t output = std::uintptr_t{1} << 40;
  for (const int count : {2, 3}) {  // three of them by parts
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::broadcast, CollectiveKind::reduce_scatter}) {
      CAPTURE(count, name_of(kind));
      const PeerProcesses peers;
      const auto shared = SharedMemory::create(count * DeviceEngine::area_bytes());
      Collective collective{.kind = kind, .dtype = DType::f32, .counts = {kCount}};
      if (kind == CollectiveKind::reduce_scatter) collective.counts.assign(static_cast<std::size_t>(count), kCount);
      collective.input = reinterpret_cast<const void*>(std::uintptr_t{1} << 50);
      collective.output = reinterpret_cast<void*>(output);
      std::vector<LedgerWindow*> windows;
      std::vector<std::unique_ptr<DeviceEngine>> engines;
      std::vector<std::shared_ptr<DeviceOperation>> operations;
      for (int rank = 0; rank < count; ++rank) {
        auto window = std::make_unique<LedgerWindow>(output, kCount * 4);
        windows.push_back(window.get());
        engines.push_back(
            std::make_unique<DeviceEngine>(std::move(window), shared, rank, count, peers, DeviceSegments{}));
        operations.push_back(engines.back()->start(collective, Event()));
      }
      for (int turn = 0; turn < 20000 && !operations.front()->is_complete(); ++turn)
        for (const auto& engine : engines) engine->poll();
      for (const auto& engine : engines) engine->poll();
      for (std::size_t rank = 0; rank < windows.size(); ++rank) {
        CHECK(operations[rank]->is_complete());
        if (kind == CollectiveKind::broadcast && rank == 0) continue;  // the root has it
        CHECK(windows[rank]->written == kCount * 4);
        CHECK_FALSE(windows[rank]->has_gap);
      }
    }
  }
}

TEST_CASE("collective agreement: where tensors are in different places no rank begins, and the next one can") {
  Agreements agreements(3);
  const auto on_gpu = announced(true), on_host = announced(false), also = announced(true);
  agreements.of[0].add(on_gpu);
  agreements.of[2].add(also);
  CHECK(agreements.of[0].take() == nullptr);
  CHECK(agreements.of[0].waits_for() == "GPU memory, for rank 1 to enter");
  agreements.of[1].add(on_host);
  const std::string text =
      "all_reduce sum f32[8] between GPUs on rank 0 meets all_reduce sum f32[8] by host memory on rank 1: all ranks "
      "must call the same collectives in the same order, with tensors on the GPUs of their group, or all elsewhere";
  CHECK(agreements.of[0].take() == on_gpu);
  CHECK(agreements.of[1].take() == on_host);
  CHECK(agreements.of[2].take() == also);
  for (const auto& one : {on_gpu, on_host, also}) CHECK(fault_of(one) == text);
  const auto mismatch = announced(true, 9);
  for (auto& agreement : agreements.of) agreement.add(&agreement == &agreements.of[1] ? mismatch : announced(true));
  for (auto& agreement : agreements.of)
    CHECK_THAT(fault_of(agreement.take()), ContainsText("all_reduce sum f32[8] on rank 0 meets all_reduce sum f32[9]"));
  for (const bool place : {false, true}) {
    for (auto& agreement : agreements.of) agreement.add(announced(place));
    for (auto& agreement : agreements.of) CHECK(fault_of(agreement.take()) == "no error");
  }
}

TEST_CASE("collective agreement: one rank may be ahead by more collectives than there are places") {
  constexpr int kMany = 3 * static_cast<int>(AnnouncementArea::kPlaces) + 7;
  Agreements agreements(2);
  for (int i = 0; i < kMany; ++i) agreements.of[0].add(announced(i % 3 != 0, i));
  CHECK(agreements.of[0].take() == nullptr);
  int taken = 0;
  for (int i = 0; i < kMany; ++i) {
    agreements.of[1].add(announced(i % 3 != 0, i));
    const auto other = agreements.of[1].take();
    REQUIRE(other != nullptr);
    CHECK(fault_of(other) == "no error");
    if (i % 2 == 0) continue;  // the first rank comes later, and takes two
    for (int both = 0; both < 2; ++both) {
      const auto one = agreements.of[0].take();
      REQUIRE(one != nullptr);
      CHECK(fault_of(one) == "no error");
      CHECK(one->collective.count() == taken++);
    }
  }
}

TEST_CASE("collective agreement: what a rank gives up leaves its place to the next") {
  Agreements agreements(2);
  const auto lost = announced(true);
  agreements.of[0].add(lost);
  agreements.of[0].add(announced(false));
  CHECK(agreements.of[0].cancel_next(std::make_exception_ptr(Error("the other has failed"))));
  CHECK(fault_of(lost) == "the other has failed");
  agreements.of[1].add(announced(true));
  agreements.of[1].add(announced(false));
  CHECK(fault_of(agreements.of[1].take()) == "no error");
  CHECK(fault_of(agreements.of[1].take()) == "no error");
  CHECK(fault_of(agreements.of[0].take()) == "no error");
}
