// No connections on other systems.
#include "tandem/comm/doctor/host_links.h"

#include "tandem/core/error.h"

#include <utility>

namespace tandem::comm {

HostLink::HostLink(int socket) : socket_(socket) {}
HostLink::~HostLink() = default;
HostLink::HostLink(HostLink&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), state_(other.state_), was_reset_(other.was_reset_) {}
void HostLink::finish() {}
std::size_t HostLink::open_links() { return 0; }
void HostLink::receive(std::string& /*into*/) {}
void HostLink::send(std::string& /*bytes*/) {}
bool HostLink::is_confirmed() const { return false; }

LinkListener::LinkListener(std::uint32_t /*address*/) { tandem::fail("hosts are connected on Linux alone"); }
LinkListener::~LinkListener() = default;
std::map<int, HostLink> LinkListener::accept(std::uint64_t /*token*/, std::vector<int> /*expected*/,
                                             std::chrono::milliseconds /*limit*/) const {
  return {};
}

HostLink connect_link(std::uint32_t /*address*/, int /*port*/, std::uint32_t /*own*/, const LinkKey& /*key*/,
                      std::chrono::milliseconds /*limit*/) {
  fail("hosts are connected on Linux alone");
}

}  // namespace tandem::comm
