// The accuracies and the "worst" images of evaluation.json.
#include "tandem/core/error.h"
#include "tandem/layers/file.h"
#include "tandem/train/writers/tensorboard/run_events.h"

#include <filesystem>
#include <nlohmann/json.hpp>

namespace tandem::train {
namespace {

using Json = nlohmann::json;

/// Throws Error for anything else than RFC 4648's base64 with padding.
std::string from_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  require(text.size() % 4 == 0, "base64 of {} characters", text.size());
  std::string bytes;
  std::uint32_t bits = 0;
  std::size_t digits = 0;
  for (const char c : text.substr(0, text.find('='))) {
    const std::size_t digit = kDigits.find(c);
    require(digit != std::string_view::npos, "base64 has no '{}'", c);
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if (++digits % 4 != 1) bytes += static_cast<char>(bits >> (6 - 2 * ((digits - 1) % 4)) & 0xff);
  }
  return bytes;
}

std::string contents_of(const std::string& path) {
  const layers::InputFile file(path);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(text.data(), file.size(), 0);
  return text;
}

}  // namespace

void RunEvents::write_evaluation(const std::string& evaluation_file, std::int64_t step) {
  std::error_code unknown;
  if (!std::filesystem::exists(evaluation_file, unknown)) return;
  const std::string text = contents_of(evaluation_file);
  try {
    const Json evaluation = Json::parse(text);
    const Json& classes = evaluation.at("classes");
    for (const Json& entry : evaluation.value("per_class", Json::array())) {
      const Json& accuracy = entry.at("accuracy");  // null: there is no image of this class
      if (accuracy.is_number())
        writer_.add_scalar("accuracy_of_class/" + entry.at("class").get<std::string>(), accuracy.get<double>(), step);
    }
    const Json error = evaluation.value("calibration", Json::object()).value("ece", Json());
    if (error.is_number()) writer_.add_scalar("calibration/expected_error", error.get<double>(), step);
    int number = 0;
    for (const Json& image : evaluation.value("worst", Json::array())) {
      const auto class_of = [&](const char* key) { return classes.at(image.at(key).get<std::size_t>()); };
      const std::string title =
          fmt::format("{} taken for {} ({:.1f} %)", class_of("label").get<std::string>(),
                      class_of("predicted").get<std::string>(), 100.0 * image.at("confidence").get<double>());
      writer_.add_png(fmt::format("misclassified/{:02}", ++number), from_base64(image.at("png").get<std::string>()),
                      step, title);
    }
  } catch (const std::exception& error) {
    fail("{}: not a sound evaluation: {}", evaluation_file, error.what());
  }
  writer_.flush();
}

}  // namespace tandem::train
