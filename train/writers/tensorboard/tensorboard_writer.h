// TensorBoardWriter: event files that `tensorboard --logdir` shows.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/train/config_value.h"
#include "tandem/train/writers/tensorboard/event_file.h"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::train::detail {
class WireMessage;
}

namespace tandem::train {

/// How a file of events begins, and who is told of what goes wrong.
struct TensorBoardOptions {
  /// The first step that will be written. Readers forget what earlier files in the folder hold of it and of later
  /// steps: those of a run that was killed, and has gone on from a checkpoint.
  std::int64_t first_step = 0;
  /// Told once, when something could not be written, and when the file was removed under way.
  std::function<void(const std::string&)> on_problem = {};
};

/// Writes one new event file, events.out.tfevents.SECONDS.HOST.PROCESS, into a run's folder: one writer to a run, and
/// the runs beside each other in one folder, `tensorboard --logdir` of which compares them. Tags with a common part in
/// front of a '/' are shown together. Texts that are no UTF-8 have U+FFFD in place of what is none.
///
/// What is added is written by flush(), by the destructor, and when 64 KiB or two seconds have come together. A file
/// that cannot be written any more, as on a full disk, ends nothing: the events that did not fit are lost, problem()
/// says so, and later ones are written if they can be. Where the file was removed, later events go into a new one, in a
/// folder that is made again if need be. Use it from one thread.
/// Example:
///     #include <filesystem>
///     const std::string folder = (std::filesystem::temp_directory_path() / "runs_first").string();
///     std::filesystem::create_directory(folder);
///     TensorBoardWriter writer(folder);
///     writer.add_hparams({{"lr", 0.1}, {"optimizer", "sgd"}}, std::vector<std::string>{"loss/test"});
///     for (int step = 1; step <= 3; ++step) writer.add_scalar("loss/train", 1.0 / step, step);
///     writer.add_histogram("weights/conv1", Tensor::zeros({8, 3, 3, 3}), 3);
///     writer.add_text("notes", "trained on *Monday*", 3);
///     writer.flush();
///     const std::string lost = writer.problem();  // ""
///     std::filesystem::remove_all(folder);
class TensorBoardWriter {
 public:
  /// Throws Error where no file can be made in `folder`, which must be there.
  explicit TensorBoardWriter(const std::string& folder, TensorBoardOptions options = {});
  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter&) = delete;
  TensorBoardWriter& operator=(const TensorBoardWriter&) = delete;

  /// One point of a curve; NaN and infinities, too. Kept as a float.
  void add_scalar(std::string_view tag, double value, std::int64_t step);

  /// An image u8 [C,H,W] with 1 or 3 channels. `title` is shown in place of the tag. Throws Error for any other tensor,
  /// and in a build without libpng.
  void add_image(std::string_view tag, const Tensor& image, std::int64_t step, std::string_view title = {});
  /// The same of a PNG file's bytes. Throws Error for bytes that do not begin as one.
  void add_png(std::string_view tag, std::string_view png, std::int64_t step, std::string_view title = {});

  /// How the values of a tensor are distributed, over 64 bins of one width. What is not finite is left out.
  void add_histogram(std::string_view tag, const Tensor& values, std::int64_t step);

  /// Markdown.
  void add_text(std::string_view tag, std::string_view markdown, std::int64_t step);

  /// What the run was told, and the tags of scalars that are its results: the tab HPARAMS compares runs by these.
  void add_hparams(const Config& config, std::span<const std::string> metrics);
  /// Marks a run with add_hparams() as ended. One that will go on later has not.
  void end_session(bool success);

  /// Writes what waits in memory. What cannot be written, problem() tells.
  void flush();

  /// Goes on in a new file, whose folder is made where it is missing, with what waits and what add_hparams() wrote.
  /// Throws Error. flush() does this itself where the file was removed, and tells it.
  void begin_again();

  /// "" where all that was to be written is in the file; else how many events are missing, and why the first one is.
  std::string problem() const;

  /// Of the file.
  const std::string& path() const { return file_.path(); }

 private:
  void add(const detail::WireMessage& event);
  void add_value(const detail::WireMessage& value, std::int64_t step);
  void replace_removed();

  std::string folder_;
  TensorBoardOptions options_;
  detail::EventFile file_;
  std::vector<std::string> hparams_;  // events
  double last_flush_ = 0.0;           // wall time
  std::int64_t missing_ = 0;
  std::string reason_;  // of the first one
};

}  // namespace tandem::train
