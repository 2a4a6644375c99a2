// Numbers of fields, as the .proto files have them.
#include "tandem/train/writers/tensorboard/messages.h"

#include "tandem/core/error.h"

namespace tandem::train::detail {
namespace {

namespace event {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
}
namespace session_log {
constexpr int kStatus = 1, kStart = 1;
}
namespace summary {
constexpr int kValue = 1;
}
namespace value {
constexpr int kTag = 1, kSimpleValue = 2, kImage = 4, kHistogram = 5, kTensor = 8, kMetadata = 9;
}
namespace metadata {
constexpr int kPluginData = 1, kDisplayName = 2;
}
namespace plugin_data {
constexpr int kName = 1, kContent = 2;
}
namespace image {
constexpr int kHeight = 1, kWidth = 2, kColorspace = 3, kEncoded = 4;
}
namespace histogram_proto {
constexpr int kMin = 1, kMax = 2, kCount = 3, kSum = 4, kSumOfSquares = 5, kLimits = 6, kCounts = 7;
}
namespace tensor {
constexpr int kDtype = 1, kShape = 2, kFloats = 5, kStrings = 8, kIsFloat = 1, kIsString = 7;
}

WireMessage plugin_metadata(std::string_view name, std::string_view content = {}) {
  WireMessage data, result;
  data.text(plugin_data::kName, name).bytes(plugin_data::kContent, content);
  result.message(metadata::kPluginData, data);
  return result;
}

/// A big-endian number of a PNG file's header.
std::int64_t number_at(std::string_view png, std::size_t offset) {
  std::int64_t number = 0;
  for (const char byte : png.substr(offset, 4)) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

}  // namespace

WireMessage event_at(double wall_time, std::int64_t step) {
  WireMessage message;
  message.real64(event::kWallTime, wall_time).integer(event::kStep, step);
  return message;
}

WireMessage file_version_event(double wall_time) {
  return event_at(wall_time, 0).text(event::kFileVersion, "brain.Event:2");
}

WireMessage session_start_event(double wall_time, std::int64_t step) {
  WireMessage session;
  session.integer(session_log::kStatus, session_log::kStart);
  return event_at(wall_time, step).message(event::kSessionLog, session);
}

WireMessage summary_event(double wall_time, std::int64_t step, const WireMessage& value) {
  WireMessage values;
  values.message(summary::kValue, value);
  return event_at(wall_time, step).message(event::kSummary, values);
}

WireMessage scalar_value(std::string_view tag, double number) {
  WireMessage message;
  message.text(value::kTag, tag).real32(value::kSimpleValue, static_cast<float>(number));
  return message;
}

WireMessage histogram_value(std::string_view tag, const Histogram& histogram) {
  namespace field = histogram_proto;
  WireMessage content, message;
  content.real64(field::kMin, histogram.min).real64(field::kMax, histogram.max).real64(field::kCount, histogram.count);
  content.real64(field::kSum, histogram.sum).real64(field::kSumOfSquares, histogram.sum_of_squares);
  content.reals64(field::kLimits, histogram.limits).reals64(field::kCounts, histogram.counts);
  message.text(value::kTag, tag).message(value::kHistogram, content);
  return message;
}

WireMessage text_value(std::string_view tag, std::string_view markdown) {
  WireMessage content, message;
  content.integer(tensor::kDtype, tensor::kIsString).message(tensor::kShape, {}).text(tensor::kStrings, markdown);
  message.text(value::kTag, tag).message(value::kTensor, content).message(value::kMetadata, plugin_metadata("text"));
  return message;
}

WireMessage image_value(std::string_view tag, std::string_view png, std::string_view title) {
  constexpr std::size_t kHeader = 26;  // up to the kind of colours
  require(png.size() >= kHeader && png.starts_with("\x89PNG\r\n\x1a\n") && png.substr(12, 4) == "IHDR",
          "image '{}': is no PNG file", tag);
  constexpr int kRgb = 3, kRgba = 4, kGrey = 1, kGreyAlpha = 2;
  const int kind = static_cast<unsigned char>(png[25]);  // bit 1: colours; bit 2: alpha
  const int channels = (kind & 2) != 0 ? ((kind & 4) != 0 ? kRgba : kRgb) : ((kind & 4) != 0 ? kGreyAlpha : kGrey);
  WireMessage content, message, shown = plugin_metadata("images");
  content.integer(image::kHeight, number_at(png, 20)).integer(image::kWidth, number_at(png, 16));
  content.integer(image::kColorspace, channels).bytes(image::kEncoded, png);
  message.text(value::kTag, tag).message(value::kImage, content);
  if (!title.empty()) shown.text(metadata::kDisplayName, title);
  message.message(value::kMetadata, shown);
  return message;
}

WireMessage plugin_value(std::string_view tag, std::string_view plugin, const WireMessage& content) {
  WireMessage nothing, message;
  const float zero = 0.0f;  // a value without a tensor is none to some readers
  nothing.integer(tensor::kDtype, tensor::kIsFloat).message(tensor::kShape, {}).real32(tensor::kFloats, zero);
  message.text(value::kTag, tag).message(value::kTensor, nothing);
  message.message(value::kMetadata, plugin_metadata(plugin, content.encoded()));
  return message;
}

}  // namespace tandem::train::detail
