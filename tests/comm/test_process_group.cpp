// A group of one, and what every group refuses.
#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tandem/comm/agreement.h"
#include "tandem/comm/backends.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/core/suggest.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <algorithm>
#include <set>

using namespace tandem;
using namespace tandem::comm;
using tandem::test::ContainsText;
using tandem::test::error_of;

TEST_CASE("a group of one changes nothing") {
  MpiEnvironment environment;
  const auto group = make_process_group("auto", environment);
  CHECK(group->name() == "self");
  CHECK(group->rank() == 0);
  CHECK(group->size() == 1);
  CHECK(group->local_size() == 1);
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32}) {
    const Tensor tensor = Tensor::full({2, 3}, 5.0, {dtype});
    group->all_reduce(Out(tensor), is_floating(dtype) ? ReduceOp::average : ReduceOp::sum);
    const auto work = group->all_reduce_async(Out(tensor), ReduceOp::max);
    CHECK(work->poll());
    work->wait();
    group->broadcast(Out(tensor));
    CHECK(tensor.to_vector<double>() == std::vector<double>(6, 5.0));
    CHECK(group->all_gather(tensor).shape() == Shape{1, 2, 3});
  }
  CHECK(group->all_gather_bytes("abc") == std::vector<std::string>{"abc"});
  group->barrier();
  CHECK_NOTHROW(check_same(*group, "config", "a=1\n"));
}

TEST_CASE("tensors that cannot be reduced or moved are refused with the reason") {
  ProcessGroup group(make_self_backend());
  const Tensor matrix = Tensor::zeros({4, 6});
  CHECK_THAT(error_of([&] { group.all_reduce(Out(matrix.narrow(1, 0, 3))); }), ContainsText("contiguous()"));
  CHECK_THAT(error_of([&] { group.all_reduce(Out(Tensor::zeros({2}, {DType::u8}))); }), ContainsText("u8[2]"));
  CHECK_THAT(error_of([&] { group.all_reduce(Out(Tensor::zeros({2}, {DType::i64})), ReduceOp::average); }),
             ContainsText("average needs a floating dtype"));
  CHECK_THAT(error_of([&] { group.broadcast(Out(matrix), 1); }), ContainsText("root 1"));
  CHECK_THAT(error_of([&] { group.broadcast(Out(Tensor())); }), ContainsText("undefined"));
  CHECK_THAT(error_of([&] { group.all_gather(Tensor::zeros({1, 1, 1, 1, 1, 1, 1, 1})); }), ContainsText("no room"));
}

TEST_CASE("while recording, what is on the tape is neither changed nor gathered") {
  ProcessGroup group(make_self_backend());
  const Tensor leaf = autograd::set_requires_grad(Tensor::full({3}, 2.0)), made = autograd::scale(leaf, 3.0);
  for (const Tensor& tensor : {leaf, made}) {
    CHECK_THAT(error_of([&] { group.all_reduce(Out(tensor)); }), ContainsText("Out: f32[3], "));
    CHECK_THAT(error_of([&] { group.all_reduce_async(Out(tensor)); }), ContainsText("in place: write "));
    CHECK_THAT(error_of([&] { group.broadcast(Out(tensor)); }), ContainsText("Out: f32[3], "));
    CHECK_THAT(error_of([&] { group.all_gather(tensor); }), ContainsText("all_gather: f32[3] would lose its gradient"));
    CHECK(group.all_gather(tensor.detach()).shape() == Shape{1, 3});
    const autograd::NoGrad no_grad;
    CHECK(error_of([&] {
            group.all_reduce(Out(tensor));
            group.all_reduce_async(Out(tensor))->wait();
            group.broadcast(Out(tensor));
          }) == "no error");
    CHECK(group.all_gather(tensor).shape() == Shape{1, 3});
  }
}

TEST_CASE("an unknown backend is refused with the choices") {
  MpiEnvironment environment;
  CHECK_THAT(error_of([&] { make_process_group("nccl2", environment); }),
             ContainsText(unknown_name("backend", "nccl2", backend_names())));
}

TEST_CASE("a former name of a backend stands for it") {
  CHECK(current_backend_name("ring") == "native");
  for (const std::string& name : backend_names()) CHECK(current_backend_name(name) == name);
}

TEST_CASE("the table of backends has each name once, and says what each one is") {
  MpiEnvironment environment;
  std::set<std::string_view> names;
  for (const BackendEntry& entry : backends()) {
    INFO(entry.name);
    CHECK(names.insert(entry.name).second);
    CHECK_FALSE(entry.what.empty());
    if (entry.needs.empty()) {
      CHECK(entry.missing().empty());
      if (entry.name == "threads") {
        const std::string error = error_of([&] { make_process_group("threads", environment); });
        CHECK_THAT(error, ContainsText("backend threads joins ranks that are threads of one process, which "
                                       "run_thread_ranks() starts: choose auto"));
        const std::string choices = error.substr(error.find("choose "));
        for (const BackendEntry& other : backends())  // such as this build has
          CHECK((choices.find(other.name) != choices.npos) == (other.missing().empty() && other.name != "threads"));
      } else {
        CHECK(make_process_group(entry.name, environment)->size() == 1);
      }
    } else {
      CHECK(std::ranges::find(backends(), entry.instead, &BackendEntry::name) != backends().end());
    }
  }
}

#if !TANDEM_HAS_NCCL
TEST_CASE("backend nccl says that it is not in the build, and what to take") {
  MpiEnvironment environment;
  const std::string text = error_of([&] { make_process_group("nccl", environment); });
  CHECK_THAT(text, ContainsText("backend nccl: this program was built without NCCL"));
  CHECK_THAT(text, ContainsText(TANDEM_HAS_MPI ? "choose backend native" : "choose backend self"));
  REQUIRE_THROWS_AS(make_process_group("nccl", environment), AgreedError);
}
#endif

#if !TANDEM_HAS_MPI
TEST_CASE("backends that need MPI say that it is not in the build") {
  MpiEnvironment environment;
  for (const char* backend : {"mpi", "native", "gloo"}) {
    CHECK_THAT(error_of([&] { make_process_group(backend, environment); }),
               ContainsText("built without MPI") && ContainsText("choose backend self"));
  }
}
#endif

TEST_CASE("agreement in a group of one passes results and errors on") {
  ProcessGroup group(make_self_backend());
  CHECK(run_agreed(group, [] { return 42; }) == 42);
  CHECK_NOTHROW(agree_or_fail(group, std::nullopt));
  REQUIRE_THROWS_AS(agree_or_fail(group, "no such file"), AgreedError);
  CHECK_THAT(error_of([&] { run_agreed(group, [] { fail("bad {}", "file"); }); }), ContainsText("bad file"));
}
