// What the files of a run directory say, as far as they can be read.
#pragma once

#include "tandem/train/plot/heat_map.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::train::report {

inline constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

/// Names and values for people, in the order of the file.
using TextTable = std::vector<std::pair<std::string, std::string>>;
using NumberTable = std::vector<std::pair<std::string, double>>;

/// kMissing where the name is not there.
inline double figure_in(const NumberTable& table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &NumberTable::value_type::first);
  return found == table.end() ? kMissing : found->second;
}

/// Norms of a layer's parameters at one step.
struct Layer {
  std::string name;
  double gradient_norm = kMissing, update_norm = kMissing, weight_norm = kMissing;
};

/// How many of a ReLU's channels gave 0 for every image that was evaluated.
struct Relu {
  std::string name;
  double channels = kMissing, dead = kMissing;
  double percent_dead() const { return 100.0 * dead / channels; }
};

/// An epoch record of log.jsonl; what it lacks, or has as null, is kMissing. Accuracies in percent. A test that was
/// done once, at the end, is in the record of the result: it is that of the last epoch here.
struct Epoch {
  std::int64_t epoch = 0;
  double lr = kMissing;
  double train_loss = kMissing, train_accuracy = kMissing;
  double validation_loss = kMissing, validation_accuracy = kMissing;
  double test_loss = kMissing, test_accuracy = kMissing;
  double seconds = kMissing, images_per_second = kMissing;
  double peak_memory_bytes = kMissing, skipped_steps = kMissing, loss_scale = kMissing;
  NumberTable time;           ///< seconds by what they went to
  NumberTable memory;         ///< bytes by kind
  NumberTable exchange;       ///< of gradients: steps, bytes, seconds, waited_seconds; or empty
  std::vector<Layer> layers;  ///< at the epoch's last step; or empty
  std::vector<Relu> relus;    ///< in the evaluation behind it; or empty
};

/// Its figures by their names in the log.
inline constexpr std::pair<const char*, double Epoch::*> kEpochFields[] = {
    {"lr", &Epoch::lr},
    {"train_loss", &Epoch::train_loss},
    {"train_accuracy", &Epoch::train_accuracy},
    {"validation_loss", &Epoch::validation_loss},
    {"validation_accuracy", &Epoch::validation_accuracy},
    {"test_loss", &Epoch::test_loss},
    {"test_accuracy", &Epoch::test_accuracy},
    {"seconds", &Epoch::seconds},
    {"images_per_second", &Epoch::images_per_second},
    {"peak_memory_bytes", &Epoch::peak_memory_bytes},
    {"skipped_steps", &Epoch::skipped_steps},
    {"loss_scale", &Epoch::loss_scale}};

struct Step {
  double step = 0.0, lr = kMissing, loss = kMissing;
};

struct Calibration {
  struct Bin {
    double from = 0.0, to = 0.0, images = 0.0, confidence = kMissing, accuracy = kMissing;  // fractions
  };
  double ece = kMissing;
  std::vector<Bin> bins;
};

struct WorstImage {
  std::int64_t index = 0;
  std::string label, predicted;  ///< names of classes
  double confidence = kMissing, loss = kMissing;
  std::string png;  ///< base64, checked; or empty
};

/// evaluation.json
struct Evaluation {
  std::string split;
  double epoch = kMissing, images = kMissing, loss = kMissing, accuracy = kMissing;
  std::vector<std::string> classes;
  std::vector<std::vector<std::int64_t>> confusion;  ///< [label][prediction]; or empty
  NumberTable per_class;                             ///< accuracy in percent
  Calibration calibration;
  std::vector<WorstImage> worst;
};

/// profile.json: some steps of rank 0.
struct Profile {
  struct Op {
    std::string name;
    double calls = kMissing, seconds = kMissing, flops = kMissing, bytes = kMissing;  ///< of all steps
  };
  struct Storage {
    double bytes = kMissing;
    std::string kind, made_in, name;
  };
  double steps = kMissing, seconds = kMissing;                      ///< of all ranges
  double flops_per_second = kMissing, bytes_per_second = kMissing;  ///< what the machine can do, where that is known
  std::string device_times_from;                                    ///< on a GPU: who told its times
  std::vector<Op> ops;                                              ///< the most time first
  std::vector<Op> kernels;                                          ///< and copies of a GPU, where they were told
  std::vector<double> memory_seconds;                               ///< when memory was looked at
  std::vector<std::pair<std::string, std::vector<double>>> memory;  ///< bytes by kind, one for each of these times
  double peak_bytes = kMissing;
  std::vector<Storage> largest_at_peak;
};

