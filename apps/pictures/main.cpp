// pictures: draws the pictures of docs/concepts from real objects and measured figures.
#include "apps/arguments/program.h"
#include "apps/pictures/measure.h"
#include "apps/pictures/picture.h"
#include "tandem/core/error.h"
#include "tandem/core/parallel.h"
#include "tandem/layers/file.h"
#include "tandem/train/plot/svg.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <string>
#include <vector>

namespace {

using namespace tandem;
using pictures::Concept;

constexpr const char* kUsage =
    "Usage, in the project's folder:\n"
    "  pictures draw FOLDER                          write the pictures of docs/concepts there, as SVG\n"
    "  pictures text CONCEPT                         the numbers of a concept's pictures, as text\n"
    "  pictures measure gradients|loss-scale         what pictures of measured figures are drawn from\n"
    "  pictures measure step TRACE                   a step out of a trace that cifar_train --trace wrote\n";
constexpr const char* kMeasured = "docs/images/concepts/measured";

std::vector<Concept> all_concepts() {
  return {pictures::memory_concept(),
          pictures::tape_concept(),
          pictures::implicit_gemm_concept(),
          pictures::ring_concept(kMeasured),
          pictures::buckets_concept(kMeasured),
          pictures::loss_scaling_concept(kMeasured),
          pictures::simulator_concept(kMeasured)};
}

void draw(const std::string& folder) {
  for (const Concept& page : all_concepts())
    for (const pictures::Picture& picture : page.pictures) {
      const std::string file = (std::filesystem::path(folder) / (picture.name + ".svg")).string();
      layers::write_file(file, train::plot::svg_picture({pictures::kWidth, picture.height}, picture.description,
                                                        train::plot::SvgKind::file, picture.draw));
    }
}

void print_text(const std::string& name) {
  std::vector<std::string> names;
  for (const Concept& page : all_concepts()) {
    names.push_back(page.name);
    if (page.name != name) continue;
    for (const std::string& line : page.lines) fmt::print("{}\n", line);
    return;
  }
  fail("text: there is no concept '{}' (choices: {})", name, fmt::join(names, ", "));
}

int run(const std::vector<std::string>& words) {
  set_num_threads(1);  // sums are in one order
  if (words.size() == 2 && words[0] == "draw")
    draw(words[1]);
  else if (words.size() == 2 && words[0] == "text")
    print_text(words[1]);
  else if (words == std::vector<std::string>{"measure", "gradients"})
    fmt::print("{}", pictures::measure_gradients());
  else if (words == std::vector<std::string>{"measure", "loss-scale"})
    fmt::print("{}", pictures::measure_loss_scale());
  else if (words.size() == 3 && words[0] == "measure" && words[1] == "step")
    fmt::print("{}", pictures::step_of_trace(words[2]));
  else if (words == std::vector<std::string>{"--help"})
    fmt::print("{}", kUsage);
  else
    fail("pictures: unknown command '{}'; pictures --help tells what there is", fmt::join(words, " "));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  apps::hold_standard_streams();
  return apps::run_program([&] { return run({argv + 1, argv + argc}); });
}
