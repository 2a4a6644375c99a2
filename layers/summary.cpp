// Printing a network.
#include "tandem/layers/summary.h"

#include "tandem/autograd/grad_mode.h"
#include "tandem/core/number_text.h"
#include "tandem/layers/mode_scope.h"

#include <fmt/format.h>

namespace tandem::layers {

namespace {

struct Row {
  std::string name, what, shape, parameters;
};

/// "12.3 KiB" or "1.2 MiB": the elements of all tensors.
std::string size_text(const NamedTensors& tensors) {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += tensor.numel() * size_of(tensor.dtype());
  const double kibibytes = static_cast<double>(bytes) / 1024.0;
  return kibibytes < 1024.0 ? fmt::format("{:.1f} KiB", kibibytes) : fmt::format("{:.1f} MiB", kibibytes / 1024.0);
}

}  // namespace

std::string summary(Module& module, const Shape& input) {
  struct Seen {
    int calls = 0;
    Shape shape;
  };
  const auto modules = module.named_modules();
  std::vector<Seen> seen(modules.size());
  {
    const ModeScope evaluating(module, false);
    const NoObservers ours_only(module);
    const autograd::NoGrad no_grad;
    for (std::size_t i = 0; i < modules.size(); ++i) {
      modules[i].second->set_observer([&entry = seen[i]](const Tensor& output) {
        ++entry.calls;
        entry.shape = output.shape();
      });
    }
    const NamedTensors parameters = module.named_parameters();
    TensorOptions like_parameters{.layout = Layout::channels_last};
    if (!parameters.empty()) like_parameters = parameters.front().second.options(Layout::channels_last);
    module(Tensor::zeros(input, like_parameters));
  }

  std::vector<Row> rows{{"layer", "what", "output", "parameters"}};
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const auto& [name, part] = modules[i];
    if (part->named_modules().size() > 1) continue;  // its children have their own lines
    const std::string repeats = seen[i].calls > 1 ? fmt::format(", used {} times", seen[i].calls) : std::string();
    rows.push_back({name, part->describe() + repeats, seen[i].calls > 0 ? to_string(seen[i].shape) : "not used",
                    part->parameter_count() > 0 ? with_separators(part->parameter_count()) : "-"});
  }
  std::size_t name_width = 0, what_width = 0, shape_width = 0, count_width = 0;
  for (const Row& row : rows) {
    name_width = std::max(name_width, row.name.size());
    what_width = std::max(what_width, row.what.size());
    shape_width = std::max(shape_width, row.shape.size());
    count_width = std::max(count_width, row.parameters.size());
  }
  std::string text;
  for (const Row& row : rows) {
    text += fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>{}}\n", row.name, name_width, row.what, what_width, row.shape,
                        shape_width, row.parameters, count_width);
  }
  const NamedTensors parameters = module.named_parameters();
  text += fmt::format("{} parameters in {} tensors, {}; buffers {}\n", with_separators(module.parameter_count()),
                      parameters.size(), size_text(parameters), size_text(module.named_buffers()));
  return text;
}

}  // namespace tandem::layers
