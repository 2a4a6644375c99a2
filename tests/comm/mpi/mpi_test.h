// What the tests under mpirun share: the environment, the groups, and text of errors.
#pragma once

#include "tandem/comm/agreement.h"
#include "tandem/comm/backends.h"
#include "tandem/comm/backends/mpi/mpi_runtime.h"
#include "tandem/comm/backends/native/native_backend.h"
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/comm/process_group.h"
#include "tandem/core/out.h"
#include "tests/support/catch.h"

namespace tandem::test {

/// The one environment of this program, made in main.
comm::MpiEnvironment& environment();

/// The backends of this build that need MPI and no GPU.
inline std::vector<std::string_view> mpi_backends() {
  std::vector<std::string_view> names;
  for (const comm::BackendEntry& entry : comm::backends())
    if (entry.needs.starts_with("MPI") && entry.name != "nccl" && entry.missing().empty()) names.push_back(entry.name);
  return names;
}

/// The backend native between ranks of one host, where the tests run.
inline std::unique_ptr<comm::ProcessGroup> make_native_group(const comm::NativeOptions& options) {
  const auto mpi = comm::make_process_group("mpi", environment());
  const std::vector<int> one_host(static_cast<std::size_t>(mpi->size()), 0);
  return std::make_unique<comm::ProcessGroup>(
      comm::make_native_backend(mpi->place(), one_host, comm::detail::make_mpi_transport(), options));
}

/// Without memory that ranks share: messages only, by that algorithm.
inline std::unique_ptr<comm::ProcessGroup> make_message_group(const std::string& algorithm = "by-cost") {
  return make_native_group({.name = "messages", .all_reduce = algorithm, .shared_memory = false});
}

/// With ranks that read each other's memory, whatever the size.
inline std::unique_ptr<comm::ProcessGroup> make_reading_group() {
  return make_native_group({.name = "reading", .single_copy = comm::SingleCopy::on});
}

/// Why the ranks cannot, or "". Collective when it is first called.
inline const std::string& reading_obstacle() {
  static const std::string obstacle = [] {
    try {
      make_reading_group();
      return std::string();
    } catch (const comm::AgreedError& error) {
      return std::string(error.what());
    }
  }();
  return obstacle;
}

/// A group on such a backend, or on native by messages, those that a progress thread moves on as well, or, where the
/// system lets ranks, by reading, by Catch2's generator: the test runs once with each.
inline std::unique_ptr<comm::ProcessGroup> each_group() {
  auto names = mpi_backends();
  names.push_back("messages");
  if (reading_obstacle().empty()) names.push_back("reading");
  names.push_back("messages, thread");
  const std::string_view name = GENERATE_COPY(from_range(names));
  const std::string_view backend = name.substr(0, name.find(','));
  auto group = backend == "messages"  ? make_message_group()
               : backend == "reading" ? make_reading_group()
                                      : comm::make_process_group(backend, environment());
  REQUIRE(group->name() == backend);
  if (backend != name) group->set_progress("thread");
  return group;
}

/// The text of the AgreedError that `body` throws.
template <typename Body>
std::string agreed_error_of(Body&& body) {
  try {
    body();
  } catch (const comm::AgreedError& error) {
    return error.what();
  }
  return "no AgreedError";
}

/// Whole numbers, different on every rank and at every place; sums over a few ranks are exact in every dtype.
inline double whole_number(int rank, std::int64_t index) {
  return static_cast<double>((rank * 7 + index * 13) % 41 - 20);
}

inline Tensor whole_numbers(int rank, const Shape& shape, DType dtype) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < element_count(shape); ++i) values.push_back(static_cast<float>(whole_number(rank, i)));
  const Tensor wide = Tensor::from(values, shape);
  if (dtype == DType::f32) return wide;
  Tensor result = Tensor::empty(shape, {dtype});
  dispatch_all(dtype, "whole_numbers", [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (std::size_t i = 0; i < values.size(); ++i) Out(result).data<T>()[i] = T(values[i]);
  });
  return result;
}

}  // namespace tandem::test
