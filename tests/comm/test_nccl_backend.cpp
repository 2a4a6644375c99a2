// The nccl backend over a communicator that a test controls: order of calls, waiting, giving up.
#include "tandem/comm/backends/nccl/nccl_backend.h"
#include "tandem/comm/process_group.h"
#include "tests/comm/test_collectives.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <algorithm>
#include <optional>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

/// What the communicator does next, and what it was asked for.
struct Script {
  std::vector<std::string> calls;
  int busy = 0;                      // answers of is_ready() that are false
  int busy_after_call = 3;           // the same, from the next call on
  bool stuck = false;                // no operation ever passes
  std::optional<std::string> error;  // of is_ready()

  std::size_t count(const std::string& call) const {
    return static_cast<std::size_t>(std::count(calls.begin(), calls.end(), call));
  }
};

class ScriptedCommunicator final : public NcclCommunicator {
 public:
  explicit ScriptedCommunicator(Script& script) : script_(script) {}
  bool is_ready() override {
    if (script_.error) fail("{}", *script_.error);
    return script_.busy <= 0 || script_.busy-- <= 0;
  }
  void all_reduce(const void*, void*, std::int64_t count, DType dtype, ReduceOp op, const Stream&) override {
    note(fmt::format("all_reduce {} {} {}", count, tandem::name_of(dtype), comm::name_of(op)));
  }
  void reduce(const void*, void*, std::int64_t count, DType dtype, ReduceOp op, int root, const Stream&) override {
    note(fmt::format("reduce {} {} {} to {}", count, tandem::name_of(dtype), comm::name_of(op), root));
  }
  void reduce_scatter(const void*, void*, std::int64_t count, DType dtype, ReduceOp op, const Stream&) override {
    note(fmt::format("reduce_scatter {} {} {}", count, tandem::name_of(dtype), comm::name_of(op)));
  }
  void broadcast(void*, std::int64_t bytes, int root, const Stream&) override {
    note(fmt::format("broadcast {} from {}", bytes, root));
  }
  void all_gather(const void*, std::int64_t bytes, void*, const Stream&) override {
    note(fmt::format("all_gather {}", bytes));
  }
  void exchange(std::span<const NcclExchange> exchanges, const Stream&) override {
    std::string text = "exchange";
    for (const NcclExchange& each : exchanges)
      text += fmt::format(" {}:{}/{}", each.rank, each.bytes_sent, each.bytes_received);
    note(std::move(text));
  }
  bool has_passed(const Event& mark) override { return !script_.stuck && mark.is_done(); }
  void finalize() override { note("finalize"); }
  void close() override { note("close"); }
  void abort() noexcept override { note("abort"); }

 private:
  void note(std::string call) {
    CHECK((script_.busy <= 0 || call == "abort"));
    script_.calls.push_back(std::move(call));
    if (script_.calls.back() != "abort" && script_.calls.back() != "close") script_.busy = script_.busy_after_call;
  }
  Script& script_;
};

// Longer than a busy machine holds a thread up.
constexpr NcclOptions kQuick{.timeout = std::chrono::milliseconds(300),
                             .start_timeout = std::chrono::milliseconds(300)};

std::unique_ptr<Backend> backend_of(Script& script, Device device = {}, NcclOptions options = {}) {
  return make_nccl_backend(make_self_backend(), std::make_unique<ScriptedCommunicator>(script), device, options);
}

/// One that gives up soon.
std::unique_ptr<Backend> hasty_backend_of(Script& script) { return backend_of(script, {}, kQuick); }

Collective all_reduce_of(const Tensor& tensor, ReduceOp op) { return in_place(CollectiveKind::all_reduce, tensor, op); }

}  // namespace

