// What one wants to know first.
#include "tandem/train/plot/ticks.h"
#include "tandem/train/report/curves.h"
#include "tandem/train/report/environment_table.h"
#include "tandem/train/report/page.h"
#include "tandem/train/report/sections.h"
#include "tandem/train/report/verdict.h"
#include "tandem/train/shell_word.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

namespace tandem::train::report {
namespace {

using plot::number_text;
using plot::Unit;

void add_tile(HtmlWriter& html, const std::string& name, double value, Unit unit) {
  if (!std::isfinite(value)) return;
  html.open("div", {{"class", "tile"}});
  html.element("b", number_text(value, unit));
  html.element("span", name);
  html.close();
}

double last_of(const std::vector<double>& values) {
  const auto found = std::find_if(values.rbegin(), values.rend(), [](double value) { return std::isfinite(value); });
  return found == values.rend() ? kMissing : *found;
}

std::string state_text(const RunData& run) {
  const std::string of = std::isfinite(run.planned_epochs) ? fmt::format(" of {}", run.planned_epochs) : "";
  switch (run.state) {
    case RunState::finished:
      return "";
    case RunState::diverged:
      return "This run ended early: " + reason_of_divergence(run);
    case RunState::not_begun:
      return "This run has not finished an epoch: it has just begun, was stopped or was killed.";
    case RunState::unfinished:
      return fmt::format(
          "This run is not finished: its log ends behind epoch {}{}, without a result. It is still running, was "
          "stopped "
          "or was killed. To go on from its last checkpoint: --resume auto {} {}",
          run.epochs.empty() ? 0 : run.epochs.back().epoch, of, shell_option("--run-dir", run.folder),
          shell_option("--config", (std::filesystem::path(run.folder) / "config.toml").string()));
  }
  return "";
}

std::string subtitle(const RunData& run) {
  std::vector<std::string> parts{run.name};
  if (!run.started.empty()) parts.push_back(time_text(run.started));
  if (!run.device.empty()) {
    parts.push_back(std::isfinite(run.ranks)
                        ? fmt::format("{:.0f} rank{} on {}", run.ranks, run.ranks == 1.0 ? "" : "s", run.device)
                        : run.device);
  }
  if (run.sessions > 1)
    parts.push_back(
        fmt::format("gone on with {}", run.sessions == 2 ? "once" : fmt::format("{} times", run.sessions - 1)));
  return fmt::format("{}", fmt::join(parts, " \xC2\xB7 "));
}

}  // namespace

void add_summary(HtmlWriter& html, const RunData& run) {
  html.open("header");
  html.element("h1", title_of(run));
  html.element("div", subtitle(run), {{"class", "sub"}});
  html.close();
  if (const std::string state = state_text(run); !state.empty()) {
    html.open("div", {{"class", "banner"}});
    html.element("p", state);
    html.close();
  }
  add_problems(html, run.problems);
  if (run.epochs.empty()) return;
  html.open("div", {{"class", "tiles"}});
  const auto last = [&](double Epoch::* figure) { return last_of(column(run.epochs, figure)); };
  // Where the test set was evaluated at the end only, its figures are not among the epochs.
  const bool at_end = run.evaluation && run.evaluation->split == "test" && !std::isfinite(last(&Epoch::test_loss));
  add_tile(html, "test accuracy", at_end ? run.evaluation->accuracy : last(&Epoch::test_accuracy), Unit::percent);
  add_tile(html, "test loss", at_end ? run.evaluation->loss : last(&Epoch::test_loss), Unit::none);
  add_tile(html, "validation accuracy", last(&Epoch::validation_accuracy), Unit::percent);
  add_tile(html, "validation loss", last(&Epoch::validation_loss), Unit::none);
  add_tile(html, "epochs", static_cast<double>(run.epochs.back().epoch), Unit::none);
  add_tile(html, "time", seconds_of(run), Unit::seconds);
  add_tile(html, "images/s", last(&Epoch::images_per_second), Unit::none);
  add_tile(html, "parameters", run.parameters, Unit::none);
  html.close();
}

void add_verdict(HtmlWriter& html, const RunData& run) {
  if (run.epochs.empty()) return;
  const Verdict verdict = judge(run);
  const char* kind = "";
  switch (verdict.fit) {
    case Fit::good:
      kind = "verdict good";
      break;
    case Fit::overfitting:
    case Fit::underfitting:
    case Fit::still_learning:
      kind = "verdict warn";
      break;
    case Fit::diverged:
    case Fit::not_learning:
      kind = "verdict bad";
      break;
    case Fit::unknown:
      kind = "verdict";
      break;
  }
  html.open("section", {{"class", kind}});
  html.element("strong", verdict.headline);
  for (const std::string& reason : verdict.reasons) html.element("p", reason);
  for (const std::string& advice : verdict.advice) html.element("p", advice, {{"class", "sub"}});
  html.close();
}

void add_curves(HtmlWriter& html, const RunData& run) {
  std::vector<plot::LineChart> charts{loss_chart(run), accuracy_chart(run)};
  std::erase_if(charts, [](const plot::LineChart& chart) { return !has_figures(chart); });
  for (const plot::LineChart& chart : {learning_rate_chart(run), throughput_chart(run)}) {
    if (has_line(chart)) charts.push_back(chart);
  }
  if (charts.empty()) return;
  html.element("h2", "Curves");
  html.open("div", {{"class", "grid"}});
  for (const plot::LineChart& chart : charts) add_chart(html, chart);
  html.close();
  html.element(
      "p",
      "Training figures are means over an epoch as it went, in training mode: with augmentation or dropout they "
      "may be worse than those of the test." +
          std::string(run.steps.empty() ? "" : " The pale line is the loss of single steps."),
      {{"class", "note"}});
}

}  // namespace tandem::train::report
