// Making batches.
#include "tandem/data/loader.h"

#include "tandem/core/describe.h"
#include "tandem/core/out.h"
#include "tandem/core/serial_scope.h"
#include "tandem/data/batch_source.h"
#include "tandem/data/batch_upload.h"
#include "tandem/data/loader_checks.h"
#include "tandem/data/prefetcher.h"
#include "tandem/kernels/cast/cast.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <vector>

namespace tandem::data {

namespace {

/// What `call` gives. What it throws, whatever it is, becomes an Error that begins with what `where` gives, which is
/// called for that alone.
template <typename Where, typename Call>
auto naming(Where&& where, Call&& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    fail("loader: {}: {}", where(), error.what());
  } catch (...) {
    fail("loader: {}: threw something that is no std::exception", where());
  }
}

/// "examples 3, 17, 4, ..." for messages.
std::string text_of(std::span<const std::int64_t> indices) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (const std::int64_t index : indices.first(std::min(kShown, indices.size())))
    text += fmt::format("{}{}", text.empty() ? "" : ", ", index);
  return fmt::format("{} {}{}", indices.size() == 1 ? "example" : "examples", text,
                     indices.size() > kShown ? ", ..." : "");
}

/// The options of a loader whose sampler has order and share.
LoaderOptions without_order(LoaderOptions options) {
  options.shuffle = false;
  options.share = {};
  return options;
}

/// Tensors like these, without rows.
std::vector<Tensor> without_rows(std::vector<Tensor> tensors) {
  for (Tensor& tensor : tensors) {
    Shape shape = tensor.shape();
    if (shape.rank() > 0) shape[0] = 0;
    tensor = Tensor::empty(shape, tensor.options(Layout::channels_last));
  }
  return tensors;
}

}  // namespace

