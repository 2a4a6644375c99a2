// A report as JSON.
#include "tandem/train/evaluation_json.h"

#include "tandem/core/error.h"
#include "tandem/data/encode_png.h"
#include "tandem/layers/file.h"

#include <nlohmann/json.hpp>

#include <string_view>

namespace tandem::train {
namespace {

using Json = nlohmann::ordered_json;

/// RFC 4648, with padding.
std::string base64(const std::vector<std::uint8_t>& bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k) word = word << 8 | (k < count ? bytes[i + k] : 0u);
    for (std::size_t k = 0; k < 4; ++k) text += k <= count ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

Json worst_of(const EvaluationReport& report, const data::ImageDataset& images) {
  const bool has_pictures = data::can_encode_png() && (images.channels() == 1 || images.channels() == 3);
  Json worst = Json::array();
  for (const Misclassified& image : report.worst) {
    Json entry = {{"index", image.index},
                  {"label", image.label},
                  {"predicted", image.predicted},
                  {"confidence", image.confidence},
                  {"loss", image.loss}};
    if (has_pictures) entry["png"] = base64(data::encode_png(images.images.select(0, image.index)));
    worst.push_back(entry);
  }
  return worst;
}

}  // namespace

std::string evaluation_json(const EvaluationReport& report, const data::ImageDataset& images) {
  require(report.classes == images.classes(), "evaluation: the report is of {} classes, data set '{}' has {}",
          report.classes, images.name, images.classes());
  Json json = {{"split", report.split}, {"epoch", report.epoch},       {"images", report.images},
               {"loss", report.loss},   {"accuracy", report.accuracy}, {"classes", images.class_names}};
  for (std::int64_t label = 0; label < report.classes; ++label) {
    Json row = Json::array();
    for (std::int64_t other = 0; other < report.classes; ++other) row.push_back(report.confused(label, other));
    json["confusion"].push_back(row);
    json["per_class"].push_back({{"class", images.class_names[static_cast<std::size_t>(label)]},
                                 {"images", report.class_images[static_cast<std::size_t>(label)]},
                                 {"accuracy", report.class_accuracy(label)}});
  }
  Json bins = Json::array();
  for (const ConfidenceBin& bin : report.bins) {
    bins.push_back({{"from", bin.from},
                    {"to", bin.to},
                    {"images", bin.images},
                    {"confidence", bin.confidence},
                    {"accuracy", bin.accuracy()}});
  }
  json["calibration"] = {{"ece", report.ece}, {"bins", bins}};
  json["worst"] = worst_of(report, images);
  // Names of classes may come from any file, with bytes that are no UTF-8.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_evaluation(const std::string& path, const EvaluationReport& report, const data::ImageDataset& images) {
  layers::write_file(path, evaluation_json(report, images));
}

}  // namespace tandem::train
