// Ranges, ranks, and what ranks have in common.
#include "tandem/train/trainer_checks.h"

#include "tandem/core/describe.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tandem::train {
namespace {

/// "training=given\ntraining.examples=60000\n...": which batches a loader makes of which examples.
std::string text_of(std::string_view which, const data::Loader* loader) {
  if (loader == nullptr) return fmt::format("{}=none\n", which);
  const data::DistributedSampler& sampler = loader->sampler();
  const std::string order = sampler.shuffles() ? fmt::format("shuffled by seed {}", sampler.seed()) : "as they come";
  return fmt::format(
      "{0}=given\n{0}.examples={1}\n{0}.order={2}\n{0}.global_batch_size={3}\n{0}.drop_last={4}\n"
      "{0}.micro_batches={5}\n",
      which, sampler.size(), order, loader->options().global_batch_size, loader->options().drop_last,
      sampler.micro_batches());
}

/// "group 0=2 parameters, lr_factor 64, weight_decay 0, freeze_step 144\n..."; a schedule is not told.
std::string text_of(const std::vector<optim::ParameterGroup>& groups) {
  std::string text;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const optim::ParameterGroup& group = groups[i];
    text += fmt::format("group {}={} parameters, lr_factor {}", i, group.parameters.size(), group.lr_factor);
    if (group.weight_decay) text += fmt::format(", weight_decay {}", *group.weight_decay);
    if (group.momentum) text += fmt::format(", momentum {}", *group.momentum);
    if (group.schedule) text += ", a schedule of its own";
    if (group.freeze_step) text += fmt::format(", freeze_step {}", *group.freeze_step);
    text += '\n';
  }
  return text;
}

}  // namespace

void check_options(const TrainerOptions& options) {
  require(options.epochs >= 0, "trainer: epochs {} must be 0 (none: evaluate only) or more", options.epochs);
  require(options.steps >= 0, "trainer: steps {} must be 0 (by epochs) or more", options.steps);
  require(options.accumulation >= 1, "trainer: accumulation {} must be 1 micro-batch per step or more",
          options.accumulation);
  require(options.clip_norm >= 0.0, "trainer: clip_norm {} must be 0 (no clipping) or more", options.clip_norm);
  require(std::isfinite(options.l1) && options.l1 >= 0.0,
          "trainer: l1 {} must be a finite number, 0 (no penalty) or more", options.l1);
  require(options.ema >= 0.0 && options.ema < 1.0, "trainer: the decay ema {} must be 0 (no average) or below 1",
          options.ema);
  require(options.lookahead.every >= 0, "trainer: lookahead.every {} must be 0 (no slow weights) or more",
          options.lookahead.every);
  require(options.lookahead.every == 0 || options.ema == 0.0,
          "trainer: both ema and lookahead average the weights; leave one out");
  require(options.evaluate_every >= 1, "trainer: evaluate_every {} must be 1 epoch or more", options.evaluate_every);
  require(options.evaluate_every == 1 || options.early_stopping.patience == 0,
          "trainer: early stopping counts epochs that were no better, so that each must be evaluated: leave "
          "evaluate_every or early_stopping out");
  require(!options.detailed || options.loss == nullptr,
          "trainer: details of an evaluation are those of classes, and a loss function was given: leave one out");
  require(options.max_skipped_steps >= 0, "trainer: max_skipped_steps {} must be 0 (no limit) or more",
          options.max_skipped_steps);
  require(options.log_every >= 0, "trainer: log_every {} must be 0 (never) or more", options.log_every);
  require(options.label_smoothing >= 0.0 && options.label_smoothing <= 1.0,
          "trainer: label_smoothing {} is not between 0 and 1", options.label_smoothing);
  require(options.replicas == nullptr || options.group != nullptr,
          "trainer: replicas are given without their group; give .group, too");
}

void check_buffers(const NamedTensors& before, const layers::Module& model) {
  const NamedTensors now = model.named_buffers();
  for (std::size_t i = 0; i < std::min(before.size(), now.size()); ++i)
    require(now[i].second.is_same(before[i].second),
            "trainer: buffer {} of the model is another tensor than when the trainer was made, and ranks would no "
            "longer exchange it: forward() must write into its elements (copy_from(), Out) rather than assign it",
            now[i].first);
}

