// Option names, groups and help; defaults that depend on one another.
#include "settings.h"

#include "autograd/precision.h"
#include "core/device_query.h"
#include "core/error.h"
#include "core/parse_device.h"
#include "data/augment.h"
#include "data/load.h"
#include "kernels/conv/conv.h"
#include "layers/models/models.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <system_error>

namespace tandem::apps {
namespace {

constexpr std::int64_t kDefaultGlobalBatch = 128;

constexpr RealLimits kPositive{.least = 0.0, .above = true};
constexpr RealLimits kNotNegative{.least = 0.0};
constexpr RealLimits kBelowOne{.least = 0.0, .most = 1.0, .below = true};
constexpr RealLimits kUpToOne{.least = 0.0, .most = 1.0};

std::vector<std::string> all_but(std::string_view one, std::span<const std::string_view> names) {
  std::vector<std::string> others(names.begin(), names.end());
  std::erase(others, one);
  return others;
}

void describe_data(OptionTable& table, Settings& s) {
  table.group("Data");
  const auto names = data::dataset_names();
  table.choice("dataset", s.dataset, {names.begin(), names.end()}, "images to learn");
  table.path("data", s.data, "DIR", "folder of the data files; default datasets/DATASET, then the system's")
      .only_for("dataset", all_but("synthetic", names));
  table.integer("limit-train", s.limit_train, {}, "use the first N training images; 0: all");
  table.integer("limit-test", s.limit_test, {}, "use the first N test images; 0: all");
  table.parsed(
      "augment", s.augment, "LIST",
      [](const std::string& text) {
        require(!text.empty(), "give none for no changes");
        return data::to_string(data::parse_augment(text));
      },
      "random changes to training images, any of crop, crop-reflect (=4 pixels), flip, jitter (=0.2), rotate (=15 "
      "degrees), cutout (=8 pixels), joined by commas, or none; default crop,flip for CIFAR, else none");
}

void describe_model(OptionTable& table, Settings& s) {
  table.group("Model");
  const auto names = layers::model_names();
  table.choice("model", s.model, {names.begin(), names.end()}, "network");
  table.integer("layers", s.layers, {0, 1000}, "mnist_cnn: number of convolutions; 0: 4")
      .only_for("model", {"mnist_cnn"});
  table.flag("shared-weights", s.shared_weights, "mnist_cnn: all convolutions after the first share their weights")
      .only_for("model", {"mnist_cnn"});
  table.flag("batch-norm", s.batch_norm, "vgg_lite: batch norm after each convolution").only_for("model", {"vgg_lite"});
  table.real("dropout", s.dropout, kBelowOne, "P", "vgg_lite: probability to drop, after hidden linear layers")
      .only_for("model", {"vgg_lite"});
  table.choice("conv-impl", s.conv_impl,
               {"auto", "fused", "direct", "winograd", "onednn", "cudnn", "warpgroup", "reference"},
               "code that convolves (auto: cuDNN on a GPU where it is there, else our own or oneDNN)");
  table.choice("gemm-impl", s.gemm_impl, {"auto", "fused", "cublas"},
               "code that multiplies matrices (auto: cuBLAS on a GPU where it is there, else our own)");
  table
      .flag("autotune", s.autotune,
            "measure at first use which code convolves each shape fastest; results then differ in their last digits")
      .only_for("conv-impl", {"auto"});
  table
      .path("tuning-file", s.tuning_file, "FILE",
            "convolve by what --autotune measured before, kept in FILE; with --autotune, add to it")
      .only_for("conv-impl", {"auto"});
  table.path("load-weights", s.load_weights, "FILE", "start from these weights (safetensors)");
  table.path("save-weights", s.save_weights, "FILE", "write the weights at the end (safetensors)");
}

void describe_training(OptionTable& table, Settings& s) {
  table.group("Training");
  table.integer("epochs", s.epochs, {0, 1000000}, "passes over the training images; 0: only evaluate");
  table.integer("global-batch-size", s.global_batch_size, {1},
                "images per optimizer step, over all ranks and micro-batches; default 128, or the next "
                "multiple of their number");
  table.integer("batch-size", s.batch_size, {1}, "images per rank and micro-batch, instead of --global-batch-size");
  table.integer("grad-accumulation", s.grad_accumulation, {1, 1000000}, "micro-batches per optimizer step");
  table.flag("drop-last", s.drop_last, "leave an epoch's last batch out where the images do not fill it");
  table.choice("optimizer", s.optimizer, {"sgd", "adam", "adamw", "rmsprop"}, "update rule");
  table.real("lr", s.lr, kPositive, "RATE",
             "learning rate, the highest of the schedule; default by optimizer: sgd 0.1, others 0.001");
  table.real("momentum", s.momentum, kBelowOne, "M", "sgd, rmsprop: momentum; default sgd 0.9, rmsprop 0")
      .only_for("optimizer", {"sgd", "rmsprop"});
  table.flag("nesterov", s.nesterov, "sgd: Nesterov's momentum; default where there is momentum")
      .only_for("optimizer", {"sgd"}, {"false"});
  table.real("weight-decay", s.weight_decay, kNotNegative, "W",
             "default by optimizer: sgd 0.0005, adamw 0.01, others 0");
  table.choice("schedule", s.schedule, {"one-cycle", "cosine", "step", "constant"}, "learning rate over time");
  table
      .real("warmup-epochs", s.warmup_epochs, kNotNegative, "EPOCHS",
            "linear warm-up before the schedule (not one-cycle, which has its own)")
      .only_for("schedule", {"cosine", "step", "constant"});
  table.integer("step-epochs", s.step_epochs, {1}, "step schedule: epochs between steps; default 10")
      .only_for("schedule", {"step"});
  table
      .real("step-factor", s.step_factor, {.least = 0.0, .most = 1.0, .above = true}, "F",
            "step schedule: factor at each step; default 0.1")
      .only_for("schedule", {"step"});
  table.real("clip-norm", s.clip_norm, kNotNegative, "NORM", "largest norm of the whole gradient; 0: no limit");
  table.real("label-smoothing", s.label_smoothing, kUpToOne, "S", "share of the target spread over all classes");
  table.integer("seed", s.seed, {}, "decides weights, order, augmentation and dropout");
}

/// "none", "dynamic" or the text of a number that f32 can hold.
std::string read_loss_scale(const std::string& text) {
  if (text == "none" || text == "dynamic") return text;
  double scale = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), scale);
  const bool number = error == std::errc{} && end == text.data() + text.size();
  require(number && scale >= 0x1p-126 && scale <= 0x1p126, "give dynamic, none or a number above 0");
  return text;
}

