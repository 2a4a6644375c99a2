// A study as its file describes it: which runs are held against each other, and what is shown of them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tandem::study {

/// Options of a program without their dashes, and their values: {"lr", "0.1"}, {"batch-norm", "true"}. Two are none of
/// the program's: "ranks", how many of it mpirun starts, and "hosts", where.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// What a study varies, and the values that it has: {"batch-size", {"16", "32"}}.
struct Dimension {
  std::string name;
  std::vector<std::string> values;
};

/// One way among others: settings that all of its runs have, and lists, equally long, that are gone through together:
/// the first one is what is varied, the others follow from it.
struct Variant {
  std::string name;
  Settings settings = {};
  std::vector<Dimension> together = {};
  bool is_optional = false;  ///< it may be that it cannot run on a machine: no failure of the study
};

enum class PlotKind : std::uint8_t {
  bars,    ///< one for each point
  curves,  ///< over epochs
  line,    ///< over a dimension that is numbers
  layers,  ///< over the layers of the network: a RunLine in place of a measure
  ranks    ///< over numbers of ranks: the same
};

inline bool is_line_of_runs(PlotKind kind) { return kind == PlotKind::layers || kind == PlotKind::ranks; }

struct Plot {
  PlotKind kind = PlotKind::bars;
  std::string measure;
  std::string over = {};  ///< line: the dimension on its axis

  friend bool operator==(const Plot&, const Plot&) = default;
};

/// The name of the dimension that variants are.
inline constexpr const char* kVariant = "variant";
inline constexpr const char* kRanks = "ranks";
inline constexpr const char* kHosts = "hosts";

struct Study {
  std::string file = {};  ///< as it was named
  std::string name = {};  ///< of the file, without .toml: folders and files are called so
  int number = 0;         ///< 1 to 99; 0: it has none
  std::string title = {}, question = {};
  std::string note = {};                     ///< what a reader should know beside the numbers; or empty
  std::string program = {};                  ///< "cifar_train"
  Settings all = {}, quick = {}, full = {};  ///< of all runs, and of those of a quick or a full study
  std::vector<Variant> variants = {};
  std::vector<Dimension> grid = {};
  Settings baseline = {};                  ///< values of dimensions
  std::string best_of = {}, best_by = {};  ///< of this dimension only the value that is best by this measure is shown
  std::vector<std::string> measures = {};
  std::vector<Plot> plots = {};
};

}  // namespace tandem::study
