// One pass without a tape.
#include "tandem/train/evaluation.h"

#include "tandem/autograd/grad_mode.h"
#include "tandem/core/error.h"
#include "tandem/core/memory.h"
#include "tandem/core/stream.h"
#include "tandem/layers/mode_scope.h"
#include "tandem/train/canonical_step.h"
#include "tandem/train/local_failure.h"
#include "tandem/train/running_scores.h"

#include <deque>
#include <span>
#include <utility>
#include <vector>

namespace tandem::train {
namespace {

/// The numbers of the loader's examples, as they come in epoch 0. Throws Error for a stream.
std::vector<std::int64_t> order_of(const data::Loader& loader) {
  loader.dataset();
  return loader.sampler().order(0);
}

/// Adds outputs and labels of a GPU to details once they are here, three batches later, so that nobody waits.
class DetailsOnTheWay {
 public:
  explicit DetailsOnTheWay(EvaluationDetails& details) : details_(details) {}

  void add(const Tensor& output, const Tensor& labels, std::span<const std::int64_t> numbers) {
    Batch batch{.output = copy_of(output), .labels = copy_of(labels), .numbers = numbers, .arrived = Event()};
    batch.arrived.record(current_stream(output.device()));
    batches_.push_back(std::move(batch));
    read(kUnread);
  }

  /// All but the last `but` ones.
  void read(std::size_t but) {
    for (; batches_.size() > but; batches_.pop_front()) {
      const Batch& batch = batches_.front();
      if (!batch.arrived.is_done()) batch.arrived.synchronize();
      details_.add(batch.output, batch.labels, batch.numbers);
    }
  }

 private:
  struct Batch {
    Tensor output, labels;  // on the CPU once `arrived` is passed
    std::span<const std::int64_t> numbers;
    Event arrived;
  };

  static constexpr std::size_t kUnread = 3;

  static Tensor copy_of(const Tensor& tensor) {
    const MemoryTagScope tag(MemoryTag::workspace);
    const Tensor here = Tensor::empty(tensor.shape(), {.dtype = tensor.dtype(), .pinned = true});
    here.copy_from_async(tensor);
    return here;
  }

