// Rows as a table, as JSON, as CSV and as a picture.
#pragma once

#include "apps/allreduce_bench/rows.h"

#include <span>
#include <string>

namespace tandem::allreduce_bench {

/// A contender's name beside others: "native, shared", and "ring" for "native, ring".
std::string label_of(const BenchRow& row);

/// "all_reduce sum f32, 2 ranks"
std::string title_of(const BenchCollective& collective, const BenchOptions& options, int ranks);

/// A table for people, a collective below the other.
class Table {
 public:
  Table(const BenchOptions& options, int ranks);

  /// What is in the columns, in at most 80 columns of text.
  std::string heading(const BenchCollective& collective) const;
  std::string line(const BenchRow& row) const;

 private:
  bool shows_predictions(const BenchCollective& collective) const;

  const BenchOptions& options_;
  int ranks_;
  int bytes_width_, name_width_;
};

/// An object without line ends. Forms that there are not are null, bandwidths are in bytes per second.
std::string json_line(const BenchRow& row, const BenchOptions& options, int ranks);

/// A heading and a line for each row (RFC 4180, lines end with \n). Fields of what there is not are empty.
std::string csv_report(std::span<const BenchRow> rows, const BenchOptions& options, int ranks);

/// An SVG drawing: for each collective its times, and below them the bandwidths of the bus, against the size.
std::string svg_report(std::span<const BenchRow> rows, const BenchOptions& options, int ranks);

}  // namespace tandem::allreduce_bench
