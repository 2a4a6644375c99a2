// Muon.
#include "tandem/optim/muon.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/core/memory.h"
#include "tandem/kernels/elementwise/mul.h"
#include "tandem/kernels/elementwise/unary.h"
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

std::int64_t rows_of(const Tensor& parameter) { return parameter.size(0); }
std::int64_t columns_of(const Tensor& parameter) {
  return parameter.numel() / std::max(rows_of(parameter), std::int64_t{1});
}

/// Whether its memory is that of a matrix whose rows are its first dimension.
bool has_rows(const Tensor& parameter) {
  return parameter.is_dense(Layout::row_major) || (parameter.rank() == 4 && parameter.is_dense(Layout::channels_last));
}

/// Matrices of one shape, dtype and device, one behind another: [n, rows, columns].
struct Batch {
  Tensor first;  // of the parameters
  std::int64_t count = 0;
  Tensor matrices = {};

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

/// Scales a tensor to that Frobenius norm, in place.
void scale_to_norm(const Tensor& weight, double norm) {
  const Tensor squares = empty_like(weight);
  const Tensor factor = Tensor::empty({}, {.dtype = weight.dtype(), .device = weight.device()});
  kernels::mul(weight, weight, Out(squares));
  kernels::sum(squares, Out(factor));
  kernels::unary_forward(kName, kernels::Unary::clamp, factor,
                         {.a = kTiny, .b = std::numeric_limits<double>::infinity()}, Out(factor));
  kernels::unary_forward(kName, kernels::Unary::sqrt, factor, {}, Out(factor));
  kernels::unary_forward(kName, kernels::Unary::divide_into, factor, {.a = norm}, Out(factor));
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
  if (!matrices.empty()) step_matrices(matrices);
  if (others.empty()) return;
  const double aux_lr = options_.lr > 0.0 ? lr() / options_.lr * options_.aux_lr : 0.0;
  kernels::sgd_step(others, {.lr = aux_lr,
                             .momentum = group().momentum.value_or(options_.aux_momentum),
                             .weight_decay = group().weight_decay.value_or(options_.aux_weight_decay),
                             .nesterov = options_.aux_nesterov,
                             .gradient_factor = gradient_factor()});
}

void Muon::step_matrices(std::span<const Update* const> updates) const {
  const MemoryTagScope scope(MemoryTag::workspace);
  std::vector<Batch> batches;
  std::vector<Place> places;  // of each update
  for (const Update* const update : updates) {
    auto batch = std::ranges::find_if(batches, [&](const Batch& each) { return each.takes(update->parameter); });
    if (batch == batches.end()) batch = batches.insert(batches.end(), Batch{.first = update->parameter});
    places.push_back({static_cast<std::size_t>(batch - batches.begin()), batch->count++});
  }
  for (Batch& batch : batches) {
    batch.matrices =
        Tensor::zeros({batch.count, rows_of(batch.first), columns_of(batch.first)},
                      {.dtype = kernels::optimizer_state_dtype(batch.first.dtype()), .device = batch.first.device()});
  }

  // SGD at a rate of 1 from zeros leaves what it would take off a weight, with the other sign.
  std::vector<kernels::SgdItem> items;
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const Update& update = *updates[i];
    const Tensor direction = matrix_like(update.parameter, batches[places[i].batch].matrices, places[i].index);
    const bool half = is_half(update.parameter.dtype());
    items.push_back({Out(half ? empty_like(update.parameter) : direction), update.gradient, Out(update.state[0]),
                     update.step == 1, half ? Out(direction) : Out()});
  }
  kernels::sgd_step(items, {.lr = 1.0,
                            .momentum = group().momentum.value_or(options_.momentum),
                            .nesterov = options_.nesterov,
                            .gradient_factor = gradient_factor()});

  for (Batch& batch : batches) {
    NewtonSchulzOptions options = options_.newton_schulz;
    const bool half_on_gpu = is_half(batch.first.dtype()) && batch.first.device().type == DeviceType::cuda;
    if (!options.dtype && half_on_gpu) options.dtype = DType::bf16;
    batch.matrices = newton_schulz(batch.matrices, options);
  }

  // A half weight without a master is stepped in f32, and rounded, as with one.
  items.clear();
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const Update& update = *updates[i];
    const bool half = is_half(update.parameter.dtype());
    const Tensor weight = update.master.defined()
                              ? update.master
                              : autograd::cast(update.parameter, half ? DType::f32 : update.parameter.dtype());
    if (options_.normalize) scale_to_norm(weight, std::sqrt(static_cast<double>(rows_of(weight))));
    const Tensor step = matrix_like(update.parameter, batches[places[i].batch].matrices, places[i].index);
    items.push_back({Out(update.parameter), step, Out(), false, half ? Out(weight) : Out()});
  }
  kernels::sgd_step(
      items,
      {.lr = lr(), .weight_decay = group().weight_decay.value_or(options_.weight_decay), .gradient_factor = -1.0});
}

}  // namespace tandem::optim
