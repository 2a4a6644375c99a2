// Queues of products, one per lane, and multiplying what lies in shared memory.
#include "tandem/simulator/warpgroup.h"

#include "tandem/simulator/device_language.h"
#include "tandem/simulator/engine.h"
#include "tandem/simulator/lint.h"
#include "tandem/simulator/shadow.h"
#include "tandem/simulator/shared_memory.h"

#include <fmt/format.h>

#include <cstring>

namespace tandem::simulator {

namespace {

constexpr unsigned kAllLanes = 0xffffffffu, kDepth = 16, kWarpRows = 16, kMostColumns = 256, kGroupWarps = 4;
constexpr unsigned kPiece = 8;  // numbers in 16 bytes

struct Queued {
  WarpgroupProduct product;
  float* sums;
  unsigned group;
  SiteId where;
};

struct Queue {
  std::vector<Queued> products;
  unsigned group = 0;  // that products are added to now

  /// Products of all closed groups but the newest `pending`.
  std::size_t due(unsigned pending) const {
    std::size_t count = 0;
    while (count < products.size() && products[count].group + pending < group) ++count;
    return count;
  }
};

std::array<Queue, kMaxBlockThreads> queues;
bool any_product = false;  // since clear_warpgroup_products()

/// One of a product's operands, from `first` row (of a, or column of b) on.
struct Operand {
  std::uint64_t descriptor;
  bool transposed;
  unsigned first, rows;
};

Operand left_of(const WarpgroupProduct& product, unsigned warp) {
  return {product.a, product.a_transposed, warp % kGroupWarps * kWarpRows, kWarpRows};
}
Operand right_of(const WarpgroupProduct& product) { return {product.b, product.b_transposed, 0, product.columns}; }

/// Calls visit(places, row, depth) for every 8 pieces of 16 bytes, as the hardware fetches them, and the number in the
/// operand of the first: 8 neighbours in depth (or, transposed, in rows) each, of 8 rows (or depths).
template <typename Visit>
void for_each_fetch(const Operand& operand, Visit&& visit) {
  const unsigned lines = operand.transposed ? kDepth : operand.rows;
  const unsigned pieces = (operand.transposed ? operand.rows : kDepth) / kPiece;
  for (unsigned piece = 0; piece < pieces; ++piece) {
    for (unsigned line = 0; line < lines; line += kPiece) {
      const unsigned row = operand.transposed ? piece * kPiece : line,
                     depth = operand.transposed ? line : piece * kPiece;
      std::array<std::uintptr_t, kPiece> places{};
      for (unsigned k = 0; k < kPiece; ++k)
        places[k] = reinterpret_cast<std::uintptr_t>(at_shared_offset(
            operand_offset(operand.descriptor, operand.transposed, operand.first + row + (operand.transposed ? 0 : k),
                           depth + (operand.transposed ? k : 0))));
      visit(places, row, depth);
    }
  }
}

void check_reads(const Operand& operand, SiteId where) {
  if constexpr (!kChecksMemory) return;
  for_each_fetch(operand, [&](const auto& places, unsigned, unsigned) {
    for (const std::uintptr_t place : places) shared_shadow().access(place, 16, Access::read, where);
  });
}

/// The numbers of an operand as [row][depth].
void load_operand(const Operand& operand, MatrixType type, SiteId where, float (*values)[kDepth]) {
  if constexpr (kChecksMemory) {
    for_each_fetch(operand, [](const auto& places, unsigned, unsigned) {
      for (const std::uintptr_t place : places) shared_shadow().finish_reads(place, 16);
    });
  }
  check_reads(operand, where);
  for_each_fetch(operand, [&](const auto& places, unsigned row, unsigned depth) {
    for (unsigned k = 0; k < kPiece; ++k) {
      std::uint16_t bits[kPiece];
      std::memcpy(bits, reinterpret_cast<const void*>(places[k]), sizeof bits);
      for (unsigned i = 0; i < kPiece; ++i)
        (operand.transposed ? values[row + i][depth + k] : values[row + k][depth + i]) = half_value(type, bits[i]);
    }
    if (lint_is_on()) {
      const Engine::Aside aside(engine());
      count_request_of(places.data(), kPiece, 16, true, false, where);
    }
  });
}

/// Carries out the `index`-th product that the lanes of a warp have enqueued.
void multiply(unsigned first_lane, std::size_t index) {
  const auto queued = [&](unsigned lane) -> const Queued& { return queues[first_lane + lane].products[index]; };
  const WarpgroupProduct& product = queued(0).product;
  static float a[kWarpRows][kDepth], b[kMostColumns][kDepth];
  static double depths[kDepth][kMostColumns], sums[kMostColumns];
  load_operand(left_of(product, first_lane / kWarpSize), product.type, queued(0).where, a);
  load_operand(right_of(product), product.type, queued(0).where, b);
  for (unsigned k = 0; k < kDepth; ++k)
    for (unsigned column = 0; column < product.columns; ++column) depths[k][column] = static_cast<double>(b[column][k]);
  for (unsigned row = 0; row < kWarpRows; ++row) {
    const auto each_sum = [&](auto&& visit) {
      for (unsigned column = 0; column < product.columns; ++column)
        visit(queued(row % 8 * 4 + column % 8 / 2).sums[column / 8 * 4 + row / 8 * 2 + column % 2], sums[column]);
    };
    each_sum([](float from, double& sum) { sum = static_cast<double>(from); });
    for (unsigned k = 0; k < kDepth; ++k) {
      const auto left = static_cast<double>(a[row][k]);
      for (unsigned column = 0; column < product.columns; ++column) sums[column] += left * depths[k][column];
    }
    each_sum([](float& to, double sum) { to = static_cast<float>(sum); });
  }
}

/// All that lane 0 of this warp waits for; the other lanes have come.
void multiply_due(unsigned pending) {
  Engine& e = engine();
  const unsigned first_lane = e.current().warp() * kWarpSize;
  const Queue& first = queues[first_lane];
  const std::size_t due = first.due(pending);
  for (unsigned lane = 1; lane < kWarpSize; ++lane) {
    const Queue& other = queues[first_lane + lane];
    bool same = other.due(pending) == due;
    for (std::size_t i = 0; same && i < due; ++i) same = other.products[i].product == first.products[i].product;
    if (!same)
      e.raise(FaultKind::mask, site_id(e.current().where),
              fmt::format("lane {} waits for other products of its warpgroup than lane 0", lane));
  }
  for (std::size_t i = 0; i < due; ++i) multiply(first_lane, i);
}

}  // namespace

unsigned operand_offset(std::uint64_t descriptor, bool transposed, unsigned row, unsigned depth) {
  const auto field = [&](unsigned first) { return static_cast<unsigned>(descriptor >> first & 0x3fffu) << 4; };
  const unsigned start = field(0), leading = field(16), stride = field(32);
  const unsigned offset = transposed ? start + row / 64 * leading + depth / 8 * stride + depth % 8 * 128 + row % 64 * 2
                                     : start + row / 8 * stride + row % 8 * 128 + depth * 2;
  return offset ^ (offset >> 3 & 0x70u);
}

void multiply_warpgroup(float* sums, const WarpgroupProduct& product, std::source_location where) {
  Engine& e = engine();
  const SiteId site = site_id(where);
  constexpr unsigned kSwizzled = 1;
  for (const std::uint64_t descriptor : {product.a, product.b})
    if (descriptor >> 62 != kSwizzled || (descriptor >> 49 & 7u) != 0)
      e.raise(
          FaultKind::misaligned, site,
          fmt::format("descriptor {:#x} of an operand; tiles are swizzled by 128 bytes here, and begin at multiples "
                      "of 1024",
                      descriptor));
  Thread& self = e.current();
  if (kChecksMemory && self.lane() == 0) {
    const Engine::Unfinished unfinished(e);
    check_reads(left_of(product, self.warp()), site);
    check_reads(right_of(product), site);
  }
  const Engine::Aside aside(e);
  Queue& queue = queues[self.linear];
  queue.products.push_back({product, sums, queue.group, site});
  any_product = true;
}

void commit_warpgroup_products() { ++queues[engine().current().linear].group; }

void wait_for_warpgroup_products(unsigned pending, std::source_location where) {
  Engine& e = engine();
  int nothing = 0;
  e.meet(WarpOperation::wait_for_products, kAllLanes, &nothing, [](const auto&, unsigned) {}, where);
  if (e.current().lane() == 0) multiply_due(pending);
  sync_warp(kAllLanes, where);  // what a lane does next comes after the reading
  const Engine::Aside aside(e);
  Queue& queue = queues[e.current().linear];
  queue.products.erase(queue.products.begin(),
                       queue.products.begin() + static_cast<std::ptrdiff_t>(queue.due(pending)));
}

void clear_warpgroup_products() {
  if (!any_product) return;
  for (Queue& queue : queues) {
    queue.products.clear();
    queue.group = 0;
  }
  any_product = false;
}

void check_warpgroup_products_at_exit(const Thread& thread) {
  const Queue& queue = queues[thread.linear];
  if (queue.products.empty()) return;
  engine().raise(
      FaultKind::async_copy, queue.products.front().where,
      fmt::format("the thread leaves the kernel and has not waited for {} of its wgmma", queue.products.size()));
}

}  // namespace tandem::simulator