void check_sampler(std::string_view which, const data::Loader& loader, const comm::ProcessGroup& group) {
  const data::DistributedSampler& sampler = loader.sampler();
  require(sampler.world_size() == group.size() && sampler.rank() == group.rank(),
          "trainer: the {} loader's sampler is that of rank {} of {}, but this is rank {} of {}; make both of one "
          "process group (TrainerOptions::group)",
          which, sampler.rank(), sampler.world_size(), group.rank(), group.size());
}

void check_micro_batches(const TrainingParts& parts, const TrainerOptions& options) {
  const int micro_batches = parts.train_loader.sampler().micro_batches();
  for (const auto& [which, loader] :
       {std::pair("test", parts.test_loader), std::pair("validation", parts.validation_loader)})
    require(loader == nullptr || loader->sampler().micro_batches() == micro_batches,
            "trainer: the {} loader deals {} micro-batches, and the training loader {} (0: none); give all loaders the "
            "same (RankShare::micro_batches)",
            which, loader == nullptr ? 0 : loader->sampler().micro_batches(), micro_batches);
  if (micro_batches == 0) return;
  require(options.accumulation == 1,
          "trainer: accumulation {} and {} micro-batches in canonical mode (RankShare::micro_batches) both cut a step "
          "into parts; leave one out",
          options.accumulation, micro_batches);
  const std::int64_t batch_size = parts.train_loader.options().global_batch_size;
  require(batch_size >= micro_batches, "trainer: a batch of {} cannot be cut into {} micro-batches; make it larger",
          batch_size, micro_batches);
}

BestBy best_by(const TrainingParts& parts, const TrainerOptions& options) {
  const bool validates = parts.validation_loader != nullptr, tests = parts.test_loader != nullptr && !validates;
  const BestBy by = options.best_by ? *options.best_by
                    : validates     ? BestBy::validation_loss
                    : tests         ? BestBy::test_loss
                                    : BestBy::train_loss;
  if (options.early_stopping.patience == 0) return by;
  const bool by_validation = by == BestBy::validation_accuracy || by == BestBy::validation_loss;
  require(by != BestBy::train_loss,
          "trainer: early stopping needs a test or a validation loader: the training loss tells nothing of other data");
  require(by_validation ? validates : tests, "trainer: early stopping by {} needs a {}", name_of(by),
          by_validation ? "validation loader" : "test loader, and no validation loader, which would replace it");
  return by;
}

std::string shared_text(const TrainingParts& parts, const TrainerOptions& options) {
  std::string metrics;
  for (const Metric& metric : options.metrics) metrics += (metrics.empty() ? "" : ", ") + metric.name;
  return text_of("training", &parts.train_loader) + text_of("test", parts.test_loader) +
         text_of("validation", parts.validation_loader) +
         fmt::format(
             "lr={}\nepochs={}\naccumulation={}\nclip_norm={}\nl1={}\ncheck_replicas={}\nlog_every={}\nmetrics={}\n"
             "evaluate_every={}\nearly_stopping={}\nbest_by={}\nema={}, {}, {}\nlookahead={}, {}, "
             "{}\nviews={} of {}\ndetailed={}\nsteps={}\nlayer_norms={}\ndead_relus={}\nmax_skipped_"
             "steps={}\ncuda_graph={}\n",
             parts.optimizer.lr(), options.epochs, options.accumulation, options.clip_norm, options.l1,
             options.check_replicas, options.log_every, metrics.empty() ? "none" : metrics, options.evaluate_every,
             to_string(options.early_stopping), name_of(best_by(parts, options)), options.ema,
             options.ema_options.every, options.ema_options.warms_up, options.lookahead.every, options.lookahead.decay,
             options.lookahead.power, name_of(options.test_time_augmentation), options.test_time_share,
             options.detailed, options.steps, options.layer_norms, options.dead_relus, options.max_skipped_steps,
             name_of(options.cuda_graph)) +
         text_of(parts.optimizer.groups());
}

}  // namespace tandem::train
