// Trainings whose steps are launches of a CUDA graph.
#include "tandem/autograd/functions.h"
#include "tandem/kernels/conv/tuning/tuner.h"
#include "tandem/kernels/float32_products.h"
#include "tandem/layers/layers.h"
#include "tandem/train/progress_format.h"
#include "tandem/train/records.h"
#include "tandem/train/scoring.h"
#include "tandem/train/step_graph.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/train/graph_run.h"

#include <functional>
#include <optional>

using namespace tandem;
using namespace tandem::test;

TEST_CASE("a training by CUDA graphs has the bits of one without: weights, states, counts and figures",
          "[cuda][trainer]") {
  if (!has_gpu()) return;
  const Setup setup = GENERATE(Setup{}, Setup{.precision = autograd::Precision::bf16, .resident = true},
                               Setup{.optimizer = "adamw"}, Setup{.optimizer = "muon"}, Setup{.optimizer = "rmsprop"});
  CAPTURE(setup.optimizer, autograd::name_of(setup.precision));
  const train::TrainerOptions options{.epochs = 3, .label_smoothing = 0.1, .l1 = 1e-4, .ema = 0.9, .log_every = 2};
  Run eager(setup, CudaGraph::off, options), graph(setup, CudaGraph::on, options);
  const Trace expected = trace_of(eager);
  CHECK(trace_of(graph) == expected);
  CHECK(eager.trainer->graph_launches() == 0);
  CHECK(graph.trainer->graph_launches() == 3 * Setup::kFullSteps - 2);
}

TEST_CASE("gradients are clipped within a graph as without", "[cuda][trainer]") {
  if (!has_gpu()) return;
  const Setup setup =
      GENERATE(Setup{}, Setup{.optimizer = "adamw", .precision = autograd::Precision::bf16}, Setup{.optimizer = "muon"},
               Setup{.precision = autograd::Precision::fp16, .init_scale = 0x1p22});
  const double bound = GENERATE(0.05, 1e6);  // each step is clipped, none is
  CAPTURE(setup.optimizer, autograd::name_of(setup.precision), bound);
  const train::TrainerOptions options{.epochs = 4, .clip_norm = bound};
  Run eager(setup, CudaGraph::off, options), graph(setup, CudaGraph::on, options),
      free(setup, CudaGraph::on, {.epochs = 4});
  const Trace expected = trace_of(eager);
  CHECK(trace_of(graph) == expected);
  CHECK(graph.trainer->graph_launches() >= Setup::kFullSteps);
  CHECK((trace_of(free) == expected) == (bound > 1.0));
}

TEST_CASE("a graph skips the steps whose gradients overflow, and changes the loss scale, as without",
          "[cuda][trainer]") {
  if (!has_gpu()) return;
  const std::string optimizer = GENERATE("sgd", "adamw", "muon");
  CAPTURE(optimizer);
  // The first steps overflow, and so do some that the scale has grown for.
  const Setup setup{.optimizer = optimizer, .precision = autograd::Precision::fp16, .init_scale = 0x1p22};
  for (const bool averages : {true, false}) {
    CAPTURE(averages);
    train::TrainerOptions options{.epochs = 6, .log_every = 3};
    if (averages) options.ema = 0.9;
    if (!averages) options.lookahead = {.every = 2};
    Run eager(setup, CudaGraph::off, options), graph(setup, CudaGraph::on, options);
    const Trace expected = trace_of(eager);
    std::optional<std::int64_t> skipped_before;  // the first launch
    CHECK(trace_of(graph, [&](const train::Progress&) {
            if (graph.trainer->graph_launches() == 0) skipped_before = graph.scaler.skipped_steps();
          }) == expected);
    CHECK(graph.scaler.skipped_steps() == eager.scaler.skipped_steps());
    REQUIRE(skipped_before.has_value());
    CHECK(graph.scaler.skipped_steps() - *skipped_before >= 2);
    CHECK(graph.scaler.skipped_steps() < 20);
    CHECK(graph.trainer->graph_launches() > 3 * Setup::kFullSteps);
  }
}

