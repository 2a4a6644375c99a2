// Errors of a loader's options.
#include "tandem/data/loader_checks.h"

#include "tandem/core/describe.h"
#include "tandem/core/device.h"
#include "tandem/core/dtype.h"
#include "tandem/core/error.h"
#include "tandem/data/mixing.h"

namespace tandem::data {

namespace {

void check_batches(const LoaderOptions& options, const LoaderInput& input) {
  const std::int64_t most = options.global_batch_size;
  require(most >= 1, "loader: a batch needs 1 example or more, got batch size {}", most);
  require(
      input.sampler.micro_batches() == 0 || options.collate == nullptr,
      "loader: a collate function sees all examples of a rank, which are others on each number of ranks; leave it or "
      "the micro-batches (RankShare::micro_batches) out");
  require(!options.drop_last || !input.has_size || input.sampler.batches(most, true) > 0,
          "loader: drop_last leaves nothing: {} examples do not fill a batch of {}; choose a smaller batch",
          input.sampler.size(), most);
}

void check_threads(const LoaderOptions& options) {
  constexpr int kMostThreads = 256, kMostAhead = 1 << 16;
  require(options.threads >= 0 && options.threads <= kMostThreads && options.prefetch >= 1 &&
              options.prefetch <= kMostAhead,
          "loader: {} threads and {} batches ahead make no sense: give 0 to {} and 1 to {}", options.threads,
          options.prefetch, kMostThreads, kMostAhead);
}

void check_images(const LoaderOptions& options, const LoaderInput& input) {
  require(is_floating(options.dtype),
          "loader: dtype {} makes no sense: inputs of f32 become it, so give a floating one; others keep theirs",
          name_of(options.dtype));
  require(!options.augment.any() || input.is_images,
          "loader: augment is for images as bytes (ImageDataset, ImageFolder); give a transform for other data sets");
  check(options.mix);
  require(!options.mix.any() || input.makes_batches,
          "loader: mix is for images as bytes (ImageDataset, ImageFolder) without a transform or a collate function of "
          "one's own");
}

void check_resident(const LoaderOptions& options, const LoaderInput& input) {
  if (!options.resident) return;
  require(input.makes_batches,
          "loader: resident is for images as bytes without a transform or a collate function of one's own");
  require(!options.mix.any(), "loader: resident is not for mixed images, which are made on the CPU; leave one out");
  require(options.device == Device{} || options.dtype != DType::f64,
          "loader: resident batches are f32, f16 or bf16, not {}: leave resident or the dtype out",
          name_of(options.dtype));
}

}  // namespace

void check_options(const LoaderOptions& options, const LoaderInput& input) {
  check_batches(options, input);
  check_threads(options);
  require(!options.shuffle && options.share == RankShare{},
          "loader: shuffle and share are for data sets without a sampler of their own; give them to the sampler, and "
          "shuffle a stream where it is made");
  check_images(options, input);
  check_resident(options, input);
}

}  // namespace tandem::data
