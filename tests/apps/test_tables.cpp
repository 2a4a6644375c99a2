// What is listed in documentation and help, against the tables in the code that it comes from.
#include "tests/support/catch.h"

#include "apps/arguments/arguments.h"
#include "help_text.h"
#include "settings.h"
#include "tandem/comm/backends.h"

#include <fmt/ranges.h>

#include <fstream>
#include <ranges>
#include <sstream>

using namespace tandem;
using tandem::test::ContainsText;

namespace {

/// What stands in backticks at the beginning of each row of the table below `head`.
std::vector<std::string> rows_of(const std::string& page, const std::string& head) {
  std::ifstream file(std::string(TANDEM_SOURCE_DIR "/") + page);
  REQUIRE(file.good());
  std::vector<std::string> names;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (!inside)
      inside = line.starts_with("| " + head + " |");
    else if (!line.starts_with("|"))
      break;
    else if (line.starts_with("| `"))
      names.push_back(line.substr(3, line.find('`', 3) - 3));
  }
  return names;
}

/// Whether the row of this folder in docs/building.md names all of these.
void check_row(const std::string& folder, const std::vector<std::string>& names) {
  std::ifstream file(TANDEM_SOURCE_DIR "/docs/building.md");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `" + folder + "`")) continue;
    for (const std::string& name : names) CHECK_THAT(line, ContainsText("`" + name + "`"));
    return;
  }
  FAIL("no row of " << folder);
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> all_of(std::span<const std::string_view> names) { return {names.begin(), names.end()}; }

}  // namespace

TEST_CASE("the documentation lists the backends, networks and implementations that there are") {
  CHECK(rows_of("docs/launching.md", "`--backend`") == comm::backend_names());
  CHECK(sorted(rows_of("docs/libraries.md", "`--conv-impl`")) == sorted(all_of(kernels::conv_impl_names())));
  CHECK(sorted(rows_of("docs/libraries.md", "`--gemm-impl`")) == sorted(all_of(kernels::gemm_impl_names())));
  check_row("layers/", layers::model_names());
  check_row("optim/", optim::optimizer_names());
}

TEST_CASE("the help tells the choices and defaults of the tables") {
  apps::Settings settings;
  apps::OptionTable table;
  apps::describe_options(table, settings);
  const auto help_of = [&](const char* name) { return table.find(name)->help; };
  CHECK(table.find("backend")->value_name == fmt::format("{}", fmt::join(comm::backend_names(), "|")));
  for (const comm::BackendEntry& entry : comm::backends())
    CHECK_THAT(help_of("backend"), ContainsText(std::string(entry.what)) && ContainsText(std::string(entry.needs)));
  CHECK(table.find("optimizer")->value_name == fmt::format("{}", fmt::join(optim::optimizer_names(), "|")));
  for (const optim::OptimizerEntry& entry : optim::optimizers()) {
    const auto check_default = [&](const char* option, double value) {
      const std::string own = fmt::format("{} {}", entry.name, value), shared = fmt::format(", others {}", value);
      CHECK_THAT(help_of(option), ContainsText(own) || Catch::Matchers::EndsWith(shared));
    };
    check_default("lr", entry.lr);
    check_default("weight-decay", entry.weight_decay);
    if (entry.momentum) check_default("momentum", *entry.momentum);
  }
  CHECK_THAT(help_of("lr"), ContainsText("default by optimizer: sgd 0.1, "));
  CHECK_THAT(help_of("momentum"),
             Catch::Matchers::StartsWith("sgd, ") && ContainsText(": momentum; default sgd 0.9, "));
  CHECK_THAT(help_of("global-batch-size"), ContainsText("default 128, or"));
  CHECK_THAT(help_of("layers"), ContainsText("mnist_cnn: number of convolutions"));
}

TEST_CASE("errors of the libraries get the names of flags") {
  CHECK(apps::with_flags("option conv_impl cudnn: no GPU; choose auto") == "--conv-impl cudnn: no GPU; choose auto");
  CHECK(apps::with_flags("by option directory", {"directory", "data"}) == "by --data");
  CHECK(apps::with_flags("/my option x: by option directory", {"directory", "data"}) == "/my option x: by --data");
  CHECK(apps::with_flags("nothing") == "nothing");
  CHECK(apps::with_flags("option a, option b_c") == "--a, --b-c");
  CHECK_THROWS_WITH(apps::naming_flags([] { fail("option lr {}: too high", 3); }), ContainsText("--lr 3: too high"));
}
