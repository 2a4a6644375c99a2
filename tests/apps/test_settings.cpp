// Options: limits, defaults that depend on others, precedence, batches per rank.
#include "settings.h"

#include "tests/apps/parsed_settings.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

#include "command_line.h"
#include "help_text.h"
#include "optimization.h"
#include "run_parts.h"
#include "tandem/core/device_query.h"
#include "tandem/core/error.h"
#include "tandem/train/config_value.h"
#include "tandem/train/test_time_augmentation.h"

#include <fmt/ranges.h>

#include <cmath>
#include <fstream>
#include <sstream>

using namespace tandem::apps;
using tandem::test::ContainsText;
namespace test = tandem::test;
namespace train = tandem::train;

TEST_CASE("options say whether they affect the result") {
  Parsed p;
  parse(p, {});
  const std::vector<std::string> names = p.table.names_without_effect();
  const auto has = [&](const char* name) { return std::ranges::find(names, name) != names.end(); };
  for (const char* const name :
       {"data",           "save-weights",   "log",        "log-norms",   "per-class", "log-every",        "profile",
        "log-dead-relus", "trace",          "histograms", "progress",    "run-dir",   "checkpoint-every", "keep",
        "resume",         "check-replicas", "threads",    "tuning-file", "best-by",   "on-save-error",    "find-nan"}) {
    INFO(name);
    CHECK(has(name));
  }
  // Whatever is shown, or says where files are, has none; all that is about data, network and training has one.
  for (const Option& option : p.table.options()) {
    INFO(option.name);
    if (option.group == "Output") CHECK(has(option.name.c_str()));
    if (option.group == "Training" || option.group == "Precision") CHECK(!has(option.name.c_str()));
    if (option.value_name == "FILE" || option.value_name == "DIR")
      CHECK(has(option.name.c_str()) == (option.name != "load-weights" && option.name != "comm-costs"));
  }
  CHECK((!has("lr") && !has("seed") && !has("batch-norm") && !has("limit-test") && !has("backend")));
  Parsed early;  // what is best decides when the run ends
  parse(early, {"--early-stopping", "3"});
  CHECK(std::ranges::count(early.table.names_without_effect(), std::string("best-by")) == 0);
}

TEST_CASE("without options the defaults hold") {
  Parsed p;
  parse(p, {});
  CHECK(p.request == Request::run);
  CHECK(p.settings.model.name == "small_cnn");
  CHECK(p.settings.optimizer.name == "sgd");
  CHECK(*p.settings.optimizer.momentum == 0.9);
  CHECK(*p.settings.optimizer.nesterov);
  CHECK(*p.settings.global_batch_size == 128);
  CHECK_FALSE(p.settings.batch_size.has_value());
}

TEST_CASE("Muon has a rate for filters and one for all else") {
  Parsed plain, chosen;
  parse(plain, {"--optimizer", "muon"});
  CHECK(*plain.settings.optimizer.lr == 0.24);
  CHECK(*plain.settings.optimizer.aux_lr == 0.1);
  CHECK(*plain.settings.optimizer.normalize_filters);
  parse(chosen, {"--optimizer", "muon", "--lr", "0.02", "--aux-lr", "0.5", "--no-normalize-filters"});
  CHECK(*chosen.settings.optimizer.lr == 0.02);
  CHECK(*chosen.settings.optimizer.aux_lr == 0.5);
  CHECK_FALSE(*chosen.settings.optimizer.normalize_filters);
}

TEST_CASE("a network to simulate is told in words") {
  Parsed p;
  parse(p, {"--simulate-network", "alpha=2ms beta=1Gbit hosts=2x2"});
  CHECK(p.settings.network == "alpha=2ms beta=1Gbit hosts=2x2");
  CHECK_THAT(error_of({"--simulate-network", "alpha=2"}),
             ContainsText("--simulate-network") && ContainsText("alpha=2 is no time"));
}