  EvaluationDetails& details_;
  std::deque<Batch> batches_;
};

/// Calls take_next() as long as it says that there was a batch, and asks `ends` behind each: false where that said
/// true. Where it throws, which `failure` keeps, `ends` is asked as often as on the ranks that go on.
template <typename TakeNext>
bool go_through(const std::function<bool()>& ends, const data::Loader& loader, LocalFailure& failure,
                TakeNext&& take_next) {
  for (std::int64_t done = 0;; ++done) {
    bool was_there = false;
    failure.guard([&] { was_there = take_next(); });
    if (failure.has_failed()) {
      if (!ends) return true;
      if (loader.sampler().size() == 0) failure.throw_own();  // of a stream: nobody knows how often
      was_there = done < loader.batches();
    }
    if (!was_there) return true;
    if (ends && ends()) return false;
  }
}

}  // namespace

Metrics evaluate(layers::Module& model, data::Loader& loader, comm::ProcessGroup& group) {
  return evaluate(model, loader, group, Scoring()).metrics;
}

Scores evaluate(layers::Module& model, data::Loader& loader, comm::ProcessGroup& group, const Scoring& scoring,
                EvaluationDetails* details) {
  return *evaluate_unless({}, model, loader, group, scoring, details);
}

std::optional<Scores> evaluate_unless(const std::function<bool()>& ends, layers::Module& model, data::Loader& loader,
                                      comm::ProcessGroup& group, const Scoring& scoring, EvaluationDetails* details) {
  const autograd::NoGrad no_grad;
  const layers::ModeScope evaluating(model, false);
  const data::DistributedSampler& sampler = loader.sampler();
  const std::int64_t batch_size = loader.options().global_batch_size;
  const bool is_canonical = sampler.micro_batches() > 0;
  std::optional<CanonicalScores> canonical;
  if (is_canonical) canonical.emplace(group, sampler.micro_batches(), scoring.metrics_of_own());
  std::vector<RunningScores> scores;  // by micro-batch
  for (int i = 0; i < sampler.local_micro_batches(); ++i) scores.emplace_back(scoring);
  const std::vector<std::int64_t> order = details != nullptr ? order_of(loader) : std::vector<std::int64_t>();
  const auto add = [&](RunningScores& sum, const data::Batch& batch, std::int64_t begin) {
    if (batch.count() == 0) return;  // a small last batch may leave nothing for this rank
    const Tensor output = scoring.output(model, batch);
    const Tensor loss = scoring.loss(output, batch.labels);
    sum.begin_step();
    if (sum.add_on_device(loss, output, batch.labels, batch.count())) {
      sum.read_earlier_steps();
    } else {
      sum.add(scoring.begin_reading(loss, output, batch.labels), batch.count());
    }
    sum.end_step(batch.index + 1);
    if (details == nullptr) return;
    const auto first = static_cast<std::size_t>(begin), count = static_cast<std::size_t>(batch.count());
    details->add(output, batch.labels, std::span(order).subspan(first, count));
  };
  const auto take_next = [&] {
    const auto batch = loader.next();
    if (!batch) return false;
    const std::int64_t begin = details != nullptr || is_canonical ? sampler.part(batch->index, batch_size).begin : 0;
    for (int i = 0; is_canonical && i < sampler.local_micro_batches(); ++i) {
      const data::BatchPart part = sampler.micro_part(batch->index, batch_size, i);
      if (part.count == 0) continue;
      add(scores[static_cast<std::size_t>(i)], data::examples_of(*batch, part.begin - begin, part.count), part.begin);
    }
    if (!is_canonical) add(scores.front(), *batch, begin);
    return true;
  };
  LocalFailure failure;
  failure.guard([&] { loader.start(0); });
  const bool is_whole = go_through(ends, loader, failure, take_next);
  std::vector<Scores> sums;
  failure.guard([&] {
    for (const RunningScores& of_micro_batch : scores) sums.push_back(of_micro_batch.all());
  });
  failure.tell(group);
  if (!is_whole) return std::nullopt;
  return is_canonical ? canonical->sum(sums) : scoring.sum_over_ranks(sums.front(), group);
}

Scores evaluate(EvaluationGraph& graph, data::Loader& loader, comm::ProcessGroup& group, EvaluationDetails* details) {
  return *evaluate_unless({}, graph, loader, group, details);
}

std::optional<Scores> evaluate_unless(const std::function<bool()>& ends, EvaluationGraph& graph, data::Loader& loader,
                                      comm::ProcessGroup& group, EvaluationDetails* details) {
  const data::DistributedSampler& sampler = loader.sampler();
  if (sampler.micro_batches() > 0) {
    graph.refuse("micro-batches of a canonical mode are scored one by one");
    return evaluate_unless(ends, graph.model(), loader, group, graph.scoring(), details);
  }
  require(details == nullptr || graph.keeps_outputs(),
          "evaluation: details are made of outputs, and this graph does not keep them: make it with keeps_outputs");
  const autograd::NoGrad no_grad;
  const layers::ModeScope evaluating(graph.model(), false);
  const std::vector<std::int64_t> order = details != nullptr ? order_of(loader) : std::vector<std::int64_t>();
  std::optional<DetailsOnTheWay> on_the_way;
  if (details != nullptr) on_the_way.emplace(*details);
  const auto take_next = [&] {
    auto batch = loader.next_deferred();
    if (!batch) return false;
    const std::int64_t count = batch->count();
    if (count > 0) {  // a small last batch may leave nothing for this rank
      const Tensor labels = batch->labels();
      const std::int64_t index = batch->index();
      graph.add(*std::move(batch));
      if (on_the_way) {
        const auto first = static_cast<std::size_t>(sampler.part(index, loader.options().global_batch_size).begin);
        on_the_way->add(graph.output(), labels, std::span(order).subspan(first, static_cast<std::size_t>(count)));
      }
    }
    return true;
  };
  LocalFailure failure;
  failure.guard([&] {
    graph.start();
    loader.start(0, 0, true);
  });
  const bool is_whole = go_through(ends, loader, failure, take_next);
  Scores scores;
  failure.guard([&] {
    scores = graph.scores();
    if (on_the_way) on_the_way->read(0);
  });
  failure.tell(group);
  if (!is_whole) return std::nullopt;
  return graph.scoring().sum_over_ranks(scores, group);
}

}  // namespace tandem::train
