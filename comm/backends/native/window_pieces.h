// Collectives whose ranks have a piece for each other one: what each shows in its cell, and what another sees there.
#pragma once

#include "tandem/comm/backends/blocks.h"
#include "tandem/comm/backends/native/data_views.h"
#include "tandem/comm/transports/shared_memory/peer_processes.h"
#include "tandem/comm/transports/shared_memory/window.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace tandem::comm {

/// Shows in `cell` what this rank has for each rank, itself among them: parts of one memory, which may overlap. Small
/// data are put there themselves.
void show_pieces(Cell& cell, std::span<const Block> pieces);

/// The pieces that all ranks show in the cells of one collective, as one of them sees them.
class ShownPieces {
 public:
  ShownPieces(const Window& window, const DataViews& views, const PeerProcesses& peers, int rank, std::uint64_t number)
      : window_(window), views_(views), peers_(peers), rank_(rank), number_(number) {}

  /// Of the memory that a rank's pieces are parts of, the longest of all.
  std::int64_t most_bytes() const;
  /// Whether all data are in cells.
  bool are_in_cells() const { return most_bytes() <= Cell::bytes_behind_pieces(window_.ranks()); }
  /// The first rank whose memory other processes cannot read, or -1.
  int first_unreadable() const;
  const Piece& piece(int from, int to) const { return cell(from).pieces()[to]; }
  /// Whether this rank sees all data where they are, as all ranks do then.
  bool are_seen() const;
  /// The data of a rank's piece for this one, or null where they are in memory that this rank does not see.
  const std::byte* view(int from) const;
  /// Copies a part of a rank's piece for this one. Throws Error where it cannot be read.
  void take(int from, std::int64_t begin, void* into, std::int64_t bytes) const;

 private:
  bool is_seen(int from) const;
  Cell& cell(int from) const { return window_.area(from).cell(number_); }

  const Window& window_;
  const DataViews& views_;
  const PeerProcesses& peers_;
  int rank_;
  std::uint64_t number_;
};

}  // namespace tandem::comm