TEST_CASE("a run of graphs ends with the step that makes too many skipped ones in a row", "[cuda][trainer]") {
  if (!has_gpu()) return;
  const Setup setup{.precision = autograd::Precision::fp16, .init_scale = 1024.0};
  const train::TrainerOptions options{.epochs = 9, .max_skipped_steps = 9};
  const auto run_spoiled = [](Run& run) {  // behind step 12 each overflows
    train::TrainObserver observer;
    observer.progress = [&run](const train::Progress&) {
      if (run.trainer->steps_done() == 12)
        run.scaler.load_state_dict({{"scale", Tensor::full({}, 0x1p100, {.dtype = DType::f64})},
                                    {"growth_tracker", Tensor::zeros({}, {.dtype = DType::i64})}});
    };
    return run.trainer->run(observer);
  };
  Run eager(setup, CudaGraph::off, options), graph(setup, CudaGraph::on, options);
  const train::EpochRecord expected = run_spoiled(eager), last = run_spoiled(graph);
  REQUIRE(expected.diverged.has_value());
  CHECK(graph.trainer->graph_launches() > 12);
  CHECK(last.diverged == expected.diverged);
  CHECK(graph.trainer->steps_done() == eager.trainer->steps_done());
  CHECK(values_of(graph.trainer->state_dict()) == values_of(eager.trainer->state_dict()));
}

TEST_CASE("a step is recorded anew where a group is frozen, a module's mode changes, or a state is loaded",
          "[cuda][trainer]") {
  if (!has_gpu()) return;
  SECTION("frozen at step 7") {
    const Notices notices;
    const Setup setup{.frozen_group = true};
    Run eager(setup, CudaGraph::off), graph(setup, CudaGraph::on);
    CHECK(trace_of(graph) == trace_of(eager));
    // Full steps 0 to 11: 0 and 1 are eager, and the one behind which the weight is not trained.
    CHECK(graph.trainer->graph_launches() == 3 * Setup::kFullSteps - 3);
    REQUIRE(notices.lines.size() == 1);
    CHECK_THAT(notices.lines[0], ContainsText("CUDA graph: the step is recorded anew: a module's mode, what is"));
  }
  SECTION("batch norm in evaluation mode from the second epoch on") {
    Run eager({}, CudaGraph::off), graph({}, CudaGraph::on);
    for (Run* const run : {&eager, &graph}) {
      train::TrainObserver observer;
      observer.epoch = [run](const train::EpochRecord&) {
        run->model.train();
        run->model[1].eval();
      };
      run->trainer->run(observer);
    }
    CHECK(values_of(graph.trainer->state_dict()) == values_of(eager.trainer->state_dict()));
    CHECK(graph.trainer->graph_launches() == 3 * Setup::kFullSteps - 3);
  }
  SECTION("another list of parameters, and another trainer of the same parts") {
    for (const std::string optimizer : {"sgd", "adamw", "muon"}) {
      Run eager({.optimizer = optimizer}, CudaGraph::off), graph({.optimizer = optimizer}, CudaGraph::on);
      for (Run* const run : {&eager, &graph}) {
        train::TrainObserver observer;
        observer.progress = [run](const train::Progress&) {
          if (run->trainer->steps_done() == 6) run->model[0].requires_grad(false);
        };
        run->trainer->run(observer);
        const train::TrainerOptions options{.schedule = &run->schedule, .scaler = &run->scaler, .epochs = 2};
        train::TrainerOptions again = options;
        again.cuda_graph = run == &graph ? CudaGraph::on : CudaGraph::off;
        run->trainer.reset();
        run->trainer = std::make_unique<train::Trainer>(run->model, *run->optimizer, *run->loader, again);
        run->trainer->run({});
      }
      CHECK(values_of(graph.trainer->state_dict()) == values_of(eager.trainer->state_dict()));
      CHECK(graph.trainer->graph_launches() == 2 * Setup::kFullSteps - 2);
    }
  }
  SECTION("a buffer elsewhere") {
    Run eager({}, CudaGraph::off), graph({}, CudaGraph::on);
    std::vector<Tensor> kept;
    for (Run* const run : {&eager, &graph}) {
      train::TrainObserver observer;
      observer.progress = [&, run](const train::Progress&) {
        if (run->trainer->steps_done() != 6) return;
        for (const auto& [name, buffer] : run->model.named_buffers()) {
          kept.push_back(buffer.detach());
          if (buffer.device() == kGpu) buffer.set_data(buffer.clone());
        }
      };
      run->trainer->run(observer);
    }
    CHECK(values_of(graph.trainer->state_dict()) == values_of(eager.trainer->state_dict()));
    CHECK(graph.trainer->graph_launches() == 3 * Setup::kFullSteps - 3);
  }
  SECTION("kernels are chosen otherwise: of products, of tuned convolutions, by measurement") {
    const kernels::Float32ProductsScope products(kernels::Float32Products::full);
    const kernels::TuningKey key{
        .device = DeviceType::cuda, .pass = kernels::PassKind::forward, .dtype = DType::f32, .geometry = {}};
    const std::function<void()> choices[] = {
        [] { kernels::set_float32_products(kernels::Float32Products::tf32x3); },
        [&] { kernels::conv_tuner().add(key, {.chosen = "nobody", .microseconds = {}}); },
        [] { kernels::conv_tuner().clear(); }, [] { kernels::conv_tuner().set_measuring(false); }};
    for (const auto& choose : choices) {
      Run eager({}, CudaGraph::off), graph({}, CudaGraph::on);
      for (Run* const run : {&eager, &graph}) {
        kernels::set_float32_products(kernels::Float32Products::full);
        train::TrainObserver observer;
        observer.progress = [&](const train::Progress&) {
          if (run->trainer->steps_done() == 6) choose();
        };
        run->trainer->run(observer);
      }
      CHECK(values_of(graph.trainer->state_dict()) == values_of(eager.trainer->state_dict()));
      CHECK(graph.trainer->graph_launches() == 3 * Setup::kFullSteps - 3);
    }
    kernels::conv_tuner().clear();
  }
  SECTION("gone on with from the middle of an epoch") {
    Run eager({}, CudaGraph::off), first({}, CudaGraph::on), second({}, CudaGraph::on);
    const Trace expected = trace_of(eager);
    NamedTensors state;
    train::TrainObserver observer;
    observer.progress = [&](const train::Progress&) {
      if (first.trainer->steps_done() != 8) return;
      for (const auto& [name, tensor] : first.trainer->state_dict()) state.emplace_back(name, tensor.clone());
    };
    first.trainer->run(observer);
    second.trainer->rehearse(4);
    second.trainer->run({});
    second.trainer->load_state_dict(state);
    second.trainer->run({});
    CHECK(values_of(second.trainer->state_dict()) == expected.state);
  }
}

