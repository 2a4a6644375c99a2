// Which network interface a name, an address or a subnet stands for.
#include "tandem/comm/launch/network_interface.h"

#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/skip.h"

#include <algorithm>
#include <cstdlib>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

constexpr std::uint32_t address(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}

const std::vector<NetworkInterface> kAll{
    {"lo", address(127, 0, 0, 1), 8, true, true}, {"eth0", address(10, 88, 0, 1), 24, true},
    {"eth0", address(10, 88, 7, 1), 24, true},    {"eth1", address(10, 99, 0, 1), 16, true},
    {"eth2", address(10, 77, 0, 1), 24, false},   {"docker0", 0, 0, false}};

std::string chosen(std::string_view wanted) { return find_interface(wanted, kAll, "alpha").name; }

std::string refusal(std::string_view wanted) {
  return error_of([&] { find_interface(wanted, kAll, "alpha"); });
}

}  // namespace

TEST_CASE("a network interface is found by name, by an address of its network, and by subnet") {
  CHECK(chosen("eth1") == "eth1");
  CHECK(chosen("10.99.0.1") == "eth1");
  CHECK(chosen("10.99.44.2") == "eth1");  // another host's, in the same network
  CHECK(chosen("10.88.7.200") == "eth0");
  CHECK(chosen("10.88.0.0/16") == "eth0");  // both of its addresses
  CHECK(find_interface("eth0", kAll, "alpha").address == address(10, 88, 0, 1));
  CHECK(find_interface("10.88.7.1", kAll, "alpha").address == address(10, 88, 7, 1));
}

TEST_CASE("a network interface that cannot be used is refused, and those that there are are listed") {
  const std::string list =
      "; there are lo 127.0.0.1/8, eth0 10.88.0.1/24, eth0 10.88.7.1/24, eth1 10.99.0.1/16, eth2 10.77.0.1/24 (down), "
      "docker0 (no IPv4 address, down)";
  CHECK(refusal("eth7") == "iface eth7: host alpha has no such network interface" + list);
  CHECK(refusal("192.168.1.1") == "iface 192.168.1.1: host alpha has no such network interface" + list);
  CHECK(refusal("192.168.0.0/16") == "iface 192.168.0.0/16: host alpha has no such network interface" + list);
  CHECK(refusal("eth2") == "iface eth2: network interface eth2 of host alpha is down" + list);
  CHECK(refusal("10.77.0.1") == "iface 10.77.0.1: network interface eth2 of host alpha is down" + list);
  CHECK(refusal("docker0") == "iface docker0: network interface docker0 of host alpha is down" + list);
  auto up = kAll;
  up.back().is_up = true;
  CHECK_THAT(error_of([&] { find_interface("docker0", up, "alpha"); }),
             ContainsText("network interface docker0 of host alpha has no IPv4 address; there are lo "));
  CHECK(refusal("10.0.0.0/8") ==
        "iface 10.0.0.0/8: host alpha has several such network interfaces, eth0 10.88.0.1/24, eth1 10.99.0.1/16, eth2 "
        "10.77.0.1/24 (down); name one of them");
  for (const char* const wrong : {"", "^docker0", "eth0,eth1", "=eth0"})
    CHECK_THAT(refusal(wrong), ContainsText("is not the name of one network interface; give the name of one"));
  for (const char* const wrong : {"10.0.0.0/33", "10.0.0/8", "eth0/24", "10.0.0.0/", "10.0.0.0/-1"})
    CHECK_THAT(refusal(wrong), ContainsText("is no subnet; give the name of one"));
  CHECK_THAT(error_of([] { find_interface("eth0", {}, "alpha"); }), ContainsText("; there are none"));
}

TEST_CASE("the network interfaces of this host are listed") {
  const auto all = network_interfaces();
  const auto loopback = std::ranges::find(all, true, &NetworkInterface::is_loopback);
  if (loopback == all.end() || loopback->address == 0)
    return skip_test("this machine shows no loopback interface with an IPv4 address");
  CHECK(address_text(loopback->address).starts_with("127."));
  CHECK(loopback->prefix == 8);
}

TEST_CASE("libraries are told the network interface by their environment variables") {
  setenv("OMPI_MCA_btl_tcp_if_exclude", "lo", 1);
  use_interface(kAll[1]);
  CHECK(std::getenv("OMPI_MCA_btl_tcp_if_exclude") == nullptr);
  CHECK(std::string(std::getenv("OMPI_MCA_btl_tcp_if_include")) == "eth0");
  CHECK(std::string(std::getenv("GLOO_SOCKET_IFNAME")) == "eth0");
  CHECK(std::string(std::getenv("NCCL_SOCKET_IFNAME")) == "=eth0");
  for (const char* const name :
       {"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"})
    unsetenv(name);
}
