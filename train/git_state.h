// Which commit of a git checkout a program was started in.
#pragma once

#include <optional>
#include <string>

namespace tandem::train {

/// What git tells of a checkout.
struct GitState {
  std::string commit;     ///< empty in a checkout without any
  bool is_dirty = false;  ///< a tracked file differs from the commit
};

/// Of the checkout that `folder` is in, asked of the program git; nothing where there is none, and where git is missing
/// or gives no answer in two seconds.
/// Example:
///     const std::optional<GitState> here = git_state(".");
///     const std::string commit = here ? here->commit : "not in a checkout";
std::optional<GitState> git_state(const std::string& folder);

}  // namespace tandem::train