TEST_CASE("nccl: operations are started, completed and closed in order") {
  Script script;
  script.busy = 5;
  {
    const auto backend = backend_of(script);
    CHECK(backend->name() == "nccl");
    const Tensor tensor = Tensor::zeros({6});
    const auto work = backend->start(all_reduce_of(tensor, ReduceOp::average));
    CHECK(work->poll());
    work->wait();
    Collective broadcast = in_place(CollectiveKind::broadcast, tensor);
    broadcast.peer = 1;
    backend->run(broadcast);
    backend->run(in_place(CollectiveKind::all_gather, tensor));
    backend->run({.kind = CollectiveKind::barrier});
    backend->run(in_place(CollectiveKind::reduce_scatter, tensor, ReduceOp::max));
    backend->run(in_place(CollectiveKind::reduce, tensor, ReduceOp::product));
    Collective gather = in_place(CollectiveKind::gather, tensor);
    const Tensor all = Tensor::zeros({6});
    gather.output = Out(all).raw_data();
    backend->run(gather);
    CHECK(backend->all_gather_bytes("x") == std::vector<std::string>{"x"});
  }
  CHECK(script.calls == std::vector<std::string>{"all_reduce 6 f32 average", "broadcast 24 from 1", "all_gather 24",
                                                 "reduce_scatter 6 f32 max", "reduce 6 f32 product to 0",
                                                 "exchange 0:24/24", "finalize", "close"});
}

TEST_CASE("nccl: a connection that does not come is given up") {
  Script script;
  script.busy = 1 << 30;
  CHECK_THAT(error_of([&] { hasty_backend_of(script); }), ContainsText("nccl: connecting: not complete in time"));
  CHECK(script.calls == std::vector<std::string>{"abort"});
}

TEST_CASE("nccl: an operation that does not end is given up, and no other begins") {
  Script script;
  const Tensor tensor = Tensor::zeros({6});
  {
    const auto backend = hasty_backend_of(script);
    script.stuck = true;
    const auto work = backend->start(all_reduce_of(tensor, ReduceOp::sum));
    const std::string text = error_of([&] { work->wait(); });
    CHECK_THAT(text, ContainsText("nccl: all_reduce sum f32[6]: not complete in time"));
    CHECK_THAT(text, ContainsText("TANDEM_NCCL_TIMEOUT"));
    CHECK_THAT(error_of([&] { backend->run(all_reduce_of(tensor, ReduceOp::sum)); }),
               ContainsText("an earlier operation failed: not complete in time"));
    script.stuck = false;  // aborted operations pass, too, with whatever they left behind
    CHECK_THAT(error_of([&] { work->poll(); }), ContainsText("an earlier operation failed"));
  }
  CHECK(script.calls == std::vector<std::string>{"all_reduce 6 f32 sum", "abort"});
}

TEST_CASE("nccl: polling alone ends in time, too") {
  Script script;
  const Tensor tensor = Tensor::zeros({6});
  const auto backend = hasty_backend_of(script);
  script.stuck = true;
  const auto work = backend->start(all_reduce_of(tensor, ReduceOp::sum));
  CHECK_THAT(error_of([&] {
               while (!work->poll()) continue;
             }),
             ContainsText("not complete in time"));
  CHECK(script.count("abort") == 1);
}

TEST_CASE("nccl: an error that comes while waiting ends the wait") {
  Script script;
  const Tensor tensor = Tensor::zeros({6});
  const auto backend = backend_of(script);
  script.stuck = true;
  const auto work = backend->start(all_reduce_of(tensor, ReduceOp::max));
  script.error = "remote process exited";
  CHECK_THAT(error_of([&] { work->wait(); }), ContainsText("nccl: all_reduce max f32[6]: remote process exited"));
  CHECK(script.calls.back() == "abort");
}

TEST_CASE("nccl: an error elsewhere aborts instead of waiting for the others") {
  Script script;
  CHECK_THAT(error_of([&] {
               const auto backend = backend_of(script);
               fail("label 12 is out of range");
             }),
             ContainsText("label 12"));
  CHECK(script.calls == std::vector<std::string>{"abort"});
}

TEST_CASE("nccl: a close that hangs is given up") {
  Script script;
  {
    const auto backend = hasty_backend_of(script);
    script.busy_after_call = 1 << 30;
  }
  CHECK(script.calls == std::vector<std::string>{"finalize", "abort"});
}

