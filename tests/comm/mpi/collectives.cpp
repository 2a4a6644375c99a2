// The other collectives, places of ranks, and agreement, on several ranks.
#include "tandem/comm/backends/mpi/mpi_runtime.h"
#include "tandem/comm/launch/threads.h"
#include "tests/comm/collective_checks.h"
#include "tests/comm/mpi/mpi_test.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

TEST_CASE("a group knows its ranks and its host") {
  const auto group = each_group();
  CHECK(group->rank() == environment().rank());
  CHECK(group->size() == environment().size());
  CHECK(group->local_rank() == group->rank());  // the tests run on one host
  CHECK(group->local_size() == group->size());
  CHECK(group->node() == 0);
}

TEST_CASE("broadcast gives everybody the root's elements, in every dtype and from every root") {
  const auto group = each_group();
  for (int root = 0; root < group->size(); ++root) {
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8}) {
      for (const std::int64_t size : {0, 1, 1025}) {
        const int offset = dtype == DType::u8 ? 0 : group->rank();
        Tensor tensor = Tensor::full({size}, offset + 1, {dtype});
        if (group->rank() == root) tensor.fill(root + 40);
        group->broadcast(Out(tensor), root);
        CHECK(tensor.to_vector<double>() == std::vector<double>(static_cast<std::size_t>(size), root + 40));
      }
    }
  }
}

TEST_CASE("all_gather stacks tensors by rank") {
  const auto group = each_group();
  for (const std::int64_t size : {0, 1, 1000}) {
    const Tensor all = group->all_gather(whole_numbers(group->rank(), {2, size}, DType::f32));
    REQUIRE(all.shape() == Shape{group->size(), 2, size});
    for (int rank = 0; rank < group->size(); ++rank) {
      CHECK(all.select(0, rank).to_vector<float>() == whole_numbers(rank, {2, size}, DType::f32).to_vector<float>());
    }
  }
}

TEST_CASE("every collective, every dtype, from and to every root") {
  const auto group = each_group();
  for (const std::int64_t count : {0, 1, 7, 1025}) CHECK(fault_of_all_collectives(*group, count) == "");
  for (const int more : {-1, 0, 1}) {
    if (const int count = group->size() + more; count > 1 && count != 7)
      CHECK(fault_of_all_collectives(*group, count) == "");
  }
}

TEST_CASE("a rank may have many rows for one other and none for the rest, and tensors may begin at odd places") {
  const auto group = each_group();
  for (const std::int64_t count : {1, 101}) {
    CHECK(fault_of_uneven_rows(*group, count) == "");
    CHECK(fault_of_odd_places(*group, count) == "");
  }
}

TEST_CASE("messages of one segment more or less than one, and than several") {
  constexpr std::int64_t kSegment = 16;  // elements of f32, half as many of f64
  const auto group =
      make_native_group({.segments = {.segment_bytes = 4 * kSegment, .depth = 2}, .shared_memory = false});
  for (const std::int64_t segments : {1, 3})
    for (const std::int64_t more : {-1, 0, 1})
      CHECK(fault_of_all_collectives(*group, segments * kSegment + more) == "");
}

TEST_CASE("MPI's calls take no more than MPI counts, on all ranks alike") {
  struct Case {
    MpiLimits limits;
    std::int64_t count;  // of elements, and of those of a row
  };
  // Few chunks and many; less in all than some ranks have in an all-to-all of rows, and more than others have.
  for (const auto& [limits, count] : {Case{{.chunk = 3, .total = 16}, 7}, Case{{.chunk = 7, .total = 200}, 5},
                                      Case{{.chunk = 40, .total = 1000}, 101}}) {
    ProcessGroup group(comm::detail::make_mpi_backend(limits));
    CHECK(fault_of_uneven_rows(group, count) == "");
    for (const std::int64_t each : {std::int64_t{0}, std::int64_t{1}, count})
      CHECK(fault_of_all_collectives(group, each) == "");
    CHECK(fault_of_odd_places(group, count) == "");
    if (group.size() > 1) CHECK(fault_of_split(group) == "");
  }
}

