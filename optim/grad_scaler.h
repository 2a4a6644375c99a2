// Loss scaling: keeps small gradients from vanishing in half precision.
#pragma once

#include "tandem/core/stream.h"
#include "tandem/kernels/optimizer/loss_scale.h"
#include "tandem/optim/finite_check.h"
#include "tandem/optim/optimizer.h"

#include <map>
#include <vector>

namespace tandem::optim {

/// `dynamic` finds the largest scale that overflows only now and then; `fixed` stays at init_scale; `none` scales
/// nothing and skips nothing.
enum class LossScaling : std::uint8_t { none, fixed, dynamic };

/// PyTorch's names and defaults. Whoever gives options wants scaling, so that the mode is not `none` by default.
struct GradScalerOptions {
  LossScaling mode = LossScaling::dynamic;  ///< which scale: none, a constant one, or one that is found
  double init_scale = 65536.0;              ///< the first scale
  double growth_factor = 2.0;               ///< dynamic only, as are the next two
  double backoff_factor = 0.5;              ///< the scale is multiplied by it where a gradient is not finite
  std::int64_t growth_interval = 2000;      ///< good steps in a row before the scale grows
};

/// torch.cuda.amp.GradScaler (Micikevicius et al.: "Mixed precision training", 2018).
/// Gradients are only read: 1 / scale() goes into the optimizer's gradient factor, so that half gradients do not vanish
/// by unscaling, and no pass over them is spent on it. Whether to skip is asked of the gradients after their exchange,
/// where an infinity of one rank has reached all: all ranks decide alike, and no further message is needed. A GPU
/// decides by itself, and has the scale in its memory, where start_gradient() and the update read it. The host learns
/// both later: whatever asks for them, such as scale(), waits for the last update(). Its calls may come on different
/// streams, which wait for each other where they must. The host waits in update() where some optimizers are on the CPU
/// or a second GPU, or more than eight on the first.
/// Example:
///     #include "tandem/optim/clip_grad_norm.h"
///     void take_step(const Tensor& loss, Optimizer& optimizer, GradScaler& scaler) {
///       autograd::backward(loss, scaler.start_gradient(loss));  // gradients are scale() times too large
///       // with several ranks: DistributedDataParallel::finish()
///       scaler.unscale(optimizer);  // only where gradients are to be clipped
///       clip_grad_norm(optimizer, 1.0);
///       scaler.step(optimizer);  // not taken where a gradient is not finite
///       scaler.update();         // once per step, for all optimizers of it
///     }
class GradScaler {
 public:
  /// Scales nothing, as f32 and bf16 want it: scale() is 1, and step() is the optimizer's. So does `GradScaler({})`.
  GradScaler() : GradScaler(LossScaling::none) {}
  /// `GradScaler(LossScaling::dynamic)` is what f16 wants, with PyTorch's constants.
  explicit GradScaler(LossScaling mode) : GradScaler(GradScalerOptions{.mode = mode}) {}
  /// Throws Error on options out of range: scale from 2^-126 to 2^126, interval above 0, growth above 1, backoff
  /// between 0 and 1.
  explicit GradScaler(const GradScalerOptions& options);

  /// Copies go on by themselves, from the scale of now; they wait for it.
  /// @{
  GradScaler(const GradScaler& other);
  GradScaler& operator=(const GradScaler& other);
  ~GradScaler() = default;
  /// @}

  /// Whether losses are scaled and steps skipped, which GradScaler() does not.
  bool is_enabled() const { return options_.mode != LossScaling::none; }

  /// What to multiply losses by; 1 without scaling.
  double scale() const;

  /// What backward() begins with, in place of 1: share * scale(), like `loss`. From the second step of parameters on a
  /// GPU on, it is computed there, and nobody waits; where that is recorded in a WorkGraph, each launch reads the scale
  /// as it is then, for which the scaler must live, and update() not be on another stream. Throws Error where it is
  /// recorded before the first step.
  Tensor start_gradient(const Tensor& loss, double share = 1.0) const;

  /// Takes the scale out of the optimizer's gradients, and looks whether all of these are finite. It is the scale of
  /// now, also for an optimizer's step() behind update(). Throws Error if it is called twice before update(), or after
  /// step(), and for gradients that a scale was taken out of already.
  void unscale(Optimizer& optimizer);

  /// unscale(), unless that was done; then optimizer.step() if all gradients are finite, else optimizer.skip_step(),
  /// with which nothing of the optimizer changes: no parameter, master, moment or count, and no factor is left for the
  /// next step. Gradients stay until a zero_grad, the module's or the optimizer's. What it returns is true if the step
  /// was taken, and waits for a GPU only if it is asked. Throws Error if called twice before update().
  /// A step that unscale(), step() and update() take part in can be recorded in a WorkGraph behind two others of the
  /// same gradients, on one stream: the optimizer's prepare_recording() before, its prepare_replay() before each launch
  /// but the first. The scaler and the optimizer must live, and stay where they are, as long as that is launched;
  /// whether a launch took the step is launched_step().
  FiniteCheck step(Optimizer& optimizer);

  /// Whether the last launch of a recorded step() took it.
  const FiniteCheck& launched_step() const { return launched_step_; }

  /// The scale of the next step, if it is dynamic: smaller if a step was skipped, larger after growth_interval good
  /// ones in a row. Throws Error if there was no step since the last update(). Without scaling it does nothing.
  void update();

  /// Forgets the calls since the last update(): where a step was given up, as by an error.
  void abandon_step();

  /// Updates for which a step was skipped, of this run.
  std::int64_t skipped_steps() const;

  /// "scale" (f64) and "growth_tracker" (i64), both rank 0; nothing without scaling. These are copies.
  NamedTensors state_dict() const;
  /// Goes on from a state; throws Error on one that is damaged or of another mode, changing nothing.
  void load_state_dict(const NamedTensors& state);

 private:
  enum class Stage : std::uint8_t { unscaled, stepped };
  struct OptimizerState {
    Stage stage;
    FiniteCheck check;
    Tensor loss_scale;  // as it was taken out
  };

  /// The scale as of the last update(), for which it waits.
  const kernels::LossScaleState& now() const;
  /// Makes it the state, on the host and there.
  void set(const kernels::LossScaleState& state);
  /// The state for work on the current stream that reads it.
  const Tensor& read_there() const;
  /// Before and behind work on the current stream that changes it.
  /// @{
  void begin_change();
  void end_change();
  /// @}
  void change_there(const std::vector<Tensor>& found);
  /// Has the state brought to the host, behind its change.
  void fetch();
  /// Behind each launch of a recorded update().
  void note_launch(Optimizer& stepped);
  /// Whether it is what changes.
  bool is_shared(const Tensor& loss_scale) const;
  /// Before a change: gradients that were unscaled and not stepped keep the factor that they have.
  void leave_old_scale();
  kernels::LossScaleRule rule() const;

  GradScalerOptions options_;
  std::map<Optimizer*, OptimizerState> optimizers_;         // since the last update()
  std::map<const Optimizer*, kernels::TableCache> tables_;  // of gradients that are looked at
  FiniteCheck launched_step_;
  Tensor there_;       // the state on the first GPU that it was needed on, where it stays; undefined: there was none
  Stream changed_on_;  // whose work has changed it last
  Event changed_;      // behind that, and the copy of it
  mutable std::vector<Stream> readers_;  // of it since then
  // As the host knows it; mutable, as whoever asks first reads.
  mutable kernels::LossScaleState here_;
  mutable Tensor on_its_way_;  // a copy of what is there; undefined: it was read
};

}  // namespace tandem::optim