struct Loader::State {
  State(const DistributedSampler& part_of, const LoaderOptions& given)
      : sampler(part_of), options(given), copies(given.device) {}
  ~State() { stop(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // One of these two.
  std::shared_ptr<const Dataset> dataset;
  std::shared_ptr<IterableDataset> stream;
  const BatchSource* source = nullptr;  // the data set, or its copy on the device, if whole batches are asked of it
  std::shared_ptr<const BatchSource> resident;  // that copy
  DistributedSampler sampler;
  LoaderOptions options;
  std::optional<std::int64_t> stream_size;

  std::vector<std::int64_t> order;
  std::uint32_t epoch = 0;
  std::int64_t skipped = 0;   // batches at the epoch's beginning
  bool defers = false;        // images of a GPU are made when they are taken
  std::int64_t position = 0;  // in the stream
  bool stream_ended = false;
  Stream copies;
  std::atomic<bool> stopping = false;
  std::unique_ptr<Prefetcher<UploadedBatch>> prefetcher;  // last: its threads use the rest

  LoaderInput input() const;
  void make_resident();
  void start(std::uint32_t number, std::int64_t skip, bool defers_images);
  void stop();

  BatchOptions batch_options() const { return {options.augment, options.seed, options.dtype, pinned()}; }
  bool pinned() const { return options.device != Device{}; }

  Example example(std::int64_t index) const;
  Example transform(Example example, std::int64_t index) const;
  std::vector<Tensor> collate(std::span<const Example> examples, std::span<const std::int64_t> indices) const;
  std::vector<Tensor> of_source(std::span<const std::int64_t> indices) const;
  std::vector<Tensor> tensors_of(std::span<const std::int64_t> indices) const;
  Tensor settle(const Tensor& tensor, bool is_input, bool as_asked) const;

  UploadedBatch make(std::int64_t index);
  UploadedBatch gather(std::int64_t index) const;
  void pass_over_skipped();
  std::optional<Batch> read(std::int64_t index);
};

LoaderInput Loader::State::input() const {
  return {.sampler = sampler,
          .has_size = stream == nullptr || stream_size.has_value(),
          .is_images = dynamic_cast<const BatchSource*>(dataset.get()) != nullptr,
          .makes_batches = source != nullptr};
}

/// The copy belongs to the stream on which batches are made of it.
void Loader::State::make_resident() {
  if (!options.resident || options.device == Device{}) return;
  const StreamScope scope(copies);
  resident = source->resident_on(options.device);
  require(resident != nullptr, "loader: resident is for images in memory (ImageDataset), and this data set reads them");
  source = resident.get();
}

void Loader::State::stop() {
  stopping = true;
  prefetcher.reset();
  stopping = false;
}

void Loader::State::start(std::uint32_t number, std::int64_t skip, bool defers_images) {
  require(skip >= 0, "loader: cannot begin an epoch behind {} batches; give 0 or more", skip);
  stop();
  epoch = number;
  skipped = skip;
  defers = defers_images;
  std::int64_t count = std::numeric_limits<std::int64_t>::max();  // a stream ends where it ends
  int threads = options.threads;
  if (stream != nullptr) {
    position = 0;
    stream_ended = false;
    naming([] { return "start of the stream"; }, [&] { return stream->start(number), true; });
    threads = std::min(threads, 1);
  } else {
    order = sampler.order(number);
    count = std::max<std::int64_t>(sampler.batches(options.global_batch_size, options.drop_last) - skip, 0);
  }
  prefetcher =
      std::make_unique<Prefetcher<UploadedBatch>>(count, threads, options.prefetch, [this](std::int64_t index) {
        const StreamScope scope(copies);   // before pinned memory is taken: in the context of this device
        std::optional<SerialScope> alone;  // a team of threads would compete with training
        if (options.threads > 0) alone.emplace();
        return upload(make(index), copies);
      });
}

Example Loader::State::transform(Example example, std::int64_t index) const {
  if (options.transform == nullptr) return example;
  ExampleRandom random(options.seed, epoch, index);
  return options.transform(std::move(example), random);
}

/// Example `index` of the data set, transformed; of images also augmented.
Example Loader::State::example(std::int64_t index) const {
  require(!stopping, "loader: stopped");  // nobody waits for this batch any more
  return naming([&] { return fmt::format("example {}", index); },
                [&] {
                  const auto* images =
                      options.augment.any() ? dynamic_cast<const BatchSource*>(dataset.get()) : nullptr;
                  if (images == nullptr) return transform(dataset->get(index), index);
                  Example example = images->get_batch({&index, 1}, epoch, {options.augment, options.seed});
                  for (Tensor& tensor : example) tensor = tensor.select(0, 0);
                  return transform(std::move(example), index);
                });
}

/// In the dtype, layout and memory of batches. `as_asked`: the latter two are right.
Tensor Loader::State::settle(const Tensor& tensor, bool is_input, bool as_asked) const {
  const DType dtype = is_input && tensor.dtype() == DType::f32 ? options.dtype : tensor.dtype();
  as_asked = as_asked || (!pinned() && tensor.is_dense(Layout::channels_last));
  if (as_asked && dtype == tensor.dtype()) return tensor;
  const Tensor settled =
      Tensor::empty(tensor.shape(), {.dtype = dtype, .layout = Layout::channels_last, .pinned = pinned()});
  if (dtype == tensor.dtype()) {
    settled.copy_from(tensor.detach());
  } else {
    kernels::cast(tensor.detach(), Out(settled));
  }
  return settled;
}

std::vector<Tensor> Loader::State::collate(std::span<const Example> examples,
                                           std::span<const std::int64_t> indices) const {
  const bool own = options.collate != nullptr;
  const auto where = [&] { return "collate of " + text_of(indices); };
  std::vector<Tensor> tensors =
      own ? naming(where, [&] { return options.collate(examples); }) : default_collate(examples, indices, pinned());
  require(!tensors.empty(), "loader: collate made no tensor; it must return one or more");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    require(tensors[i].defined() && tensors[i].device() == Device{},
            "loader: collate must make tensors on the CPU, and tensor {} is {}", i,
            tensors[i].defined() ? fmt::format("on {}", tensors[i].device()) : "undefined");
    tensors[i] = settle(tensors[i], i + 1 < tensors.size() || i == 0, !own);
  }
  return tensors;
}

/// Errors of a source say which file or row they are about; what else it throws is told with the batch.
std::vector<Tensor> Loader::State::of_source(std::span<const std::int64_t> indices) const {
  try {
    return options.mix.any() ? mixed_batch(*source, indices, epoch, batch_options(), options.mix)
                             : source->get_batch(indices, epoch, batch_options());
  } catch (const Error&) {
    throw;
  } catch (...) {
    return naming([&] { return text_of(indices); }, []() -> std::vector<Tensor> { throw; });
  }
}

std::vector<Tensor> Loader::State::tensors_of(std::span<const std::int64_t> indices) const {
  if (source != nullptr) {
    std::vector<Tensor> tensors = of_source(indices);
    for (std::size_t i = 0; i < tensors.size(); ++i)
      tensors[i] = settle(tensors[i], i + 1 < tensors.size() || i == 0, true);
    return tensors;
  }
  if (indices.empty()) return without_rows(tensors_of({order.data(), 1}));
  std::vector<Example> examples;
  for (const std::int64_t index : indices) examples.push_back(example(index));
  return collate(examples, indices);
}

/// Runs in a background thread, as all that it calls.
UploadedBatch Loader::State::make(std::int64_t index) {
  const MemoryTagScope tag(MemoryTag::data);
  return stream != nullptr ? UploadedBatch{read(skipped + index)} : gather(skipped + index);
}

UploadedBatch Loader::State::gather(std::int64_t index) const {
  const BatchPart part = sampler.part(index, options.global_batch_size);
  const auto indices =
      std::span(order).subspan(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.count));
  Batch batch;
  std::optional<ImagesToMake> images;
  if (defers && source != nullptr) images = source->defer_batch(indices, epoch, batch_options(), batch.tensors);
  if (!images) batch.tensors = tensors_of(indices);
  batch.index = index;
  batch.local_count = part.count;
  batch.global_count = part.global_count;
  return {std::move(batch), std::move(images).value_or(ImagesToMake{})};
}