TEST_CASE("modules with hooks are called at each step, and a graph is gone on with without them", "[cuda][trainer]") {
  if (!has_gpu()) return;
  Run eager({}, CudaGraph::off), graph({}, CudaGraph::on);
  int calls = 0;
  auto handle = graph.model.register_forward_hook([&](layers::Module&, const Tensor&, const Tensor&) { ++calls; });
  train::TrainObserver observer;
  observer.epoch = [&](const train::EpochRecord& record) {
    if (record.epoch == 2) handle.remove();
  };
  graph.trainer->run(observer);
  const int evaluated = static_cast<int>(graph.test->batches());
  CHECK(calls == 2 * (static_cast<int>(graph.loader->batches()) + evaluated));
  CHECK(graph.trainer->graph_launches() == Setup::kFullSteps);
  eager.trainer->run({});
  CHECK(values_of(graph.trainer->state_dict()) == values_of(eager.trainer->state_dict()));
}

TEST_CASE("a module that was added is a part of what is recorded next: its mode, its tensors and its hooks",
          "[cuda][trainer]") {
  if (!has_gpu()) return;
  Run run({}, CudaGraph::off);
  const auto random = std::make_shared<layers::RandomState>(1);
  run.model.set_random_state(random);
  train::StepGraph graph(run.model, *run.optimizer, random, CudaGraph::on);
  const auto take = [&](int steps) {
    std::vector<bool> launched;
    run.loader->start(0);
    for (int i = 0; i < steps; ++i) {
      random->advance();
      launched.push_back(graph.take(*run.loader->next(), [&](const data::Batch& given) {
        run.optimizer->zero_grad();
        autograd::backward(autograd::softmax_cross_entropy(run.model(given.images), given.labels));
        run.optimizer->step();
      }));
    }
    return launched;
  };
  CHECK(take(4) == std::vector<bool>{false, false, true, true});
  layers::Initializer initializer(3);
  auto& added = run.model.add<layers::Linear>({.in = Setup::kClasses, .out = Setup::kClasses}, initializer);
  for (const Tensor& tensor : added.parameters()) tensor.set_data(tensor.detach().to(kGpu));
  graph.drop();
  SECTION("mode") {
    take(3);
    added.eval();
    CHECK(take(2) == std::vector<bool>{false, true});
  }
  SECTION("tensors") {
    take(3);
    const Tensor weight = added.parameters().front(), before = weight.detach();
    weight.set_data(autograd::scale(before, 2.0));
    CHECK(take(2) == std::vector<bool>{false, true});
  }
  SECTION("hooks") {
    int calls = 0;
    added.register_forward_hook([&](layers::Module&, const Tensor&, const Tensor&) { ++calls; });
    CHECK(take(4) == std::vector<bool>(4, false));
    CHECK(calls == 4);
  }
}

