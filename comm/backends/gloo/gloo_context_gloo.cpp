// How the ranks of a Gloo context find each other.
#include "tandem/comm/backends/gloo/gloo_context.h"

#include "tandem/core/error.h"

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <signal.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <vector>

namespace tandem::comm {

namespace {

/// What Gloo's ranks write for each other: exchanged in each set(), which all ranks call as often. So nobody waits for
/// what others have not written yet.
class MeetingStore final : public gloo::rendezvous::Store {
 public:
  explicit MeetingStore(Backend& meeting) : meeting_(meeting) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    for (const std::string& bytes : meeting_.all_gather_bytes(key + '\0' + std::string(data.begin(), data.end()))) {
      const std::size_t end = bytes.find('\0');
      entries_[bytes.substr(0, end)] = {bytes.begin() + static_cast<std::ptrdiff_t>(end) + 1, bytes.end()};
    }
  }
  std::vector<char> get(const std::string& key) override {
    wait({key});
    return entries_.at(key);
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys)
      require(entries_.contains(key), "gloo: rank {} asks for '{}', which no rank has written", meeting_.place().rank,
              key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& /*timeout*/) override { wait(keys); }

 private:
  Backend& meeting_;
  std::map<std::string, std::vector<char>> entries_;
};

constexpr std::chrono::milliseconds kAYear = std::chrono::hours(365 * 24);  // Gloo has no wait without a limit

std::shared_ptr<gloo::transport::Device> make_device(const Place& place) {
  gloo::transport::tcp::attr address;
  const char* const interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface != nullptr && *interface != '\0') {
    address.iface = interface;
    try {
      return gloo::transport::tcp::CreateDevice(address);
    } catch (const std::exception&) {
      fail(
          "gloo: GLOO_SOCKET_IFNAME is '{}', and this host has no network interface of that name with an address; `ip "
          "address` lists them",
          interface);
    }
  }
  if (place.local_size == place.size) {
    address.hostname = "127.0.0.1";
  }
  return gloo::transport::tcp::CreateDevice(address);
}

/// Gloo writes to connections that others may have closed, and expects an error, not a signal.
void ignore_broken_pipes() {
  struct sigaction current = {};
  if (::sigaction(SIGPIPE, nullptr, &current) != 0 || current.sa_handler != SIG_DFL) return;
  std::signal(SIGPIPE, SIG_IGN);
}

/// Newer versions of Gloo keep the store.
template <typename Context>
void connect(Context& context, const std::shared_ptr<MeetingStore>& store,
             std::shared_ptr<gloo::transport::Device>& device) {
  if constexpr (requires { context.connectFullMesh(*store, device); }) {
    context.connectFullMesh(*store, device);
  } else {
    context.connectFullMesh(store, device);
  }
}

}  // namespace

std::shared_ptr<gloo::Context> connect_gloo(Backend& meeting) {
  ignore_broken_pipes();
  const Place place = meeting.place();
  const auto context = std::make_shared<gloo::rendezvous::Context>(place.rank, place.size);
  auto device = make_device(place);
  connect(*context, std::make_shared<MeetingStore>(meeting), device);
  context->setTimeout(kAYear);
  // A rank that has all its connections might leave, and close them, before others have theirs.
  meeting.run({.kind = CollectiveKind::barrier});
  return context;
}

}  // namespace tandem::comm
