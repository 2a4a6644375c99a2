// The tape of a small expression: its nodes as they were recorded, and the gradients of a real walk.
#include "apps/pictures/picture.h"
#include "apps/pictures/shapes.h"
#include "tandem/autograd/functions.h"
#include "tandem/autograd/node.h"
#include "tandem/core/memory.h"
#include "tandem/layers/layers.h"
#include "tandem/train/plot/line_chart.h"
#include "tandem/train/plot/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

namespace tandem::pictures {

namespace {

namespace plot = train::plot;

struct Visit {
  int number = 0;                 ///< in the order of the walk
  std::vector<double> to_inputs;  ///< gradients that it sends on
};

/// Lets each backward function of the graph note what it returns.
void watch(autograd::Node* node, std::map<autograd::Node*, Visit>& visits, int& next) {
  if (node == nullptr || node->leaf.defined() || visits.contains(node)) return;
  visits[node];
  node->backward = [node, &visits, &next, inner = node->backward](const autograd::BackwardContext& context) {
    std::vector<Tensor> gradients = inner(context);
    Visit& visit = visits[node];
    visit.number = ++next;
    for (const Tensor& gradient : gradients) visit.to_inputs.push_back(gradient.item());
    return gradients;
  };
  for (const autograd::Edge& edge : node->inputs) watch(edge.node.get(), visits, next);
}

struct Result {
  std::string code;
  Tensor tensor;
  autograd::Node* node = nullptr;
  std::string operation;
  Visit visit;
};

/// loss = (a b + a)^2, of which a = 2 is used twice.
struct Tape {
  Tensor a, b;
  std::vector<Result> results;  ///< as they were computed
};

Tape walk() {
  using namespace autograd;
  Tape tape;
  tape.a = set_requires_grad(Tensor::full({}, 2.0));
  tape.b = set_requires_grad(Tensor::full({}, 3.0));
  const Tensor p = mul(tape.a, tape.b), s = add(p, tape.a), loss = mul(s, s);
  for (const auto& [code, tensor] :
       {std::pair{"p = mul(a, b)", p}, std::pair{"s = add(p, a)", s}, std::pair{"loss = mul(s, s)", loss}}) {
    Node* const node = gradient_edge(tensor).node.get();
    tape.results.push_back({code, tensor, node, node->name, {}});
  }
  std::map<Node*, Visit> visits;
  int next = 0;
  watch(tape.results.back().node, visits, next);
  backward(loss);
  for (Result& result : tape.results) result.visit = visits.at(result.node);
  return tape;
}

void draw_leaf(plot::Canvas& canvas, const plot::Box& box, const std::string& name, const Tensor& leaf) {
  canvas.rectangle(box, {plot::series_colour(2), 0.2});
  draw_centred(canvas, box.x + box.width / 2.0, box.y + 17.0, fmt::format("{} = {}", name, leaf.item()), kTextSize);
  draw_centred(canvas, box.x + box.width / 2.0, box.y + 33.0, fmt::format("grad {}", autograd::grad(leaf).item()));
}

void draw_node(plot::Canvas& canvas, const plot::Box& box, const Result& result) {
  canvas.rectangle(box, {plot::series_colour(0), 0.16});
  draw_centred(canvas, box.x + box.width / 2.0, box.y + 17.0, fmt::format("{} = {}", result.code, result.tensor.item()),
               kTextSize);
  draw_centred(canvas, box.x + box.width / 2.0, box.y + 33.0,
               fmt::format("node '{}', walked as number {}", result.operation, result.visit.number));
}

void draw_gradient(plot::Canvas& canvas, plot::Point from, plot::Point to, double value, double shift) {
  draw_arrow(canvas, from, to, plot::kWrong);
  canvas.text({(from.x + to.x) / 2.0 + shift, (from.y + to.y) / 2.0 + 4.0}, fmt::format("{}", value),
              {.colour = plot::kWrong,
               .size = kTextSize,
               .anchor = shift < 0.0 ? plot::Anchor::end : plot::Anchor::start,
               .bold = true});
}

Picture graph_picture() {
  return {
      "tape-graph", 316.0,
      "The tape of loss = (a b + a) squared: nodes from the leaves to the loss, and the gradients on their way back",
      [](plot::Canvas& canvas) {
        const Tape tape = walk();
        const plot::Box a{70.0, 8.0, 90.0, 42.0}, b{230.0, 8.0, 90.0, 42.0};
        const plot::Box p{130.0, 96.0, 230.0, 42.0}, s{70.0, 182.0, 230.0, 42.0}, loss{70.0, 266.0, 230.0, 42.0};
        const std::vector<double>& of_p = tape.results[0].visit.to_inputs;
        const std::vector<double>& of_s = tape.results[1].visit.to_inputs;
        const std::vector<double>& of_loss = tape.results[2].visit.to_inputs;
        draw_leaf(canvas, a, "a", tape.a);
        draw_leaf(canvas, b, "b", tape.b);
        draw_node(canvas, p, tape.results[0]);
        draw_node(canvas, s, tape.results[1]);
        draw_node(canvas, loss, tape.results[2]);
        draw_gradient(canvas, {175.0, 266.0}, {175.0, 224.0}, of_loss[0], -6.0);
        draw_gradient(canvas, {205.0, 266.0}, {205.0, 224.0}, of_loss[1], 6.0);
        draw_gradient(canvas, {220.0, 182.0}, {220.0, 138.0}, of_s[0], 6.0);
        draw_gradient(canvas, {95.0, 182.0}, {95.0, 50.0}, of_s[1], -6.0);
        draw_gradient(canvas, {150.0, 96.0}, {135.0, 50.0}, of_p[0], 6.0);
        draw_gradient(canvas, {275.0, 96.0}, {275.0, 50.0}, of_p[1], 6.0);
      }};
}

constexpr int kLayers = 6;
constexpr std::int64_t kBatch = 64, kFeatures = 256;

struct Moment {
  std::string name;
  double kilobytes = 0.0;
};

double activation_kilobytes() {
  return static_cast<double>(memory_stats().current_of(MemoryTag::activations)) / 1024.0;
}

/// What the tensors tagged as activations take behind each layer of a forward pass, and behind each node of the walk.
std::vector<Moment> measure_memory() {
  using namespace autograd;
  layers::Initializer initializer(1);
  std::vector<std::unique_ptr<layers::Linear>> network;
  for (int i = 0; i < kLayers; ++i)
    network.push_back(std::make_unique<layers::Linear>(
        layers::LinearOptions{.in = kFeatures, .out = kFeatures, .relu = true}, initializer));
  const double before = activation_kilobytes();
  std::vector<Moment> moments;
  Tensor loss;
  {
    Tensor x = Tensor::full({kBatch, kFeatures}, 1.0);
    for (int i = 0; i < kLayers; ++i) {
      x = (*network[static_cast<std::size_t>(i)])(x);
      moments.push_back({fmt::format("forward of layer {}", i), activation_kilobytes() - before});
    }
    loss = mean(x);
  }
  for (Node* node = gradient_edge(loss).node.get(); node != nullptr;) {
    node->backward = [&moments, before, inner = node->backward, name = node->name](const BackwardContext& context) {
      moments.push_back({fmt::format("backward reaches {}", name), activation_kilobytes() - before});
      return inner(context);
    };
    Node* const below = node->inputs.front().node.get();
    node = below == nullptr || below->leaf.defined() ? nullptr : below;
  }
  backward(loss);
  moments.push_back({"backward is done", activation_kilobytes() - before});
  return moments;
}

Picture memory_picture() {
  return {"tape-memory", 240.0,
          "Kilobytes of activations by moment: they grow with each layer of the forward pass and shrink as the walk "
          "goes back",
          [](plot::Canvas& canvas) {
            const std::vector<Moment> moments = measure_memory();
            plot::LineChart chart{.title = "KiB of activations that are kept",
                                  .x = {.title = "moment: layers forward, then nodes backward", .whole = true},
                                  .y = {.title = ""},
                                  .series = {}};
            plot::Series forward{.name = "forward", .colour = plot::series_colour(0), .x = {}, .y = {}};
            plot::Series backward{.name = "backward", .colour = plot::series_colour(5), .x = {}, .y = {}};
            for (std::size_t i = 0; i < moments.size(); ++i) {
              plot::Series& series = i < kLayers ? forward : backward;
              series.x.push_back(static_cast<double>(i + 1));
              series.y.push_back(moments[i].kilobytes);
            }
            chart.y.least = 0.0;
            chart.series = {forward, backward};
            draw_line_chart(canvas, {4.0, 8.0, kWidth - 8.0, 224.0}, chart);
          }};
}

}  // namespace

Concept tape_concept() {
  Concept page{"tape", {graph_picture(), memory_picture()}, {}};
  const Tape tape = walk();
  for (const Result& result : tape.results) {
    std::string line = fmt::format("{:<17} = {:<3} node '{}', walked as number {}, sends", result.code,
                                   result.tensor.item(), result.operation, result.visit.number);
    for (const double gradient : result.visit.to_inputs) line += fmt::format(" {}", gradient);
    page.lines.push_back(line);
  }
  page.lines.push_back(fmt::format("gradient of a: {}", autograd::grad(tape.a).item()));
  page.lines.push_back(fmt::format("gradient of b: {}", autograd::grad(tape.b).item()));
  for (const Moment& moment : measure_memory())
    page.lines.push_back(fmt::format("{:<34} {:>6.1f} KiB", moment.name, moment.kilobytes));
  return page;
}

}  // namespace tandem::pictures
