#include "apps/allreduce_bench/groups.h"

#include <string>
#include <utility>

namespace tandem::allreduce_bench {

std::vector<NamedGroup> make_groups(comm::MpiEnvironment& environment, const BenchOptions& options) {
  const std::string network = options.network ? to_text(*options.network) : "";
  std::vector<NamedGroup> groups;
  for (const std::string& backend : options.backends) {
    auto group = comm::make_process_group(backend, environment);
    const std::string name(group->name());
    groups.push_back({name, std::move(group)});
  }
  for (const std::string& algorithm : options.algorithms)
    groups.push_back(
        {std::string(kAlgorithmOf) + algorithm,
         comm::make_process_group({.backend = "native", .algorithm = algorithm, .network = network}, environment),
         is_of_messages(algorithm) ? algorithm : "", true});
  return groups;
}

}  // namespace tandem::allreduce_bench
