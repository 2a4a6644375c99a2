// The table of data sets.
#include "tandem/data/load.h"

#include "tandem/core/suggest.h"
#include "tandem/data/cifar.h"
#include "tandem/data/directories.h"
#include "tandem/data/idx.h"
#include "tandem/data/synthetic.h"

#include <array>

namespace tandem::data {

namespace {

constexpr std::array<std::string_view, 5> kNames{"cifar10", "cifar100", "mnist", "fashion-mnist", "synthetic"};

std::filesystem::path find_directory(std::string_view name) {
  std::string tried;
  for (const auto& directory : default_directories(name)) {
    std::error_code unreadable;
    if (std::filesystem::is_directory(directory, unreadable)) return directory;
    tried += (tried.empty() ? "" : ", ") + directory.string();
  }
  fail("{}: no data directory found (tried {}); {}", name, tried, get_data_advice(name));
}

}  // namespace

std::span<const std::string_view> dataset_names() { return kNames; }

ImageDataset load_dataset(const DatasetRequest& request) {
  const std::string& name = request.name;
  if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) fail("{}", unknown_name("data set", name, kNames));
  require(request.limit >= 0, "{}: a limit of {} images makes no sense: give 1 or more, or 0 for all", name,
          request.limit);
  if (name == "synthetic") {
    const std::int64_t usual = request.split == Split::train ? 10000 : 2000;
    return make_synthetic(
        {.count = request.limit > 0 ? request.limit : usual, .seed = request.seed, .split = request.split});
  }
  const auto directory = request.directory.empty() ? find_directory(name) : request.directory;
  if (name == "cifar10") return load_cifar10(directory, request.split, request.limit);
  if (name == "cifar100") return load_cifar100(directory, request.split, request.limit);
  if (name == "mnist") return load_mnist(directory, request.split, request.limit);
  return load_fashion_mnist(directory, request.split, request.limit);
}

}  // namespace tandem::data
