// Names, groups and help of options: of what is trained, and how.
#include "settings.h"
#include "muon_options.h"

#include "tandem/core/error.h"
#include "tandem/core/number_text.h"
#include "tandem/core/parse_device.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

namespace tandem::apps {
namespace {

constexpr RealLimits kPositive{.least = 0.0, .above = true};
constexpr RealLimits kNotNegative{.least = 0.0};
constexpr RealLimits kBelowOne{.least = 0.0, .most = 1.0, .below = true};
constexpr RealLimits kWidths{.least = 0.0, .most = layers::kMostWidth, .above = true};
constexpr RealLimits kUpToOne{.least = 0.0, .most = 1.0};

constexpr std::array<std::string_view, 5> kSchedules{"one-cycle", "cosine", "linear", "step", "constant"};

std::vector<std::string> all_of(std::span<const std::string_view> names) { return {names.begin(), names.end()}; }

std::vector<std::string> all_but(std::string_view one, std::span<const std::string_view> names) {
  std::vector<std::string> others = all_of(names);
  std::erase(others, one);
  return others;
}

/// "mnist_cnn: number of convolutions"
std::string of_these(const std::vector<std::string>& names, std::string_view help) {
  return fmt::format("{}: {}", fmt::join(names, ", "), help);
}

/// "sgd 0.1, others 0.001": a default of the optimizers that have it; those that share one come last.
std::string by_optimizer(const std::function<std::optional<double>(const optim::OptimizerEntry&)>& value_of) {
  std::map<double, int> users;
  for (const auto& entry : optim::optimizers())
    if (const auto value = value_of(entry)) ++users[*value];
  const auto shared = std::ranges::max_element(users, {}, &std::pair<const double, int>::second);
  std::string text;
  for (const auto& entry : optim::optimizers()) {
    const auto value = value_of(entry);
    if (!value || (shared->second > 1 && *value == shared->first)) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", entry.name, *value);
  }
  return shared->second > 1 ? fmt::format("{}, others {}", text, shared->first) : text;
}

void describe_data(OptionTable& table, Settings& s) {
  table.group("Data");
  const auto names = data::dataset_names();
  table.choice("dataset", s.data.name, all_of(names), "images to learn");
  table.path("data", s.data.directory, "DIR", "folder of the data files; default datasets/DATASET, then the system's")
      .only_for("dataset", all_but("synthetic", names))
      .own_to_a_rank()
      .no_effect_on_result();
  table.integer("limit-train", s.limit_train, {}, "use the first N training images; 0: all");
  table.integer("limit-test", s.limit_test, {}, "use the first N test images; 0: all");
  table.real("validation-split", s.validation_split, kBelowOne, "F",
             "hold out this part of the training images, the same of each class: they are evaluated after each epoch, "
             "and the test images once, at the end; 0: none");
  table.parsed(
      "augment", s.augment, "LIST",
      [](const std::string& text) {
        require(!text.empty(), "give none for no changes");
        return data::parse_augment(text);
      },
      "random changes to training images, any of crop, crop-reflect (=4 pixels), flip, flip-alternating, jitter "
      "(=0.2), rotate (=15 degrees), offset (=0.14), gain (=0.13), cutout, cutout-inside (=8 pixels), joined by "
      "commas, or none; default crop,flip for CIFAR, else none");
  table.real("mixup", s.loader.mix.mixup, kNotNegative, "A",
             "mix each training image with another, the shares being Beta(A, A) distributed (0.2 is usual); 0: not");
  table.real(
      "cutmix", s.loader.mix.cutmix, kNotNegative, "A",
      "paste a box of another image into each training image, its area being Beta(A, A) distributed (1 is usual); "
      "0: not; with --mixup, one of the two by chance");
}

void describe_model(OptionTable& table, Settings& s) {
  table.group("Model");
  using layers::ModelEntry;
  const auto with_layers = layers::model_names(&ModelEntry::has_layers);
  const auto with_batch_norm = layers::model_names(&ModelEntry::takes_batch_norm);
  const auto with_width = layers::model_names(&ModelEntry::has_width);
  const auto with_drop_path = layers::model_names(&ModelEntry::has_drop_path);
  table.choice("model", s.model.name, layers::model_names(), "network");
  table.integer("layers", s.model.layers, {0, 1000}, of_these(with_layers, "number of convolutions; 0: 4"))
      .only_for("model", with_layers);
  table
      .flag("shared-weights", s.model.shared_weights,
            of_these(with_layers, "all convolutions after the first share their weights"))
      .only_for("model", with_layers);
  table.flag("batch-norm", s.model.batch_norm, of_these(with_batch_norm, "batch norm after each convolution"))
      .only_for("model", with_batch_norm);
  table.real("width", s.model.width, kWidths, "F", of_these(with_width, "factor of the channels"))
      .only_for("model", with_width);
  const auto of_airbench = layers::model_names(&ModelEntry::is_airbench);
  table
      .choice("activation", s.model.activation, {"gelu", "silu"},
              of_these(of_airbench, "activation behind batch norms"))
      .only_for("model", of_airbench, {"gelu"});
  table
      .flag("unit-head", s.model.unit_head,
            of_these(of_airbench,
                     "the last layer's weights begin with a standard deviation of 1, and logits are divided by the "
                     "number of its inputs, not by 9"))
      .only_for("model", of_airbench);
  table
      .flag("draw-whitening-bias", s.model.draw_whitening_bias,
            of_these(of_airbench, "the bias behind the whitening begins at random, as PyTorch draws it, not at 0"))
      .only_for("model", of_airbench);
  table
      .flag(
          "whitening", s.model.whitening,
          of_these(of_airbench, "the first layer whitens patches and is not trained, but for its bias; on by default"))
      .only_for("model", of_airbench);
  table
      .flag("identity-filters", s.model.identity_filters,
            of_these(of_airbench,
                     "other convolutions begin as the identity, as far as they have input channels; on by default"))
      .only_for("model", of_airbench);
  const auto with_ghost_batch = layers::model_names(&ModelEntry::has_ghost_batch);
  table
      .real("celu-alpha", s.model.celu_alpha, {.least = 1e-6}, "A",  // 1 / alpha times an input is f32
            of_these(with_ghost_batch, "CELU's alpha, which it is above -alpha by"))
      .only_for("model", with_ghost_batch);
  table
      .integer("ghost-batch", s.model.ghost_batch, {},
               of_these(with_ghost_batch,
                        "batch norm in training is of so many images at a time, which must divide a rank's batch; 0: "
                        "of all"))
      .only_for("model", with_ghost_batch);
  const auto with_momentum = layers::model_names(&ModelEntry::has_norm_momentum);
  table
      .real("norm-momentum", s.model.norm_momentum, kUpToOne, "M",
            of_these(with_momentum, "share of each batch in batch norm's running statistics; default by network"))
      .only_for("model", with_momentum);
  table
      .integer("whitening-images", s.whitening_images, {1},
               of_these(with_momentum, "make the first layer of the first N training images"))
      .only_for("model", with_momentum);
  table.real("dropout", s.model.dropout, kBelowOne, "P",
             "probability to drop, before the last linear layer (vgg_lite: after each hidden one)");
  table
      .real(
          "drop-path", s.model.drop_path, kBelowOne, "P",
          of_these(with_drop_path, "probability to leave out the last residual branch, of earlier ones in proportion"))
      .only_for("model", with_drop_path);
  table.choice("conv-impl", s.model.conv_impl, all_of(kernels::conv_impl_names()),
               "code that convolves (auto: cuDNN on a GPU where it is there, else our own or oneDNN)",
               kernels::parse_conv_impl);
  table.choice("gemm-impl", s.model.gemm_impl, all_of(kernels::gemm_impl_names()),
               "code that multiplies matrices (auto: cuBLAS on a GPU where it is there, else our own)",
               kernels::parse_gemm_impl);
  table
      .flag("autotune", s.autotune,
            "measure at first use which code convolves each shape fastest; results then differ in their last digits")
      .only_for("conv-impl", {"auto"});
  table
      .path("tuning-file", s.tuning_file, "FILE",
            "convolve by what --autotune measured before, kept in FILE; with --autotune, add to it")
      .only_for("conv-impl", {"auto"})
      .no_effect_on_result();
  table.path("load-weights", s.load_weights, "FILE", "start from these weights (safetensors)").own_to_a_rank();
  table.path("save-weights", s.save_weights, "FILE", "write the weights at the end (safetensors)")
      .own_to_a_rank()
      .no_effect_on_result();
}

void describe_training(OptionTable& table, Settings& s) {
  table.group("Training");
  table
      .number("epochs", s.epochs, {.least = 0.0, .most = 1e6}, "N",
              "passes over the training images, the last of which may be a part (9.9, rounded up to a whole step); 0: "
              "only evaluate")
      .only_for("steps", {"0"});
  table.integer("steps", s.trainer.steps, {},
                "length of the run in optimizer steps, in place of --epochs; 0: by epochs");
  table.integer("global-batch-size", s.global_batch_size, {1},
                fmt::format("images per optimizer step, over all ranks and micro-batches; default {}, or the next "
                            "multiple of their number",
                            s.loader.global_batch_size));
  table.integer("batch-size", s.batch_size, {1},
                "images per rank and micro-batch of --grad-accumulation, instead of --global-batch-size");
  table.integer("grad-accumulation", s.trainer.accumulation, {1, 1000000}, "micro-batches per optimizer step");
  table
      .integer(
          "canonical", s.canonical, {0, 4096},
          "canonical mode: cut each batch into so many micro-batches (1, 2, 4, ...), so that weights and losses have "
          "the same bits on 1, 2, 4, ... up to so many ranks; 0: off")
      .only_for("grad-accumulation", {"1"}, {"0"});
  table.flag("drop-last", s.loader.drop_last, "leave an epoch's last batch out where the images do not fill it");
  using optim::OptimizerEntry;
  const auto with_momentum = optim::optimizer_names([](const OptimizerEntry& e) { return e.momentum.has_value(); });
  const auto with_nesterov = optim::optimizer_names([](const OptimizerEntry& e) { return e.has_nesterov; });
  const auto with_aux = optim::optimizer_names([](const OptimizerEntry& e) { return e.aux_lr.has_value(); });
  const auto with_filters = optim::optimizer_names([](const OptimizerEntry& e) { return e.has_filters; });
  table.choice("optimizer", s.optimizer.name, optim::optimizer_names(),
               "update rule (muon: of filters of convolutions; SGD with Nesterov's momentum of 0.85 for all else)");
  table.real("lr", s.optimizer.lr, kPositive, "RATE",
             "learning rate, the highest of the schedule; default by optimizer: " +
                 by_optimizer([](const OptimizerEntry& e) { return std::optional(e.lr); }));
  table
      .real("aux-lr", s.optimizer.aux_lr, kPositive, "RATE",
            of_these(with_aux, "learning rate of all that are no filters, whose rate is --lr; default " +
                                   by_optimizer(&OptimizerEntry::aux_lr)))
      .only_for("optimizer", with_aux);
  table
      .real("momentum", s.optimizer.momentum, kBelowOne, "M",
            of_these(with_momentum, "momentum; default " + by_optimizer(&OptimizerEntry::momentum)))
      .only_for("optimizer", with_momentum);
  table
      .flag("nesterov", s.optimizer.nesterov,
            of_these(with_nesterov, "Nesterov's momentum; default where there is momentum"))
      .only_for("optimizer", with_nesterov, {"false"});
  table
      .flag("normalize-filters", s.optimizer.normalize_filters,
            of_these(with_filters,
                     "scale a convolution's weight to the norm of the root of its number of filters before "
                     "each step, which batch norm undoes; on by default"))
      .only_for("optimizer", with_filters, {"false"});
  table
      .parsed("normalize-every", s.normalize_every, "N[,M]", read_normalize_every,
              of_these(with_filters,
                       "of --normalize-filters, every N steps; with M, this distance grows by M on the way to the "
                       "run's end; default 1"))
      .only_for("optimizer", with_filters)
      .useless_with("normalize-filters", {"false"}, {"1"});
  table
      .parsed("newton-schulz", s.newton_schulz, "A,B,C", read_newton_schulz,
              of_these(with_filters,
                       "coefficients of the steps that make a filter's update orthogonal; default "
                       "3.4445,-4.775,2.0315"))
      .only_for("optimizer", with_filters);
  table.real(
      "weight-decay", s.optimizer.weight_decay, kNotNegative, "W",
      "default by optimizer: " + by_optimizer([](const OptimizerEntry& e) { return std::optional(e.weight_decay); }));
  table
      .parsed(
          "param-group", s.groups, "PATTERN:KEY=VALUE,...",
          [](const std::string& text) { return parse_parameter_groups(text, kSchedules); },
          "options of the parameters whose names match PATTERN (* is any text): lr-factor (times --lr), weight-decay, "
          "momentum, schedule (a --schedule in place of that of all, of the run's length or of schedule-steps), "
          "freeze-step (that step, counted from 0, and later ones leave them as they are); may be repeated, and of "
          "patterns that match one parameter the last one counts")
      .may_be_repeated();
  table.real("l1", s.trainer.l1, kNotNegative, "W", "weight of an L1 penalty: W times the sum of |w| of all weights");
  table.choice("schedule", s.schedule, all_of(kSchedules), "learning rate over time");
  const auto with_warmup = all_but("one-cycle", kSchedules);
  table
      .real("warmup-epochs", s.warmup_epochs, kNotNegative, "EPOCHS",
            "linear warm-up before the schedule (not one-cycle, which has its own)")
      .only_for("schedule", with_warmup);
  table.integer("warmup-steps", s.warmup_steps, {}, "the same in optimizer steps, in place of --warmup-epochs")
      .only_for("schedule", with_warmup);
  table
      .real("warmup-start-factor", s.warmup_start_factor, kUpToOne, "F",
            "share of --lr that the first step of the warm-up has; default 1 / (its steps + 1)")
      .only_for("schedule", with_warmup)
      .useless_without({"warmup-steps", "warmup-epochs"});
  table
      .real("final-lr-factor", s.final_lr_factor, kUpToOne, "F",
            "cosine, linear: share of --lr that the schedule leads to at the end of the run")
      .only_for("schedule", {"cosine", "linear"});
  table
      .integer("final-lr-steps", s.final_lr_steps, {},
               "cosine, linear: the schedule leads there so many steps before the end, and stays")
      .only_for("schedule", {"cosine", "linear"});
  table
      .integer("step-epochs", s.step_epochs, {1},
               fmt::format("step schedule: epochs between steps; default {}", kDefaultStepEpochs))
      .only_for("schedule", {"step"});
  table
      .real("step-factor", s.step_factor, {.least = 0.0, .most = 1.0, .above = true}, "F",
            fmt::format("step schedule: factor at each step; default {}", kDefaultStepFactor))
      .only_for("schedule", {"step"});
  table.real("clip-norm", s.trainer.clip_norm, kNotNegative, "NORM", "largest norm of the whole gradient; 0: no limit");
  table.real("label-smoothing", s.trainer.label_smoothing, kUpToOne, "S",
             "share of the target spread over all classes");
  table.parsed("early-stopping", s.trainer.early_stopping, "PATIENCE[,MIN_DELTA]", train::parse_early_stopping,
               "end the run after PATIENCE epochs that were no better by --best-by (by more than MIN_DELTA; of "
               "accuracy in percent); 0: never");
  table.real("ema", s.trainer.ema, kBelowOne, "DECAY",
             "evaluate and save a moving average of the weights in their place (0.999 is a common choice); 0: none");
  table
      .integer("ema-every", s.trainer.ema_options.every, {1, 1000000},
               "of --ema: move the average every N steps, by "
               "the decay of so many")
      .useless_with("ema", {"0.0"});
  table
      .flag("ema-warm-up", s.trainer.ema_options.warms_up,
            "of --ema: at first the average keeps less of itself, so that the first weights are soon forgotten; on by "
            "default")
      .useless_with("ema", {"0.0"});
  table.integer(
      "lookahead", s.trainer.lookahead.every, {},
      "every N steps, average the weights into slow ones and go on from these, with which the run also ends (5 "
      "is usual); 0: not");
  table
      .real("lookahead-decay", s.trainer.lookahead.decay, {.least = 0.0, .most = 1.0, .above = true, .below = true},
            "DECAY", "what slow weights keep of themselves for each step since they moved last, at the run's end")
      .useless_with("lookahead", {"0"});
  table
      .real("lookahead-power", s.trainer.lookahead.power, kNotNegative, "P",
            "--lookahead-decay counts by this power of the share of the run that is done; 0: all of it from the start")
      .useless_with("lookahead", {"0"});
  table.choice("tta", s.trainer.test_time_augmentation, all_of(train::test_time_augmentation_names()),
               "test-time augmentation: evaluate the mean of what the network says of each image and its mirror image "
               "(flip), or of these and windows moved by a pixel (six, where the middle counts twice; six-equal), at "
               "so many times "
               "the cost",
               train::parse_test_time_augmentation);
  table
      .real("tta-share", s.trainer.test_time_share, {.least = 0.0, .most = 1.0, .above = true}, "F",
            "of --tta: only this part of what a rank has of each batch, the least sure images; the others are looked "
            "at once")
      .useless_with("tta", {"none"});
  table.integer("seed", s.trainer.seed, {}, "decides weights, order, augmentation and dropout");
}

/// "none", "dynamic" or the text of a number that f32 can hold.
std::string read_loss_scale(const std::string& text) {
  if (text == "none" || text == "dynamic") return text;
  const double scale = parse_number<double>(text).value_or(0.0);
  require(scale >= 0x1p-126 && scale <= 0x1p126, "give dynamic, none or a number above 0");
  return text;
}

void describe_precision(OptionTable& table, Settings& s) {
  table.group("Precision");
  std::vector<std::string> names;
  for (const autograd::Precision precision : autograd::kPrecisions) names.emplace_back(name_of(precision));
  table.parsed("precision", s.precision, fmt::format("{}", fmt::join(names, "|")), autograd::parse_precision,
               "what to compute in; fp16 and bf16 keep batch norm, loss and sums in f32, tf32 and 3xtf32 are f32 "
               "with convolutions on a GPU's tensor cores");
  table
      .parsed("loss-scale", s.loss_scale, "SCALE", read_loss_scale,
              "factor that keeps small gradients from vanishing: dynamic (found as training goes), none or a number; "
              "default dynamic for fp16, else none")
      .only_for("precision", {"fp16", "bf16"}, {"none"});
  table
      .integer("max-skipped-steps", s.trainer.max_skipped_steps, {},
               "end the run where the loss scale skips N steps in a row, which no scale can cure then; 0: never")
      .only_for("precision", {"fp16", "bf16"});
  table
      .flag("master-weights", s.optimizer.master_weights,
            "fp16, bf16: f32 weights beside the half ones, to add small steps to")
      .only_for("precision", {"fp16", "bf16"});
}

}  // namespace

void describe_options(OptionTable& table, Settings& settings) {
  describe_data(table, settings);
  describe_model(table, settings);
  describe_training(table, settings);
  describe_precision(table, settings);
  describe_run_options(table, settings);
}

std::string shared_settings(const OptionTable& table) {
  std::string text;
  for (const Option& option : table.options()) {
    const auto value = option.get();
    if (value && !option.differs_by_rank) text += fmt::format("--{}={}\n", option.name, train::to_toml(*value));
  }
  return text;
}

}  // namespace tandem::apps
