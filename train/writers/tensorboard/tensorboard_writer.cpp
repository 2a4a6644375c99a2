// From values to records.
#include "tandem/train/writers/tensorboard/tensorboard_writer.h"

#include "tandem/core/error.h"
#include "tandem/data/encode_png.h"
#include "tandem/train/writers/tensorboard/hparams.h"
#include "tandem/train/writers/tensorboard/messages.h"

#include <chrono>
#include <filesystem>

namespace tandem::train {
namespace {

constexpr std::int64_t kMostWaiting = 64 << 10;  // bytes
constexpr double kLongestWait = 2.0;             // seconds

/// Since 1970.
double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

TensorBoardWriter::TensorBoardWriter(const std::string& folder, TensorBoardOptions options)
    : folder_(folder), options_(std::move(options)), file_(detail::EventFile::in(folder)), last_flush_(wall_time()) {
  file_.add(detail::file_version_event(last_flush_).encoded());
  file_.add(detail::session_start_event(last_flush_, options_.first_step).encoded());
  file_.flush();
}

TensorBoardWriter::~TensorBoardWriter() { flush(); }

void TensorBoardWriter::add_scalar(std::string_view tag, double value, std::int64_t step) {
  add_value(detail::scalar_value(tag, value), step);
}

void TensorBoardWriter::add_image(std::string_view tag, const Tensor& image, std::int64_t step,
                                  std::string_view title) {
  const std::vector<std::uint8_t> png = data::encode_png(image);
  add_png(tag, {reinterpret_cast<const char*>(png.data()), png.size()}, step, title);
}

void TensorBoardWriter::add_png(std::string_view tag, std::string_view png, std::int64_t step, std::string_view title) {
  add_value(detail::image_value(tag, png, title), step);
}

void TensorBoardWriter::add_histogram(std::string_view tag, const Tensor& values, std::int64_t step) {
  add_value(detail::histogram_value(tag, detail::histogram_of(values)), step);
}

void TensorBoardWriter::add_text(std::string_view tag, std::string_view markdown, std::int64_t step) {
  add_value(detail::text_value(tag, markdown), step);
}

void TensorBoardWriter::add_hparams(const Config& config, std::span<const std::string> metrics) {
  const double now = wall_time();
  hparams_.clear();
  const auto add = [&](const char* tag, const detail::WireMessage& content) {
    const detail::WireMessage event = detail::summary_event(now, 0, detail::plugin_value(tag, "hparams", content));
    hparams_.push_back(event.encoded());
    this->add(event);
  };
  add(detail::kExperimentTag, detail::experiment_info(now, config, metrics));
  add(detail::kSessionStartTag, detail::session_start_info(now, config));
}

void TensorBoardWriter::end_session(bool success) {
  const auto content = detail::session_end_info(wall_time(), success);
  add_value(detail::plugin_value(detail::kSessionEndTag, "hparams", content), 0);
}

void TensorBoardWriter::flush() {
  const std::int64_t records = file_.waiting_records();
  if (records == 0) return;
  last_flush_ = wall_time();
  try {
    if (file_.is_removed()) replace_removed();
    file_.flush();
  } catch (const Error& error) {
    file_.drop_waiting();
    const bool is_first = missing_ == 0;
    missing_ += records;
    if (!is_first) return;
    reason_ = error.what();
    if (options_.on_problem) options_.on_problem(reason_);
  }
}

void TensorBoardWriter::begin_again() {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  require(!error, "{}: was removed, and cannot be made again: {}", folder_, error.message());
  detail::EventFile file = detail::EventFile::in(folder_);
  file.add(detail::file_version_event(wall_time()).encoded());
  for (const std::string& event : hparams_) file.add(event);
  file.take_waiting(file_);
  file_ = std::move(file);
}

/// Goes on in a new file, and tells it.
void TensorBoardWriter::replace_removed() {
  const std::string removed = file_.path();
  begin_again();
  if (options_.on_problem)
    options_.on_problem(
        fmt::format("{}: was removed while the run wrote to it; {} has what comes from now on", removed, file_.path()));
}

std::string TensorBoardWriter::problem() const {
  if (missing_ == 0) return "";
  return fmt::format("{}; {} event{} missing", reason_, missing_, missing_ == 1 ? " is" : "s are");
}

void TensorBoardWriter::add(const detail::WireMessage& event) {
  file_.add(event.encoded());
  if (file_.waiting_bytes() >= kMostWaiting || wall_time() - last_flush_ >= kLongestWait) flush();
}

void TensorBoardWriter::add_value(const detail::WireMessage& value, std::int64_t step) {
  add(detail::summary_event(wall_time(), step, value));
}

}  // namespace tandem::train
