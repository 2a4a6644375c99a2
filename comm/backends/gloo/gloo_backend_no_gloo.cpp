// A build without Gloo.
#include "tandem/comm/backends/gloo/gloo_backend.h"

#include "tandem/core/error.h"

namespace tandem::comm {

std::string_view missing_gloo() {
  return "this program was built without Gloo: install libgloo-dev and configure with -DTANDEM_GLOO=ON";
}

std::unique_ptr<Backend> make_gloo_backend(std::unique_ptr<Backend> /*meeting*/) { fail("{}", missing_gloo()); }

}  // namespace tandem::comm