/// Brings the stream to its first batch that is wanted, or to its end.
void Loader::State::pass_over_skipped() {
  const std::int64_t size = stream_size.value_or(std::numeric_limits<std::int64_t>::max());
  const std::int64_t most = options.global_batch_size;
  const std::int64_t end = skipped > size / most ? size : skipped * most;
  bool more = true;
  while (position < end && more) {
    require(!stopping, "loader: stopped");
    more = naming([&] { return fmt::format("example {} of the stream", position); }, [&] { return stream->skip(); });
    if (more) ++position;
  }
}

std::optional<Batch> Loader::State::read(std::int64_t index) {
  if (std::exchange(stream_ended, true)) return std::nullopt;  // also after an error
  if (index == skipped) pass_over_skipped();
  const std::int64_t most = options.global_batch_size;
  const std::int64_t wanted = stream_size ? std::min(most, *stream_size - position) : most;
  std::vector<Example> examples;
  std::vector<std::int64_t> numbers;
  std::int64_t count = 0;
  for (bool more = true; count < wanted; ++count) {
    require(!stopping, "loader: stopped");
    const std::int64_t number = position + count;
    naming([&] { return fmt::format("example {} of the stream", number); },
           [&] {
             if (count % sampler.world_size() != sampler.rank()) return more = stream->skip();
             std::optional<Example> example = stream->next();
             more = example.has_value();
             if (!more) return false;
             examples.push_back(transform(std::move(*example), number));
             numbers.push_back(number);
             return true;
           });
    if (!more) break;
  }
  require(!stream_size || count == wanted, "loader: the stream ended behind example {}, and its size() is {}",
          position + count, stream_size.value_or(0));
  position += count;
  if (count == 0 || (options.drop_last && count < most)) return std::nullopt;
  stream_ended = count < most;
  Batch batch;
  if (!examples.empty()) batch.tensors = collate(examples, numbers);
  batch.index = index;
  batch.local_count = static_cast<std::int64_t>(examples.size());
  batch.global_count = count;
  return batch;
}