TEST_CASE("nccl: works may outlive the backend") {
  Script script;
  const Tensor tensor = Tensor::zeros({6});
  std::unique_ptr<Work> work;
  {
    const auto backend = backend_of(script);
    work = backend->start(all_reduce_of(tensor, ReduceOp::sum));
  }
  CHECK(script.count("finalize") == 0);
  work->wait();
  work.reset();
  CHECK(script.calls.back() == "close");
}

TEST_CASE("nccl: a group of some ranks has a communicator of its own, of an id of its own") {
  Script script, parts;
  int ids = 0;
  NcclOptions options = kQuick;
  const NcclConnector connector{
      .make_id = [&] { return fmt::format("id {}", ++ids); },
      .start = [&](const std::string& id, ProcessGroup& group) -> std::unique_ptr<NcclCommunicator> {
        require(ids < 4, "no more communicators");
        parts.calls.push_back(fmt::format("{} of {}", id, group.size()));
        return std::make_unique<ScriptedCommunicator>(parts);
      }};
  {
    ProcessGroup group(make_nccl_backend(make_self_backend(), std::make_unique<ScriptedCommunicator>(script), Device{},
                                         options, connector));
    const auto part = group.split(3), none = group.split(-1), part_of_part = part->split(0);
    CHECK(none == nullptr);
    part_of_part->all_reduce(Out(Tensor::zeros({6})));
    part->all_reduce(Out(Tensor::zeros({7})));
    group.all_reduce(Out(Tensor::zeros({8})));
    ids = 4;
    CHECK_THAT(error_of([&] { group.split(0); }), ContainsText("no more communicators"));
  }
  CHECK(parts.calls == std::vector<std::string>{"id 1 of 1", "all_gather 16", "id 2 of 1", "all_reduce 6 f32 sum",
                                                "all_reduce 7 f32 sum", "finalize", "close", "finalize", "close"});
  CHECK(script.calls.back() == "close");
  CHECK(script.count("all_reduce 8 f32 sum") == 1);
  CHECK_THAT(error_of([&] { ProcessGroup(backend_of(script)).split(0); }), ContainsText("nothing connects a group"));
}

TEST_CASE("nccl: TANDEM_NCCL_TIMEOUT sets the time in seconds") {
  const auto with = [](const char* text) { return nccl_options([text](const char*) { return text; }); };
  CHECK(with(nullptr).timeout == NcclOptions{}.timeout);
  CHECK(with("7").timeout == std::chrono::seconds(7));
  for (const char* bad : {"", "0", "-1", "ten", "1.5", "99999999999"}) {
    CHECK_THAT(error_of([&] { with(bad); }), ContainsText("TANDEM_NCCL_TIMEOUT="));
  }
}

TEST_CASE("nccl: device tensors go to NCCL as they are, host tensors to the other backend", "[cuda]") {
  if (!has_gpu()) return;
  Script script;
  {
    ProcessGroup group(backend_of(script, kGpu));
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
      group.all_reduce(Out(Tensor::zeros({4})));
      group.all_reduce(Out(Tensor::zeros({4}, {.dtype = dtype, .device = kGpu})));
      group.all_reduce_async(Out(Tensor::zeros({5}, {.dtype = dtype, .device = kGpu})))->wait();
      group.all_reduce_async(Out(Tensor::zeros({5})))->wait();
    }
    group.broadcast(Out(Tensor::zeros({4})));
    group.broadcast(Out(Tensor::zeros({4}, {.device = kGpu})));
    CHECK(group.all_gather(Tensor::zeros({2}, {.device = kGpu})).device() == kGpu);
    CHECK(group.all_gather(Tensor::zeros({2})).device() == Device{});
  }
  CHECK(script.calls == std::vector<std::string>{"all_reduce 4 f16 sum", "all_reduce 5 f16 sum",
                                                 "all_reduce 4 bf16 sum", "all_reduce 5 bf16 sum",
                                                 "all_reduce 4 f32 sum", "all_reduce 5 f32 sum", "broadcast 16 from 0",
                                                 "all_gather 8", "finalize", "close"});
}
