// Nothing of the file goes into a page unchecked.
#include "tandem/train/report/read_evaluation.h"

#include "tandem/core/error.h"
#include "tandem/train/report/json_fields.h"

#include <algorithm>
#include <string_view>

namespace tandem::train::report {
namespace {

constexpr std::int64_t kMostBytes = 32 << 20;
constexpr std::size_t kMostClasses = 4000;

/// Of the eight bytes that a PNG file begins with.
constexpr std::string_view kPngBeginning = "iVBORw0KGg";
constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";

bool is_png(const std::string& base64) {
  return base64.starts_with(kPngBeginning) && base64.find_first_not_of(kBase64) == std::string::npos;
}

/// An array's elements; none where there is no such array.
const Json& elements(const Json& json, const char* name) {
  static const Json kNone = Json::array();
  const Json* const field = find_field(json, name);
  return field != nullptr && field->is_array() ? *field : kNone;
}

std::vector<std::string> read_classes(const Json& json, const std::string& path) {
  std::vector<std::string> classes;
  for (const Json& name : elements(json, "classes")) classes.push_back(text_of(name));
  require(classes.size() <= kMostClasses, "{}: {} classes are more than {}", path, classes.size(), kMostClasses);
  return classes;
}

std::vector<std::vector<std::int64_t>> read_confusion(const Json& json, std::size_t classes, const std::string& path) {
  std::vector<std::vector<std::int64_t>> counts;
  for (const Json& row : elements(json, "confusion")) {
    std::vector<std::int64_t>& to = counts.emplace_back();
    if (!row.is_array()) continue;
    for (const Json& count : row) to.push_back(count.is_number_integer() ? count.get<std::int64_t>() : -1);
  }
  if (counts.empty()) return counts;
  require(counts.size() == classes, "{}: confusion: {} rows for {} classes", path, counts.size(), classes);
  for (std::size_t row = 0; row < counts.size(); ++row) {
    require(counts[row].size() == classes && std::ranges::min(counts[row]) >= 0,
            "{}: confusion: row {} is not of {} counts", path, row, classes);
  }
  return counts;
}

Calibration read_calibration(const Json& json) {
  Calibration calibration;
  calibration.ece = number_field(json, "ece");
  for (const Json& bin : elements(json, "bins")) {
    calibration.bins.push_back({number_field(bin, "from"), number_field(bin, "to"), number_field(bin, "images"),
                                number_field(bin, "confidence"), number_field(bin, "accuracy")});
  }
  return calibration;
}

/// A class by its name, or by its number.
std::string class_name(const Json& json, const char* field, const std::vector<std::string>& classes) {
  const std::int64_t number = whole_field(json, field);
  if (number < 0) return text_field(json, field);
  const auto index = static_cast<std::size_t>(number);
  return index < classes.size() ? classes[index] : std::to_string(number);
}

}  // namespace

Evaluation read_evaluation(const std::string& path) {
  const Json json = read_json(path, kMostBytes);
  require(json.is_object(), "{}: is no JSON object", path);
  Evaluation all;
  all.split = text_field(json, "split");
  all.epoch = number_field(json, "epoch");
  all.images = number_field(json, "images");
  all.loss = number_field(json, "loss");
  all.accuracy = number_field(json, "accuracy");
  all.classes = read_classes(json, path);
  all.confusion = read_confusion(json, all.classes.size(), path);
  for (const Json& row : elements(json, "per_class"))
    all.per_class.emplace_back(text_field(row, "class"), number_field(row, "accuracy"));
  if (const Json* const calibration = find_field(json, "calibration")) all.calibration = read_calibration(*calibration);
  for (const Json& image : elements(json, "worst")) {
    WorstImage worst;
    worst.index = whole_field(image, "index");
    worst.label = class_name(image, "label", all.classes);
    worst.predicted = class_name(image, "predicted", all.classes);
    worst.confidence = number_field(image, "confidence");
    worst.loss = number_field(image, "loss");
    worst.png = text_field(image, "png");
    require(worst.png.empty() || is_png(worst.png), "{}: worst: the image with index {} is no PNG file in base64", path,
            worst.index);
    all.worst.push_back(std::move(worst));
  }
  return all;
}

}  // namespace tandem::train::report
