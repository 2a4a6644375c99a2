// {"extent": "quick", "seeds": 3, "settings": {"dataset": "mnist"}}
#include "apps/study/kept_options.h"

#include "apps/study/tables.h"
#include "tandem/core/error.h"
#include "tandem/layers/file.h"
#include "tandem/train/report/json_fields.h"

#include <filesystem>

namespace tandem::study {
namespace {

namespace fs = std::filesystem;
using train::report::Json;

constexpr int kMostSeeds = 100;

std::string file_in(const std::string& folder) { return (fs::path(folder) / "options.json").string(); }

}  // namespace

void keep_options(const PlanOptions& options, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  require(!error, "{}: cannot be made: {}; name another folder by --out", folder, error.message());
  Json json{{"extent", options.extent == Extent::full ? "full" : "quick"},
            {"seeds", options.seeds},
            {"settings", Json::object()}};
  for (const auto& [name, value] : options.settings) json["settings"][name] = value;
  layers::write_file(file_in(folder), json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::optional<PlanOptions> kept_options(const std::string& folder) {
  const std::string file = file_in(folder);
  std::error_code unknown;
  if (!fs::exists(file, unknown)) return std::nullopt;
  const Json json = train::report::read_json(file, 1 << 20);
  const std::string extent = train::report::text_field(json, "extent");
  const std::int64_t seeds = train::report::whole_field(json, "seeds");
  const Json* const settings = train::report::find_field(json, "settings");
  require((extent == "quick" || extent == "full") && seeds >= 1 && seeds <= kMostSeeds && settings != nullptr &&
              settings->is_object(),
          "{}: holds no options of a study; remove it, and name the options of its runs", file);
  PlanOptions options{extent == "full" ? Extent::full : Extent::quick, static_cast<int>(seeds)};
  for (const auto& item : settings->items())
    options.settings.emplace_back(item.key(), train::report::text_of(item.value()));
  return options;
}

}  // namespace tandem::study
