// Buffers that forward() assigns in place of writing into them: ranks would exchange what was there before.
#include "tandem/autograd/functions.h"
#include "tandem/data/make_dataset.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/trainer.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::test;

namespace {

/// Counts its calls in a buffer, the wrong way or the right one.
class Counting final : public layers::Module {
 public:
  Counting(bool assigns, layers::Initializer& initializer)
      : assigns_(assigns), linear_({.in = 2, .out = 1}, initializer) {
    register_buffer("calls", calls_);
    register_module("linear", linear_);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor more = Tensor::full({1}, calls_.item() + 1.0);
    if (assigns_) {
      calls_ = more;
    } else {
      calls_.copy_from(more);
    }
    return linear_(x);
  }
  std::string describe() const override { return "Counting"; }
  double calls() const { return calls_.item(); }

 private:
  bool assigns_;
  Tensor calls_ = Tensor::zeros({1});
  layers::Linear linear_;
};

/// Two epochs on two examples for each rank; the calls that the buffer has counted.
double counted_calls(comm::ProcessGroup& group, bool assigns) {
  layers::Initializer initializer(1);
  Counting model(assigns, initializer);
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  data::Loader loader(data::dataset_of({Tensor::zeros({4, 2}), Tensor::zeros({4, 1})}),
                      {.global_batch_size = 2, .share = {group.size(), group.rank()}, .threads = 0});
  train::Trainer(model, optimizer, loader, {.group = &group, .loss = autograd::mse_loss}).fit(2);
  return model.calls();
}

const std::string kText =
    "trainer: buffer calls of the model is another tensor than when the trainer was made, and ranks would no longer "
    "exchange it: forward() must write into its elements (copy_from(), Out) rather than assign it";

}  // namespace

TEST_CASE("a trainer refuses a model whose forward assigns a buffer, on one rank and on two") {
  for (const int ranks : {1, 2})
    CHECK(error_of([&] { run_thread_ranks(ranks, [](comm::ProcessGroup& group) { counted_calls(group, true); }); }) ==
          kText);
}

TEST_CASE("a buffer that forward writes into is the same on all ranks behind an epoch") {
  run_thread_ranks(2, [](comm::ProcessGroup& group) {
    const double calls = counted_calls(group, false);
    CHECK(calls >= 4.0);  // of each step, and of what is tried before the first
    const std::vector<double> all = group.all_gather(Tensor::full({1}, calls)).to_vector<double>();
    CHECK(all[0] == all[1]);
  });
}
