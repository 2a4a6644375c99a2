// Data, model, loaders, optimizer, replicas, trainer.
#include "run_parts.h"

#include "muon_options.h"
#include "optimization.h"
#include "resident_data.h"
#include "tuning.h"

#include "apps/arguments/arguments.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/long_work.h"
#include "tandem/data/stratified_split.h"
#include "tandem/kernels/notice.h"
#include "tandem/layers/whitening.h"
#include "tandem/train/network_description.h"
#include "tandem/train/smallest_part.h"
#include "tandem/train/weights.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

namespace tandem::apps {
namespace {

/// Takes the validation images out of the training images.
void hold_out(Data& loaded, const Settings& s) {
  const data::ImageDataset& all = *loaded.train;
  const std::span<const std::int64_t> labels(all.labels.data<std::int64_t>(), static_cast<std::size_t>(all.size()));
  try {
    const data::StratifiedSplit split = data::stratified_split(labels, s.validation_split, s.trainer.seed);
    loaded.validation = std::make_shared<const data::ImageDataset>(data::subset(all, split.held_out));
    loaded.train = std::make_shared<const data::ImageDataset>(data::subset(all, split.kept));
  } catch (const Error& error) {
    fail("--validation-split {}: {}", s.validation_split, error.what());
  }
}

/// Makes layers of a network that are made of images from the first of those that it is to learn, as they are. Every
/// rank does so alike. Returns the seconds that it took; 0 where there are no such layers.
double initialize_from_images(layers::Module& model, const data::ImageDataset& images, std::int64_t most) {
  if (layers::whitening_layers(model).empty()) return 0.0;
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::int64_t> first(static_cast<std::size_t>(std::min(images.size(), most)));
  std::iota(first.begin(), first.end(), std::int64_t{0});
  layers::initialize_from(model, images.get_batch(first, 0, {}).front());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::unique_ptr<layers::Module> load_model(const Settings& s, const data::ImageDataset& images, Device device,
                                           double& whitening_seconds) {
  layers::ModelOptions options = s.model;
  options.in_channels = images.channels();
  options.image_size = images.height();
  options.classes = images.classes();
  options.seed = s.trainer.seed;
  auto model = layers::make_model(options);
  model->to(device);
  if (s.load_weights.empty()) {
    // --resume auto begins anew where there is no checkpoint.
    if (s.resume.empty() || s.resume == "auto")
      whitening_seconds = initialize_from_images(*model, images, s.whitening_images);
    return model;
  }
  std::string differences;
  try {
    differences = train::other_function(options, train::load_weights(*model, s.model.name, s.load_weights));
  } catch (const Error& error) {
    fail("--load-weights {}", error.what());
  }
  if (!differences.empty()) {
    kernels::notice(
        fmt::format("--load-weights {}: the network of these weights had {}: this one computes something else",
                    s.load_weights, differences));
  }
  return model;
}

/// Brings the model to its precision and makes its optimizer, whose masters keep all digits of the weights.
std::unique_ptr<optim::Optimizer> prepare(const Settings& s, layers::Module& model, std::int64_t steps) {
  std::vector<Tensor> full;  // what set_precision() rounds
  for (const Tensor& parameter : model.parameters()) full.push_back(parameter.detach());
  model.set_precision(s.precision);
  auto optimizer = optim::make_optimizer(model.parameters(), optimizer_options(s, steps));
  for (std::size_t i = 0; i < full.size(); ++i) {
    if (is_half(optimizer->parameters()[i].dtype())) optimizer->set_value(i, full[i]);
  }
  return optimizer;
}

/// Batch norm over parts of a batch takes whole ones only.
void check_ghost_batch(const Settings& s, const data::Loader& loader) {
  const bool has_one = std::ranges::any_of(layers::models(), [&](const layers::ModelEntry& network) {
    return network.name == s.model.name && network.has_ghost_batch;
  });
  const std::int64_t part = s.model.ghost_batch;
  if (!has_one || part == 0 || s.trainer.epochs == 0) return;
  const data::DistributedSampler& sampler = loader.sampler();
  const std::int64_t batch = loader.options().global_batch_size;
  const std::int64_t ranks = std::max<std::int64_t>(sampler.world_size(), sampler.micro_batches());
  require(batch % ranks == 0 && batch / ranks % part == 0,
          "--ghost-batch {}: the {} images that {} of {} has of a batch cannot be cut into parts of so many; choose "
          "another --global-batch-size",
          part, (batch + ranks - 1) / ranks, sampler.micro_batches() > 0 ? "a micro-batch" : "a rank", ranks);
  const data::BatchPart smallest = sampler.smallest_part(batch, loader.options().drop_last);
  require(smallest.global_count % (ranks * part) == 0,
          "--ghost-batch {}: the {} images of an epoch's last batch cannot be cut into parts of so many; leave it out "
          "by --drop-last",
          part, smallest.global_count);
}

std::unique_ptr<data::Loader> make_loader(const std::shared_ptr<const data::ImageDataset>& images,
                                          const comm::ProcessGroup& group, bool training, const Settings& s,
                                          Device device, bool resident) {
  const data::RankShare share{group.size(), group.rank(), static_cast<int>(s.canonical)};
  const data::DistributedSampler sampler(images->size(), share, training, s.trainer.seed);
  data::LoaderOptions options = s.loader;
  options.global_batch_size = micro_batch_size(s, group.size()) * group.size();
  options.drop_last = training && s.loader.drop_last && s.trainer.epochs > 0;
  if (training) options.augment = *s.augment;
  options.mix.classes = images->classes();
  if (!training) options.mix = {};
  options.seed = s.trainer.seed;
  options.dtype = storage_dtype(s.precision);
  options.device = device;
  options.resident = resident;
  return std::make_unique<data::Loader>(images, sampler, options);
}

}  // namespace

std::string shape_of(const data::ImageDataset& images) {
  return fmt::format("{}x{}x{}", images.channels(), images.height(), images.width());
}

Data load_data(const Settings& s) {
  const auto load = [&](data::Split split, std::int64_t limit) {
    data::DatasetRequest request = s.data;
    request.split = split;
    request.limit = limit;
    request.seed = s.trainer.seed;
    return naming_flags([&] { return std::make_shared<const data::ImageDataset>(data::load_dataset(request)); },
                        {"directory", "data"});
  };
  Data loaded{load(data::Split::train, s.limit_train), nullptr, load(data::Split::test, s.limit_test)};
  require(loaded.train->size() > 0 && loaded.test->size() > 0,
          "data set {}: {} training and {} test images are not enough", s.data.name, loaded.train->size(),
          loaded.test->size());
  const std::string train_shape = shape_of(*loaded.train), test_shape = shape_of(*loaded.test);
  require(train_shape == test_shape,
          "data set {}: training images are {}, test images {}: they must be alike; make them anew", s.data.name,
          train_shape, test_shape);
  require(loaded.train->height() == loaded.train->width(),
          "data set {}: images of {} are not square, as the networks need them; pad or crop them", s.data.name,
          train_shape);
  if (s.validation_split > 0.0) hold_out(loaded, s);
  return loaded;
}

Data SharedData::load(const Settings& settings) {
  std::call_once(once_, [&] { data_ = load_data(settings); });
  return data_;
}

Settings with_length(const Settings& given, std::int64_t train_images, std::int64_t ranks) {
  Settings s = given;
  if (s.trainer.steps == 0 && s.epochs == std::floor(s.epochs)) {
    s.trainer.epochs = static_cast<std::int64_t>(s.epochs);
    return s;
  }
  const std::int64_t batch = micro_batch_size(s, ranks) * ranks;
  const std::int64_t batches =
      data::DistributedSampler(train_images, 1, 0, false, 0).batches(batch, s.loader.drop_last);
  const std::int64_t in_epoch = (batches + s.trainer.accumulation - 1) / s.trainer.accumulation;
  require(in_epoch > 0, "--drop-last leaves nothing: {} training images do not fill a batch of {}", train_images,
          batch);
  if (s.trainer.steps == 0) s.trainer.steps = train::steps_in(s.epochs, in_epoch);
  s.trainer.epochs = (s.trainer.steps - 1) / in_epoch + 1;
  return s;
}

RunParts make_parts(const Settings& s, const Data& images, comm::ProcessGroup& group, Device device,
                    const std::function<void()>& check) {
  RunParts parts;
  parts.model = comm::run_agreed(group, [&] {
    const comm::LongWork reading;
    return load_model(s, *images.train, device, parts.whitening_seconds);
  });
  comm::check_same(group, "data",
                   fmt::format("training images={}\nvalidation images={}\ntest images={}\nclasses={}\nimage={}\n",
                               images.train->size(), images.validation == nullptr ? 0 : images.validation->size(),
                               images.test->size(), images.train->classes(), shape_of(*images.train)));
  const std::int64_t free_bytes = comm::run_agreed(group, [&] { return free_memory_of(device); });
  const FreeMemory free = least_free_memory(group, device, free_bytes);
  comm::run_agreed(group, [&] {
    require(s.trainer.cuda_graph != train::CudaGraph::on || device.type == DeviceType::cuda,
            "--cuda-graph on needs a GPU, and this run is on the CPU: choose auto or off");
    const auto [resident, images_text] = resident_data(s, images, device, free);
    parts.images_text = images_text;
    parts.train_loader = make_loader(images.train, group, true, s, device, resident);
    parts.test_loader = make_loader(images.test, group, false, s, device, resident);
    if (images.validation) parts.validation_loader = make_loader(images.validation, group, false, s, device, resident);
    check_ghost_batch(s, *parts.train_loader);
    const std::int64_t steps_per_epoch = train::steps_per_epoch(*parts.train_loader, s.trainer.accumulation);
    const std::int64_t steps = s.trainer.steps > 0 ? s.trainer.steps : s.trainer.epochs * steps_per_epoch;
    parts.optimizer = prepare(s, *parts.model, steps);
    if (s.trainer.epochs > 0) train::check_smallest_part(*parts.model, *parts.train_loader);
    parts.schedule = make_schedule(s, steps_per_epoch);
    parts.groups_text = add_parameter_groups(s, *parts.model, *parts.optimizer, steps_per_epoch);
    check();
  });
  parts.tuning_note = start_tuning(s, device);
  parts.replicas = std::make_unique<comm::DistributedDataParallel>(
      group, train::parameters_and_masters(*parts.model, *parts.optimizer), parts.model->named_buffers(),
      comm::DistributedOptions{
          .bucket_bytes = s.bucket_mb > 0.0 ? std::optional(std::llround(s.bucket_mb * (1 << 20))) : std::nullopt,
          .half = s.allreduce_dtype == "half" ? comm::HalfExchange::as_half : comm::HalfExchange::in_f32});
  parts.scaler = std::make_unique<optim::GradScaler>(make_scaler(s));
  parts.trainer = std::make_unique<train::Trainer>(
      train::TrainingParts{*parts.model, *parts.optimizer, *parts.schedule, group, *parts.replicas, *parts.train_loader,
                           parts.test_loader.get(), *parts.scaler, parts.validation_loader.get()},
      s.trainer);
  return parts;
}

}  // namespace tandem::apps