/// What the run's result predicts of more ranks, each on a host of its own.
struct PredictedScaling {
  struct Ranks {
    double ranks = kMissing, exchange_seconds = kMissing, waited_seconds = kMissing, speed_up = kMissing;
  };
  double step_seconds = kMissing, window_seconds = kMissing, latency_seconds = kMissing, bytes_per_second = kMissing;
  bool usual_costs = true;  ///< of messages: none were measured
  bool simulated = false;   ///< of a network that was simulated
  std::vector<Ranks> of;    ///< by number of ranks
};

enum class RunState : std::uint8_t {
  finished,    ///< the log has its result
  unfinished,  ///< it has none: the run goes on, was stopped or was killed
  diverged,    ///< it ended with a loss that is no finite number
  not_begun    ///< there is no record of an epoch
};

struct RunData {
  std::string folder;  ///< as it was named
  std::string name;    ///< its last part
  RunState state = RunState::not_begun;
  std::string model, dataset, started, host, device, backend;
  double ranks = kMissing, threads = kMissing, parameters = kMissing, train_images = kMissing, test_images = kMissing;
  double validation_images = kMissing;
  double global_batch_size = kMissing, steps_per_epoch = kMissing, planned_epochs = kMissing;
  double total_seconds = kMissing;
  bool stopped_early = false;               ///< by --early-stopping
  std::string best_by;                      ///< what epochs are held against each other by; or empty
  std::int64_t best_epoch = -1;             ///< by that; below 0: not known
  std::int64_t sessions = 0;                ///< how often it was begun or gone on with
  bool is_whole = true;                     ///< the log holds it from its first step on
  TextTable config;                         ///< of the last session
  std::vector<std::string> without_effect;  ///< names in `config` of what does not affect the result
  TextTable versions;
  TextTable environment;      ///< of environment.json, in words
  std::string command_line;   ///< of a rank, for a shell
  std::string launcher;       ///< of the ranks, "mpirun"; empty: not known, or none
  std::string config_text;    ///< of config.toml, where there is no log yet
  std::vector<Epoch> epochs;  ///< by number, each once: as it was done last
  std::vector<Step> steps;
  NumberTable peak_tensor_bytes;
  std::optional<Evaluation> evaluation;
  std::optional<Profile> profile;
  std::optional<PredictedScaling> scaling;
  std::optional<plot::PixelGrid> filters;  ///< of the first convolution
  std::string filters_name;
  std::vector<std::string> problems;  ///< what could not be read: file, place, reason
  /// Where it diverged: Divergence of records.h; step 0: the log does not tell.
  std::int64_t diverged_at_step = 0, skipped_in_a_row = 0;
};

/// Why a folder holds no run: "is no folder of a run", or that the files of one are missing; "" where it holds one.
/// Throws Error where that cannot be seen.
std::string reason_of_no_run(const std::string& folder);

/// Reads a run directory, of which all but log.jsonl or config.toml may be missing. Damaged lines and files are passed
/// over and named in `problems`. Throws Error where `folder` is no run directory.
RunData read_run(const std::string& folder);

/// How long it took: from the start of the process to its end; of a run that was gone on with, or that has no result,
/// the sum over its epochs. kMissing where the log does not tell.
double seconds_of(const RunData& run);

/// "the loss of step 41 is not a finite number.": a clause, of a run that diverged.
std::string reason_of_divergence(const RunData& run);

/// Value of a setting, or "".
std::string setting(const RunData& run, const std::string& name);

/// Accuracy and loss on images that were not trained on: of the validation split where there is one, else of the test.
struct HeldOut {
  std::string name;  ///< "validation" or "test"
  std::vector<double> epochs, loss, accuracy;
};
HeldOut held_out(const RunData& run);

/// One figure of all epochs.
std::vector<double> column(const std::vector<Epoch>& epochs, double Epoch::* figure);
std::vector<double> numbers_of(const std::vector<Epoch>& epochs);
bool has_any(const std::vector<double>& values);

}  // namespace tandem::train::report