TEST_CASE("a module that a program adds between two epochs is trained with from then on", "[cuda][trainer]") {
  if (!has_gpu()) return;
  std::vector<Values> states;
  for (const CudaGraph mode : {CudaGraph::off, CudaGraph::on}) {
    Run run({}, mode);
    run.trainer->fit(1);
    run.model.add<layers::Scale>(0.25);
    run.trainer->fit(1);
    states.push_back(values_of(run.trainer->state_dict()));
    CHECK(run.trainer->graph_launches() == (mode == CudaGraph::on ? 2 * Setup::kFullSteps - 3 : 0));
  }
  CHECK(states[0] == states[1]);
}

TEST_CASE("what cannot be recorded is refused with --cuda-graph on, and told with auto", "[cuda][trainer]") {
  if (!has_gpu()) return;
  const auto refused = [](const Setup& setup, const train::TrainerOptions& options) {
    return error_of([&] { Run(setup, CudaGraph::on, options); });
  };
  CHECK_THAT(refused({.device = {}}, {.epochs = 1}),
             ContainsText("trainer: steps cannot be CUDA graphs: the model is on the CPU"));
  CHECK_THAT(refused({}, {.epochs = 1, .accumulation = 2}), ContainsText("a step is several micro-batches"));
  const train::Metric none{"none", [](const Tensor&, const Tensor&) { return 0.0; }};
  CHECK_THAT(refused({}, {.metrics = {none}, .epochs = 1}), ContainsText("metrics of the program's own"));
  Run first({}, CudaGraph::on);
  CHECK_THAT(error_of([&] {
               train::Trainer(first.model, *first.optimizer, *first.loader,
                              {.scaler = &first.scaler, .cuda_graph = CudaGraph::on});
             }),
             ContainsText("steps cannot be CUDA graphs: gradient places: the gradient of"));
  const Notices notices;
  Run run({}, CudaGraph::automatic, {.epochs = 2, .accumulation = 2});
  run.trainer->run({});
  CHECK(run.trainer->graph_launches() == 0);
  CHECK(notices.lines == std::vector<std::string>{"CUDA graph: off for steps: a step is several micro-batches"});
}

TEST_CASE("a loss that waits for the GPU ends the recording: an error, or eager steps with the same bits",
          "[cuda][trainer]") {
  if (!has_gpu()) return;
  train::TrainerOptions options{.epochs = 3};
  options.loss = [](const Tensor& output, const Tensor& labels) {
    const Tensor loss = autograd::softmax_cross_entropy(output, labels);
    return loss.detach().item() < 1e9 ? loss : Tensor();
  };
  Run eager({}, CudaGraph::off, options), automatic({}, CudaGraph::automatic, options), on({}, CudaGraph::on, options);
  {
    const Notices notices;
    automatic.trainer->run({});
    CHECK(automatic.trainer->graph_launches() == 0);
    REQUIRE(notices.lines.size() == 4);  // told once for each text
    CHECK_THAT(notices.lines[0], ContainsText("CUDA graph: the step is recorded anew: "));
    CHECK_THAT(notices.lines[1], ContainsText("CUDA graph: the evaluation is recorded anew: "));
    CHECK_THAT(notices.lines[2], ContainsText("CUDA graph: off from here on, the step cannot be recorded: "));
    CHECK_THAT(notices.lines[3], ContainsText("CUDA graph: off from here on, the evaluation cannot be recorded: "));
  }
  eager.trainer->run({});
  CHECK(values_of(automatic.trainer->state_dict()) == values_of(eager.trainer->state_dict()));
  CHECK_THAT(error_of([&] { on.trainer->run({}); }), ContainsText("cannot be recorded"));
}

