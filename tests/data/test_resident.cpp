// On the CPU images are resident anyway; what cannot be resident is refused there, too.
#include "tandem/data/iterable_dataset.h"
#include "tandem/data/synthetic.h"
#include "tests/data/loader_epochs.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("on the CPU a resident loader is a loader", "[loader]") {
  const ImageDataset images = make_synthetic({.count = 10, .channels = 3, .side = 8});
  LoaderOptions options{.global_batch_size = 4, .augment = parse_augment("crop,flip"), .shuffle = true};
  Loader plain(images, options);
  options.resident = true;
  Loader resident(images, options);
  CHECK(run(plain, 1) == run(resident, 1));
  options.mix = {.mixup = 1.0, .classes = 10};
  CHECK_THAT(error_of([&] { const Loader loader(images, options); }), ContainsText("not for mixed images"));
}

TEST_CASE("a stream cannot be resident", "[loader]") {
  const auto none = [](std::uint32_t) { return [] { return std::optional<Example>(); }; };
  CHECK_THAT(error_of([&] { const Loader loader(stream_of(none), RankShare{}, {.resident = true}); }),
             ContainsText("resident is for images as bytes"));
}
