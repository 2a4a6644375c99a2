// ImageFolder: images in files, a folder for each class.
#pragma once

#include "tandem/data/image_dataset.h"
#include "tandem/data/read_image.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tandem::data {

/// What is read, and how images become tensors of one size.
struct ImageFolderOptions {
  std::optional<ImageSize> size = {};  ///< what images are resized to; absent: those of a batch must be of one size
  ImageFit fit = ImageFit::crop;       ///< of images of another shape
  int channels = 3;                    ///< 3: colours, 1: grey
  std::vector<float> mean = {};        ///< of value / 255, per channel; empty: 0
  std::vector<float> deviation = {};   ///< per channel; empty: 1, so that values go from 0 to 1
  /// The classes and their order, as of another folder: a test set's labels mean what the training set's mean. Empty:
  /// the names of the folders, sorted.
  std::vector<std::string> class_names = {};
  std::int64_t max_pixels = 100'000'000;  ///< of a file; more are an error
};

/// FOLDER/CLASS/*.png, *.jpg and *.jpeg, in any case of letters: the label of an image is the number of its class.
/// Folders and files are sorted by name, byte by byte, so that every machine gives them the same numbers; names that
/// begin with a dot are passed over, as are other files. Files are looked for once and read when they are needed, by
/// read_image(). An example is an image f32 [C,H,W], normalised, and its label i64 []. Loaders augment these images as
/// those of an ImageDataset; LoaderOptions::threads lets several decode.
/// Example:
///     #include "tandem/data/loader.h"
///     void show(const std::filesystem::path& flowers) {
///       const ImageFolder training(flowers / "train", {.size = ImageSize{64, 64}});
///       const ImageFolder test(flowers / "test", {.size = ImageSize{64, 64}, .class_names = training.class_names()});
///       Loader loader(training, {training.size(), 1, 0, true, 1},
///                     {.global_batch_size = 32, .augment = parse_augment("crop=4,flip"), .threads = 4});
///       for (loader.start(0); const auto batch = loader.next();) fmt::print("{}\n", batch->images.size(0));
///     }
class ImageFolder final : public BatchSource {
 public:
  /// Throws Error where there is no such folder or it cannot be read, where it holds no folder of a class or a class no
  /// image, where class_names lacks a folder's name or has one twice, and for options that make no sense.
  explicit ImageFolder(const std::filesystem::path& folder, ImageFolderOptions options = {});

  /// Images, classes and their names; the file and the label of an image.
  /// @{
  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  std::int64_t classes() const { return static_cast<std::int64_t>(options_.class_names.size()); }
  const std::vector<std::string>& class_names() const { return options_.class_names; }
  const std::filesystem::path& file(std::int64_t index) const;
  std::int64_t label(std::int64_t index) const;
  /// @}

  /// The image as bytes: u8 [C,H,W], in the size that the options give, else its own. Throws Error as read_image(), and
  /// for a number that is none of an image.
  Tensor image(std::int64_t index) const;

  /// All images in memory, which takes a byte for each value: for folders that are read again and again. Throws Error
  /// where sizes differ, as get_batch().
  ImageDataset load() const;

  /// Throws Error for a reflecting crop as wide or as high as the images, or more, where the options give their size.
  void check_options(const BatchOptions& options) const override;
  /// Reads these files, and augments the images as the options say: see Dataset.
  std::vector<Tensor> get_batch(std::span<const std::int64_t> indices, std::uint32_t epoch,
                                const BatchOptions& options) const override;

 private:
  Tensor images(std::span<const std::int64_t> indices) const;

  ImageFolderOptions options_;
  std::vector<std::filesystem::path> files_;
  std::vector<std::int64_t> labels_;
};

}  // namespace tandem::data
