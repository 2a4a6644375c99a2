// Muon.
#include "tandem/optim/muon.h"

#include "tandem/core/memory.h"
#include "tandem/kernels/optimizer/muon.h"
#include "tandem/kernels/optimizer/sgd.h"
#include "tandem/kernels/optimizer/tensor_list.h"
#include "tandem/optim/option_checks.h"

#include <algorithm>

namespace tandem::optim {

namespace {

constexpr std::string_view kName = "Muon";

/// Kinds of control(): of matrices, and of parameters that are none.
constexpr std::size_t kMatrices = 0, kOthers = 1;

std::int64_t rows_of(const Tensor& parameter) { return parameter.size(0); }
std::int64_t columns_of(const Tensor& parameter) {
  return parameter.numel() / std::max(rows_of(parameter), std::int64_t{1});
}

/// Whether its memory is that of a matrix whose rows are its first dimension.
bool has_rows(const Tensor& parameter) {
  return parameter.is_dense(Layout::row_major) || (parameter.rank() == 4 && parameter.is_dense(Layout::channels_last));
}

/// Matrices of one shape, one behind another: [n, rows, columns].
struct Batch {
  Shape shape;  // of a matrix
  DType dtype;  // that products are taken in
  std::int64_t count = 0;
  Tensor matrices = {};
};

/// Where a parameter's matrix is.
struct Place {
  std::size_t batch;
  std::int64_t index;
};

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
  const NormalizeEvery& every = options.normalize_every;
  require(every.first >= 1 && every.more >= 0,
          "Muon: normalize_every must be 1 step or more, and 0 or more of them "
          "added on the way, got {} and {}",
          every.first, every.more);
  require(every.more == 0 || every.steps > 0, "Muon: normalize_every that grows needs the number of steps, got {}",
          every.steps);
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

DType Muon::product_dtype(const Tensor& matrix) const {
  const bool half_on_gpu = is_half(matrix.dtype()) && matrix.device().type == DeviceType::cuda;
  return options_.newton_schulz.dtype.value_or(half_on_gpu ? DType::bf16
                                                           : kernels::optimizer_state_dtype(matrix.dtype()));
}

void Muon::check_parameter(const Tensor& parameter) const {
  const bool wide = parameter.dtype() == DType::f64 || (is_matrix(parameter) && product_dtype(parameter) == DType::f64);
  require(!wide || parameter.device() == Device{},
          "Muon: {} on {} cannot be stepped: its kernels there take f32, f16 and bf16, parameters and "
          "newton_schulz.dtype, and not f64",
          describe(parameter), name_of(parameter.device()));
}

void Muon::check_group(const ParameterGroup& group) const {
  require_not_negative(kName, "a group's momentum", group.momentum.value_or(0.0));
  require_not_negative(kName, "a group's weight_decay", group.weight_decay.value_or(0.0));
}

bool Muon::normalizes_at(std::int64_t step) const {
  const NormalizeEvery& every = options_.normalize_every;
  if (every.more == 0) return (step + 1) % every.first == 0;
  if (step + 1 < normalized_.step) normalized_ = {};  // a run that begins again
  while (normalized_.step < step + 1) {
    const std::int64_t next = ++normalized_.step;
    const auto done = static_cast<double>(next) / static_cast<double>(every.steps);
    const auto distance = every.first + static_cast<std::int64_t>(static_cast<double>(every.more) * done);
    if (next - normalized_.last >= distance) normalized_.last = next;
  }
  return normalized_.last == step + 1;
}

kernels::StepFactors Muon::factors(const ParameterGroup& group, double lr) const {
  return {.lr = lr,
          .momentum = group.momentum.value_or(options_.momentum),
          .weight_decay = group.weight_decay.value_or(options_.weight_decay),
          .keep = normalizes_at(step_of_factors()) ? 1.0 : 0.0};
}

std::vector<kernels::StepFactors> Muon::more_factors(const ParameterGroup& group, double lr) const {
  return {{.lr = options_.lr > 0.0 ? lr / options_.lr * options_.aux_lr : 0.0,
           .momentum = group.momentum.value_or(options_.aux_momentum),
           .weight_decay = group.weight_decay.value_or(options_.aux_weight_decay)}};
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
  kernels::sgd_step(others, {.momentum = group().momentum.value_or(options_.aux_momentum),
                             .nesterov = options_.aux_nesterov,
                             .skip = skip(),
                             .control = control(kOthers),
                             .loss_scale = loss_scale(),
                             .table = table()});
}

void Muon::step_matrices(std::span<const Update* const> updates) {
  const MemoryTagScope scope(MemoryTag::workspace);
  const Device device = updates.front()->parameter.device();
  std::vector<Batch> batches;
  std::vector<Place> places;  // of each update
  for (const Update* const update : updates) {
    const Tensor& parameter = update->parameter;
    const DType dtype = product_dtype(parameter);
    const Shape shape{rows_of(parameter), columns_of(parameter)};
    auto batch =
        std::ranges::find_if(batches, [&](const Batch& each) { return each.shape == shape && each.dtype == dtype; });
    if (batch == batches.end()) batch = batches.insert(batches.end(), Batch{.shape = shape, .dtype = dtype});
    places.push_back({static_cast<std::size_t>(batch - batches.begin()), batch->count++});
  }
  for (Batch& batch : batches) {
    batch.matrices =
        Tensor::empty({batch.count, batch.shape[0], batch.shape[1]}, {.dtype = batch.dtype, .device = device});
  }

  std::vector<kernels::MuonItem> items;
  const auto matrix_of = [&](std::size_t i) {
    return Out(batches[places[i].batch].matrices.select(0, places[i].index));
  };
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const Update& update = *updates[i];
    items.push_back({Out(update.parameter), update.gradient, Out(update.state[0]), update.step == 1, Out(update.master),
                     matrix_of(i)});
  }
  const kernels::MuonOptions options{.momentum = group().momentum.value_or(options_.momentum),
                                     .nesterov = options_.nesterov,
                                     .normalize = options_.normalize,
                                     .eps = options_.newton_schulz.eps,
                                     .skip = skip(),
                                     .control = control(kMatrices),
                                     .loss_scale = loss_scale()};
  const Tensor squares = kernels::muon_matrices(items, options);

  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    std::vector<Tensor> x;
    for (const Batch& batch : batches)
      if (batch.dtype == dtype) x.push_back(batch.matrices);
    if (x.empty()) continue;
    x = newton_schulz_steps(std::move(x), options_.newton_schulz);
    auto next = x.begin();
    for (Batch& batch : batches)
      if (batch.dtype == dtype) batch.matrices = *next++;
  }
  for (std::size_t i = 0; i < items.size(); ++i) items[i].matrix = matrix_of(i);
  kernels::muon_step(items, options, squares);
}

}  // namespace tandem::optim
