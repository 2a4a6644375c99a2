// Making batches.
#include "tandem/data/loader.h"

#include "tandem/core/out.h"
#include "tandem/data/prefetcher.h"

#include <algorithm>
#include <vector>

namespace tandem::data {

namespace {

/// A batch on its way: `copied` is passed once it has arrived on its device.
struct UploadedBatch {
  Batch batch;
  Event copied;
};

/// Starts the copies of a batch in pinned memory on `stream`, which is the current one of its device.
UploadedBatch upload(Batch batch, const Stream& stream) {
  UploadedBatch uploaded{std::move(batch), Event()};
  if (stream.device() == Device{}) return uploaded;
  const MemoryTagScope tag(MemoryTag::data);
  for (Tensor* const tensor : {&uploaded.batch.images, &uploaded.batch.labels}) {
    const Tensor there =
        Tensor::empty(tensor->shape(), {.dtype = tensor->dtype(),
                                        .layout = tensor->rank() == 4 ? Layout::channels_last : Layout::row_major,
                                        .device = stream.device()});
    there.copy_from_async(*tensor);
    *tensor = there;
  }
  uploaded.copied.record(stream);
  return uploaded;
}

/// Makes an uploaded batch the current stream's.
Batch receive(UploadedBatch uploaded) {
  const Stream stream = current_stream(uploaded.batch.images.device());
  stream.wait(uploaded.copied);
  for (const Tensor& tensor : {uploaded.batch.images, uploaded.batch.labels}) tensor.storage()->record_stream(stream);
  return std::move(uploaded.batch);
}

}  // namespace

struct Loader::State {
  std::shared_ptr<const Dataset> dataset;
  DistributedSampler sampler;
  LoaderOptions options;
  std::vector<std::int64_t> order = {};
  std::uint32_t epoch = 0;
  Stream stream = {};                                               // of the copies
  std::unique_ptr<Prefetcher<UploadedBatch>> prefetcher = nullptr;  // last: its threads use the rest

  Batch make(std::int64_t index) const;
};

/// Runs in a background thread: nothing here may start a team of threads, which would compete with training.
Batch Loader::State::make(std::int64_t index) const {
  const MemoryTagScope tag(MemoryTag::data);
  const BatchPart part = sampler.part(index, options.global_batch_size);
  const auto indices =
      std::span(order).subspan(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.count));
  const std::int64_t height = dataset->height(), width = dataset->width();
  const bool pinned = options.device != Device{};
  Batch batch{.images = Tensor::empty({part.count, dataset->channels(), height, width},
                                      {.dtype = options.dtype, .layout = Layout::channels_last, .pinned = pinned}),
              .labels = Tensor::empty({part.count}, {.dtype = DType::i64, .pinned = pinned}),
              .index = index,
              .global_count = part.global_count};
  if (part.count == 0) return batch;

  std::vector<kernels::ImageAugment> augments;
  if (options.augment.any())
    for (const std::int64_t image : indices)
      augments.push_back(draw_augment(options.augment, options.seed, epoch, image, height, width));
  kernels::augment_images(dataset->images, indices, augments,
                          {dataset->mean, dataset->deviation, options.augment.crop_border}, Out(batch.images));
  const auto* labels = dataset->labels.data<std::int64_t>();
  std::transform(indices.begin(), indices.end(), Out(batch.labels).data<std::int64_t>(),
                 [labels](std::int64_t image) { return labels[image]; });
  return batch;
}

Loader::Loader(std::shared_ptr<const Dataset> dataset, const DistributedSampler& sampler,
               const LoaderOptions& options) {
  require(dataset != nullptr, "loader: no data set given");
  check(*dataset);
  require(sampler.size() == dataset->size(), "loader: the sampler orders {} images, data set '{}' has {}",
          sampler.size(), dataset->name, dataset->size());
  require(options.global_batch_size >= 1, "loader: a batch needs 1 image or more, got batch size {}",
          options.global_batch_size);
  require(!options.drop_last || sampler.batches(options.global_batch_size, true) > 0,
          "loader: drop_last leaves nothing: {} images do not fill a batch of {}; choose a smaller batch",
          sampler.size(), options.global_batch_size);
  require(options.threads >= 0 && options.threads <= 256 && options.prefetch >= 1,
          "loader: {} threads and {} batches ahead make no sense: give 0 to 256 and 1 or more", options.threads,
          options.prefetch);
  require(is_floating(options.dtype), "loader: images of {} make no sense: give a floating dtype",
          name_of(options.dtype));
  require(!options.augment.crop || options.augment.crop_border == kernels::BorderMode::zero ||
              *options.augment.crop < std::min(dataset->height(), dataset->width()),
          "loader: crop-reflect={} needs images larger than that, data set '{}' has {} x {}",
          options.augment.crop.value_or(0), dataset->name, dataset->height(), dataset->width());
  state_ = std::make_unique<State>(
      State{.dataset = std::move(dataset), .sampler = sampler, .options = options, .stream = Stream(options.device)});
}

Loader::~Loader() = default;

void Loader::start(std::uint32_t epoch) {
  State& state = *state_;
  state.prefetcher.reset();
  state.epoch = epoch;
  state.order = state.sampler.order(epoch);
  state.prefetcher = std::make_unique<Prefetcher<UploadedBatch>>(
      batches(), state.options.threads, state.options.prefetch, [&state](std::int64_t index) {
        const StreamScope scope(state.stream);  // before pinned memory is taken: in the context of this device
        return upload(state.make(index), state.stream);
      });
}

std::optional<Batch> Loader::next() {
  require(state_->prefetcher != nullptr, "loader: call start(epoch) before next()");
  std::optional<UploadedBatch> uploaded = state_->prefetcher->next();
  if (!uploaded) return std::nullopt;
  return receive(std::move(*uploaded));
}

std::int64_t Loader::batches() const {
  return state_->sampler.batches(state_->options.global_batch_size, state_->options.drop_last);
}

std::int64_t Loader::images_per_epoch() const {
  return std::min(batches() * state_->options.global_batch_size, state_->sampler.size());
}

const Dataset& Loader::dataset() const { return *state_->dataset; }
const DistributedSampler& Loader::sampler() const { return state_->sampler; }
const LoaderOptions& Loader::options() const { return state_->options; }

}  // namespace tandem::data