TEST_CASE("a loss that keeps a tensor of the recording is told, and no step is counted twice", "[cuda][trainer]") {
  if (!has_gpu()) return;
  Tensor last;
  train::TrainerOptions options{.epochs = 3};
  options.loss = [&last](const Tensor& output, const Tensor& labels) {
    const Tensor loss = autograd::softmax_cross_entropy(output, labels);
    last = loss.detach();
    return loss;
  };
  for (const Setup& setup :
       {Setup{.optimizer = "adamw"}, Setup{.precision = autograd::Precision::fp16, .init_scale = 8.0}}) {
    Run eager(setup, CudaGraph::off, options), automatic(setup, CudaGraph::automatic, options);
    const Trace expected = trace_of(eager);
    CHECK(trace_of(automatic).state == expected.state);
    CHECK(automatic.trainer->graph_launches() == 0);
    CHECK(automatic.optimizer->steps() == eager.optimizer->steps());
  }
}

TEST_CASE("a batch of as many images of another size is no launch, and the graph is gone on with behind it",
          "[cuda][trainer]") {
  if (!has_gpu()) return;
  std::vector<Values> states;
  for (const CudaGraph mode : {CudaGraph::off, CudaGraph::on}) {
    layers::Initializer initializer(3);
    layers::Sequential model;
    model.add<layers::Conv2d>({.in = 3, .out = 8, .kernel = {3, 3}, .padding = {1, 1}}, initializer);
    model.add<layers::GlobalAvgPool2d>();
    model.add<layers::Flatten>();
    model.add<layers::Linear>({.in = 8, .out = Setup::kClasses}, initializer);
    model.to(kGpu);
    const auto optimizer = optim::make_optimizer(model.parameters(), {.name = "sgd", .lr = 0.1});
    train::StepGraph graph(model, *optimizer, std::make_shared<layers::RandomState>(1), mode);
    std::vector<bool> launched;
    for (const std::int64_t side : {8, 8, 8, 8, 12, 8}) {
      const Tensor images = Tensor::full({4, 3, side, side}, 0.1 * static_cast<double>(launched.size()),
                                         {.layout = Layout::channels_last, .device = kGpu});
      const Tensor labels = Tensor::zeros({4}, {.dtype = DType::i64, .device = kGpu});
      const data::Batch batch{
          .tensors = {images, labels}, .images = images, .labels = labels, .local_count = 4, .global_count = 4};
      launched.push_back(graph.take(batch, [&](const data::Batch& given) {
        optimizer->zero_grad();
        autograd::backward(autograd::softmax_cross_entropy(model(given.images), given.labels));
        optimizer->step();
      }));
    }
    if (mode == CudaGraph::on) CHECK(launched == std::vector<bool>{false, false, true, true, false, true});
    states.push_back(values_of(model.state_dict()));
  }
  CHECK(states[0] == states[1]);
}

TEST_CASE("a label outside of the classes is named also where steps are launches", "[cuda][trainer]") {
  if (!has_gpu()) return;
  Run run({}, CudaGraph::on);
  train::TrainObserver observer;
  std::int64_t steps = 0;
  observer.progress = [&](const train::Progress&) { ++steps; };
  Out(run.images->labels).data<std::int64_t>()[17] = Setup::kClasses;  // of any batch
  CHECK_THAT(error_of([&] { run.trainer->run(observer); }), ContainsText("outside of the 10 classes"));
}

TEST_CASE("names of the modes of CUDA graphs") {
  for (const CudaGraph mode : {CudaGraph::off, CudaGraph::automatic, CudaGraph::on})
    CHECK(train::parse_cuda_graph(train::name_of(mode)) == mode);
  CHECK_THAT(error_of([] { train::parse_cuda_graph("yes"); }),
             ContainsText("cuda graph 'yes': choose auto, on or off"));
}
