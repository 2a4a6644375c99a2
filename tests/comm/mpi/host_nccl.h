// A communicator of ranks that are processes, in place of NCCL's, for simulated GPUs: copies to and from a buffer, and
// between them, in the order of the stream, a function of the host that exchanges it by another group.
#pragma once

#include "tandem/comm/backends/nccl/nccl_backend.h"
#include "tandem/comm/process_group.h"
#include "tandem/core/cuda/check.h"
#include "tandem/core/storage.h"
#include "tandem/core/work_graph.h"

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace tandem::test {

class HostNccl final : public comm::NcclCommunicator {
 public:
  /// `group`: for this alone, as functions of the host call it in the order of their stream.
  HostNccl(std::unique_ptr<comm::ProcessGroup> group, Device device)
      : group_(std::move(group)), buffer_(Tensor::zeros({kRoom}, {.dtype = DType::u8, .device = device})) {
    current_stream(device).synchronize();
  }

  bool is_ready() override { return true; }

  void all_reduce(const void* from, void* to, std::int64_t count, DType dtype, comm::ReduceOp op,
                  const Stream& stream) override {
    enqueue(stream, {{from, count * size_of(dtype), 0}}, {{to, count * size_of(dtype), 0}},
            [=, this](std::byte* room) { group_->all_reduce(Out(at(room, count, dtype)), op); });
  }
  void broadcast(void* data, std::int64_t bytes, int root, const Stream& stream) override {
    enqueue(stream, {{data, bytes, 0}}, {{data, bytes, 0}},
            [=, this](std::byte* room) { group_->broadcast(Out(at(room, bytes, DType::u8)), root); });
  }
  void all_gather(const void* mine, std::int64_t bytes, void* all, const Stream& stream) override {
    const std::int64_t whole = bytes * group_->size();
    enqueue(stream, {{mine, bytes, whole}}, {{all, whole, 0}}, [=, this](std::byte* room) {
      const Tensor gathered = group_->all_gather(at(room + whole, bytes, DType::u8));
      std::copy_n(gathered.data<std::uint8_t>(), whole, reinterpret_cast<std::uint8_t*>(room));
    });
  }
  void exchange(std::span<const comm::NcclExchange> exchanges, const Stream& stream) override {
    std::vector<Part> sent, received;
    std::vector<comm::NcclExchange> all(exchanges.begin(), exchanges.end());
    std::int64_t place = 0;
    for (const comm::NcclExchange& each : all) {
      sent.push_back({each.from, each.bytes_sent, place});
      place += each.bytes_sent;
    }
    for (const comm::NcclExchange& each : all) {
      received.push_back({each.into, each.bytes_received, place});
      place += each.bytes_received;
    }
    enqueue(stream, sent, received, [=, this](std::byte* room) {
      std::vector<std::unique_ptr<comm::Work>> works;
      for (std::size_t i = 0; i < all.size(); ++i) {
        const Tensor mine = at(room + sent[i].place, all[i].bytes_sent, DType::u8),
                     other = at(room + received[i].place, all[i].bytes_received, DType::u8);
        if (all[i].rank == group_->rank()) {
          other.copy_from(mine);
          continue;
        }
        if (all[i].bytes_sent > 0) works.push_back(group_->send_async(mine, all[i].rank));
        if (all[i].bytes_received > 0) works.push_back(group_->receive_async(Out(other), all[i].rank));
      }
      for (const auto& work : works) work->wait();
    });
  }
  void reduce(const void* from, void* to, std::int64_t count, DType dtype, comm::ReduceOp op, int root,
              const Stream& stream) override {
    const std::int64_t bytes = count * size_of(dtype);
    enqueue(stream, {{from, bytes, 0}}, {{to, group_->rank() == root ? bytes : 0, 0}},
            [=, this](std::byte* room) { group_->reduce(Out(at(room, count, dtype)), root, op); });
  }
  void reduce_scatter(const void* from, void* to, std::int64_t count, DType dtype, comm::ReduceOp op,
                      const Stream& stream) override {
    const std::int64_t ranks = group_->size(), part = count * size_of(dtype);
    enqueue(stream, {{from, ranks * part, 0}}, {{to, part, ranks * part}}, [=, this](std::byte* room) {
      const Tensor all = at(room, ranks * count, dtype).as_strided({ranks, count}, {count, 1}, 0);
      at(room + ranks * part, count, dtype).copy_from(group_->reduce_scatter(all, op));
    });
  }
  /// NCCL waits then until all graphs that have captured it are destroyed, which the caller does later: for ever.
  void finalize() override { require_no_graph("finalized"); }
  void close() override {}
  void abort() noexcept override { require_no_graph("aborted"); }

  /// Whether a graph is there that has captured it.
  bool has_graph() const { return captured_.use_count() > 1; }

 private:
  void require_no_graph(const char* what) const noexcept {
    if (!has_graph()) return;
    fmt::print(stderr, "HostNccl: a communicator is {} while a graph that has captured it is there\n", what);
    std::abort();
  }

  static constexpr std::int64_t kRoom = std::int64_t{1} << 20;

  /// Of memory: what goes to or comes from a place of the buffer.
  struct Part {
    const void* memory;
    std::int64_t bytes, place;
  };

  using Exchange = std::function<void(std::byte* room)>;

  Tensor at(std::byte* memory, std::int64_t count, DType dtype) const {
    return Tensor::on(std::make_shared<Storage>(memory, count * size_of(dtype), MemoryTag::comm, buffer_.storage()),
                      {count}, dtype);
  }

  static void copy(const Stream& stream, void* to, const void* from, std::int64_t bytes) {
    if (bytes == 0) return;
    TANDEM_CHECK_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice,
                                      static_cast<cudaStream_t>(stream.native())));
  }

  void enqueue(const Stream& stream, const std::vector<Part>& sent, const std::vector<Part>& received,
               Exchange exchange) {
    auto* const room = static_cast<std::byte*>(Out(buffer_).raw_data());
    for (const std::vector<Part>& parts : {sent, received})
      for (const Part& part : parts)
        require(part.place + part.bytes <= kRoom, "{} bytes at {} have no room", part.bytes, part.place);
    for (const Part& part : sent) copy(stream, room + part.place, part.memory, part.bytes);
    // Recorded ones are called again and again, until the graph is gone.
    if (WorkGraph::is_recording()) WorkGraph::with_each_launch([captured = captured_] {});
    exchanges_.push_back([room, exchange = std::move(exchange)] { exchange(room); });
    TANDEM_CHECK_CUDA(cudaLaunchHostFunc(
        static_cast<cudaStream_t>(stream.native()), [](void* call) { (*static_cast<std::function<void()>*>(call))(); },
        &exchanges_.back()));
    for (const Part& part : received) copy(stream, const_cast<void*>(part.memory), room + part.place, part.bytes);
  }

  std::unique_ptr<comm::ProcessGroup> group_;
  Tensor buffer_;
  std::deque<std::function<void()>> exchanges_;
  std::shared_ptr<int> captured_ = std::make_shared<int>();  // that graphs have, too
};

/// Another backend, before whose operations all that simulated GPUs have to do is done: they do it when they are waited
/// for, and other ranks may wait for it meanwhile.
class Punctual final : public comm::Backend {
 public:
  Punctual(std::unique_ptr<comm::Backend> backend, Device device) : backend_(std::move(backend)), device_(device) {}

  std::string_view name() const override { return backend_->name(); }
  comm::Place place() const override { return backend_->place(); }
  std::unique_ptr<comm::Work> start(const comm::Collective& collective) override {
    tandem::synchronize(device_);
    return backend_->start(collective);
  }
  std::vector<std::string> all_gather_bytes(std::string_view mine) override {
    tandem::synchronize(device_);
    return backend_->all_gather_bytes(mine);
  }
  std::unique_ptr<comm::Backend> subgroup(std::span<const int> members) override {
    return std::make_unique<Punctual>(backend_->subgroup(members), device_);
  }

 private:
  std::unique_ptr<comm::Backend> backend_;
  Device device_;
};

}  // namespace tandem::test
