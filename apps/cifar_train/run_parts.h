// What a run trains, made of its settings.
#pragma once

#include "settings.h"

#include "tandem/comm/process_group.h"
#include "tandem/data/image_dataset.h"
#include "tandem/layers/module.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/optimizer.h"
#include "tandem/optim/schedule.h"
#include "tandem/train/trainer.h"

#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace tandem::apps {

struct Data {
  std::shared_ptr<const data::ImageDataset> train;
  std::shared_ptr<const data::ImageDataset> validation;  // null: none
  std::shared_ptr<const data::ImageDataset> test;
};

Data load_data(const Settings& settings);

/// The images of ranks that are threads of one process: the first rank that asks reads them, for all.
class SharedData {
 public:
  /// Throws what load_data() throws, to each rank that asks. Several threads may call it at once.
  Data load(const Settings& settings);

 private:
  std::once_flag once_;
  Data data_;
};

/// "3x32x32"
std::string shape_of(const data::ImageDataset& images);

/// The same settings with the length of the run settled in `trainer`: of --steps, or of a part of an epoch, the steps
/// and the epochs that hold them; else the epochs alone. Throws Error where nothing fills a batch.
Settings with_length(const Settings& given, std::int64_t train_images, std::int64_t ranks);

/// Each uses those above it.
struct RunParts {
  std::unique_ptr<layers::Module> model;
  std::unique_ptr<data::Loader> train_loader, test_loader, validation_loader;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::Schedule> schedule;
  double whitening_seconds = 0.0;  ///< of layers that are made of images; 0 without
  std::string images_text;         ///< what resident_data() has to say
  std::string groups_text;         ///< what add_parameter_groups() has to say
  std::string tuning_note;         ///< what start_tuning() has to say
  std::unique_ptr<comm::DistributedDataParallel> replicas;
  std::unique_ptr<optim::GradScaler> scaler;
  std::unique_ptr<train::Trainer> trainer;
};

/// Makes them; `check` throws what else can be wrong, before anything is tuned or exchanged. `settings` must outlive
/// the result. Collective. Throws AgreedError.
RunParts make_parts(const Settings& settings, const Data& images, comm::ProcessGroup& group, Device device,
                    const std::function<void()>& check);

}  // namespace tandem::apps