TEST_CASE("devices: ranks of one host share out the GPUs unless one is named") {
  using tandem::Device;
  using tandem::DeviceType;
  const auto chosen = [](const char* device, int local_rank) {
    Parsed p;
    parse(p, {"--device", device});
    return choose_device(p.settings, local_rank);
  };
  CHECK(chosen("cpu", 1) == Device{});
  const int count = tandem::cuda_device_count();
  for (int rank = 0; rank < 3; ++rank) {
    const bool picks_gpu = count > 0 && !tandem::cuda_is_simulated();
    CHECK(chosen("auto", rank) == (picks_gpu ? Device{DeviceType::cuda, rank % count} : Device{}));
    if (count == 0) continue;
    CHECK(chosen("cuda", rank) == Device{DeviceType::cuda, rank % count});
    CHECK(chosen("cuda:0", rank) == Device{DeviceType::cuda, 0});
  }
  const std::string missing = "cuda:" + std::to_string(count);
  Parsed p;
  parse(p, {"--device", missing.c_str()});
  try {
    choose_device(p.settings, 0);
    FAIL("accepted");
  } catch (const tandem::Error& error) {
    CHECK_THAT(error.what(), ContainsText("--device " + missing + ": "));
  }
  CHECK_THAT(error_of({"--device", "gpu"}), ContainsText("--device gpu: unknown device 'gpu'"));
}

TEST_CASE("requests are recognised") {
  const auto request = [](const char* argument) {
    Parsed p;
    parse(p, {argument});
    return p.request;
  };
  CHECK(request("--help") == Request::help);
  CHECK(request("-h") == Request::help);
  CHECK(request("--version") == Request::version);
  CHECK(request("--print-config") == Request::print_config);
}

TEST_CASE("values are set by --name value and --name=value, flags also by --no-name") {
  Parsed p;
  parse(p, {"--lr=0.25", "--epochs", "3", "--model", "mnist_cnn", "--shared-weights", "--no-nesterov", "--batch-size",
            "8", "--clip-norm", "1e0"});
  CHECK(*p.settings.optimizer.lr == 0.25);
  CHECK(p.settings.epochs == 3.0);
  CHECK(p.settings.model.shared_weights);
  CHECK_FALSE(*p.settings.optimizer.nesterov);
  CHECK(*p.settings.batch_size == 8);
  CHECK_FALSE(p.settings.global_batch_size.has_value());
  CHECK(p.settings.trainer.clip_norm == 1.0);
}

TEST_CASE("slow weights and views are settings of the trainer") {
  Parsed p;
  parse(p, {"--lookahead", "6", "--lookahead-decay", "0.9", "--lookahead-power", "2", "--tta", "six"});
  CHECK(p.settings.trainer.lookahead.every == 6);
  CHECK(p.settings.trainer.lookahead.decay == 0.9);
  CHECK(p.settings.trainer.lookahead.power == 2.0);
  CHECK(p.settings.trainer.test_time_augmentation == tandem::train::TestTimeAugmentation::six);
  Parsed without;
  parse(without, {});
  CHECK(without.settings.trainer.lookahead.every == 0);
  CHECK(without.settings.trainer.test_time_augmentation == tandem::train::TestTimeAugmentation::none);
  CHECK_THAT(error_of({"--tta", "sixx"}), ContainsText("did you mean six?"));
}

TEST_CASE("momentum 0 needs no --no-nesterov") {
  Parsed p;
  parse(p, {"--momentum", "0"});
  CHECK_FALSE(*p.settings.optimizer.nesterov);
}

TEST_CASE("the batch is shared by ranks and micro-batches") {
  Parsed p;
  parse(p, {"--global-batch-size", "96", "--grad-accumulation", "3"});
  CHECK(micro_batch_size(p.settings, 4) == 8);
  CHECK(global_batch_size(p.settings, 4) == 96);
  CHECK_THROWS_WITH(micro_batch_size(p.settings, 5), ContainsText("5 ranks") && ContainsText("multiple of 15"));
  Parsed q;
  parse(q, {"--batch-size", "8", "--grad-accumulation", "3"});
  CHECK(micro_batch_size(q.settings, 5) == 8);
  CHECK(global_batch_size(q.settings, 5) == 120);
}

