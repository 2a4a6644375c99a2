// Muon: momentum whose steps are made orthogonal, for matrices and filters; SGD for all other parameters.
#pragma once

#include "tandem/kernels/optimizer/step_factors.h"
#include "tandem/optim/newton_schulz.h"
#include "tandem/optim/optimizer.h"

#include <typeinfo>
#include <vector>

namespace tandem::optim {

/// In which steps Muon scales matrices. With `more` they lie further apart as a run goes on: each is the first one, of
/// steps counted from 1, that comes `first` + floor(`more` * step / steps) or more behind the one before (of the first
/// one, behind 0). hiverge/cifar10-speedrun has 2 and 15.
struct NormalizeEvery {
  std::int64_t first = 1;  ///< steps, 1 or more
  std::int64_t more = 0;   ///< steps by which the distance has grown at the end of the run
  std::int64_t steps = 0;  ///< of the run, which `more` needs
};

/// Defaults are those of airbench94_muon, but for aux_lr, whose loss is a sum.
struct MuonOptions {
  double lr = 0.24;           ///< learning rate of matrices
  double momentum = 0.6;      ///< of matrices; 0: none
  bool nesterov = true;       ///< Nesterov's momentum of matrices
  double weight_decay = 0.0;  ///< times the learning rate, which matrices shrink by
  /// Before each step a matrix is scaled to a Frobenius norm of the root of its first size. Batch norm behind it undoes
  /// that; the step then turns all matrices by like angles.
  bool normalize = true;
  NormalizeEvery normalize_every = {};  ///< in which steps, if at all
  /// dtype empty: bf16 for half parameters on a GPU, else f32 (f64 for f64, which a GPU does not take). eps is added to
  /// the norm of what goes into it, momentum times gradients: 1e-7 is meant for sums over 2000 images; for means, of
  /// any number, that is 5e-11.
  NewtonSchulzOptions newton_schulz = {};
  /// Of the parameters, those of two dimensions or more that Muon steps; none: all of four, which are filters of
  /// convolutions. Embeddings and a network's last layer are better off with SGD.
  std::vector<Tensor> matrices = {};
  double aux_lr = 0.1;            ///< learning rate of all others, which lr() and its factors move with them
  double aux_momentum = 0.85;     ///< of all others; 0: none
  double aux_weight_decay = 0.0;  ///< of all others: times the weight, added to the gradient
  bool aux_nesterov = true;       ///< Nesterov's momentum of all others
  bool master_weights = true;     ///< f32 copies of half parameters, which steps are taken in
};

/// Muon for matrices and filters [K, ...], each as a matrix of K rows, with SGD as the auxiliary optimizer of all other
/// parameters. A matrix is stepped by
///   w <- w sqrt(K) / |w|                          (normalize, in steps of normalize_every)
///   buffer = momentum * buffer + g
///   u = nesterov ? g + momentum * buffer : buffer
///   w <- w - lr * (newton_schulz(u) + weight_decay * w)
/// and the others are stepped as by SGD, at a rate of lr() * aux_lr / lr of the options. All of it on the parameters'
/// device: on a GPU nobody waits, and a step can be recorded (prepare_replay()). A group's matrices are multiplied
/// together where their products have one dtype: with three rounds of Newton-Schulz, 12 kernels step up to 24 matrices
/// of up to 16 shapes (some more where cuBLAS multiplies large ones), and one the other parameters, for each group.
/// Groups may have a rate, weight decay and momentum of their own, for matrices and others alike. Jordan: "Muon: An
/// optimizer for hidden layers in neural networks", 2024, and airbench94_muon.py of cifar10-airbench. (torch.optim.Muon
/// takes matrices only, weighs gradients by 1 - momentum, and normalises no weights.) Example:
///     const Tensor filters = autograd::set_requires_grad(Tensor::full({8, 3, 3, 3}, 0.1));
///     const Tensor bias = autograd::set_requires_grad(Tensor::zeros({8}));
///     Muon optimizer({filters, bias}, {.lr = 0.1, .aux_lr = 0.5});
///     autograd::set_grad(bias, Tensor::full({8}, 1.0));
///     optimizer.step();
///     const double value = bias.to_vector<double>()[0];  // -0.925: 0.5 (1 + 0.85)
class Muon : public Optimizer {
 public:
  /// Throws Error on options out of range, without parameters, for one that is no dense floating leaf or is given
  /// twice, and for a matrix that is none of them, has one dimension, or whose rows do not lie one after another, as
  /// they do in row-major and channels-last tensors.
  explicit Muon(std::vector<Tensor> parameters, const MuonOptions& options = {});

 protected:
  void update(std::span<const Update> updates) override;
  /// Not for a class that is derived from this one, whose update() may do more.
  bool looks_at_skip() const override { return typeid(*this) == typeid(Muon); }
  bool looks_at_loss_scale() const override { return typeid(*this) == typeid(Muon); }
  void check_parameter(const Tensor& parameter) const override;
  void check_group(const ParameterGroup& group) const override;
  kernels::StepFactors factors(const ParameterGroup& group, double lr) const override;
  std::vector<kernels::StepFactors> more_factors(const ParameterGroup& group, double lr) const override;

 private:
  bool is_matrix(const Tensor& parameter) const;
  bool normalizes_at(std::int64_t step) const;
  DType product_dtype(const Tensor& matrix) const;
  void step_matrices(std::span<const Update* const> updates);

  MuonOptions options_;
  /// Of normalizes_at(): a step, counted from 1, and the last one up to it that normalizes.
  struct Normalized {
    std::int64_t step = 0, last = 0;
  };
  mutable Normalized normalized_ = {};
};

}  // namespace tandem::optim
