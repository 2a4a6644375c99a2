// Muon.
#include "tandem/optim/muon.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/core/memory.h"
#include "tandem/kernels/cast/cast.h"
#include "tandem/kernels/elementwise/mul.h"
#include "tandem/kernels/elementwise/unary.h"
#include "tandem/kernels/elementwise/where.h"
#include "tandem/kernels/optimizer/sgd.h"
#include "tandem/kernels/optimizer/tensor_list.h"
#include "tandem/kernels/reduce/sum.h"
#include "tandem/optim/option_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem::optim {

namespace {

constexpr std::string_view kName = "Muon";

/// The smallest sum of squares that a weight is divided by the root of, so that zeros stay zeros.
constexpr double kTiny = 1e-37;

/// Kinds of control(): of momentum, of parameters that are no matrices, and of matrices' steps.
constexpr std::size_t kMomentum = 0, kOthers = 1, kSteps = 2;

std::int64_t rows_of(const Tensor& parameter) { return parameter.size(0); }
std::int64_t columns_of(const Tensor& parameter) {
  return parameter.numel() / std::max(rows_of(parameter), std::int64_t{1});
}

/// Whether its memory is that of a matrix whose rows are its first dimension.
bool has_rows(const Tensor& parameter) {
  return parameter.is_dense(Layout::row_major) || (parameter.rank() == 4 && parameter.is_dense(Layout::channels_last));
}

/// Matrices of one shape, dtype and device.
struct Batch {
  Tensor first;  // of the parameters
  std::int64_t count = 0;

  bool takes(const Tensor& parameter) const {
    return rows_of(first) == rows_of(parameter) && columns_of(first) == columns_of(parameter) &&
           first.dtype() == parameter.dtype() && first.device() == parameter.device();
  }
};

/// Where a parameter's matrix is.
struct Place {
  std::size_t batch;
  std::int64_t index;
};

/// The matrix of that number, in the shape and strides of its parameter.
Tensor matrix_like(const Tensor& parameter, const Tensor& matrices, std::int64_t index) {
  return matrices.as_strided(parameter.shape(), parameter.strides(), index * parameter.numel());
}

/// The tensor that is kept there, of this shape and these strides, or a new one, which is kept.
const Tensor& kept_like(Tensor& kept, const Tensor& model, DType dtype) {
  if (!kept.defined() || kept.shape() != model.shape() || kept.strides() != model.strides() || kept.dtype() != dtype)
    kept = Tensor::empty(model.shape(), {.dtype = dtype, .device = model.device()})
               .as_strided(model.shape(), model.strides(), 0);
  return kept;
}

/// Scales a tensor to that Frobenius norm, in place; not where `skip` is not 0.
void scale_to_norm(const Tensor& weight, double norm, const Tensor& skip) {
  const Tensor squares = empty_like(weight);
  const Tensor factor = Tensor::empty({}, {.dtype = weight.dtype(), .device = weight.device()});
  kernels::mul(weight, weight, Out(squares));
  kernels::sum(squares, Out(factor));
  kernels::unary_forward(kName, kernels::Unary::clamp, factor,
                         {.a = kTiny, .b = std::numeric_limits<double>::infinity()}, Out(factor));
  kernels::unary_forward(kName, kernels::Unary::sqrt, factor, {}, Out(factor));
  kernels::unary_forward(kName, kernels::Unary::divide_into, factor, {.a = norm}, Out(factor));
  if (skip.defined()) {
    const Tensor condition = Tensor::empty({}, {.dtype = DType::u8, .device = weight.device()});
    kernels::cast(skip, Out(condition));
    kernels::where(condition, Tensor::full({}, 1.0, factor.options()), factor, Out(factor));
  }
  kernels::mul(weight, factor.expand(weight.shape()), Out(weight));
}

}  // namespace

Muon::Muon(std::vector<Tensor> parameters, const MuonOptions& options)
    : Optimizer(std::string(kName), std::move(parameters), options.lr, options.master_weights, {"momentum_buffer"}),
      options_(options) {
  require_not_negative(kName, "momentum", options.momentum);
  require_not_negative(kName, "weight_decay", options.weight_decay);
  require_not_negative(kName, "aux_lr", options.aux_lr);
  require_not_negative(kName, "aux_momentum", options.aux_momentum);
  require_not_negative(kName, "aux_weight_decay", options.aux_weight_decay);
  require(!options.nesterov || options.momentum > 0.0, "Muon: Nesterov momentum needs momentum > 0, got {}",
          options.momentum);
  require(!options.aux_nesterov || options.aux_momentum > 0.0, "Muon: aux_nesterov needs aux_momentum > 0, got {}",
          options.aux_momentum);
  check_newton_schulz(kName, options.newton_schulz);
  for (std::size_t i = 0; i < options.matrices.size(); ++i) {
    const Tensor& matrix = options.matrices[i];
    const bool is_one = std::ranges::any_of(this->parameters(),
                                            [&](const Tensor& own) { return matrix.defined() && own.is_same(matrix); });
    require(is_one, "Muon: matrix {}, {}, is none of this optimizer's {} parameters", i, describe(matrix),
            this->parameters().size());
    require(matrix.rank() >= 2, "Muon: matrix {}, {}, has fewer than two dimensions; leave it out, and SGD steps it", i,
            describe(matrix));
  }
  for (std::size_t i = 0; i < this->parameters().size(); ++i) {
    const Tensor& parameter = this->parameters()[i];
    require(!is_matrix(parameter) || has_rows(parameter),
            "Muon: the rows of parameter {}, {} with strides {}, must lie one after another; give its contiguous()", i,
            describe(parameter), to_string(parameter.strides()));
  }
}

