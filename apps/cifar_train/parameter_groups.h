// --param-group: options of some parameters, by patterns of their names.
#pragma once

#include "tandem/layers/module.h"
#include "tandem/optim/optimizer.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::apps {

struct Settings;

/// "PATTERN:KEY=VALUE,...". What is empty is as for all parameters.
struct GroupSettings {
  std::string pattern;  ///< of names, for layers::Module::parameters(pattern)
  double lr_factor = 1.0;
  std::optional<double> weight_decay = {}, momentum = {};
  std::string schedule = {};                        ///< a --schedule; empty: that of all
  std::optional<std::int64_t> schedule_steps = {};  ///< its length; empty: the run's
  std::optional<std::int64_t> freeze_step = {};

  friend bool operator==(const GroupSettings&, const GroupSettings&) = default;
};

/// Groups one after another, behind ';' or as further elements behind ',': "*.bias:lr-factor=64,weight-decay=0;
/// conv.weight:freeze-step=144", or "none". `schedules`: the names that there are. Throws Error.
std::vector<GroupSettings> parse_parameter_groups(std::string_view text, std::span<const std::string_view> schedules);

/// What parse_parameter_groups() reads; "none" without groups.
std::string to_string(const std::vector<GroupSettings>& groups);

/// Throws Error for keys that the run's optimizer or its schedules have no use for. Settings must be resolved.
void check_parameter_groups(const Settings& settings);

/// Gives the optimizer its groups. A parameter goes by the last pattern that matches it. Returns a line for each group,
/// and one for the parameters in none; nothing without groups. Throws Error for a pattern that matches no parameter
/// that is trained, or none that later patterns do not take, and where all are frozen before the run's end.
std::string add_parameter_groups(const Settings& settings, const layers::Module& model, optim::Optimizer& optimizer,
                                 std::int64_t steps_per_epoch);

}  // namespace tandem::apps