TEST_CASE("groups of some ranks work at the same time") {
  const auto group = each_group();
  if (group->size() > 1) CHECK(fault_of_split(*group) == "");
}

TEST_CASE("all_gather_bytes takes strings of different lengths, also empty ones and ones with zero bytes") {
  const auto group = each_group();
  const auto text_of = [](int rank) {
    return std::string(static_cast<std::size_t>(rank * rank), static_cast<char>(rank - 1));
  };
  const auto all = group->all_gather_bytes(text_of(group->rank()));
  REQUIRE(all.size() == static_cast<std::size_t>(group->size()));
  for (int rank = 0; rank < group->size(); ++rank) CHECK(all[static_cast<std::size_t>(rank)] == text_of(rank));
  CHECK(group->all_gather_bytes("") == std::vector<std::string>(all.size()));
}

TEST_CASE("nobody leaves a barrier before the last has come") {
  const auto group = each_group();
  const auto now = [] { return std::chrono::steady_clock::now(); };
  group->barrier();
  const auto start = now();
  if (group->rank() == group->size() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(60));
  group->barrier();
  CHECK(now() - start >=
        std::chrono::milliseconds(40));  // one host, one clock; the first barrier lets ranks go at about one time
}

TEST_CASE("an error on one rank becomes the same error on all") {
  const auto group = each_group();
  CHECK_NOTHROW(agree_or_fail(*group, std::nullopt));
  const int last = group->size() - 1;
  const auto text = agreed_error_of([&] {
    run_agreed(*group, [&] { require(group->rank() != last, "cannot read 'train_{}.bin'", group->rank()); });
  });
  const std::string expected = fmt::format("cannot read 'train_{}.bin'", last);
  CHECK(text == (last == 0 ? expected : fmt::format("rank {}: {}", last, expected)));
  CHECK(run_agreed(*group, [&] { return group->rank() * 2; }) == group->rank() * 2);
}

TEST_CASE("one error on all ranks is told once, different ones by rank") {
  const auto group = each_group();
  CHECK(agreed_error_of([&] { agree_or_fail(*group, "batch size is 0"); }) == "batch size is 0");
  const auto text = agreed_error_of([&] { agree_or_fail(*group, fmt::format("no file {}", group->rank())); });
  if (group->size() > 1) CHECK_THAT(text, ContainsText("rank 0: no file 0; rank 1: no file 1"));
  CHECK(agreed_error_of([&] { agree_or_fail(*group, std::string()); }).empty());
}

TEST_CASE("a configuration that differs is reported by its first differing key") {
  const auto group = each_group();
  const int last = group->size() - 1;
  const bool differs = group->rank() == last && last > 0;
  const std::string common = "seed=1\nepochs=3\n";
  CHECK_NOTHROW(check_same(*group, "config", common));
  const auto difference = [&](const std::string& odd_one) {
    return agreed_error_of([&] { check_same(*group, "config", differs ? odd_one : common + "lr=0.1\n"); });
  };
  if (last == 0) {
    CHECK(difference("") == "no AgreedError");
    return;
  }
  const std::string tail = fmt::format(" (differing from rank 0: {})", last);
  CHECK(difference(common + "lr=0.2\n") ==
        fmt::format("config differs between ranks: lr is 0.1 on rank 0 and 0.2 on rank {}", last) + tail);
  CHECK(difference(common) == fmt::format("config differs between ranks: lr is missing on rank {}", last) + tail);
  CHECK_THAT(difference(common + "lr=0.1\nclip=1\n"), ContainsText("clip is on rank"));
  CHECK_THAT(difference("seed=1\nlr=0.1\n"), ContainsText("line 2 is epochs=3 on rank 0 and lr=0.1"));
}

