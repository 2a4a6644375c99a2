// Choosing among the system's network interfaces.
#include "tandem/comm/launch/network_interface.h"

#include "tandem/core/error.h"
#include "tandem/core/number_text.h"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

namespace tandem::comm {

namespace {

constexpr int kBits = 32;

std::uint32_t mask_of(int prefix) { return prefix == 0 ? 0 : ~std::uint32_t{0} << (kBits - prefix); }

std::optional<std::uint32_t> parse_address(std::string_view text) {
  in_addr address{};
  if (inet_pton(AF_INET, std::string(text).c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

std::uint32_t address_in(const sockaddr* address) {
  sockaddr_in copy{};
  std::memcpy(&copy, address, sizeof copy);
  return ntohl(copy.sin_addr.s_addr);
}

/// What was asked for.
struct Wish {
  std::string name;
  std::uint32_t address = 0;
  std::optional<int> prefix;  // of a subnet
};

Wish parse_wish(std::string_view wanted) {
  constexpr std::string_view kForms = "give the name of one, an IPv4 address, or a subnet such as 10.0.0.0/24";
  const std::size_t slash = wanted.find('/');
  const std::optional<std::uint32_t> address = parse_address(wanted.substr(0, slash));
  if (slash == std::string_view::npos && address) return {"", *address, std::nullopt};
  if (slash == std::string_view::npos) {
    require(!wanted.empty() && wanted.find_first_of(", ^=") == std::string_view::npos,
            "iface '{}': is not the name of one network interface; {}", wanted, kForms);
    return {std::string(wanted), 0, std::nullopt};
  }
  const std::optional<int> prefix = parse_number<int>(wanted.substr(slash + 1));
  require(address && prefix && *prefix >= 0 && *prefix <= kBits, "iface {}: is no subnet; {}", wanted, kForms);
  return {"", *address, prefix};
}

bool fits(const NetworkInterface& interface, const Wish& wish) {
  if (!wish.name.empty()) return interface.name == wish.name;
  if (interface.address == 0) return false;
  const std::uint32_t mask = mask_of(wish.prefix.value_or(interface.prefix));
  return (interface.address & mask) == (wish.address & mask);
}

}  // namespace

std::string address_text(std::uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 0xff, address >> 8 & 0xff, address & 0xff);
}

std::string text_of(std::span<const NetworkInterface> interfaces) {
  std::string text;
  for (const NetworkInterface& interface : interfaces) {
    text += (text.empty() ? "" : ", ") + interface.name;
    text += interface.address == 0 ? " (no IPv4 address"
                                   : fmt::format(" {}/{}", address_text(interface.address), interface.prefix);
    if (!interface.is_up) text += interface.address == 0 ? ", down" : " (down)";
    if (interface.address == 0) text += ')';
  }
  return text.empty() ? "none" : text;
}

std::vector<NetworkInterface> network_interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::vector<NetworkInterface> with, without;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    NetworkInterface interface{.name = entry->ifa_name,
                               .is_up = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_RUNNING) != 0,
                               .is_loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0};
    const bool has_address = entry->ifa_addr != nullptr && entry->ifa_addr->sa_family == AF_INET;
    if (has_address) {
      interface.address = address_in(entry->ifa_addr);
      interface.prefix = entry->ifa_netmask == nullptr ? kBits : std::popcount(address_in(entry->ifa_netmask));
    }
    (has_address ? with : without).push_back(std::move(interface));
  }
  for (NetworkInterface& interface : without)  // there once for each kind of address
    if (std::ranges::find(with, interface.name, &NetworkInterface::name) == with.end())
      with.push_back(std::move(interface));
  return with;
}

NetworkInterface find_interface(std::string_view wanted, std::span<const NetworkInterface> all, std::string_view host) {
  const Wish wish = parse_wish(wanted);
  std::vector<NetworkInterface> found;
  for (const NetworkInterface& interface : all)
    if (fits(interface, wish) && (found.empty() || found.back().name != interface.name)) found.push_back(interface);
  const auto exact = std::ranges::find(found, wish.address, &NetworkInterface::address);
  if (wish.name.empty() && !wish.prefix && exact != found.end()) found = {*exact};
  const std::string choice = fmt::format("; there are {}", text_of(all));
  require(!found.empty(), "iface {}: host {} has no such network interface{}", wanted, host, choice);
  const NetworkInterface& one = found.front();
  require(found.size() == 1, "iface {}: host {} has several such network interfaces, {}; name one of them", wanted,
          host, text_of(found));
  require(one.is_up, "iface {}: network interface {} of host {} is down{}", wanted, one.name, host, choice);
  require(one.address != 0, "iface {}: network interface {} of host {} has no IPv4 address{}", wanted, one.name, host,
          choice);
  return one;
}

void use_interface(const NetworkInterface& interface) {
  // Open MPI takes either of these, and complains of both.
  for (const char* const other : {"OMPI_MCA_btl_tcp_if_exclude", "OMPI_MCA_oob_tcp_if_exclude"}) unsetenv(other);
  for (const char* const name : {"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include", "GLOO_SOCKET_IFNAME"})
    setenv(name, interface.name.c_str(), 1);
  setenv("NCCL_SOCKET_IFNAME", ("=" + interface.name).c_str(), 1);  // without "=": all whose names begin so
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "?";
}

}  // namespace tandem::comm
