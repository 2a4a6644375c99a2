// Streams and events: the same rules on the CPU and on a GPU.
#include "tandem/core/stream.h"
#include "tandem/core/tensor.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <thread>

using namespace tandem;
using namespace tandem::test;

TEST_CASE("the CPU's stream is always done") {
  const Stream stream = current_stream(Device{});
  CHECK(stream == Stream());
  CHECK(stream.native() == nullptr);
  stream.synchronize();
  synchronize(Device{});
  Event start(EventTiming::on), end(EventTiming::on);
  CHECK(start.is_done());
  start.record(stream);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  end.record(stream);
  end.synchronize();
  stream.wait(end);
  CHECK(end.is_done());
  CHECK(end.elapsed_ms(start) >= 2.0);
}

TEST_CASE("time between events that note none is an error") {
  Event timed(EventTiming::on), plain;
  timed.record(Stream());
  plain.record(Stream());
  CHECK_THAT(error_of([&] { timed.elapsed_ms(plain); }), ContainsText("EventTiming::on"));
  CHECK_THAT(error_of([&] { timed.elapsed_ms(Event(EventTiming::on)); }), ContainsText("none on cpu"));
}

TEST_CASE("threads share a GPU's stream until a scope gives them another", "[cuda]") {
  if (!has_gpu()) return;
  const Stream shared = current_stream(kGpu);
  CHECK(shared.native() != nullptr);
  CHECK(current_stream(kGpu) == shared);
  const Stream own(kGpu), inner(kGpu);
  CHECK_FALSE(own == shared);
  {
    const StreamScope scope(own);
    CHECK(current_stream(kGpu) == own);
    {
      const StreamScope nested(inner);
      const StreamScope cpu{Stream()};
      CHECK(current_stream(kGpu) == inner);
      CHECK(current_stream(Device{}) == Stream());
    }
    CHECK(current_stream(kGpu) == own);
    bool same = false;
    std::thread([&] { same = current_stream(kGpu) == shared; }).join();
    CHECK(same);
  }
  CHECK(current_stream(kGpu) == shared);
}

TEST_CASE("an event is passed once the work before it is done, and measures it", "[cuda]") {
  if (!has_gpu()) return;
  const Stream stream(kGpu);
  const StreamScope scope(stream);
  const Tensor tensor = Tensor::empty({1 << 17}, {.device = kGpu});
  Event start(EventTiming::on), end(EventTiming::on);
  start.record(stream);
  for (int i = 0; i < 10; ++i) tensor.fill(i + 0.5);
  end.record(stream);
  end.synchronize();
  CHECK(start.is_done());
  CHECK(end.is_done());
  CHECK(end.elapsed_ms(start) >= 0.0);
  CHECK(tensor.narrow(0, 1 << 16, 1).item() == 9.5);
}

TEST_CASE("a stream that waits for an event sees what was done before it", "[cuda]") {
  if (!has_gpu()) return;
  const Stream writer(kGpu), reader(kGpu);
  for (int round = 0; round < 4; ++round) {
    Tensor source, copy;
    Event written;
    {
      const StreamScope scope(writer);
      source = Tensor::zeros({1 << 17}, {.device = kGpu});
      for (int i = 0; i < 10; ++i) source.fill(round + i * 0.01);
      source.fill(round + 0.5);
      written.record(writer);
    }
    {
      const StreamScope scope(reader);
      reader.wait(written);
      source.storage()->record_stream(reader);
      copy = source.clone();
      source = Tensor();  // may be used anew only after the clone
      const Tensor last = copy.narrow(0, (1 << 17) - 1, 1);
      CHECK(last.item() == round + 0.5);
    }
  }
}

TEST_CASE("memory freed while another stream still reads it is not used anew", "[cuda]") {
  if (!has_gpu()) return;
  const Stream home(kGpu), reader(kGpu);
  constexpr std::int64_t kCount = 1 << 17;
  const StreamScope home_scope(home);
  for (int round = 0; round < 4; ++round) {
    Tensor source = Tensor::full({kCount}, 1.5, {.device = kGpu}), copy;
    Event ready;
    ready.record(home);
    {
      const StreamScope scope(reader);
      reader.wait(ready);
      for (int i = 0; i < 5; ++i) copy = source.clone();
      source.storage()->record_stream(reader);
    }
    source = Tensor();
    home.synchronize();
    const Tensor next = Tensor::full({kCount}, -7.5, {.device = kGpu});  // the driver may hand out the same memory
    home.synchronize();
    const StreamScope scope(reader);
    const auto values = copy.to_vector<float>();
    CHECK(std::count(values.begin(), values.end(), 1.5f) == kCount);
  }
}
