// A convolution as a graph of cuDNN's operations, and the choice among its engines: those that the heuristics advise
// and that are exact and deterministic.
#include "tandem/kernels/conv/cudnn/plans.h"

#include "tandem/core/error.h"
#include "tandem/core/failed_call.h"
#include "tandem/kernels/conv/cudnn/frontend.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

void* cudnn_frontend::cudnn_dlhandle = nullptr;  // find_symbol() needs none

namespace tandem::kernels::cudnn {
namespace {

namespace frontend = cudnn_frontend;
using frontend::graph::Pointwise_attributes;
using Sizes = std::vector<std::int64_t>;
using GraphTensor = std::shared_ptr<frontend::graph::Tensor_attributes>;

/// The names of the tensors that a caller passes.
enum TensorId : std::int64_t { kX = 1, kW, kY, kBias, kGate, kSums };

frontend::DataType_t type_of(DType dtype) {
  return dtype == DType::f16    ? frontend::DataType_t::HALF
         : dtype == DType::bf16 ? frontend::DataType_t::BFLOAT16
                                : frontend::DataType_t::FLOAT;
}

/// Strides of n, c, h, w where channels are adjacent.
Sizes channels_last(const Sizes& sizes) { return {sizes[1] * sizes[2] * sizes[3], 1, sizes[1] * sizes[3], sizes[1]}; }

/// The operations of a task: the convolution, then bias and ReLU, or a gradient, then ReLU and sums. What is between
/// two operations is never stored, and float.
class GraphMaker {
 public:
  GraphMaker(frontend::graph::Graph& graph, const ConvTask& task) : graph_(graph), g_(task.geometry), task_(task) {
    graph.set_io_data_type(type_of(task.dtype))
        .set_intermediate_data_type(frontend::DataType_t::FLOAT)
        .set_compute_data_type(frontend::DataType_t::FLOAT);
  }

  void make() {
    switch (task_.pass) {
      case ConvPass::backward_weight:
        stored(graph_.conv_wgrad(input(kY), input(kX), window<frontend::graph::Conv_wgrad_attributes>()), kW);
        return;
      case ConvPass::backward_relu_bias:
        column_sums(stored(gated(input(kY)), kX));
        return;
      case ConvPass::backward_input:
        stored(input_gradient(), kX);
        return;
      case ConvPass::backward_input_relu:
        stored(gated(sized(input_gradient(), kX)), kX);
        return;
      case ConvPass::backward_input_relu_bias:
        column_sums(stored(gated(sized(input_gradient(), kX)), kX));
        return;
      default:
        stored(forward(), kY);
    }
  }

 private:
  Sizes sizes_of(TensorId id) const {
    switch (id) {
      case kX:
      case kGate:
        if (task_.pass == ConvPass::backward_relu_bias) return {g_.n, g_.k, g_.p, g_.q};
        return {g_.n, g_.c, g_.h, g_.w};
      case kSums:
        return {1, task_.pass == ConvPass::backward_relu_bias ? g_.k : g_.c, 1, 1};
      case kW:
        return {g_.k, g_.group_c(), g_.r, g_.s};  // the library counts the groups by the channels of x and w
      case kBias:
        return {1, g_.k, 1, 1};
      default:
        return {g_.n, g_.k, g_.p, g_.q};
    }
  }

  /// The tensor, with the sizes of `id`.
  GraphTensor sized(GraphTensor tensor, TensorId id) const {
    const Sizes sizes = sizes_of(id);
    tensor->set_dim(sizes).set_stride(channels_last(sizes));
    return tensor;
  }
  GraphTensor input(TensorId id) {
    const Sizes sizes = sizes_of(id);
    return graph_.tensor(frontend::graph::Tensor_attributes()
                             .set_uid(id)
                             .set_dim(sizes)
                             .set_stride(channels_last(sizes))
                             .set_alignment(kLibraryAlignment));
  }
  /// The result of an operation, stored as `id`.
  GraphTensor stored(GraphTensor tensor, TensorId id) const {
    tensor->set_output(true).set_uid(id).set_alignment(kLibraryAlignment);
    return sized(tensor, id);
  }

  template <typename Attributes>
  Attributes window() const {
    return Attributes()
        .set_padding({g_.pad_h, g_.pad_w})
        .set_stride({g_.stride_h, g_.stride_w})
        .set_dilation({g_.dilation_h, g_.dilation_w})
        .set_convolution_mode(frontend::ConvolutionMode_t::CROSS_CORRELATION);
  }

  GraphTensor forward() {
    const ConvPass pass = task_.pass;
    GraphTensor y = graph_.conv_fprop(input(kX), input(kW), window<frontend::graph::Conv_fprop_attributes>());
    if (pass == ConvPass::forward_bias || pass == ConvPass::forward_bias_relu)
      y = graph_.pointwise(sized(y, kY), input(kBias), Pointwise_attributes().set_mode(frontend::PointwiseMode_t::ADD));
    // NaN goes through, as the frontend has it for each ReLU.
    if (pass == ConvPass::forward_relu || pass == ConvPass::forward_bias_relu)
      y = graph_.pointwise(sized(y, kY), Pointwise_attributes().set_mode(frontend::PointwiseMode_t::RELU_FWD));
    return y;
  }

  GraphTensor input_gradient() {
    return graph_.conv_dgrad(input(kY), input(kW), window<frontend::graph::Conv_dgrad_attributes>());
  }

  /// A gradient where the gate is positive.
  GraphTensor gated(const GraphTensor& gradient) {
    return graph_.pointwise(gradient, input(kGate),
                            Pointwise_attributes().set_mode(frontend::PointwiseMode_t::RELU_BWD));
  }

