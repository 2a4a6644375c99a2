// What failed calls of other libraries say.
#include "tandem/core/failed_call.h"

#include "tandem/core/error.h"

namespace tandem {

void fail_call(const FailedCall& failed) {
  const std::string_view path = failed.where.file;
  fail("{}: {} from {} at {}:{}{}{}", failed.library, failed.error, failed.call.substr(0, failed.call.find('(')),
       path.substr(path.find_last_of('/') + 1), failed.where.number, failed.more.empty() ? "" : "; ", failed.more);
}

}  // namespace tandem
