// Finding files and making batches of them.
#include "tandem/data/image_folder.h"

#include "tandem/core/describe.h"
#include "tandem/core/out.h"
#include "tandem/data/byte_reader.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <numeric>

namespace tandem::data {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kLayout = "an ImageFolder holds a folder for each class, with .png, .jpg or .jpeg files";

/// What is in a folder, sorted, without hidden entries.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error))
    if (!at->path().filename().string().starts_with('.')) entries.push_back(at->path());
  require(!error, "{}: cannot be read: {}; {}", path_text(folder), error.message(), kLayout);
  std::sort(entries.begin(), entries.end(),
            [](const fs::path& a, const fs::path& b) { return a.filename().string() < b.filename().string(); });
  return entries;
}

bool is_image(const fs::path& path) {
  constexpr std::array<std::string_view, 3> kEndings{".png", ".jpg", ".jpeg"};
  std::string ending = path.extension().string();
  for (char& letter : ending) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  std::error_code error;
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end() && !fs::is_directory(path, error);
}

std::vector<fs::path> class_folders(const fs::path& folder) {
  std::error_code error;
  require(fs::exists(folder, error), "{}: no such folder; {}", path_text(folder), kLayout);
  require(fs::is_directory(folder, error), "{}: is a file; {}", path_text(folder), kLayout);
  std::vector<fs::path> folders = entries_of(folder);
  std::erase_if(folders, [](const fs::path& path) {
    std::error_code unreadable;
    return !fs::is_directory(path, unreadable);
  });
  require(!folders.empty(), "{}: holds no folder; {}", path_text(folder), kLayout);
  return folders;
}

/// One for each channel.
std::vector<float> per_channel(std::vector<float> values, float usual, int channels, std::string_view name) {
  if (values.empty()) values.assign(static_cast<std::size_t>(channels), usual);
  require(std::ssize(values) == channels, "image folder: {} {} for {} channels: give one for each", values.size(), name,
          channels);
  return values;
}

}  // namespace

ImageFolder::ImageFolder(const fs::path& folder, ImageFolderOptions options) : options_(std::move(options)) {
  require(options_.channels == 3 || options_.channels == 1, "image folder: {} channels asked for, expected 3 or 1",
          options_.channels);
  const ImageSize size = options_.size.value_or(ImageSize{1, 1});
  require(size.height >= 1 && size.width >= 1, "image folder: size {} x {} must be 1 x 1 or more", size.height,
          size.width);
  options_.mean = per_channel(std::move(options_.mean), 0.0f, options_.channels, "means");
  options_.deviation = per_channel(std::move(options_.deviation), 1.0f, options_.channels, "deviations");
  for (const float value : options_.deviation)
    require(value > 0.0f, "image folder: deviation {} must be above 0", value);

  const std::vector<fs::path> folders = class_folders(folder);
  std::vector<std::string>& names = options_.class_names;
  if (names.empty())
    for (const fs::path& path : folders) names.push_back(path.filename().string());
  for (auto name = names.begin(); name != names.end(); ++name)
    require(std::find(names.begin(), name, *name) == name,
            "image folder: class_names has '{}' twice; name each class once", *name);
  for (const fs::path& path : folders) {
    const auto found = std::find(names.begin(), names.end(), path.filename().string());
    require(found != names.end(), "{}: is none of the {} classes in class_names; add it there, or remove the folder",
            path_text(path), names.size());
    const std::size_t before = files_.size();
    for (const fs::path& file : entries_of(path))
      if (is_image(file)) files_.push_back(file);
    require(files_.size() > before, "{}: holds no image; {}", path_text(path), kLayout);
    labels_.resize(files_.size(), found - names.begin());
  }
}

const fs::path& ImageFolder::file(std::int64_t index) const {
  require(index >= 0 && index < size(), "image folder: there is no image {}, of {}", index, size());
  return files_[static_cast<std::size_t>(index)];
}

std::int64_t ImageFolder::label(std::int64_t index) const {
  require(index >= 0 && index < size(), "image folder: there is no image {}, of {}", index, size());
  return labels_[static_cast<std::size_t>(index)];
}

Tensor ImageFolder::image(std::int64_t index) const {
  const Tensor stored = read_image(file(index), {.channels = options_.channels, .max_pixels = options_.max_pixels});
  return options_.size ? resize_image(stored, *options_.size, options_.fit) : stored;
}

/// u8 [N,C,H,W], row-major.
Tensor ImageFolder::images(std::span<const std::int64_t> indices) const {
  Tensor all;
  std::uint8_t* to = nullptr;
  for (const std::int64_t index : indices) {
    const Tensor one = image(index);
    if (!all.defined()) {
      all = Tensor::empty({std::ssize(indices), one.size(0), one.size(1), one.size(2)}, {.dtype = DType::u8});
      to = Out(all).data<std::uint8_t>();
    }
    require(one.size(1) == all.size(2) && one.size(2) == all.size(3),
            "{}: is {} x {} pixels, and {} is {} x {}: give a common size (ImageFolderOptions::size)",
            path_text(file(index)), one.size(1), one.size(2), path_text(file(indices[0])), all.size(2), all.size(3));
    std::memcpy(to, one.data<std::uint8_t>(), static_cast<std::size_t>(one.numel()));
    to += one.numel();
  }
  return all;
}

ImageDataset ImageFolder::load() const {
  const MemoryTagScope tag(MemoryTag::data);
  std::vector<std::int64_t> indices(files_.size());
  std::iota(indices.begin(), indices.end(), 0);
  ImageDataset dataset;
  dataset.name = files_.front().parent_path().parent_path().string();
  dataset.images = images(indices);
  dataset.labels = Tensor::from(labels_, {size()});
  dataset.class_names = options_.class_names;
  dataset.mean = options_.mean;
  dataset.deviation = options_.deviation;
  return dataset;
}

void ImageFolder::check_options(const BatchOptions& options) const {
  if (options_.size) check_size(options.augment, options_.size->height, options_.size->width, "the image folder's are");
}

std::vector<Tensor> ImageFolder::get_batch(std::span<const std::int64_t> indices, std::uint32_t epoch,
                                           const BatchOptions& options) const {
  const MemoryTagScope tag(MemoryTag::data);
  const auto count = static_cast<std::int64_t>(indices.size());
  const std::int64_t first = 0;
  const Tensor bytes = images(count > 0 ? indices : std::span(&first, 1));
  const Tensor batch =
      Tensor::empty({count, bytes.size(1), bytes.size(2), bytes.size(3)},
                    {.dtype = options.dtype, .layout = Layout::channels_last, .pinned = options.pinned});
  const Tensor labels = Tensor::empty({count}, {.dtype = DType::i64, .pinned = options.pinned});
  if (count == 0) return {batch, labels};
  std::vector<std::int64_t> places(indices.size());
  std::iota(places.begin(), places.end(), 0);
  kernels::augment_images(bytes, places,
                          draw_augments(options.augment, options.seed, epoch, indices, bytes.size(2), bytes.size(3)),
                          {options_.mean, options_.deviation, options.augment.crop_border}, Out(batch));
  std::transform(indices.begin(), indices.end(), Out(labels).data<std::int64_t>(),
                 [this](std::int64_t index) { return label(index); });
  return {batch, labels};
}

}  // namespace tandem::data
