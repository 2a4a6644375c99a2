// The progress line of a run: a bar that redraws itself on a terminal, now and then a plain line elsewhere.
#pragma once

#include "tandem/train/progress_format.h"

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace tandem::train {

/// `automatic`: bar where standard error is a terminal, plain otherwise.
enum class ProgressMode { automatic, bar, plain, none };

/// "auto", "bar", "plain" or "none"; throws Error otherwise.
ProgressMode parse_progress_mode(std::string_view name);

/// Where it writes and which clock it trusts; tests put their own in place.
struct ProgressOptions {
  ProgressMode mode = ProgressMode::automatic;
  Terminal terminal{};
  std::function<int()> columns{};                           ///< the terminal's width now; empty: what it was
  std::function<int()> report_columns{};                    ///< to which lines that stay are broken; empty: not
  std::function<void(const std::string&)> write_transient;  ///< bars and in-between lines (standard error)
  std::function<void(const std::string&)> write_report;     ///< lines that stay (standard output)
  std::function<double()> seconds;                          ///< a monotonic clock
  /// True where both writers end on the same screen: a finished epoch then replaces its bar on that screen.
  bool shared_screen = false;
};

/// Writers for standard error and standard output, the real clock and terminal.
ProgressOptions standard_progress(ProgressMode mode);

/// At most 10 bars a second, or one plain line in 10 s. Only rank 0 should own one that is not `none`.
class ProgressLine {
 public:
  explicit ProgressLine(ProgressOptions options);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Shows where the epoch stands, if it is time to. Cheap when it is not: one clock reading.
  void update(const Progress& progress);

  /// Writes a line that stays: the end of an epoch. Nothing in mode none.
  void finish(const std::string& line);

  /// Lines that stay, broken to what their stream shows now.
  std::string fitted(const std::string& text) const;

  /// Leaves the line on which a terminal has shown ^C: takes it off the screen with the bar, or ends it. Nothing where
  /// there is no terminal.
  void begin_fresh_line();

  /// Takes the bar off the screen, so that other text can be written.
  void clear();

  ProgressMode mode() const { return options_.mode; }

 private:
  ProgressOptions options_;
  double last_ = 0.0;
  bool drawn_ = false;
};

}  // namespace tandem::train