TEST_CASE("the default batch can be shared by any number of ranks") {
  for (const std::int64_t ranks : {1, 2, 3, 4, 7, 100, 200}) {
    Parsed p;
    parse(p, {"--grad-accumulation", "2"}, ranks);
    const std::int64_t batch = global_batch_size(p.settings, ranks);
    CHECK(batch >= 128);
    CHECK(batch < 128 + 2 * ranks);
  }
}

TEST_CASE("limits of numbers are kept") {
  CHECK_THAT(error_of({"--label-smoothing", "1.1"}), ContainsText("must be at most 1"));
  CHECK_THAT(error_of({"--weight-decay", "-1e-9"}), ContainsText("must be at least 0"));
  CHECK_THAT(error_of({"--bucket-mb", "-1"}), ContainsText("must be at least 0"));
  CHECK_THAT(error_of({"--lr", "inf"}), ContainsText("must be finite"));
  CHECK_THAT(error_of({"--lr", "1e999"}), ContainsText("too large"));
  CHECK_THAT(error_of({"--lr", "0.1x"}), ContainsText("not a number"));
  CHECK_THAT(error_of({"--lr", ""}), ContainsText("not a number"));
  CHECK_THAT(error_of({"--threads", "0x10"}), ContainsText("not a whole number"));
  CHECK(error_of({"--lr", "+0.5"}) == "accepted");
}

namespace {

/// Options after a config file with these lines, and more arguments.
struct WithFile {
  test::TemporaryDirectory directory;
  std::string path = directory / "run.toml";
  Parsed parsed;