bool Muon::is_matrix(const Tensor& parameter) const {
  if (options_.matrices.empty()) return parameter.rank() == 4;
  return std::ranges::any_of(options_.matrices, [&](const Tensor& matrix) { return matrix.is_same(parameter); });
}

void Muon::check_group(const ParameterGroup& group) const {
  require_not_negative(kName, "a group's momentum", group.momentum.value_or(0.0));
  require_not_negative(kName, "a group's weight_decay", group.weight_decay.value_or(0.0));
}

kernels::StepFactors Muon::factors(const ParameterGroup& group, double /*lr*/) const {
  return {.lr = 1.0, .momentum = group.momentum.value_or(options_.momentum)};
}

std::vector<kernels::StepFactors> Muon::more_factors(const ParameterGroup& group, double lr) const {
  const double aux_lr = options_.lr > 0.0 ? lr / options_.lr * options_.aux_lr : 0.0;
  return {{.lr = aux_lr,
           .momentum = group.momentum.value_or(options_.aux_momentum),
           .weight_decay = group.weight_decay.value_or(options_.aux_weight_decay),
           .gradient_factor = control_gradient_factor()},
          {.lr = lr, .weight_decay = group.weight_decay.value_or(options_.weight_decay), .gradient_factor = -1.0}};
}

void Muon::update(std::span<const Update> updates) {
  std::vector<const Update*> matrices;
  std::vector<kernels::SgdItem> others;
  for (const Update& update : updates) {
    if (is_matrix(update.parameter)) {
      matrices.push_back(&update);
    } else {
      others.push_back(
          {Out(update.parameter), update.gradient, Out(update.state[0]), update.step == 1, Out(update.master)});
    }
  }
  if (!matrices.empty()) {
    work_.resize(groups().size() + 1);
    const Device device = matrices.front()->parameter.device();
    Work& work = work_[row()];
    // Kernels on the stream of before may still use the memory.
    const Stream stream = device.type == DeviceType::cuda ? current_stream(device) : Stream();
    if (!(work.stream == stream)) work = {};
    work.stream = stream;
    step_matrices(matrices, work);
    if (device.type != DeviceType::cuda) work = {};
  }
  if (others.empty()) return;
  kernels::sgd_step(others, {.momentum = group().momentum.value_or(options_.aux_momentum),
                             .nesterov = options_.aux_nesterov,
                             .skip = skip(),
                             .control = control(kOthers),
                             .loss_scale = loss_scale(),
                             .table = table()});
}

void Muon::step_matrices(std::span<const Update* const> updates, Work& work) {
  const MemoryTagScope scope(MemoryTag::workspace);
  const Tensor& skipped = skip();
  std::vector<Batch> batches;
  std::vector<Place> places;  // of each update
  for (const Update* const update : updates) {
    auto batch = std::ranges::find_if(batches, [&](const Batch& each) { return each.takes(update->parameter); });
    if (batch == batches.end()) batch = batches.insert(batches.end(), Batch{.first = update->parameter});
    places.push_back({static_cast<std::size_t>(batch - batches.begin()), batch->count++});
  }
  work.batches.resize(batches.size());
  for (std::size_t b = 0; b < batches.size(); ++b) {
    const Tensor& first = batches[b].first;
    const Shape shape{batches[b].count, rows_of(first), columns_of(first)};
    const TensorOptions options{.dtype = kernels::optimizer_state_dtype(first.dtype()), .device = first.device()};
    Tensor& matrices = work.batches[b];
    if (!matrices.defined() || matrices.shape() != shape || matrices.dtype() != options.dtype)
      matrices = Tensor::empty(shape, options);
    matrices.zero();
  }
  work.halves.resize(updates.size());
  work.wide.resize(updates.size());

  // SGD at a rate of 1 from zeros leaves what it would take off a weight, with the other sign.
  std::vector<kernels::SgdItem> items;
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const Update& update = *updates[i];
    const Tensor direction = matrix_like(update.parameter, work.batches[places[i].batch], places[i].index);
    const DType dtype = update.parameter.dtype();
    const bool half = is_half(dtype);
    items.push_back({Out(half ? kept_like(work.halves[i], update.parameter, dtype) : direction), update.gradient,
                     Out(update.state[0]), update.step == 1, half ? Out(direction) : Out()});
  }
  kernels::sgd_step(items, {.momentum = group().momentum.value_or(options_.momentum),
                            .nesterov = options_.nesterov,
                            .skip = skipped,
                            .control = control(kMomentum),
                            .loss_scale = loss_scale(),
                            .table = &work.momentum});

  for (std::size_t b = 0; b < batches.size(); ++b) {
    NewtonSchulzOptions options = options_.newton_schulz;
    const Tensor& first = batches[b].first;
    const bool half_on_gpu = is_half(first.dtype()) && first.device().type == DeviceType::cuda;
    if (!options.dtype && half_on_gpu) options.dtype = DType::bf16;
    kernels::cast(newton_schulz(work.batches[b], options), Out(work.batches[b]));
  }

  // A half weight without a master is stepped in f32, and rounded, as with one.
  items.clear();
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const Update& update = *updates[i];
    const bool half = is_half(update.parameter.dtype());
    Tensor weight = half ? update.master : update.parameter;
    if (!weight.defined()) {
      weight = kept_like(work.wide[i], update.parameter, DType::f32);
      kernels::cast(update.parameter, Out(weight));
    }
    if (options_.normalize) scale_to_norm(weight, std::sqrt(static_cast<double>(rows_of(weight))), skipped);
    const Tensor step = matrix_like(update.parameter, work.batches[places[i].batch], places[i].index);
    items.push_back({Out(update.parameter), step, Out(), false, half ? Out(weight) : Out()});
  }
  kernels::sgd_step(items, {.skip = skipped, .control = control(kSteps), .table = &work.steps});
}

}  // namespace tandem::optim
