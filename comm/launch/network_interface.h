// The network interfaces of this host, and which of them ranks of several hosts use.
// Example:
//     const std::vector<NetworkInterface> all = network_interfaces();
//     std::printf("%s\n", text_of(all).c_str());  // lo 127.0.0.1/8, eth0 10.88.0.1/24
//     const std::string name = find_interface("127.0.0.0/8", all, host_name()).name;
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::comm {

/// One IPv4 address of an interface. An interface with several is there several times, one with none once.
struct NetworkInterface {
  std::string name;                         ///< "eth0"
  std::uint32_t address = 0;                ///< in the host's byte order; 0: none
  int prefix = 0;                           ///< leading bits that all addresses of its network share
  bool is_up = false, is_loopback = false;  ///< whether it is in use, and whether it leads to this host alone
};

/// "10.88.0.1"
std::string address_text(std::uint32_t address);

/// "eth0 10.88.0.1/24, eth1 10.99.0.1/24 (down), docker0 (no IPv4 address)": what there is to choose from.
std::string text_of(std::span<const NetworkInterface> interfaces);

/// Those of this host, as the system lists them.
std::vector<NetworkInterface> network_interfaces();

/// The one that `wanted` stands for: a name ("eth0"), an address of its network ("10.88.0.1", which need not be this
/// host's own), or a subnet that its address is in ("10.88.0.0/16"). Throws Error, which lists what there is, for none,
/// several, one that is down, and one without an address. `host`: for that text.
NetworkInterface find_interface(std::string_view wanted, std::span<const NetworkInterface> all, std::string_view host);

/// Lets Open MPI, Gloo and NCCL use it, by their environment variables, which they read when they start: what was set
/// there before gives way. Other threads must not run yet.
void use_interface(const NetworkInterface& interface);

/// The name of this host; "?" where the system does not say.
std::string host_name();

}  // namespace tandem::comm
