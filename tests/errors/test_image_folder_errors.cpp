// What users read of folders and files of images.
#include "tandem/data/image_folder.h"
#include "tests/errors/bad_calls.h"
#include "tests/support/temporary_directory.h"

using namespace tandem;
using namespace tandem::data;
using namespace tandem::test;

TEST_CASE("errors of image folders read as recorded", "[errors]") {
  const TemporaryDirectory folder;
  std::filesystem::create_directories(folder / "empty");
  std::filesystem::create_directories(folder / "classes/cat");
  std::filesystem::create_directories(folder / "barren/cat");
  write_bytes(folder / "file", "x");
  write_bytes(folder / "classes/cat/0.png", "no image");
  write_bytes(folder / "classes/cat/1.png", "");
  const std::filesystem::path classes = folder / "classes";
  const Tensor image = Tensor::zeros({3, 4, 4}, {.dtype = DType::u8});
  const auto makes = [&](const ImageFolderOptions& options) {
    return [=] { const ImageFolder set(classes, options); };
  };
  check_errors("image_folders",
               {
                   {"ImageFolder, nothing there", [&] { ImageFolder(folder / "none"); }},
                   {"ImageFolder, a file", [&] { ImageFolder(folder / "file"); }},
                   {"ImageFolder, no class", [&] { ImageFolder(folder / "empty"); }},
                   {"ImageFolder, a class without images", [&] { ImageFolder(folder / "barren"); }},
                   {"ImageFolder, 2 channels", makes({.channels = 2})},
                   {"ImageFolder, size 0", makes({.size = ImageSize{0, 8}})},
                   {"ImageFolder, two means", makes({.mean = {0.5f, 0.5f}})},
                   {"ImageFolder, a deviation too many", makes({.channels = 1, .deviation = {1.0f, 1.0f}})},
                   {"ImageFolder, deviation 0", makes({.deviation = {1.0f, 0.0f, 1.0f}})},
                   {"ImageFolder, other class names", makes({.class_names = {"dog"}})},
                   {"ImageFolder, a class name twice", makes({.class_names = {"cat", "dog", "cat"}})},
                   {"ImageFolder, no such image", [&] { static_cast<void>(ImageFolder(classes).file(2)); }},
                   {"ImageFolder, no such label", [&] { static_cast<void>(ImageFolder(classes).label(-1)); }},
                   {"ImageFolder, a file that is no image", [&] { ImageFolder(classes).get(0); }},
                   {"ImageFolder, an empty file", [&] { ImageFolder(classes).get(1); }},
                   {"read_image, nothing there", [&] { read_image(folder / "none.png"); }},
                   {"read_image, a folder", [&] { read_image(folder.path()); }},
                   {"read_image, 4 channels", [&] { read_image(folder / "file", {.channels = 4}); }},
                   {"resize_image, floats", [] { resize_image(Tensor::zeros({3, 4, 4}), {2, 2}); }},
                   {"resize_image, a batch", [&] { resize_image(image.unsqueeze(0), {2, 2}); }},
                   {"resize_image, size 0", [&] { resize_image(image, {2, 0}); }},
               },
               folder.path().string());
}