void describe_precision(OptionTable& table, Settings& s) {
  table.group("Precision");
  table.parsed(
      "precision", s.precision, "fp32|3xtf32|tf32|fp16|bf16",
      [](const std::string& text) { return std::string(name_of(autograd::parse_precision(text))); },
      "what to compute in; fp16 and bf16 keep batch norm, loss and sums in f32, tf32 and 3xtf32 are f32 "
      "with convolutions on a GPU's tensor cores");
  table
      .parsed("loss-scale", s.loss_scale, "SCALE", read_loss_scale,
              "factor that keeps small gradients from vanishing: dynamic (found as training goes), none or a number; "
              "default dynamic for fp16, else none")
      .only_for("precision", {"fp16", "bf16"}, {"none"});
  table.flag("master-weights", s.master_weights, "fp16, bf16: f32 weights beside the half ones, to add small steps to")
      .only_for("precision", {"fp16", "bf16"});
}

void describe_ranks(OptionTable& table, Settings& s) {
  table.group("Ranks and devices");
  table.choice("backend", s.backend, {"auto", "self", "mpi", "ring", "nccl"},
               "how ranks exchange gradients (auto: nccl between GPUs, else ring)");
  table.real("bucket-mb", s.bucket_mb, {.least = 0.0, .most = 65536.0, .above = true}, "MIB",
             "size of the pieces gradients are exchanged in (the first one: at most 1)");
  table
      .choice("allreduce-dtype", s.allreduce_dtype, {"auto", "fp32", "half"},
              "what gradients of half weights are exchanged in (auto: fp32)")
      .only_for("precision", {"fp16", "bf16"}, {"fp32"});
  table.flag("check-replicas", s.check_replicas, "after each epoch, check that all ranks hold the same weights");
  table.parsed(
      "device", s.device, "DEVICE",
      [](const std::string& text) {
        read_device(text);  // whether it is there is asked later, by every rank for itself
        return text;
      },
      "where to compute: auto (a GPU where there is one), cpu, cuda (ranks share out the GPUs of a host) or cuda:N");
  table.integer("threads", s.threads, {0, 4096}, "threads per rank; 0: OMP_NUM_THREADS, or a fair share of the cores");
}

void describe_output(OptionTable& table, Settings& s) {
  table.group("Output");
  table.path("log", s.log, "FILE",
             "write run, epoch and result records there (JSON lines), after those of the runs before");
  table.integer("log-every", s.log_every, {}, "also log the loss of every N-th step; 0: none");
  table.choice("progress", s.progress, {"auto", "bar", "plain", "none"}, "progress on standard error");
}

/// Half precision's own options: their defaults.
void resolve_precision(Settings& s) {
  const bool half = autograd::is_half(storage_dtype(autograd::parse_precision(*s.precision)));
  require(!half || s.conv_impl != "onednn", "--conv-impl onednn computes in f32 only, not in --precision {}",
          *s.precision);
  if (!s.loss_scale) s.loss_scale = *s.precision == "fp16" ? "dynamic" : "none";
  if (s.allreduce_dtype == "auto") s.allreduce_dtype = "fp32";
}