TEST_CASE("ranks that name different backends are told, and so are those that name none we have") {
  if (environment().size() == 1) return;
  const bool last = environment().rank() == environment().size() - 1;
  CHECK_THAT(agreed_error_of([&] { make_process_group(last ? "mpi" : "native", environment()); }),
             ContainsText("backend is native on rank 0 and mpi on rank"));
  CHECK_THAT(agreed_error_of([&] { make_process_group("carrier-pigeon", environment()); }),
             ContainsText("unknown backend 'carrier-pigeon'"));
}

TEST_CASE("one rank may call native by its former name") {
  const bool last = environment().rank() == environment().size() - 1;
  const auto group = make_process_group(last ? "ring" : "native", environment());
  CHECK(group->name() == "native");
}

TEST_CASE("an algorithm that is not there, or of another backend, or not the same on all ranks, is refused by all") {
  CHECK_THAT(agreed_error_of([&] { make_process_group({.algorithm = "rng"}, environment()); }),
             ContainsText("unknown all-reduce algorithm 'rng': did you mean ring?"));
  CHECK_THAT(agreed_error_of([&] { make_process_group({.backend = "mpi", .algorithm = "ring"}, environment()); }),
             ContainsText("algorithm ring: is one of backend native, and mpi has its own"));
  if (environment().size() == 1) return;
  const std::string mine = environment().rank() == 0 ? "ring" : "direct";
  CHECK_THAT(agreed_error_of([&] { make_process_group({.algorithm = mine}, environment()); }),
             ContainsText("algorithm is ring on rank 0 and direct on rank"));
}

TEST_CASE("messages are held up as on a network that all ranks name, and no other backend's are") {
  const GroupOptions slow{.network = "alpha=10ms local-alpha=1us"};
  const auto group = make_process_group(slow, environment());
  CHECK(group->network().starts_with("alpha=10ms "));
  const auto start = std::chrono::steady_clock::now();
  const Tensor ones = Tensor::full({1000}, 1.0);
  group->all_reduce(Out(ones));
  CHECK(ones.to_vector<float>().back() == static_cast<float>(group->size()));
  CHECK_THAT(agreed_error_of([&] { make_process_group({.backend = "mpi", .network = "alpha=1us"}, environment()); }),
             ContainsText("network alpha=1us: is simulated by backend native, and mpi sends messages of its own"));
  CHECK_THAT(agreed_error_of([&] { make_process_group({.network = "alpha=soon"}, environment()); }),
             ContainsText("network: alpha=soon does not begin with a number"));
  if (environment().size() == 1) return;
  CHECK(group->name() == "native");
  CHECK(group->algorithm() == "by-cost");
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(10));
  const std::string mine = environment().rank() == 0 ? "alpha=1us" : "alpha=2us";
  CHECK_THAT(agreed_error_of([&] { make_process_group({.network = mine}, environment()); }),
             ContainsText("network is alpha=1us on rank 0 and alpha=2us on rank"));
}

TEST_CASE("ranks share the cores of their host") {
  const auto group = each_group();
  const char* const asked = std::getenv("OMP_NUM_THREADS");
  const std::string old = asked == nullptr ? "" : asked;
  unsetenv("OMP_NUM_THREADS");
  const int threads = default_threads(*group);
  if (!old.empty()) setenv("OMP_NUM_THREADS", old.c_str(), 1);
  const auto cores = static_cast<int>(allowed_cores().size());
  CHECK(threads == std::max(1, cores / group->size()));  // the tests run unbound
}

TEST_CASE("a failed call of MPI is told in MPI's words, with the rank") {
  constexpr int kInvalidBuffer = 1;  // MPI_ERR_BUFFER of all libraries
  const std::string text =
      error_of([] { comm::detail::throw_if_mpi_failed(kInvalidBuffer, "MPI_Send(data, 1)", {__FILE__, __LINE__}); });
  CHECK_THAT(text, ContainsText("MPI_ERR_BUFFER") || ContainsText("nvalid buffer"));
  CHECK_THAT(text, ContainsText(" (code 1) from MPI_Send at collectives.cpp:"));
  CHECK_THAT(text, ContainsText(fmt::format("; on rank {}", environment().rank())));
}
