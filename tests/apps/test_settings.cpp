// Options: limits, defaults that depend on others, precedence, batches per rank.
#include "settings.h"

#include "tests/support/catch.h"

#include "command_line.h"
#include "core/device_query.h"
#include "core/error.h"
#include "help_text.h"

#include <sstream>

using namespace tandem::apps;
using tandem::test::ContainsText;

namespace {

struct Parsed {
  Settings settings;
  OptionTable table;
  Request request{};
};

void parse(Parsed& parsed, std::vector<const char*> arguments, std::int64_t ranks = 1) {
  arguments.insert(arguments.begin(), "cifar_train");
  describe_options(parsed.table, parsed.settings);
  parsed.request = parse_command_line(static_cast<int>(arguments.size()), arguments.data(), parsed.table,
                                      {"batch-size", "global-batch-size"});
  resolve(parsed.settings, ranks);
}

std::string error_of(const std::vector<const char*>& arguments) {
  try {
    Parsed parsed;
    parse(parsed, arguments);
  } catch (const tandem::Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("without options the defaults hold") {
  Parsed p;
  parse(p, {});
  CHECK(p.request == Request::run);
  CHECK(p.settings.model == "small_cnn");
  CHECK(p.settings.optimizer == "sgd");
  CHECK(*p.settings.momentum == 0.9);
  CHECK(*p.settings.nesterov);
  CHECK(*p.settings.global_batch_size == 128);
  CHECK_FALSE(p.settings.batch_size.has_value());
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
  parse(p,
        {"--lr=0.25", "--epochs", "3", "--shared-weights", "--no-nesterov", "--batch-size", "8", "--clip-norm", "1e0"});
  CHECK(*p.settings.lr == 0.25);
  CHECK(p.settings.epochs == 3);
  CHECK(p.settings.shared_weights);
  CHECK_FALSE(*p.settings.nesterov);
  CHECK(*p.settings.batch_size == 8);
  CHECK_FALSE(p.settings.global_batch_size.has_value());
  CHECK(p.settings.clip_norm == 1.0);
}

TEST_CASE("momentum 0 needs no --no-nesterov") {
  Parsed p;
  parse(p, {"--momentum", "0"});
  CHECK_FALSE(*p.settings.nesterov);
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
  CHECK_THAT(error_of({"--bucket-mb", "0"}), ContainsText("must be above 0"));
  CHECK_THAT(error_of({"--lr", "inf"}), ContainsText("must be finite"));
  CHECK_THAT(error_of({"--lr", "1e999"}), ContainsText("too large"));
  CHECK_THAT(error_of({"--lr", "0.1x"}), ContainsText("not a number"));
  CHECK_THAT(error_of({"--lr", ""}), ContainsText("not a number"));
  CHECK_THAT(error_of({"--threads", "0x10"}), ContainsText("not a whole number"));
  CHECK(error_of({"--lr", "+0.5"}) == "accepted");
}

TEST_CASE("what every rank must share leaves out paths and output") {
  Parsed p;
  parse(p, {"--data", "/somewhere", "--log", "x", "--lr", "0.5"});
  const std::string text = shared_settings(p.table);
  CHECK_THAT(text, ContainsText("--lr=0.5\n"));
  CHECK_THAT(text, !ContainsText("somewhere"));
  CHECK_THAT(text, !ContainsText("--log="));
}

TEST_CASE("every option is in the help text, in lines of at most 80 columns") {
  Settings settings;
  OptionTable table;
  describe_options(table, settings);
  const std::string help = help_text({"cifar_train", "Trains.", {"cifar_train"}}, table);
  for (const std::string& name : table.names()) CHECK_THAT(help, ContainsText("  --" + name));
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
}
