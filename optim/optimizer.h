// What all optimizers share: the parameters, the learning rate, the state kept per parameter, and saving it.
#pragma once

#include "tandem/autograd/variable.h"
#include "tandem/core/named_tensors.h"
#include "tandem/kernels/optimizer/table_cache.h"
#include "tandem/optim/finite_check.h"
#include "tandem/optim/parameter_group.h"
#include "tandem/optim/step_control.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tandem::optim {

/// Updates parameters in place from their gradients. Parameters are dense floating leaves, each named once. They may be
/// moved to another device (Module::to) before the first step, but for those with a master; a later move, or another
/// dtype, is an Error of the next step. A half parameter has an f32 master, unless the options say no: steps are taken
/// there, and the parameter is its rounded copy. Example:
///     #include "tandem/core/out.h"
///     class PlainDescent final : public Optimizer {  // for f32
///      public:
///       PlainDescent(std::vector<Tensor> parameters, double lr)
///           : Optimizer("PlainDescent", std::move(parameters), lr, false, {}) {}
///
///      protected:
///       void update(std::span<const Update> updates) override {
///         const float rate = static_cast<float>(lr() * gradient_factor());
///         for (const Update& due : updates) {
///           float* const w = Out(due.parameter).data<float>();
///           for (std::int64_t i = 0; i < due.parameter.numel(); ++i) w[i] -= rate * due.gradient.data<float>()[i];
///         }
///       }
///     };
///     const Tensor w = autograd::set_requires_grad(Tensor::full({2}, 1.0));
///     PlainDescent optimizer({w}, 0.1);
///     autograd::set_grad(w, Tensor::full({2}, 5.0));
///     optimizer.step();
///     const std::vector<float> values = w.to_vector<float>();  // {0.5, 0.5}
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update, a single pass over all parameters of a group that have a gradient; the others are left alone, as in
  /// PyTorch, and so are those of groups that are frozen.
  void step();

  /// In place of step(), where gradients are not to be used: nothing changes, and factors end as they do there.
  void skip_step() { end_step(); }

  /// step() if the check is passed, else skip_step(). On a GPU nobody waits for the answer where kernels of the
  /// optimizer look at it themselves (looks_at_skip()); counts of steps are settled when they are next asked for.
  void step_if(const FiniteCheck& check);

  /// For a step_if() that was recorded in a WorkGraph: whether the last launch of it has taken the step, as far as the
  /// host counts steps. GradScaler does this behind each launch.
  void settle_launch(const FiniteCheck& taken);

  /// Before a WorkGraph is made that records step(), as that copies nothing from the host: copies the rates and factors
  /// of the step that is due to where its kernels read them. Nobody waits.
  void prepare_recording();
  /// Behind a WorkGraph whose constructor has thrown: takes back what a step() within it has counted, as nothing of it
  /// was done: also groups that it has frozen are trained again. prepare_recording() comes before.
  void abandon_recording();
  /// The same where WorkGraph::launch() has thrown, of the step that prepare_replay() has counted, or the recording.
  /// The graph may be launched again, behind another prepare_replay().
  void abandon_launch();

  /// For a step() that was recorded in a WorkGraph: makes the next launch take the step that step() would take now. It
  /// counts that step and copies rates and factors that have changed to the device, where the recorded kernels read
  /// them. Where steps may be skipped it waits for the launch before the last one, with begin_step() called; else
  /// nobody waits. To be called in place of step() before each launch but the first, which takes the step that
  /// was recorded, on the stream of that, and while nothing is recorded. Of several recordings it is for the last one;
  /// a step() between launches may take any other step. Throws NotRepeatable, changing nothing, where the launch would
  /// take another step than step(): none was recorded, a gradient is elsewhere than it was then, has come or gone, a
  /// group was added or is frozen by now, a state was loaded, what the kernels read was moved by a step() on another
  /// stream, gradients have a loss scale on the device (remove_loss_scale()) that those of the recorded step had not,
  /// or that one was a parameter's first one, had a check on the device that is no part of the recording, or a loss
  /// scale without a check, or was an update() that does not go by control(). Example:
  ///     #include "tandem/core/work_graph.h"
  ///     void take_steps(Optimizer& optimizer, Device gpu, const Schedule& schedule) {
  ///       for (int step = 0; step < 2; ++step) optimizer.step();  // gradients stay where they are
  ///       const WorkGraph graph(gpu, [&] { optimizer.step(); });
  ///       graph.launch();
  ///       for (int step = 3; step < 10; ++step) {
  ///         optimizer.set_lr_factor(schedule.lr_factor(step));
  ///         optimizer.prepare_replay();
  ///         graph.launch();
  ///       }
  ///     }
  void prepare_replay();

  /// Drops all gradients, and with them the factor that they had.
  void zero_grad();

  /// The gradients that are there count this many times at the step, which multiplies by it in passing; factors of
  /// several calls are multiplied. How a loss scale is taken out of gradients again, and how they are clipped. A factor
  /// belongs to one step and to the gradients it was given to: it ends with step() or skip_step(), and gradients that
  /// come after some of these were dropped, by whichever zero_grad, do not have it. Given where there are no gradients
  /// yet, it is that of the next step's. A gradient that has a factor must not be added to or replaced before the step:
  /// step() and scale_gradients() throw Error then, changing nothing.
  void scale_gradients(double factor);
  /// The same by the inverse of a scale in a device's memory, kernels::make_loss_scale(), as it is when the step comes
  /// to it: nobody waits for it where kernels of the optimizer read it there (looks_at_loss_scale()). Whatever it is, 1
  /// as well, gradients have a factor then. Throws Error for gradients that a scale was taken out of already.
  void remove_loss_scale(const Tensor& loss_scale);
  /// Clips the gradients as clip_grad_norm() does, which tells their norm: here nobody waits for a GPU. Where kernels
  /// of the optimizer read a loss scale there, the factor is a part of the scale that they read, on the current stream,
  /// which is that of the step then; a WorkGraph can record it behind a step that did the same. The gradients have a
  /// factor then, whether they were clipped or not. A loss scale is taken out of them before. Throws Error unless
  /// max_norm > 0.
  void clip_gradients(double max_norm);
  /// The factor that gradients have until the next step; 1 where none was given. Waits for a GPU where a loss scale
  /// there is a part of it.
  double gradient_factor() const;

  /// Of the next step, for parameters in no group. Within update(): that of the parameters which it is given.
  double lr() const;
  /// Of the next step, for those of the `group`-th of groups().
  double lr(std::size_t group) const;
  /// What set_lr() was given last; at first the rate of the options.
  double base_lr() const { return base_lr_; }
  /// Makes it the rate of the next steps, and what factors are of from now on. Throws Error unless finite and >= 0.
  void set_lr(double lr);
  /// The next steps are taken at base_lr() times this factor, but for groups that have a schedule of their own. Throws
  /// Error unless finite and >= 0.
  void set_lr_factor(double factor);

  /// From the next step on, these parameters go by the group's options. To be called before their first step, and
  /// before load_state_dict(): a state holds no options. Throws Error, changing nothing, for options out of range or
  /// that this optimizer does not have, without parameters, and for one that is not the optimizer's, is in a group
  /// already, or has made a step. Example:
  ///     #include "tandem/optim/sgd.h"
  ///     const Tensor weight = autograd::set_requires_grad(Tensor::full({}, 1.0));
  ///     const Tensor bias = autograd::set_requires_grad(Tensor::full({}, 1.0));
  ///     SGD optimizer({weight, bias}, {.lr = 0.1, .weight_decay = 5e-4});
  ///     optimizer.add_group({.parameters = {bias}, .lr_factor = 64.0, .weight_decay = 0.0, .freeze_step = 144});
  void add_group(ParameterGroup group);
  /// Those that were added, in that order.
  const std::vector<ParameterGroup>& groups() const { return groups_; }

  /// Says which step comes next, counted from 0, for schedules of groups and for freezing; step() and skip_step() count
  /// on from there. Before the step's first forward pass, as what is frozen from it on gets no gradient any more. Where
  /// it was never called, that number is steps(), which is right where no step is skipped. A load_state_dict() begins
  /// with steps() again.
  void begin_step(std::int64_t step);

  /// In the order in which they were given.
  const std::vector<Tensor>& parameters() const { return parameters_; }

  /// f32, in the strides of the `index`-th parameter; undefined for a parameter without.
  /// Throws Error where there are not so many.
  Tensor master(std::size_t index) const;

  /// Copies a value (of the parameter's shape, floating, on any device) into the `index`-th parameter and its master,
  /// which keeps the digits that the parameter has no room for. Throws Error for another value, and where there are not
  /// so many.
  void set_value(std::size_t index, const Tensor& value);

  /// Steps of the parameter that has made the most.
  std::int64_t steps() const;
  /// The fewest that a parameter with a gradient has taken; 0 where none has one. Waits as steps() does.
  std::int64_t fewest_steps() const;

  /// For checkpoints: "<parameter index>.step" (i64, rank 0) and "<parameter index>.<state name>" (PyTorch's names:
  /// momentum_buffer, exp_avg, ...) for each parameter that was ever updated, and "<parameter index>.master" for each
  /// that has one. The tensors are the live ones, not copies, but for the counts of steps.
  NamedTensors state_dict() const;

  /// Copies a state in, and masters to their parameters. Throws Error on names, shapes or dtypes that do not belong to
  /// these parameters, changing nothing.
  void load_state_dict(const NamedTensors& state);

 protected:
  /// A parameter that is due for an update. `step` counts from 1; `state` follows the order of state_names.
  struct Update {
    /// The parameter as it is used, its gradient, and its f32 copy, which is undefined where it needs none.
    Tensor parameter, gradient, master;
    std::int64_t step;                 ///< of this parameter
    const std::vector<Tensor>& state;  ///< in the order of state_names; undefined ones where keeps() says no
    Tensor count;                      ///< a kernels::AdamCount on a GPU where counts_on_gpu(); else undefined
  };

  /// `state_names`: what is kept per parameter, each a tensor like the parameter that starts as zeros.
  Optimizer(std::string name, std::vector<Tensor> parameters, double lr, bool master_weights,
            std::vector<std::string> state_names);

  /// Gradients count gradient_factor() times, and the rate is lr(). Called once for each group that something is due
  /// of, and for the parameters in none.
  virtual void update(std::span<const Update> updates) = 0;

  /// Whether update() leaves everything as it is on a GPU where skip() is not 0 there, as the kernels of
  /// kernels/optimizer do. By default it does not, and is called only for steps that are taken.
  virtual bool looks_at_skip() const { return false; }
  /// Within update(): i32, rank 0, on the parameters' device; undefined where the step is surely taken.
  const Tensor& skip() const { return skip_; }

  /// Whether update() multiplies gradients by the inverse of loss_scale(), beside StepFactors::gradient_factor of
  /// control(), as the kernels of kernels/optimizer do. By default it does not, and that factor is all of it.
  virtual bool looks_at_loss_scale() const { return false; }
  /// Within update(): a kernels::LossScaleState on the parameters' device; undefined where gradients have none, or
  /// looks_at_loss_scale() says no.
  Tensor loss_scale() const { return looks_at_loss_scale() ? loss_scale_ : Tensor(); }
  /// StepFactors::gradient_factor: the factor of gradients without that of loss_scale().
  double control_gradient_factor() const { return loss_scale().defined() ? gradient_factor_ : gradient_factor(); }

  /// Within factors() and more_factors(): the number of the step that they are for, from 0, as begin_step() said.
  std::int64_t step_of_factors() const { return step_of_factors_; }
  /// What changes from step to step for the parameters of a group, which has no options for those in none, at that
  /// learning rate; gradient_factor is set behind it. By default the rate alone.
  virtual kernels::StepFactors factors(const ParameterGroup& group, double lr) const;
  /// Those of more kernels, for an update() of several that go by other numbers, as many for each group; also of these
  /// gradient_factor is set behind it. By default none.
  virtual std::vector<kernels::StepFactors> more_factors(const ParameterGroup& group, double lr) const;
  /// Within update(): factors(), or, from 1 on, one of more_factors(), in the memory of the parameters' device, for
  /// kernels that take a `control`. On a GPU they are copied there, for all groups together, where a number has
  /// changed.
  Tensor control(std::size_t kind = 0);
  /// Within update(): where the kernel that updates these parameters may keep its table.
  kernels::TableCache* table();
  /// Whether update() has kernels count the steps of parameters on a GPU. By default it has not.
  virtual bool counts_on_gpu() const { return false; }

  /// Throws Error for a parameter with a gradient that update() cannot step as it is now; called of all before a step
  /// changes anything. By default it throws none.
  virtual void check_parameter(const Tensor& /*parameter*/) const {}
  /// Throws Error for a group's options that this optimizer does not have or that are out of range. By default it has
  /// neither weight decay nor momentum.
  virtual void check_group(const ParameterGroup& group) const;
  /// Whether the `state`-th of state_names is kept for the parameters of this group, which has no options for those in
  /// none. By default, yes.
  virtual bool keeps(std::size_t state, const ParameterGroup& group) const;
  /// The group of what update() is given; one without options where it is in none.
  const ParameterGroup& group() const { return *current_.group; }
  /// What messages begin with.
  const std::string& name() const { return name_; }

 private:
  struct ParameterState {
    std::int64_t step = 0;
    std::vector<Tensor> tensors;  // empty before the first step
  };

  static const ParameterGroup kNoGroup;

  /// What update() is called for, while it runs.
  struct Current {
    const ParameterGroup* group;
    std::optional<double> lr = {};
    std::size_t row = 0;
    Device device = {};
    Tensor control = {};  // that update() was given
  };

  /// Counts of steps as a GPU has them, of a group's parameters.
  struct CountsOnGpu {
    Stream stream;                    // that they were copied on
    Tensor tensor;                    // of AdamCounts, one of each parameter of the optimizer
    std::vector<std::int64_t> steps;  // what the GPU has, if it has skipped nothing since; empty: nothing
  };

  /// What kernels keep from step to step, of a group.
  struct Kept {
    kernels::TableCache table;
    CountsOnGpu counts;
  };

  /// A group's part of a step that a WorkGraph has recorded.
  struct Recorded {
    std::vector<const void*> addresses;  // where everything was; empty: nothing was due
    // What its kernels read, which stays for them although other steps may go by others.
    kernels::TableCache table;
    Tensor control;  // undefined: they read none
    // Whether a launch of the same can be another step.
    bool on_gpu = false, was_first = false, may_have_skipped = false, decides_anew = false;
    Tensor loss_scale;  // that was taken out
    bool clips = false;
    kernels::TableCache clip_table;
  };

  /// What a recording or a launch counts.
  struct Counts {
    std::optional<std::int64_t> next_step = {};
    std::size_t unsettled = 0;                                // of unsettled_
    std::vector<std::int64_t> steps = {};                     // of each parameter
    std::vector<std::vector<std::int64_t>> steps_there = {};  // CountsOnGpu::steps of each row
    std::vector<Tensor> gradients = {};  // of each parameter that freezing may drop, else undefined
  };

  /// A gradient that the factor was given to: whose it is, and what that one's counts were.
  struct FactorOf {
    std::size_t parameter;
    autograd::GradientCounts counts;
  };

  /// Of a parameter when the optimizer last looked.
  struct Home {
    DType dtype;
    Device device;
    friend bool operator==(const Home&, const Home&) = default;
  };

  void check_index(std::size_t index) const;
  /// Throws Error where a parameter has changed its dtype, or its device although something is kept for it.
  void check_home(std::size_t index);
  /// The group of a parameter.
  const ParameterGroup& group_of(std::size_t index) const;
  double lr_of(const ParameterGroup& group, std::int64_t step) const;
  std::int64_t next_step() const { return next_step_ ? *next_step_ : steps(); }
  void freeze_due_groups();
  void take_step();
  /// The options of a row of control_: 0 is for parameters in no group, then the groups follow.
  const ParameterGroup& group_of_row(std::size_t row) const { return row == 0 ? kNoGroup : groups_[row - 1]; }
  std::size_t row_of(std::size_t index) const { return group_of_[index] ? *group_of_[index] + 1 : 0; }
  bool is_due(std::size_t row, std::int64_t step) const;
  void set_factors(std::int64_t step);
  /// The counts of a row's parameters on a GPU, copied there where it has others; `steps` of each parameter.
  Tensor counts_on(Device device, std::size_t row, const std::vector<std::int64_t>& steps) const;
  /// Where what an update of a row's parameters reads and writes is; empty: nothing is due.
  std::vector<const void*> addresses_of(std::size_t row, std::int64_t step) const;
  void update_group(std::size_t row, std::int64_t step);
  Counts counts_now() const;
  /// What update() did, while a WorkGraph records it.
  void note_recorded(std::span<const Update> updates, std::int64_t step);
  void end_step();
  /// Takes back the counts of steps whose checks have not passed, but for the last `but` ones.
  void settle_counts(std::size_t but = 0) const;
  ParameterState fresh_state(std::size_t index) const;
  void make_masters();
  bool factor_holds() const;
  bool is_clipped() const {
    return loss_scale_.defined() && clipping_.scale.defined() && loss_scale_.is_same(clipping_.scale);
  }
  bool has_factor() const { return gradient_factor_ != 1.0 || loss_scale_.defined(); }
  /// Where some of the gradients that have the factor are gone, or others have come, multiplies those that have it, and
  /// ends it.
  void settle_factor();
  void end_factor();

  std::string name_;
  std::vector<Tensor> parameters_;
  std::vector<Home> homes_;
  std::vector<Tensor> masters_;  // undefined where there is none
  double base_lr_ = 0.0, lr_factor_ = 1.0;
  std::vector<ParameterGroup> groups_;
  std::vector<std::optional<std::size_t>> group_of_;  // of each parameter, the place in groups_
  std::vector<bool> is_frozen_;  // of each parameter: wants no gradient because its group is frozen
  std::int64_t step_of_factors_ = 0;
  std::optional<std::int64_t> next_step_;  // as begin_step() said and steps since; nothing: steps()
  Current current_;
  double gradient_factor_ = 1.0;
  Tensor loss_scale_;  // whose inverse is a factor as well
  /// What clipping keeps on a GPU from step to step.
  struct Clipping {
    kernels::TableCache table;
    Tensor scale;  // loss_scale_ of gradients that are clipped
  };
  Clipping clipping_;
  std::vector<FactorOf> factor_of_;  // none: of gradients that are yet to come
  std::vector<std::string> state_names_;
  Tensor skip_;
  bool skip_is_recorded_ = false;
  Counts before_;  // the last recording or launch; without steps: there is nothing to take back
  StepControl control_{1};

  /// A step whose check is not answered yet, and the parameters whose counts it has increased.
  struct UnsettledStep {
    FiniteCheck check;
    std::vector<std::size_t> parameters;
    bool is_launch = false;  // whose check settle_launch() is given
  };
  // Mutable, as whoever reads counts first settles them.
  mutable std::vector<ParameterState> states_;
  mutable std::vector<UnsettledStep> unsettled_;  // the oldest first: two where the last is a launch, else one
  mutable std::vector<Kept> kept_;                // of each row
  std::vector<Recorded> recorded_;                // of each row, by the last step that was recorded
};

/// The gradients of those parameters that have one.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters);

}  // namespace tandem::optim
