// Tells the classes of a folder's images apart: image_folder FOLDER, which holds train/CLASS/*.png and test/CLASS/*.png
#include <tandem/tandem.h>
using namespace tandem;

int main(int argc, char** argv) {
  return comm::run_program([&](comm::MpiEnvironment& environment) {
    require(argc == 2, "usage: image_folder FOLDER");
    const std::filesystem::path folder = argv[1];
    data::ImageFolderOptions options{
        .size = data::ImageSize{16, 16}, .channels = 1, .mean = {0.5f}, .deviation = {0.25f}};
    const data::ImageFolder training(folder / "train", options);
    options.class_names = training.class_names();  // labels of both mean the same
    const data::ImageFolder testing(folder / "test", options);

    const auto group = comm::make_process_group("auto", environment);
    const data::RankShare share{group->size(), group->rank()};
    data::Loader loader(training, {.global_batch_size = 16,
                                   .augment = data::parse_augment("crop=1"),
                                   .seed = 1,
                                   .shuffle = true,
                                   .share = share,
                                   .threads = 2});
    data::Loader test(testing, {.global_batch_size = 64, .share = share});

    layers::Initializer initializer(1);
    layers::Sequential model;
    model.add<layers::Conv2d>({.in = 1, .out = 8, .kernel = 3, .stride = 2, .relu = true}, initializer);
    model.add<layers::Flatten>();
    model.add<layers::Linear>({.in = 8 * 7 * 7, .out = training.classes()}, initializer);
    optim::Adam adam(model.parameters(), {.lr = 1e-2});
    train::Trainer trainer(model, adam, loader, {.test = &test, .group = group.get()});
    const train::EpochRecord last = trainer.fit(5);
    if (share.rank == 0)
      fmt::print("{:.0f} % of {} images are classified correctly\n", last.test_accuracy, testing.size());
    return 0;
  });
}