  explicit WithFile(const std::string& lines, std::vector<const char*> arguments = {}) {
    std::ofstream(path) << lines;
    arguments.insert(arguments.end(), {"--config", path.c_str()});
    parse(parsed, arguments);
  }
};

std::string error_with_file(const std::string& lines, const std::vector<const char*>& arguments = {}) {
  try {
    const WithFile ignored(lines, arguments);
  } catch (const tandem::Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a choice on the command line leaves out what a config file says of another choice, and tells it") {
  const WithFile adamw("momentum = 0.8\nnesterov = true\nlr = 0.3\n", {"--optimizer", "adamw"});
  CHECK_FALSE(adamw.parsed.settings.optimizer.momentum.has_value());
  CHECK_FALSE(*adamw.parsed.settings.optimizer.nesterov);
  CHECK(*adamw.parsed.settings.optimizer.lr == 0.3);  // for any optimizer
  CHECK(adamw.parsed.notes ==
        std::vector<std::string>{adamw.path + ":1: momentum = 0.8 is left out: --optimizer adamw has no use for it",
                                 adamw.path + ":2: nesterov = true is left out: --optimizer adamw has no use for it"});
  const WithFile rmsprop("momentum = 0.8\nnesterov = true\n", {"--optimizer", "rmsprop"});
  CHECK(*rmsprop.parsed.settings.optimizer.momentum == 0.8);
  CHECK(rmsprop.parsed.notes.size() == 1);
  const WithFile sgd("optimizer = 'muon'\naux-lr = 0.8\nnormalize-filters = true\nmomentum = 0.5\n",
                     {"--optimizer", "sgd"});
  CHECK_FALSE(sgd.parsed.settings.optimizer.aux_lr.has_value());
  CHECK(*sgd.parsed.settings.optimizer.momentum == 0.5);
  CHECK(sgd.parsed.notes.size() == 2);

  const WithFile cosine("schedule = 'step'\nstep-epochs = 3\nstep-factor = 0.5\n", {"--schedule", "cosine"});
  CHECK_FALSE(cosine.parsed.settings.step_epochs.has_value());
  CHECK(cosine.parsed.notes.size() == 2);
  const WithFile one_cycle("schedule = 'cosine'\nwarmup-epochs = 2\n", {"--schedule", "one-cycle"});
  CHECK(one_cycle.parsed.settings.warmup_epochs == 0.0);

  const std::string half = "precision = 'fp16'\nloss-scale = '8'\nallreduce-dtype = 'half'\nmaster-weights = false\n";
  const WithFile full(half, {"--precision", "fp32"});
  CHECK(*full.parsed.settings.loss_scale == "none");
  CHECK(full.parsed.settings.allreduce_dtype == "fp32");
  CHECK(full.parsed.settings.optimizer.master_weights);
  CHECK(full.parsed.notes.size() == 3);
  CHECK(WithFile(half, {"--precision", "bf16"}).parsed.notes.empty());

  const WithFile model("model = 'resnet9'\ndrop-path = 0.5\n", {"--model", "small_cnn"});
  CHECK(model.parsed.settings.model.drop_path == 0.0);
  const WithFile steps("epochs = 3\nkeep = 1\n", {"--steps", "9", "--no-run-dir"});
  CHECK(steps.parsed.notes ==
        std::vector<std::string>{steps.path + ":1: epochs = 3 is left out: --steps 9 has no use for it",
                                 steps.path + ":2: keep = 1 is left out: --no-run-dir has no use for it"});
  const WithFile cold("schedule = 'linear'\nwarmup-steps = 9\nwarmup-start-factor = 0.2\n", {"--warmup-steps", "0"});
  CHECK_FALSE(cold.parsed.settings.warmup_start_factor.has_value());
  CHECK(cold.parsed.notes == std::vector<std::string>{cold.path + ":3: warmup-start-factor = 0.2 is left out: "
                                                                  "--warmup-steps 0 has no use for it"});
  CHECK(WithFile("schedule = 'linear'\nwarmup-start-factor = 0.2\n", {"--warmup-epochs", "1"}).parsed.notes.empty());
  CHECK(WithFile("data = '/some/where'\n", {"--dataset", "synthetic"}).parsed.settings.data.directory.empty());
  CHECK(WithFile("lookahead = 5\nlookahead-power = 0\n", {"--lookahead", "0"}).parsed.notes.size() == 1);
  CHECK(WithFile("tuning-file = 't.json'\n", {"--conv-impl", "direct"}).parsed.settings.tuning_file.empty());
}

TEST_CASE("what is given beside a choice that has no use for it is refused") {
  const std::vector<std::string> with_momentum =
      tandem::optim::optimizer_names([](const auto& entry) { return entry.momentum.has_value(); });
  const std::string momentum = fmt::format(
      "--momentum 0.8: of no use with --optimizer adam, only with {}; leave it out", fmt::join(with_momentum, ", "));
  CHECK(error_of({"--optimizer", "adam", "--momentum", "0.8"}) == momentum);
  CHECK(error_with_file("optimizer = 'adam'\n", {"--momentum", "0.8"}) == momentum);
  CHECK_THAT(error_with_file("optimizer = 'adam'\nmomentum = 0.8\n"), ContainsText("run.toml:2: " + momentum));
  CHECK_THAT(error_of({"--no-master-weights"}), ContainsText("--no-master-weights: of no use with --precision fp32"));
  CHECK_THAT(error_of({"--batch-norm"}),
             ContainsText("--batch-norm: of no use with --model small_cnn, only with vgg_lite, mnist_cnn"));
  CHECK(error_of({"--epochs", "2", "--steps", "9"}) ==
        "--epochs 2: of no use with --steps 9, only with --steps 0; leave it out");
  CHECK(error_of({"--keep", "2", "--no-run-dir"}) == "--keep 2: of no use with --no-run-dir; leave it out");
  CHECK(error_of({"--checkpoint-every", "9", "--run-dir", "none"}) ==
        "--checkpoint-every 9: of no use with --no-run-dir; leave it out");
  CHECK(error_of({"--keep", "2", "--checkpoint-every", "9"}) == "accepted");
  CHECK(error_of({"--keep", "2", "--checkpoint-every", "9", "--run-dir", "d"}) == "accepted");
  CHECK(error_of({"--lookahead-decay", "0.9"}) == "--lookahead-decay 0.9: of no use with --lookahead 0; leave it out");
  CHECK(error_of({"--lookahead", "5", "--ema", "0.9"}) ==
        "--lookahead 5 and --ema 0.9 both average the weights; leave one out (0 sets that of a config file aside)");
  CHECK(error_of({"--lookahead", "5", "--lookahead-decay", "0.5", "--lookahead-power", "0"}) == "accepted");
  // What says nothing may stay.
  CHECK(error_of({"--optimizer", "adam", "--no-nesterov", "--loss-scale", "none", "--layers", "0"}) == "accepted");
  CHECK(error_of({"--allreduce-dtype", "fp32", "--warmup-epochs", "0", "--master-weights"}) == "accepted");
}

TEST_CASE("ring is taken for native, from the command line and from config files, and recorded as native") {
  Parsed line;
  parse(line, {"--backend", "ring"});
  CHECK(line.settings.backend == "native");
  CHECK(WithFile("backend = \"ring\"\n").parsed.settings.backend == "native");
  CHECK_THAT(error_of({"--backend", "rings"}), ContainsText("unknown backend 'rings'"));
}

TEST_CASE("no augmentation has a name") {
  CHECK_THAT(error_of({"--augment", ""}), ContainsText("give none for no changes"));
  CHECK(error_of({"--augment", "none"}) == "accepted");
}

TEST_CASE("an empty path is refused, and none is a value of its option") {
  for (const char* option : {"data", "tuning-file", "load-weights", "save-weights", "log"}) {
    const std::string dashed = std::string("--") + option, because = dashed + ": the path is empty; name one";
    CHECK_THAT(error_of({dashed.c_str(), ""}), ContainsText(because));
    CHECK_THAT(error_with_file(std::string(option) + " = ''\n"), ContainsText("run.toml:1: " + because));
    Parsed p;
    parse(p, {});
    CHECK_FALSE(p.table.find(option)->get().has_value());
  }
  CHECK_THAT(error_of({"--config", ""}), ContainsText("--config: the path is empty"));
}

TEST_CASE("a path must be UTF-8, as the files are that name it") {
  CHECK(error_of({"--run-dir", "caf\xe9"}) ==
        "--run-dir \"caf\\xe9\": is no UTF-8 text, which config.toml and the report are written in: name a link to it");
  CHECK(error_of({"--run-dir", "caf\xc3\xa9"}) == "accepted");
}

TEST_CASE("a search for NaN needs a run to search") {
  const std::string because = "--find-nan goes on from the checkpoints of a run: name it by --run-dir DIR";
  for (const std::vector<const char*>& without : std::vector<std::vector<const char*>>{
           {"--find-nan"}, {"--find-nan", "--resume", "auto"}, {"--find-nan", "--no-run-dir"}})
    CHECK_THAT(error_of(without), ContainsText(because));
  CHECK(error_of({"--find-nan", "--run-dir", "runs/1"}) == "accepted");
  CHECK(error_of({"--find-nan", "--resume", "runs/1"}) == "accepted");
  CHECK(error_of({"--find-nan", "--resume", "runs/1", "--no-run-dir"}) == "accepted");
}

TEST_CASE("what every rank must share leaves out paths and output") {
  Parsed p;
  parse(p, {"--data", "/somewhere", "--log", "x", "--lr", "0.5"});
  const std::string text = shared_settings(p.table);
  CHECK_THAT(text, ContainsText("--lr=0.5\n"));
  CHECK_THAT(text, !ContainsText("somewhere"));
  CHECK_THAT(text, !ContainsText("--log="));
}

TEST_CASE("every option is in the help text, in lines as wide as the terminal") {
  Settings settings;
  OptionTable table;
  describe_options(table, settings);
  const std::string example = "tandem train --dataset fashion-mnist --epochs 3 --save-weights f.safetensors";
  for (const int columns : {80, 59, 40}) {
    const std::string help = help_text({"tandem train", "Trains.", {{example, "three epochs"}}}, table, columns);
    for (const std::string& name : table.names()) CHECK_THAT(help, ContainsText("  --" + name));
    CHECK_THAT(help, ContainsText("Usage: tandem train [options]\n") && !ContainsText("cifar_train"));
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) CHECK(line.size() <= static_cast<std::size_t>(columns));
  }
}

TEST_CASE("a run directory has its log and weights, and --log and --save-weights name one more") {
  const auto files_with = [](const std::vector<const char*>& arguments) {
    Parsed p;
    parse(p, arguments);
    return std::pair(logs_of(p.settings), weights_files_of(p.settings));
  };
  using Paths = std::vector<std::string>;
  using Files = std::pair<Paths, Paths>;
  CHECK(files_with({"--run-dir", "r/1"}) == Files({"r/1/log.jsonl"}, {"r/1/final.safetensors"}));
  CHECK(files_with({"--run-dir", "r/1", "--log", "l", "--save-weights", "w"}) ==
        Files({"r/1/log.jsonl", "l"}, {"r/1/final.safetensors", "w"}));
  CHECK(files_with({"--run-dir", "r/1", "--log", "r/../r/1/log.jsonl", "--save-weights", "./r/1/final.safetensors"}) ==
        Files({"r/1/log.jsonl"}, {"r/1/final.safetensors"}));
  CHECK(files_with({"--no-run-dir", "--log", "l", "--save-weights", "w"}) == Files({"l"}, {"w"}));
  CHECK(files_with({"--no-run-dir"}) == Files());
  CHECK_THROWS_WITH(files_with({"--run-dir", "d", "--log", "x", "--save-weights", "d/log.jsonl"}),
                    ContainsText("the log of --run-dir and --save-weights are both d/log.jsonl"));
  CHECK_THROWS_WITH(files_with({"--run-dir", "d", "--log", "d/final.safetensors"}),
                    ContainsText("--log and the weights of --run-dir are both d/final.safetensors"));
}

TEST_CASE("groups of parameters are read, written and read again") {
  Parsed p;
  parse(p, {"--param-group", "*.bias: freeze-step=144, lr-factor=64", "--param-group",
            "fc.weight:momentum=0,weight-decay=1e-7,schedule=cosine,schedule-steps=75; conv*:lr-factor=1"});
  const std::vector<GroupSettings> expected{
      {.pattern = "*.bias", .lr_factor = 64.0, .freeze_step = 144},
      {.pattern = "fc.weight", .weight_decay = 1e-7, .momentum = 0.0, .schedule = "cosine", .schedule_steps = 75},
      {.pattern = "conv*"}};
  CHECK(p.settings.groups == expected);
  const std::string text = to_string(p.settings.groups);
  CHECK(text ==
        "*.bias:lr-factor=64,freeze-step=144; fc.weight:weight-decay=1e-07,momentum=0,schedule=cosine,"
        "schedule-steps=75; conv*:lr-factor=1");
  Parsed again;
  parse(again, {"--param-group", text.c_str()});
  CHECK(again.settings.groups == expected);
  CHECK(error_of({"--param-group", "*:lr-factor=2", "--param-group", "none"}) ==
        "--param-group *:lr-factor=2; none: 'none' is no PATTERN:KEY=VALUE,... such as "
        "*norm*.bias:lr-factor=64,weight-decay=0");
}