void require_two_files(std::string_view first, const std::string& a, std::string_view second, const std::string& b) {
  if (a.empty() || b.empty()) return;
  const auto place_of = [](const std::string& path) {
    std::error_code unknown;
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, unknown), unknown);
  };
  require(place_of(a) != place_of(b), "{} and {} are both {}: name two files", first, second, a);
}

/// What is written must not replace what else is written.
void require_different_files(const Settings& s) {
  require_two_files("--log", s.log, "--save-weights", s.save_weights);
  require_two_files("--log", s.log, "--tuning-file", s.tuning_file);
  require_two_files("--save-weights", s.save_weights, "--tuning-file", s.tuning_file);
}

bool is_cifar(const std::string& dataset) { return dataset == "cifar10" || dataset == "cifar100"; }

}  // namespace

void describe_options(OptionTable& table, Settings& settings) {
  describe_data(table, settings);
  describe_model(table, settings);
  describe_training(table, settings);
  describe_precision(table, settings);
  describe_ranks(table, settings);
  describe_output(table, settings);
}

void resolve(Settings& s, std::int64_t ranks) {
  if (!s.augment) s.augment = is_cifar(s.dataset) ? data::to_string(data::parse_augment("crop,flip")) : "none";
  if (!s.lr) s.lr = s.optimizer == "sgd" ? 0.1 : 0.001;
  if (!s.momentum && s.optimizer == "sgd") s.momentum = 0.9;
  if (!s.momentum && s.optimizer == "rmsprop") s.momentum = 0.0;
  if (!s.nesterov) s.nesterov = s.optimizer == "sgd" && *s.momentum > 0.0;
  if (!s.step_epochs && s.schedule == "step") s.step_epochs = 10;
  if (!s.step_factor && s.schedule == "step") s.step_factor = 0.1;
  if (!s.weight_decay) s.weight_decay = s.optimizer == "sgd" ? 5e-4 : s.optimizer == "adamw" ? 0.01 : 0.0;
  if (!s.batch_size && !s.global_batch_size) {
    const std::int64_t parts = ranks * s.grad_accumulation;
    s.global_batch_size = (kDefaultGlobalBatch + parts - 1) / parts * parts;
  }
  resolve_precision(s);
  require_different_files(s);
  require(s.log_every == 0 || !s.log.empty(), "--log-every {} needs a --log FILE to write to", s.log_every);
  require(!*s.nesterov || *s.momentum > 0.0, "--nesterov needs a --momentum above 0");
  require(s.epochs == 0 || s.warmup_epochs < static_cast<double>(s.epochs),
          "--warmup-epochs {}: must be less than --epochs {}", s.warmup_epochs, s.epochs);
}

void check(const Settings& s, std::int64_t ranks) {
  micro_batch_size(s, ranks);
  std::error_code unknown;
  require(s.autotune || s.tuning_file.empty() || std::filesystem::exists(s.tuning_file, unknown),
          "--tuning-file {}: no such file; --autotune makes one", s.tuning_file);
}

kernels::Implementations implementations(const Settings& s) {
  return {.conv = kernels::parse_conv_impl(s.conv_impl), .gemm = kernels::parse_gemm_impl(s.gemm_impl)};
}

bool names_device(const Settings& s) { return s.device->find(':') != std::string::npos; }

Device choose_device(const Settings& s, int local_rank) {
  try {
    Device device = parse_device(*s.device);
    if (device.type == DeviceType::cuda && !names_device(s)) device.index = local_rank % cuda_device_count();
    return device;
  } catch (const Error& error) {
    std::string_view what = error.what();
    if (what.starts_with("device ")) what.remove_prefix(what.find(": ") + 2);  // --device says which
    fail("--device {}: {}", *s.device, what);
  }
}

std::int64_t micro_batch_size(const Settings& s, std::int64_t ranks) {
  if (s.batch_size) return *s.batch_size;
  const std::int64_t parts = ranks * s.grad_accumulation;
  require(*s.global_batch_size % parts == 0,
          "--global-batch-size {}: cannot be shared evenly by {} rank{}{}; choose a multiple of {}, or --batch-size "
          "per rank",
          *s.global_batch_size, ranks, ranks == 1 ? "" : "s",
          s.grad_accumulation == 1 ? "" : fmt::format(" x {} micro-batches", s.grad_accumulation), parts);
  return *s.global_batch_size / parts;
}

std::int64_t global_batch_size(const Settings& s, std::int64_t ranks) {
  return micro_batch_size(s, ranks) * ranks * s.grad_accumulation;
}

std::string shared_settings(const OptionTable& table) {
  constexpr std::array kOwnToARank{"data", "load-weights", "save-weights", "threads", "log", "progress"};
  std::string text;
  for (const auto& [name, value] : table.config()) {
    if (std::find(kOwnToARank.begin(), kOwnToARank.end(), name) != kOwnToARank.end()) continue;
    text += fmt::format("--{}={}\n", name, train::to_toml(value));
  }
  return text;
}

}  // namespace tandem::apps
