// AugmentOptions from and to text.
#include "tandem/core/number_text.h"
#include "tandem/core/suggest.h"
#include "tandem/data/augment.h"

#include <array>
#include <set>

namespace tandem::data {

namespace {

constexpr std::array<std::string_view, 10> kKinds{"crop",   "crop-reflect", "flip",   "flip-alternating",
                                                  "jitter", "rotate",       "offset", "gain",
                                                  "cutout", "cutout-inside"};

/// "crop" of "crop-reflect", which excludes it.
std::string_view family_of(std::string_view kind) { return kind.substr(0, kind.find('-')); }

/// " (crop and crop-reflect count as one)", or nothing where a family has one kind.
std::string family_text(std::string_view family) {
  const auto other = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&](std::string_view kind) { return kind != family && family_of(kind) == family; });
  return other == kKinds.end() ? "" : fmt::format(" ({} and {} count as one)", family, *other);
}

/// The number after '=', or `usual` where there is none.
template <typename T>
T read_size(std::string_view kind, std::string_view item, T usual, T least, T most) {
  if (item.size() == kind.size()) return usual;
  const std::string_view text = item.substr(kind.size() + 1);
  const std::optional<T> value = parse_number<T>(text);
  require(value && *value >= least && *value <= most,
          "augmentation '{}': '{}' is not a number from {} to {}, as in {}={}", kind, text, least, most, kind, usual);
  return *value;
}

void read_item(std::string_view item, std::set<std::string_view>& seen, AugmentOptions& options) {
  const std::string_view kind = item.substr(0, item.find('='));
  require(std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end(), "{}",
          unknown_name("augmentation", kind, kKinds));
  require(seen.insert(family_of(kind)).second, "augmentation '{}' is given twice{}: name each once", kind,
          family_text(family_of(kind)));
  if (family_of(kind) == "flip") {
    require(item == kind, "augmentation '{}' takes no size, got '{}'", kind, item);
    options.flip = true;
    options.flip_alternates = kind != "flip";
  } else if (kind == "jitter") {
    options.jitter = read_size(kind, item, 0.2F, 0.0F, 10.0F);
  } else if (kind == "rotate") {
    options.rotation = read_size(kind, item, 15.0F, 0.0F, 180.0F);
  } else if (kind == "offset") {
    options.offset = read_size(kind, item, 0.14F, 0.0F, 10.0F);
  } else if (kind == "gain") {
    options.gain = read_size(kind, item, 0.13F, 0.0F, 1.0F);
  } else if (family_of(kind) == "cutout") {
    options.cutout = read_size(kind, item, 8, 1, 1024);
    options.cutout_inside = kind != "cutout";
  } else {
    options.crop = read_size(kind, item, 4, 0, 1024);
    options.crop_border = kind == "crop" ? kernels::BorderMode::zero : kernels::BorderMode::reflect;
  }
}

}  // namespace

AugmentOptions parse_augment(std::string_view text) {
  AugmentOptions options;
  if (text.empty() || text == "none") return options;
  std::set<std::string_view> seen;
  while (true) {
    const std::size_t comma = text.find(',');
    read_item(text.substr(0, comma), seen, options);
    if (comma == std::string_view::npos) return options;
    text.remove_prefix(comma + 1);
  }
}

std::string to_string(const AugmentOptions& options) {
  std::string text;
  const auto add = [&](const std::string& item) { text += (text.empty() ? "" : ",") + item; };
  const bool reflect = options.crop_border == kernels::BorderMode::reflect;
  if (options.crop) add(fmt::format("{}={}", reflect ? "crop-reflect" : "crop", *options.crop));
  if (options.flip) add(options.flip_alternates ? "flip-alternating" : "flip");
  if (options.rotation) add(fmt::format("rotate={}", *options.rotation));
  if (options.jitter) add(fmt::format("jitter={}", *options.jitter));
  if (options.offset) add(fmt::format("offset={}", *options.offset));
  if (options.gain) add(fmt::format("gain={}", *options.gain));
  if (options.cutout) add(fmt::format("{}={}", options.cutout_inside ? "cutout-inside" : "cutout", *options.cutout));
  return text.empty() ? "none" : text;
}

}  // namespace tandem::data
