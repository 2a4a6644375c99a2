// Sentences from samples; nothing here looks at single runs but for why they failed.
#include "apps/study/reading.h"

#include "tandem/core/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

namespace tandem::study {
namespace {

using train::plot::number_text;
using train::plot::Unit;

bool is_clear(Certainty certainty) { return certainty == Certainty::higher || certainty == Certainty::lower; }

/// "a, b and c"
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return text;
}

/// The same, or of many how many there are.
std::string counted(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 4;
  return names.size() <= kMost ? listed(names) : fmt::format("{} others", names.size());
}

std::string capitalized(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

bool is_one_number(const Sample& sample) { return sample.count == 1 || sample.deviation == 0.0; }

class Reading {
 public:
  explicit Reading(const Results& results) : results_(results) {}

  std::vector<std::string> sentences() {
    for (std::size_t i = 0; i < results_.measures.size(); ++i) {
      if (results_.measures[i]->better == Better::neither) continue;
      if (std::ranges::none_of(results_.shown, [&](std::size_t p) { return sample(p, i).count > 0; })) {
        sentences_.push_back(fmt::format("{}: no run has a figure of it.", capitalized(title(i))));
        continue;
      }
      compare(i);
      tell_best(i);
    }
    tell_edges();
    return std::move(sentences_);
  }

 private:
  const Sample& sample(std::size_t point, std::size_t measure) const { return results_.points[point].samples[measure]; }
  const std::string& label(std::size_t point) const { return results_.plan.points[point].label; }
  std::string title(std::size_t measure) const { return std::string(results_.measures[measure]->title); }
  Unit unit(std::size_t measure) const { return results_.measures[measure]->unit; }

  /// Those of points that are shown, each once.
  std::vector<std::size_t> baselines() const {
    std::vector<std::size_t> all;
    for (const std::size_t point : results_.shown)
      if (const std::size_t one = results_.points[point].baseline; std::ranges::find(all, one) == all.end())
        all.push_back(one);
    return all;
  }

  /// What of a point is not as with the baseline.
  std::string label_against(std::size_t point, std::size_t baseline) const {
    Settings own;
    for (const auto& [name, value] : results_.plan.points[point].coordinates)
      if (name != results_.plan.study.best_of && value_of(results_.plan.points[baseline].coordinates, name) != value)
        own.emplace_back(name, value);
    return own.empty() ? label(point) : label_of(own);
  }

  /// "+1.20 points", "1.50 x"; of a difference that is clear, as many digits as show one, or "+64 B" where these are
  /// many.
  std::string change(std::size_t measure, const Sample& own, const Sample& other, bool is_clear) const {
    if (unit(measure) != Unit::percent && own.mean > 0.0 && other.mean > 0.0) {
      const double ratio = own.mean / other.mean;
      if (!std::isfinite(ratio)) return difference_text(own.mean - other.mean, unit(measure));
      if (ratio < 0.1) return fmt::format("{:.2g} x", ratio);
      if (ratio >= 1000.0) return number_text(ratio) + " x";
      constexpr int kMostDigits = 6;
      int digits = 2;
      const auto shows_none = [&] { return is_clear && std::abs(ratio - 1.0) < 0.5 * std::pow(10.0, -digits); };
      while (digits < kMostDigits && shows_none()) ++digits;
      if (!shows_none()) return fmt::format("{:.{}f} x", ratio, digits);
    }
    return difference_text(own.mean - other.mean, unit(measure));
  }

  struct Comparison {
    std::string sentence = {};  ///< "" where nothing is held against the baseline
    std::size_t unclear = 0;    ///< differences within the noise
    bool has_only_unclear = false;
  };

  /// With all baselines; those from which nothing differs clearly are one sentence.
  void compare(std::size_t measure) {
    std::size_t unclear = 0, folded = 0;
    std::vector<std::string> clear;
    std::string unclear_sentence;
    for (const std::size_t baseline : baselines()) {
      Comparison comparison = compare(measure, baseline);
      if (comparison.has_only_unclear) {
        unclear += comparison.unclear;
        ++folded;
        unclear_sentence = comparison.sentence;
      } else if (!comparison.sentence.empty()) {
        clear.push_back(std::move(comparison.sentence));
      }
    }
    sentences_.insert(sentences_.end(), clear.begin(), clear.end());
    if (folded == 1) sentences_.push_back(unclear_sentence);
    if (folded < 2) return;
    sentences_.push_back(fmt::format("{}: none of the {} differences from {}{} baselines is clear.",
                                     capitalized(title(measure)), unclear, clear.empty() ? "" : "the other ", folded));
  }

  Comparison compare(std::size_t measure, std::size_t baseline) const {
    const Sample& reference = sample(baseline, measure);
    std::map<Certainty, std::vector<std::string>> groups;
    std::size_t fewest = reference.count;
    for (const std::size_t point : results_.shown) {
      if (results_.points[point].baseline != baseline || point == baseline) continue;
      const Sample& own = sample(point, measure);
      const Certainty certainty = difference_of(own, reference).certainty;
      std::string text = label_against(point, baseline);
      if (certainty != Certainty::missing && certainty != Certainty::same)
        text += " (" + change(measure, own, reference, is_clear(certainty)) + ")";
      groups[certainty].push_back(text);
      if (certainty == Certainty::noise) fewest = std::min(fewest, own.count);
    }
    if (groups.empty()) return {};
    const std::string name = capitalized(title(measure));
    if (reference.count == 0)
      return {fmt::format("{}: {} has no figure, so that nothing can be held against it.", name, label(baseline))};
    std::vector<std::string> clauses;
    const auto add = [&](Certainty certainty, const std::string& words) {
      if (groups.contains(certainty)) clauses.push_back(words + " " + listed(groups[certainty]));
    };
    add(Certainty::higher, "clearly higher with");
    add(Certainty::lower, "clearly lower with");
    add(Certainty::noise, fmt::format("within the noise of {} seeds with", fewest));
    add(Certainty::same, "the very same with");
    add(Certainty::unknown, "not to be told from one seed with");
    add(Certainty::missing, "no figure of");
    const std::size_t unclear = groups[Certainty::noise].size();
    const bool has_only_unclear = unclear > 0 && std::ranges::all_of(groups, [](const auto& group) {
                                    return group.first == Certainty::noise || group.first == Certainty::missing;
                                  });
    return {fmt::format("{}, against {} ({}): {}.", name, label(baseline), sample_text(reference, unit(measure)),
                        fmt::join(clauses, "; ")),
            unclear, has_only_unclear};
  }

  bool is_better(std::size_t measure, double a, double b) const {
    return results_.measures[measure]->better == Better::higher ? a > b : a < b;
  }

  bool are_compared(std::size_t a, std::size_t b) const {
    return results_.points[a].baseline == b || results_.points[b].baseline == a;
  }

  void tell_best(std::size_t measure) {
    std::vector<std::size_t> rest;
    for (const std::size_t point : results_.shown)
      if (sample(point, measure).count > 0) rest.push_back(point);
    if (rest.size() < 2 || (rest.size() == 2 && are_compared(rest[0], rest[1]))) return;  // that sentence has said it
    const auto best = std::ranges::min_element(rest, [&](std::size_t a, std::size_t b) {
      return is_better(measure, sample(a, measure).mean, sample(b, measure).mean);
    });
    const std::size_t first = *best;
    rest.erase(best);
    const bool are_all_same = std::ranges::all_of(rest, [&](std::size_t point) {
      return is_one_number(sample(point, measure)) && sample(point, measure).mean == sample(first, measure).mean;
    });
    if (are_all_same && is_one_number(sample(first, measure))) {
      sentences_.push_back(fmt::format("All that have a figure of it have the same {} ({}).", title(measure),
                                       sample_text(sample(first, measure), unit(measure))));
      return;
    }
    std::vector<std::string> same, close, alone;
    for (const std::size_t point : rest) {
      const Certainty certainty = difference_of(sample(point, measure), sample(first, measure)).certainty;
      if (certainty == Certainty::unknown) alone.push_back(label(point));
      if (certainty == Certainty::same) same.push_back(label(point));
      if (certainty == Certainty::noise) close.push_back(label(point));
    }
    const bool is_high = results_.measures[measure]->better == Better::higher;
    std::string text = fmt::format("The {} {} has {} ({})", is_high ? "highest" : "lowest", title(measure),
                                   label(first), sample_text(sample(first, measure), unit(measure)));
    const bool are_all_close = same.size() + close.size() == rest.size(), is_one = rest.size() == 1;
    if (are_all_close) {
      text += "; " + (is_one ? label(rest[0]) + " is" : std::string("all others are")) + " within the noise of it";
    } else if (!alone.empty()) {
      text += "; one seed does not tell whether it is better than " +
              (alone.size() == rest.size() && !is_one ? std::string("the others") : counted(alone));
    }
    if (!same.empty() && !are_all_close) text += "; the very same: " + counted(same);
    if (!close.empty() && !are_all_close) text += "; within the noise of it: " + counted(close);
    if (same.empty() && close.empty() && alone.empty())
      text += ", clearly ahead of " + (is_one ? label(rest[0]) : std::string("all others"));
    sentences_.push_back(text + ".");
  }

  /// Points that differ in `name` alone, by its values.
  std::map<double, std::size_t> beside(std::size_t point, const std::string& name) const {
    const Settings& own = results_.plan.points[point].coordinates;
    std::map<double, std::size_t> all;
    for (std::size_t i = 0; i < results_.plan.points.size(); ++i) {
      const Settings& other = results_.plan.points[i].coordinates;
      const bool is_beside = std::ranges::all_of(own, [&](const auto& coordinate) {
        return coordinate.first == name || value_of(other, coordinate.first) == coordinate.second;
      });
      if (const auto value = parse_number<double>(value_of(other, name)); is_beside && value && std::isfinite(*value))
        all.emplace(*value, i);
    }
    return all;
  }

  /// Whether all of its seeds are finished, with a figure that it can be the best by.
  bool is_whole(std::size_t point) const {
    const PointResult& result = results_.points[point];
    return std::isfinite(result.best_figure) && std::ranges::all_of(result.seeds, [](const SeedResult& seed) {
             return seed.run.outcome == RunOutcome::finished;
           });
  }

  /// Where the value that is best is the least or the largest that was tried, others may be better: if the next one to
  /// it has been tried, too, and is worse.
  void tell_edges() {
    const std::string& name = results_.plan.study.best_of;
    for (const std::size_t point : results_.shown) {
      if (name.empty()) return;
      const std::map<double, std::size_t> tried = beside(point, name);
      if (tried.size() < 2) continue;
      const bool is_least = tried.begin()->second == point, is_most = std::prev(tried.end())->second == point;
      if (!is_least && !is_most) continue;
      const std::size_t neighbour = is_least ? std::next(tried.begin())->second : std::prev(tried.end(), 2)->second;
      if (!is_whole(point) || !is_whole(neighbour)) continue;
      if (results_.points[point].best_figure == results_.points[neighbour].best_figure) continue;
      sentences_.push_back(fmt::format("{} has its best {} at the {} value that was tried: {} may be better.",
                                       label(point), name, is_most ? "largest" : "smallest",
                                       is_most ? "a larger one" : "a smaller one"));
    }
  }

  const Results& results_;
  std::vector<std::string> sentences_;
};

/// The unit that a mean is written in.
std::pair<double, const char*> scale_of(double mean, Unit unit) {
  constexpr std::pair<double, const char*> kSeconds[] = {{60.0, " min"}, {1.0, " s"}, {1e-3, " ms"}, {1e-6, " us"}};
  constexpr std::pair<double, const char*> kBytes[] = {
      {0x1p30, " GiB"}, {0x1p20, " MiB"}, {0x1p10, " KiB"}, {1.0, " B"}};
  constexpr double kMostSeconds = 600.0;  // more are minutes
  if (unit == Unit::bytes) {
    for (const auto& scale : kBytes)
      if (mean >= scale.first) return scale;
  } else if (unit == Unit::seconds) {
    for (const auto& scale : kSeconds)
      if (mean >= scale.first && (scale.first < 60.0 || mean >= kMostSeconds)) return scale;
  }
  return {1.0, unit == Unit::bytes ? " B" : unit == Unit::seconds ? " s" : ""};
}

/// So many that the deviation, which is not 0, has two digits, and the mean no more than four behind its first.
int decimals_for(double mean, double deviation) {
  const auto magnitude = [](double value) { return static_cast<int>(std::floor(std::log10(value))); };
  const int of_deviation = 1 - magnitude(deviation);
  const int most = mean == 0.0 ? of_deviation : 3 - magnitude(std::abs(mean));
  return std::clamp(std::min(most, of_deviation), 0, 8);
}

/// "Failed, out of memory"
std::string reason_of(const KeptRun& run, bool is_optional) {
  switch (run.outcome) {
    case RunOutcome::missing:
      return "Not begun";
    case RunOutcome::interrupted:
      return "Begun, and not done";
    case RunOutcome::failed:
      return (is_optional ? "Cannot run here, " : "Failed, ") + run.reason;
    case RunOutcome::diverged:
      return "Diverged, " + run.reason;
    case RunOutcome::finished:
      break;
  }
  return "";
}

}  // namespace

std::string difference_text(double value, Unit unit) {
  if (!std::isfinite(value)) return number_text(value);
  const char* const sign = value < 0.0 ? "-" : "+";
  if (unit == Unit::percent) {
    constexpr int kFewest = 2, kMost = 4;  // one image of 500,000 is 0.0002 points
    int digits = kFewest;
    const auto shows_none = [&] { return std::abs(value) < 0.5 * std::pow(10.0, -digits); };
    while (digits < kMost && shows_none()) ++digits;
    return fmt::format("{}{:.{}f} points", sign, std::abs(value), shows_none() ? kFewest : digits);
  }
  return sign + number_text(std::abs(value), unit);
}

std::string sample_text(const Sample& sample, Unit unit) {
  const std::string mean = number_text(sample.mean, unit);
  if (sample.count < 2) return mean;
  if (unit == Unit::percent) return fmt::format("{} \xC2\xB1 {:.2f}", mean, sample.deviation);
  if (sample.deviation == 0.0) return mean + " \xC2\xB1 0";
  const auto [factor, suffix] = scale_of(sample.mean, unit);
  const double deviation = sample.deviation / factor, scaled = sample.mean / factor;
  constexpr double kLarge = 1000.0;
  if (unit == Unit::none && std::abs(sample.mean) >= kLarge)
    return fmt::format(
        "{} \xC2\xB1 {}", mean,
        sample.deviation < kLarge ? fmt::format("{:.0f}", sample.deviation) : number_text(sample.deviation));
  const int decimals = decimals_for(scaled, deviation);
  return fmt::format("{:.{}f} \xC2\xB1 {:.{}f}{}", scaled, decimals, deviation, decimals, suffix);
}

bool is_complete(const Results& results) {
  return std::ranges::all_of(results.points, [&](const PointResult& point) {
    const bool is_optional = results.plan.points[point.point].is_optional;
    return std::ranges::all_of(point.seeds, [&](const SeedResult& seed) {
      return is_done(seed.run.outcome) || (is_optional && seed.run.outcome == RunOutcome::failed);
    });
  });
}

std::vector<std::string> reading_of(const Results& results) { return Reading(results).sentences(); }

std::vector<std::string> failures_of(const Results& results) {
  // Points by reason, with their seeds.
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  std::map<std::string, std::size_t> runs;
  for (const PointResult& point : results.points) {
    std::map<std::string, std::vector<std::string>> seeds;
    for (const SeedResult& seed : point.seeds)
      if (seed.run.outcome != RunOutcome::finished)
        seeds[reason_of(seed.run, results.plan.points[point.point].is_optional)].push_back(std::to_string(seed.seed));
    for (const auto& [reason, numbers] : seeds) {
      auto found = std::ranges::find(reasons, reason, [](const auto& entry) { return entry.first; });
      if (found == reasons.end()) found = reasons.insert(found, {reason, {}});
      found->second.push_back(fmt::format("{} (seed{} {})", results.plan.points[point.point].label,
                                          numbers.size() == 1 ? "" : "s", listed(numbers)));
      runs[reason] += numbers.size();
    }
  }
  constexpr std::size_t kMostNamed = 4;
  std::vector<std::string> sentences;
  for (const auto& [reason, points] : reasons)
    sentences.push_back(fmt::format(
        "{}: {}.", reason, points.size() <= kMostNamed ? listed(points) : fmt::format("{} runs", runs[reason])));
  return sentences;
}

}  // namespace tandem::study
