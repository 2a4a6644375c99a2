// The checks, by subject. Each looks at this machine, as this process sees it, and says what it found.
#pragma once

#include "finding.h"

#include "tandem/core/environment.h"

#include <filesystem>
#include <string>
#include <vector>

namespace tandem::apps::doctor {

/// Version, compiler, and vector instructions against those of the processor.
std::vector<Finding> check_build();

/// What is optional, and what it would be good for: oneDNN, MPI, PNG, JPEG, cairo; for builds with CUDA also NCCL and
/// cuDNN, which are looked for when programs run.
std::vector<Finding> check_libraries();

/// GPUs and their driver.
std::vector<Finding> check_gpus();

/// Cores that this process may use, and threads that it would start.
std::vector<Finding> check_cores(const EnvironmentLookup& lookup);

/// Memory that is free, with the limits of a container, and limits of file sizes.
std::vector<Finding> check_memory();

/// `folder` is where runs are started: room on its disk, whether runs/ in it can be written, /dev/shm.
std::vector<Finding> check_folders(const std::filesystem::path& folder);

/// Data sets that training would find in `folder`, read as far as their first images.
std::vector<Finding> check_data(const std::filesystem::path& folder);

/// Files of measured choices (--tuning-file) in `folder`, and whether they are of this machine and build.
std::vector<Finding> check_tuning(const std::filesystem::path& folder);

/// What the ranks of a run are doing: `run` is the number of a process, or a file of statuses (StatusBoard::save()).
/// Throws Error where there is no such run.
std::string text_of_run(const std::string& run);

/// Two ranks, started by `mpirun` (a name on the PATH, or a file), that sum up a tensor. `self` is the program that
/// they run, with --rank-of-doctor.
std::vector<Finding> check_ranks(const std::string& mpirun, const std::string& self, const EnvironmentLookup& lookup);

/// What a rank of check_ranks() does; returns its exit code. Rank 0 prints a line that begins with kRanksAgree.
int run_as_rank();
inline constexpr std::string_view kRanksAgree = "doctor: ";

}  // namespace tandem::apps::doctor
