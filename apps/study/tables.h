// The results of a study as tables: for people, and for programs.
#pragma once

#include "apps/study/results.h"

#include <string>
#include <vector>

namespace tandem::study {

struct Table {
  std::vector<std::string> names;
  std::vector<bool> are_numbers;  ///< of columns: they stand on the right
  std::vector<std::vector<std::string>> rows;
};

/// A row for each point that is shown: what is varied, seeds that count, and each measure with its spread.
Table table_of(const Results& results);

/// Where the study shows of an option only its best value: a sentence that says so, and whether its figure flatters,
/// being chosen and told by the same images. Else "".
std::string note_of_best(const Study& study);

/// A row for each difference from a baseline: its 95 % interval, and what that says.
Table differences_of(const Results& results);

std::string markdown(const Table& table);
/// An environment `tabular`, with the lines of the package booktabs.
std::string latex(const Table& table);
std::string csv(const Table& table);

/// A row for each run: study, what is varied, seed, outcome, folder, and each measure as a number in full; where there
/// is none, nothing.
Table runs_table(const Results& results);
/// A row for each epoch of each run that is done.
Table epochs_table(const Results& results);

/// All of it as JSON.
std::string json_text(const Results& results);

/// Writes runs.csv, epochs.csv, results.json, table.md and table.tex of a study into a folder, which is made. Throws
/// Error where one cannot be written.
void write_tables(const Results& results, const std::string& folder);
}  // namespace tandem::study
