// Folders of images: classes, files, batches, and folders that are not as they should be.
#include "tandem/data/image_folder.h"

#include "tandem/data/loader.h"
#include "tandem/data/make_dataset.h"
#include "tests/data/image_files.h"
#include "tests/support/catch.h"

#include <fmt/format.h>

using namespace tandem;
using namespace tandem::data;
using namespace tandem::test;

#if TANDEM_HAS_PNG
namespace {

/// Two classes: `cat` with 3 images of 6 x 8 pixels, `dog` with 2; image i is all (10 i, 20, 30).
void make_animals(const TemporaryFolder& folder) {
  for (int i = 0; i < 5; ++i) {
    const Bytes file = plain_png(6, 8, {static_cast<std::uint8_t>(10 * i), 20, 30});
    folder.write(fmt::format("{}/{}.{}", i < 3 ? "cat" : "dog", i, i == 1 ? "PNG" : "png"), file);
  }
  folder.write("cat/notes.txt", {'x'});
  folder.write("cat/.hidden.png", {'x'});
  folder.write(".cache/0.png", {'x'});
  folder.write("readme.png", {'x'});
}

}  // namespace

TEST_CASE("a folder for each class gives images with their numbers") {
  const TemporaryFolder folder;
  make_animals(folder);
  const ImageFolder set(folder.path());
  CHECK(set.class_names() == std::vector<std::string>{"cat", "dog"});
  REQUIRE(set.size() == 5);
  for (std::int64_t i = 0; i < 5; ++i) {
    CHECK(set.file(i).stem() == std::to_string(i));
    CHECK(set.label(i) == (i < 3 ? 0 : 1));
    const Example example = set.get(i);
    CHECK(example[0].shape() == Shape({3, 6, 8}));
    CHECK(example[0].to_vector<float>()[0] == Approx(static_cast<double>(10 * i) / 255).epsilon(1e-6));
    CHECK(example[1].item() == static_cast<double>(set.label(i)));
  }
  CHECK(error_of([&] { set.get(5); }) == "image folder: there is no image 5, of 5");
}

TEST_CASE("batches of files are those of the same images in memory, augmented alike, whatever the number of threads") {
  const TemporaryFolder folder;
  make_animals(folder);
  const ImageFolder set(folder.path(),
                        {.size = ImageSize{5, 5}, .mean = {0.5f, 0.4f, 0.3f}, .deviation = {0.2f, 0.3f, 0.4f}});
  const ImageDataset loaded = set.load();
  check(loaded);
  CHECK(loaded.classes() == 2);
  const DistributedSampler sampler(5, 1, 0, true, 3);
  LoaderOptions options{.global_batch_size = 2, .augment = parse_augment("crop=1,flip,jitter"), .seed = 8};
  Loader memory(loaded, sampler, options);
  for (const int threads : {0, 1, 3}) {
    options.threads = threads;
    Loader files(set, sampler, options);
    memory.start(1), files.start(1);
    while (const auto batch = files.next()) {
      const Batch expected = *memory.next();
      CHECK(batch->images.is_dense(Layout::channels_last));
      CHECK(batch->images.to_vector<float>() == expected.images.to_vector<float>());
      CHECK(batch->labels.to_vector<std::int64_t>() == expected.labels.to_vector<std::int64_t>());
    }
    CHECK_FALSE(memory.next().has_value());
  }
  Loader second(set, DistributedSampler(5, 2, 1, true, 3), options);
  second.start(0);
  second.next(), second.next();
  CHECK(second.next()->images.shape() == Shape({0, 3, 5, 5}));
  CHECK_THAT(error_of([&] { Loader(set, sampler, {.augment = parse_augment("crop-reflect=5")}); }),
             ContainsText("crop-reflect=5 needs images larger than that, the image folder's are 5 x 5"));
  CHECK_THAT(error_of([&] { Loader(set, sampler, {.augment = parse_augment("cutout-inside=6")}); }),
             ContainsText("cutout-inside=6 needs images as large as that, the image folder's are 5 x 5"));
}

TEST_CASE("images of several sizes need a common one") {
  const TemporaryFolder folder;
  folder.write("a/0.png", plain_png(6, 8));
  folder.write("a/1.png", plain_png(8, 6));
  const ImageFolder mixed(folder.path());
  const DistributedSampler sampler(2, 1, 0, false, 0);
  Loader loader(mixed, sampler, {.global_batch_size = 2});
  loader.start(0);
  CHECK(error_of([&] { loader.next(); }) ==
        fmt::format("{}: is 8 x 6 pixels, and {} is 6 x 8: give a common size (ImageFolderOptions::size)",
                    (folder / "a/1.png").string(), (folder / "a/0.png").string()));
  Loader common(ImageFolder(folder.path(), {.size = ImageSize{4, 4}, .channels = 1}), sampler,
                {.global_batch_size = 2});
  common.start(0);
  CHECK(common.next()->images.shape() == Shape({2, 1, 4, 4}));
  CHECK(mixed.get(1)[0].shape() == Shape({3, 8, 6}));
}

