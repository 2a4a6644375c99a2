// A network as a few numbers: what a simulated one does with messages.
// Example:
//     const NetworkModel model = parse_network_model("alpha=50us beta=10Gbit hosts=8x8");
//     const int ranks = model.ranks();                            // 64
//     const double seconds = model.between_hosts.time(1 << 20);  // of a message by itself
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::comm {

/// Messages of one kind: they take `latency` seconds (alpha) and their bytes divided by the bandwidth (beta is its
/// inverse), as in the model of Hockney (Parallel Computing 20(3), 1994).
struct LinkModel {
  double latency = 0.0;
  double bytes_per_second = 0.0;

  double time(std::int64_t bytes) const { return latency + transfer_time(bytes); }
  /// In which the bytes pass one place.
  double transfer_time(std::int64_t bytes) const { return static_cast<double>(bytes) / bytes_per_second; }

  friend bool operator==(const LinkModel&, const LinkModel&) = default;
};

/// What rank `from` sends to rank `to` at `seconds` after the start, or later, never arrives.
struct LostLink {
  int from = 0, to = 0;
  double seconds = 0.0;

  friend bool operator==(const LostLink&, const LostLink&) = default;
};

/// Every rank has a way out and a way in, full duplex. A way carries one message after the other, each for its
/// transfer_time(), and messages wait in the network for a way in that is busy. The first byte needs the latency; where
/// no way is busy a message takes LinkModel::time().
struct NetworkModel {
  LinkModel between_hosts{25e-6, 1.1e9};
  LinkModel within_host{2e-6, 4e9};
  int hosts = 0, ranks_per_host = 1;  ///< 0 hosts: as many as there are ranks
  /// The ranks of a host have one way out of the host, and one in, together.
  bool is_link_shared = false;
  double jitter = 0.0;  ///< seconds: each message takes up to so much more, drawn by `seed`
  std::uint64_t seed = 1;
  std::vector<LostLink> lost = {};

  int ranks() const { return hosts * ranks_per_host; }
  int host_of(int rank) const { return rank / ranks_per_host; }
  bool is_within_host(int from, int to) const { return host_of(from) == host_of(to); }
  const LinkModel& link(int from, int to) const { return is_within_host(from, to) ? within_host : between_hosts; }
  /// The host of each rank.
  std::vector<int> node_of_rank() const;
  bool is_lost(int from, int to, double seconds) const;
  /// Seconds that message number `index` from one rank to another takes more than LinkModel says.
  double jitter_of(int from, int to, std::uint64_t index) const;

  friend bool operator==(const NetworkModel&, const NetworkModel&) = default;
};

/// From words with blanks or commas between:
///   alpha=50us beta=10Gbit       of messages between hosts; alpha in ns, us, ms or s; beta in bit or B per second,
///                                with K, M, G, T (1000) or Ki, Mi, Gi, Ti (1024) before it
///   local-alpha=2us local-beta=4GB   of messages within a host
///   hosts=8x8                    8 hosts of 8 ranks each; hosts=8 is hosts=8x1
///   link=shared                  the ranks of a host share their link to other hosts; link=own is the default
///   jitter=10us seed=1           each message takes up to so much more
///   lose=3-4@2ms                 what rank 3 sends to rank 4 from 2 ms on is lost; may be given several times
/// Throws Error, naming the word, for others, and for those that are given twice.
NetworkModel parse_network_model(std::string_view text);

/// As parse_network_model() reads it, to ten digits.
std::string to_text(const NetworkModel& model);

}  // namespace tandem::comm
