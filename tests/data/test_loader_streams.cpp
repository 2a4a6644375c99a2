// The loader over streams: order, ends, ranks, batches left out, and what goes wrong.
#include "tandem/data/iterable_dataset.h"
#include "tandem/data/loader.h"
#include "tests/data/loader_epochs.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>

using namespace tandem;
using namespace tandem::data;
using namespace tandem::test;

TEST_CASE("a stream is read in order, to its end or as far as its size") {
  for (const int threads : {0, 1, 4}) {
    Loader loader(stream_to(7), RankShare{}, {.global_batch_size = 3, .threads = threads});
    CHECK(run(loader, 0) == Batches{{0, 1, 2}, {3, 4, 5}, {6}});
    CHECK(run(loader, 2) == Batches{{2000, 2001, 2002}, {2003, 2004, 2005}, {2006}});
    CHECK_FALSE(loader.next().has_value());
    Loader full(stream_to(7), RankShare{}, {.global_batch_size = 3, .drop_last = true, .threads = threads});
    CHECK(run(full, 0) == Batches{{0, 1, 2}, {3, 4, 5}});
    Loader endless(stream_to(-1, 4), RankShare{}, {.global_batch_size = 3, .threads = threads});
    CHECK(endless.batches() == 2);
    CHECK(endless.images_per_epoch() == 4);
    CHECK(run(endless, 0) == Batches{{0, 1, 2}, {3}});
    Loader even(stream_to(6), RankShare{}, {.global_batch_size = 3, .threads = threads});
    CHECK(run(even, 0) == Batches{{0, 1, 2}, {3, 4, 5}});
  }
}

TEST_CASE("an epoch of a stream begun behind some batches has the others") {
  for (const auto size : {std::optional<std::int64_t>(), std::optional<std::int64_t>(11)}) {
    for (const bool drop_last : {false, true}) {
      for (const int rank : {0, 1}) {
        for (const int threads : {0, 2}) {
          const LoaderOptions options{.global_batch_size = 4, .drop_last = drop_last, .threads = threads};
          Loader loader(stream_to(size ? 100 : 11, size), RankShare{2, rank}, options);
          const Batches whole = run(loader, 2);
          CHECK(whole.size() == (drop_last ? 2u : 3u));
          for (std::size_t skip = 0; skip <= 5; ++skip) {
            CAPTURE(size.has_value(), drop_last, rank, threads, skip);
            const auto from = static_cast<std::ptrdiff_t>(std::min(skip, whole.size()));
            CHECK(run(loader, 2, static_cast<std::int64_t>(skip)) == Batches(whole.begin() + from, whole.end()));
          }
          CHECK(run(loader, 2, std::int64_t{1} << 62).empty());  // more examples than can be counted
        }
      }
    }
  }
}

TEST_CASE("a stream's examples that are left out are passed over, not made, and what they throw has their number") {
  class Stream final : public IterableDataset {
   public:
    void start(std::uint32_t) override { at_ = 0; }
    std::optional<Example> next() override {
      ++made;
      return Example{Tensor::full({1}, static_cast<double>(at_++))};
    }
    bool skip() override {
      if (at_ == 9) throw std::runtime_error("the pipe is broken");
      ++at_;
      return true;
    }
    int made = 0;

   private:
    std::int64_t at_ = 0;
  };
  const auto stream = std::make_shared<Stream>();
  Loader loader(stream, RankShare{}, {.global_batch_size = 3, .threads = 0});
  loader.start(0, 2);
  CHECK(loader.next()->images.to_vector<float>() == std::vector<float>{6, 7, 8});
  CHECK(stream->made == 3);
  loader.start(0, 4);
  CHECK_THAT(error_of([&] { loader.next(); }), ContainsText("loader: example 9 of the stream: the pipe is broken"));
  CHECK_FALSE(loader.next().has_value());
}

TEST_CASE("each rank takes every so many-th example of a stream's batches") {
  const auto of_rank = [](int rank) {
    Loader loader(stream_to(8), RankShare{.world_size = 3, .rank = rank}, {.global_batch_size = 4});
    return run(loader, 0);
  };
  CHECK(of_rank(0) == Batches{{0, 3}, {4, 7}});
  CHECK(of_rank(1) == Batches{{1}, {5}});
  CHECK(of_rank(2) == Batches{{2}, {6}});
  Loader last(stream_to(5), RankShare{.world_size = 2, .rank = 1}, {.global_batch_size = 4});
  CHECK(run(last, 0) == Batches{{1, 3}, {}});
  last.start(0);
  last.next();
  const Batch batch = *last.next();
  CHECK((batch.count() == 0 && batch.global_count == 1 && batch.tensors.empty()));
}

TEST_CASE("what goes wrong in a stream is one error, and ends it") {
  const int threads = GENERATE(0, 1);
  const auto breaking = stream_of([](std::uint32_t) {
    return [n = 0]() mutable -> std::optional<Example> {
      if (n == 5) throw std::runtime_error("the line is cut");
      return Example{Tensor::full({1}, n++)};
    };
  });
  Loader loader(breaking, RankShare{}, {.global_batch_size = 2, .threads = threads});
  loader.start(0);
  loader.next(), loader.next();
  CHECK(error_of([&] { loader.next(); }) == "loader: example 5 of the stream: the line is cut");
  CHECK_FALSE(loader.next().has_value());
  Loader cut(stream_to(3, 5), RankShare{}, {.global_batch_size = 2, .threads = threads});
  cut.start(0);
  cut.next();
  CHECK(error_of([&] { cut.next(); }) == "loader: the stream ended behind example 3, and its size() is 5");
  Loader unknown(stream_to(3), RankShare{}, {});
  CHECK_THAT(error_of([&] { unknown.batches(); }), ContainsText("is not known before its end: give it a size"));
  CHECK_THAT(error_of([&] { unknown.dataset(); }), ContainsText("it reads a stream"));
  CHECK(error_of([] { Loader(std::shared_ptr<IterableDataset>(), RankShare{}, {}); }) ==
        "loader: got no stream (a null pointer)");
  CHECK_THAT(error_of([] { Loader(stream_to(3), RankShare{2, 2}, {}); }), ContainsText("rank 2 of 2 does not exist"));
  CHECK_THAT(error_of([] { stream_to(3, -1); }),
             ContainsText("stream_of: the size must be 0 or more, or nothing where it is not known, got -1"));
}

TEST_CASE("nothing is read behind the end of a stream, nor behind an error") {
  const int threads = GENERATE(0, 1);
  const int size = GENERATE(4, 5);  // the end is that of a batch, or within one
  for (const bool breaks : {false, true}) {
    std::atomic<int> calls = 0;
    const auto counting = stream_of([&](std::uint32_t) {
      return [&]() -> std::optional<Example> {
        if (++calls <= size) return Example{Tensor::zeros({1})};
        require(!breaks, "the line is cut");
        return std::nullopt;
      };
    });
    {
      Loader loader(counting, RankShare{}, {.global_batch_size = 2, .threads = threads, .prefetch = 8});
      loader.start(0);
      loader.next(), loader.next();
      CHECK(error_of([&] { loader.next(); }) ==
            (breaks ? fmt::format("loader: example {} of the stream: the line is cut", size) : "no error"));
      CHECK_FALSE(loader.next().has_value());
    }
    CHECK(calls == size + 1);
  }
}