TEST_CASE("classes are those of another folder where that is said, and others are refused") {
  const TemporaryFolder folder;
  folder.write("train/a/0.png", plain_png(4, 4));
  folder.write("train/b/0.png", plain_png(4, 4));
  folder.write("test/b/0.png", plain_png(4, 4));
  folder.write("more/c/0.png", plain_png(4, 4));
  const ImageFolder train(folder / "train");
  const ImageFolder test(folder / "test", {.class_names = train.class_names()});
  CHECK(test.label(0) == 1);
  CHECK(test.classes() == 2);
  CHECK_THAT(error_of([&] { ImageFolder(folder / "more", {.class_names = train.class_names()}); }),
             ContainsText("more/c: is none of the 2 classes in class_names"));
  CHECK(error_of([&] { ImageFolder(folder / "train", {.class_names = {"a", "b", "a"}}); }) ==
        "image folder: class_names has 'a' twice; name each class once");
}

TEST_CASE("a damaged file ends the epoch with one error that names it") {
  const TemporaryFolder folder;
  make_animals(folder);
  Bytes cut = plain_png(6, 8);
  cut.resize(50);
  const auto file = folder.write("dog/cut.png", cut);
  const int threads = GENERATE(0, 2);
  Loader loader(ImageFolder(folder.path()), DistributedSampler(6, 1, 0, false, 0),
                {.global_batch_size = 2, .threads = threads});
  loader.start(0);
  loader.next(), loader.next();
  CHECK_THAT(error_of([&] { loader.next(); }), ContainsText(file.string() + ": not a sound PNG file: "));
  CHECK_FALSE(loader.next().has_value());
}

TEST_CASE("a transform of one's own sees an image of a folder as the others") {
  const TemporaryFolder folder;
  make_animals(folder);
  const auto set = std::make_shared<const ImageFolder>(folder.path());
  const auto reds = transformed(set, [](Example e) { return Example{e[0].narrow(0, 0, 1), e[1]}; });
  Loader loader(subset(reds, {4, 1}), DistributedSampler(2, 1, 0, false, 0), {.global_batch_size = 2});
  loader.start(0);
  const Batch batch = *loader.next();
  CHECK(batch.images.shape() == Shape({2, 1, 6, 8}));
  CHECK(batch.images.to_vector<float>()[0] == Approx(40.0 / 255).epsilon(1e-6));
  CHECK(batch.labels.to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 0});
}
#endif

TEST_CASE("folders without classes or images are refused, each in one line") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& name, const ImageFolderOptions& options = {}) {
    return error_of([&] { ImageFolder(folder / name, options); });
  };
  const std::string layout = "; an ImageFolder holds a folder for each class, with .png, .jpg or .jpeg files";
  CHECK(refusal("none") == (folder / "none").string() + ": no such folder" + layout);
  folder.write("file", {'x'});
  CHECK(refusal("file") == (folder / "file").string() + ": is a file" + layout);
  folder.write("flat/0.png", {'x'});
  CHECK(refusal("flat") == (folder / "flat").string() + ": holds no folder" + layout);
  folder.write("empty/a/0.png", {'x'});
  folder.write("empty/b/0.txt", {'x'});
  CHECK(refusal("empty") == (folder / "empty/b").string() + ": holds no image" + layout);
  std::filesystem::remove_all(folder / "empty/b");
  CHECK(refusal("empty") == "no error");
  folder.write("odd/a\nb/0.txt", {'x'});
  CHECK(refusal("odd") == (folder / "odd").string() + "/a\\x0ab: holds no image" + layout);
  folder.write("odd/a\nb/\x1b[0m.png", {'x'});
  const ImageFolder odd(folder / "odd");
  CHECK_THAT(error_of([&] { odd.image(0); }), ContainsText("/a\\x0ab/\\x1b[0m.png: is neither a PNG nor a JPEG file"));
  CHECK(odd.class_names() == std::vector<std::string>{"a\nb"});
  CHECK_THAT(refusal("empty", {.size = ImageSize{0, 3}}),
             ContainsText("image folder: size 0 x 3 must be 1 x 1 or more"));
  CHECK_THAT(refusal("empty", {.channels = 2}), ContainsText("2 channels asked for, expected 3 or 1"));
  CHECK_THAT(refusal("empty", {.mean = {0.5f}}), ContainsText("1 means for 3 channels"));
  CHECK_THAT(refusal("empty", {.deviation = {1, 0, 1}}), ContainsText("deviation 0 must be above 0"));
}

TEST_CASE("a folder that may not be read is refused") {
  const TemporaryFolder folder;
  folder.write("a/0.png", {'x'});
  std::filesystem::permissions(folder / "a", std::filesystem::perms::none);
  const std::string error = error_of([&] { ImageFolder(folder.path()); });
  std::filesystem::permissions(folder / "a", std::filesystem::perms::owner_all);
  if (error != "no error") CHECK_THAT(error, ContainsText("a: cannot be read: "));  // (root may read anything)
}
