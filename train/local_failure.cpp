// Telling all ranks.
#include "tandem/train/local_failure.h"

#include "tandem/comm/agreement.h"
#include "tandem/core/error.h"

#include <optional>

namespace tandem::train {
namespace {

struct Message {
  std::optional<std::string> text;
  bool is_error = true;
};

Message message_of(const std::exception_ptr& failure) {
  if (!failure) return {};
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return {error.what(), true};
  } catch (const std::exception& error) {
    return {error.what(), false};
  } catch (...) {
    return {"an exception of the program's own", false};
  }
}

}  // namespace

void LocalFailure::tell(comm::ProcessGroup& group) const {
  if (group.size() == 1) return throw_own();
  const Message mine = message_of(failure_);
  try {
    comm::agree_or_fail(group, mine.text);
  } catch (const comm::AgreedError&) {
    if (!mine.is_error) throw_own();
    throw;
  }
}

}  // namespace tandem::train
