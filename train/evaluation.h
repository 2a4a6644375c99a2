// Loss and accuracy of a model on a data set.
#pragma once

#include "tandem/comm/process_group.h"
#include "tandem/data/loader.h"
#include "tandem/layers/module.h"
#include "tandem/train/evaluation_details.h"
#include "tandem/train/evaluation_graph.h"
#include "tandem/train/metrics.h"
#include "tandem/train/scoring.h"

#include <functional>
#include <optional>

namespace tandem::train {

/// Evaluates `model` in evaluation mode (and leaves each of its modules in the mode it was in) on every image of
/// `loader`, once, each rank on its part; the sums over all ranks, the same on each. The loss is plain cross-entropy.
/// Where it fails on a rank, all ranks throw comm::AgreedError behind their parts. Collective.
/// Example:
///     #include "tandem/comm/launch/mpi_environment.h"
///     #include "tandem/data/synthetic.h"
///     #include "tandem/layers/models/models.h"
///     comm::MpiEnvironment environment;
///     const auto group = comm::make_process_group("auto", environment);
///     const data::ImageDataset images = data::make_synthetic({.count = 100});
///     data::Loader loader(images, {images.size(), group->size(), group->rank(), false, 0}, {});
///     const Metrics metrics = evaluate(*layers::make_model({.name = "small_cnn"}), loader, *group);
///     const std::int64_t count = metrics.count;  // 100: and metrics.accuracy() in percent
Metrics evaluate(layers::Module& model, data::Loader& loader, comm::ProcessGroup& group);

/// The same with a loss and metrics of one's own: with a loss, nothing is counted as correct, and the accuracy is
/// `scoring.accuracy(scores.metrics)`, NaN. Each batch is also added to `details`, unless that is null: outputs
/// must be those of classes then, and the loader no stream's.
Scores evaluate(layers::Module& model, data::Loader& loader, comm::ProcessGroup& group, const Scoring& scoring,
                EvaluationDetails* details = nullptr);

/// The same, asking `ends` behind each batch; nothing where it said true, which it must do on all ranks alike. An empty
/// function is not asked.
std::optional<Scores> evaluate_unless(const std::function<bool()>& ends, layers::Module& model, data::Loader& loader,
                                      comm::ProcessGroup& group, const Scoring& scoring,
                                      EvaluationDetails* details = nullptr);

/// The same of the model and the scoring that the graph was made of, by launches where it has recorded them: with the
/// bits that there would be without. A loader that deals micro-batches is refused: EvaluationGraph::refuse(). Throws
/// Error for details of a graph that does not keep outputs.
/// @{
Scores evaluate(EvaluationGraph& graph, data::Loader& loader, comm::ProcessGroup& group,
                EvaluationDetails* details = nullptr);
std::optional<Scores> evaluate_unless(const std::function<bool()>& ends, EvaluationGraph& graph, data::Loader& loader,
                                      comm::ProcessGroup& group, EvaluationDetails* details = nullptr);
/// @}

}  // namespace tandem::train