Loader::Loader(std::shared_ptr<const Dataset> dataset, const DistributedSampler& sampler,
               const LoaderOptions& options) {
  require(dataset != nullptr, "loader: got no data set (a null pointer)");
  state_ = std::make_unique<State>(sampler, options);
  State& state = *state_;
  state.dataset = std::move(dataset);
  const auto* const source = dynamic_cast<const BatchSource*>(state.dataset.get());
  if (source != nullptr) source->check_options(state.batch_options());
  require(sampler.size() == state.dataset->size(),
          "loader: the sampler orders {} examples, the data set has {}; make it of dataset.size()", sampler.size(),
          state.dataset->size());
  if (options.transform == nullptr && options.collate == nullptr) state.source = source;
  check_options(options, state.input());
  state.make_resident();
}

Loader::Loader(const std::shared_ptr<const Dataset>& dataset, const LoaderOptions& options)
    : Loader(dataset,
             DistributedSampler(dataset == nullptr ? 0 : dataset->size(), options.share, options.shuffle, options.seed),
             without_order(options)) {}

Loader::Loader(std::shared_ptr<IterableDataset> stream, const RankShare& share, const LoaderOptions& options) {
  require(stream != nullptr, "loader: got no stream (a null pointer)");
  require(
      share.micro_batches == 0,
      "loader: a stream's examples go to ranks in turns, and make no micro-batches (RankShare::micro_batches); read "
      "them into a data set");
  const std::optional<std::int64_t> size = stream->size();
  state_ =
      std::make_unique<State>(DistributedSampler(size.value_or(0), share.world_size, share.rank, false, 0), options);
  state_->stream = std::move(stream);
  state_->stream_size = size;
  check_options(options, state_->input());
  state_->make_resident();
}

Loader::~Loader() = default;

void Loader::start(std::uint32_t epoch, std::int64_t skip, bool defers) { state_->start(epoch, skip, defers); }

std::optional<Batch> Loader::next() {
  std::optional<DeferredBatch> batch = next_deferred();
  return batch ? std::optional(batch->whole()) : std::nullopt;
}

std::optional<DeferredBatch> Loader::next_deferred() {
  require(state_->prefetcher != nullptr, "loader: call start(epoch) before next()");
  std::optional<UploadedBatch> uploaded = state_->prefetcher->next();
  if (!uploaded || !uploaded->batch) return std::nullopt;
  return receive(*std::move(uploaded), state_->options.device);
}

std::int64_t Loader::batches() const {
  require(state_->stream == nullptr || state_->stream_size.has_value(),
          "loader: how many examples this stream has is not known before its end: give it a size (stream_of() takes "
          "one), or "
          "loop over next()");
  return state_->sampler.batches(state_->options.global_batch_size, state_->options.drop_last);
}

std::int64_t Loader::images_per_epoch() const {
  return std::min(batches() * state_->options.global_batch_size, state_->sampler.size());
}

std::optional<Batch> Loader::zeros(std::int64_t count) const {
  if (state_->stream != nullptr || state_->sampler.size() == 0) return std::nullopt;
  const MemoryTagScope tag(MemoryTag::data);
  const std::int64_t first = 0;
  Batch batch;
  {
    const StreamScope scope(state_->copies);
    batch.tensors = state_->tensors_of({&first, 1});
  }
  for (Tensor& tensor : batch.tensors) {
    if (tensor.rank() == 0 || tensor.size(0) != 1) return std::nullopt;
    Shape shape = tensor.shape();
    shape[0] = count;
    tensor = Tensor::zeros(
        shape, {.dtype = tensor.dtype(), .layout = Layout::channels_last, .device = state_->options.device});
  }
  batch.images = batch.tensors.front();
  batch.labels = batch.tensors.back();
  batch.local_count = batch.global_count = count;
  return batch;
}

const Dataset& Loader::dataset() const {
  require(state_->dataset != nullptr, "loader: it reads a stream, and has no data set with numbers");
  return *state_->dataset;
}
const DistributedSampler& Loader::sampler() const { return state_->sampler; }
const LoaderOptions& Loader::options() const { return state_->options; }

}  // namespace tandem::data
