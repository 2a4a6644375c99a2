// Making it, and going on from it.
#include "run_directory.h"

#include "resumed_settings.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/ddp/hash.h"
#include "tandem/core/error.h"
#include "tandem/layers/file.h"
#include "tandem/train/evaluation_json.h"
#include "tandem/train/network_description.h"
#include "tandem/train/process_info.h"
#include "tandem/train/report/report.h"
#include "tandem/train/stderr_line.h"

#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace tandem::apps {

namespace fs = std::filesystem;

namespace {

/// Of a checkpoint: what the images that it was trained with are known by.
const std::string kImagesKey = "images.xxh3";

std::string hash_of(const data::ImageDataset& images) {
  return fmt::format("{:016x}{:016x}", comm::hash_tensor(images.images), comm::hash_tensor(images.labels));
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Settings with which a run began before it was resumed with others, or a file of the user's, get another name:
/// config-1.toml and so on.
void keep_other(const fs::path& path, const std::string& text) {
  std::error_code none;
  if (!fs::exists(fs::symlink_status(path, none)) || text_of(path) == text) return;
  for (int number = 1;; ++number) {
    const fs::path other = path.parent_path() / fmt::format("config-{}.toml", number);
    if (fs::exists(fs::symlink_status(other, none))) continue;
    std::error_code error;
    fs::rename(path, other, error);
    require(!error, "{}: cannot be renamed to {}: {}", path.string(), other.string(), error.message());
    return;
  }
}

std::string config_file(const Settings& s) { return (fs::path(s.run_dir) / "config.toml").string(); }

}  // namespace

train::CheckpointFolder checkpoint_folder(const Settings& s) {
  return train::CheckpointFolder(s.run_dir.empty() ? "" : (fs::path(s.run_dir) / "checkpoints").string());
}

std::string after_problem(const Settings& s) {
  return s.on_save_error == "stop" ? "training stops (--on-save-error stop)" : "training goes on";
}

train::CheckpointingOptions checkpointing_options(const Settings& s, const OptionTable& table,
                                                  const data::ImageDataset& images, std::string& differences) {
  layers::Metadata metadata = settings_metadata(table);
  metadata.merge(train::to_metadata(train::describe_network(s.model, images)));
  metadata["dataset"] = s.data.name;
  // A run that neither writes checkpoints nor reads one needs none.
  const bool has_checkpoints = !s.run_dir.empty() || !s.resume.empty();
  const std::string images_hash = has_checkpoints ? hash_of(images) : "";
  metadata[kImagesKey] = images_hash;
  for (const auto& [name, version] : train::build_versions()) metadata["version." + name] = version;
  return {.every = s.checkpoint_every,
          .keep = s.keep,
          .best_by = *s.best_by,
          .metadata = metadata,
          .after_problem = after_problem(s),
          .on_problem = [](const std::string& problem) { train::print_to_stderr(fmt::format("warning: {}", problem)); },
          .accept =
              [&table, &differences, images_hash](const layers::Metadata& found) {
                try {
                  differences = compare_settings(table, found);
                  const auto theirs = found.find(kImagesKey);
                  if (theirs != found.end() && theirs->second != images_hash)
                    differences += fmt::format("{}other training images", differences.empty() ? "" : ", ");
                } catch (const Error& error) {
                  fail("--resume: {}", error.what());
                }
              }};
}

void prepare_run_directory(const Settings& s) {
  require(!s.resume.empty() || checkpoint_folder(s).steps().empty(),
          "--run-dir {}: holds the checkpoints of a run: resume it by --resume auto, or name another folder",
          s.run_dir);
  try {
    const layers::AtomicFile probe(config_file(s));
  } catch (const Error& failure) {
    fail("--run-dir {}", failure.what());
  }
}

std::string checkpoint_problem(const Settings& s, const std::string& problem) {
  const train::CheckpointFolder folder = checkpoint_folder(s);
  const std::vector<std::int64_t> steps = folder.steps();
  if (steps.empty()) return fmt::format("{}; there is no checkpoint of this run", problem);
  return fmt::format(
      "{}; the newest checkpoint is {}: make room there, or the folder writable again, and go on from it by --resume "
      "auto --run-dir {}",
      problem, folder.path_of(steps.back()), s.run_dir);
}

void keep_config(const Settings& s, const std::string& config) {
  try {
    keep_other(config_file(s), config);
    layers::write_file(config_file(s), config);
  } catch (const Error& failure) {
    fail("--run-dir {}", failure.what());
  }
}

std::string write_evaluation(const Settings& s, const train::EvaluationReport& report,
                             const data::ImageDataset& tested) {
  try {
    train::write_evaluation((fs::path(s.run_dir) / "evaluation.json").string(), report, tested);
    return "";
  } catch (const Error& failure) {
    return fmt::format("--run-dir {}", failure.what());
  }
}

train::Resumed resume(const Settings& s, train::Checkpointing& checkpoints, const std::string& differences) {
  if (s.resume.empty()) return {};
  const bool is_auto = s.resume == "auto";
  const auto find = [&] {
    try {
      return checkpoints.resume(is_auto ? s.run_dir : s.resume);
    } catch (const comm::AgreedError& error) {
      std::string what = error.what();
      if (!what.starts_with("--resume")) what = "--resume " + what;
      if (!differences.empty()) what += "; settings of its run that are others now: " + differences;
      throw comm::AgreedError(what);
    }
  };
  train::Resumed resumed = find();
  if (!is_auto && resumed.path.empty())
    throw comm::AgreedError(
        fmt::format("--resume {}: there is no checkpoint in this folder, nor in its folder checkpoints; "
                    "name one of a run that wrote checkpoints",
                    s.resume));
  return resumed;
}

void note_resumed(const Settings& s, const train::Resumed& resumed, const std::string& differences) {
  if (s.resume.empty()) return;
  for (const std::string& problem : resumed.passed_over)
    train::print_to_stderr(fmt::format("note: passed over {}", problem));
  if (!differences.empty())
    train::print_to_stderr(
        fmt::format("note: some settings differ from those that the run began with: it had {}", differences));
  if (!resumed.path.empty() && !s.load_weights.empty())
    train::print_to_stderr(
        fmt::format("note: --load-weights {} is not read: the checkpoint has its weights", s.load_weights));
}

std::optional<train::ReportFiles> make_report(const Settings& s) {
  if (s.run_dir.empty()) return std::nullopt;
  try {
    return train::write_report(s.run_dir);
  } catch (const std::exception& failure) {
    train::print_to_stderr(fmt::format("warning: no report of this run: {}", failure.what()));
    return std::nullopt;
  }
}

}  // namespace tandem::apps