  /// Sums over N, H and W, in float. Behind a convolution they are asked for in the same order every time, for cuDNN
  /// has engines without it that it does not mark; alone (tried: 9.19 and 9.28) it has none with it.
  void column_sums(const GraphTensor& x) {
    auto sum = frontend::graph::Reduction_attributes().set_mode(frontend::ReductionMode_t::ADD);
    const bool knows_order = frontend::detail::get_backend_version() >= 91100;
    if (knows_order && task_.pass != ConvPass::backward_relu_bias) sum.set_is_deterministic(true);
    stored(graph_.reduction(x, sum), kSums)->set_data_type(frontend::DataType_t::FLOAT);
  }

  frontend::graph::Graph& graph_;
  const ConvGeometry& g_;
  const ConvTask& task_;
};

/// The frontend's graph, and its plans as they are.
struct Graph : frontend::graph::Graph {
  const std::vector<cudnnBackendNumericalNote_t>& notes_of(std::int64_t index) const {
    return plans.execution_plans[static_cast<std::size_t>(index)]->getAllNumericNotes();
  }
};

/// What a call of the frontend says if it fails, also by an exception; empty if it does not.
template <typename Call>
std::string failure_of(Call&& call) {
  try {
    frontend::error_t status = call();
    return status.is_good() ? "" : status.get_message();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  }
}

void throw_if_failed(const std::string& failure, const char* call, const SourceLine& where) {
  if (failure.empty()) [[likely]]
    return;
  fail_call({.library = "cuDNN", .error = failure, .call = call, .where = where, .more = "choose impl fused"});
}

/// Evaluates a call of a member of the frontend's graph and throws Error where it fails. A macro only to have the
/// call's text.
#define TANDEM_CHECK_FRONTEND(graph, call) \
  throw_if_failed(failure_of([&] { return (graph).call; }), #call, {__FILE__, __LINE__})

/// True if an engine with this note may be used for tensors of `dtype`. Not so with smaller inputs, sums in halves,
/// FFT, Winograd, no fixed order; nor with what only later versions know.
bool is_allowed(cudnnBackendNumericalNote_t note, DType dtype) {
  if (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE) return dtype != DType::f32;  // it would be TF32
  return note == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP;
}

/// Those of the notes that the frontend knows which are not allowed.
std::vector<frontend::NumericalNote_t> refused_notes(DType dtype) {
  std::vector<frontend::NumericalNote_t> notes;
  for (int i = 0; i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; ++i) {
    const auto note = static_cast<cudnnBackendNumericalNote_t>(i);
    const frontend::NumericalNote_t known = frontend::detail::convert_from_cudnn_type(note);
    if (known != frontend::NumericalNote_t::NOT_SET && !is_allowed(note, dtype)) notes.push_back(known);
  }
  return notes;
}

}  // namespace

struct Plans::Search {
  Graph graph;
  DType dtype;
  std::string refusal;
  std::int64_t tried = 0;           // of the graph's plans
  std::vector<std::int64_t> found;  // numbers of the graph's plans
};

Plans::Plans(cudnnHandle_t handle, const ConvTask& task) : search_(std::make_unique<Search>()) {
  search_->dtype = task.dtype;
  Graph& graph = search_->graph;
  search_->refusal = failure_of([&] {
    GraphMaker(graph, task).make();
    frontend::error_t status = graph.validate();
    if (status.is_good()) status = graph.build_operation_graph(handle);
    if (status.is_good())
      status = graph.create_execution_plans({frontend::HeurMode_t::A, frontend::HeurMode_t::FALLBACK});
    return status;
  });
  if (search_->refusal.empty()) graph.deselect_numeric_notes(refused_notes(task.dtype));
}

Plans::~Plans() = default;

bool Plans::has(std::size_t number) {
  Graph& graph = search_->graph;
  if (!search_->refusal.empty()) return false;
  while (search_->found.size() <= number && search_->tried < graph.get_execution_plan_count()) {
    const std::int64_t index = search_->tried++;
    if (!failure_of([&] { return graph.build_plan_at_index(index); }).empty()) continue;
    // The frontend does not compare notes that it does not know.
    const std::vector<cudnnBackendNumericalNote_t>& notes = graph.notes_of(index);
    const auto allowed = [&](cudnnBackendNumericalNote_t note) { return is_allowed(note, search_->dtype); };
    if (std::all_of(notes.begin(), notes.end(), allowed)) search_->found.push_back(index);
  }
  return number < search_->found.size();
}

const std::string& Plans::refusal() const { return search_->refusal; }

std::int64_t Plans::workspace_bytes(std::size_t number) const {
  std::int64_t bytes = 0;
  TANDEM_CHECK_FRONTEND(search_->graph, get_workspace_size_plan_at_index(search_->found.at(number), bytes));
  return bytes;
}

void Plans::run(cudnnHandle_t handle, const ConvTensors& tensors, void* workspace, std::size_t number) const {
  const std::pair<TensorId, const Tensor&> all[] = {{kX, tensors.x},       {kW, tensors.w},
                                                    {kY, tensors.y},       {kBias, tensors.bias},
                                                    {kGate, tensors.gate}, {kSums, tensors.sums}};
  std::unordered_map<std::int64_t, void*> addresses;
  for (const auto& [id, tensor] : all)
    if (tensor.defined())  // which of them are written is up to the pass
      addresses.emplace(id, const_cast<void*>(static_cast<const void*>(tensor.raw_data())));
  TANDEM_CHECK_FRONTEND(search_->graph, execute_plan_at_index(handle, addresses, workspace, search_->found.at(number)));
}

}  // namespace tandem::kernels::cudnn
