// The curves of a run as a table.
#pragma once

#include <string>

namespace tandem::train {

/// Writes a CSV file (RFC 4180, but with lines that end in a line feed) of a run's log: a line for each epoch, with all
/// figures of its record, those of inner objects as "time.forward"; first a line of names. What an epoch lacks, and
/// what is no finite number, is empty. Of an epoch that is in the log twice, as behind a resumed run, the later record
/// counts, and of what a session did behind the checkpoint that the next one went on from, nothing does; lines that are
/// damaged, as by a killed run, are passed over. The file appears whole or not at all. Throws Error where the log
/// cannot be read or the file cannot be written. Example:
///     #include "tandem/train/jsonl_log.h"
///     #include <filesystem>
///     const auto folder = std::filesystem::temp_directory_path();
///     const std::string log = (folder / "curves_example.jsonl").string();
///     const std::string table = (folder / "curves_example.csv").string();
///     EpochRecord record;
///     record.epoch = 1;
///     JsonlLog(log).write(record);
///     write_curves(log, table);  // two lines, which begin with "epoch," and "1,"
///     std::filesystem::remove(log);
///     std::filesystem::remove(table);
void write_curves(const std::string& log, const std::string& csv);

/// The same of the steps that the log has (TrainerOptions::log_every), a line for each.
void write_steps(const std::string& log, const std::string& csv);

}  // namespace tandem::train
