// Encoding tensor maps, and copying tiles by them.
#include "tandem/simulator/tensor_map.h"

#include "tandem/simulator/device_language.h"
#include "tandem/simulator/engine.h"
#include "tandem/simulator/lint.h"
#include "tandem/simulator/mbarrier.h"
#include "tandem/simulator/runtime.h"
#include "tandem/simulator/shadow.h"
#include "tandem/simulator/shared_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tandem::simulator {

namespace {

constexpr unsigned kMostDimensions = 5, kPiece = 16, kSectorGroup = 8;
constexpr std::uint64_t kMark = 0x7469'6c65'206d'6170;  // that says a map was encoded

/// What a CUtensorMap holds here.
struct TensorMap {
  std::uint64_t mark;
  std::uint64_t address;
  std::uint32_t rank, element_bytes;
  std::uint32_t swizzles, unused;
  std::uint32_t box[kMostDimensions];
  std::uint32_t sizes[kMostDimensions];
  std::uint64_t strides[kMostDimensions - 1];  // in bytes, of all but the innermost
};
static_assert(sizeof(TensorMap) <= sizeof(CUtensorMap));

/// The innermost run of elements of a tile: what lies in the tensor, in global memory, and what is zero around it.
struct TileLine {
  std::uintptr_t from;      // of the first element inside
  unsigned before, inside;  // in bytes
};

struct TileCopy {
  TensorMap map;
  char* to;
  std::array<int, kMostDimensions> coordinates;
  SiteId where;
  std::uint64_t stamp;  // of the thread that started it

  unsigned line_bytes() const { return map.box[0] * map.element_bytes; }
  unsigned lines() const {
    unsigned count = 1;
    for (unsigned i = 1; i < map.rank; ++i) count *= map.box[i];
    return count;
  }

  TileLine line(unsigned index) const {
    std::uint64_t from = map.address;
    for (unsigned i = 1; i < map.rank; ++i) {
      const std::int64_t at = coordinates[i] + static_cast<std::int64_t>(index % map.box[i]);
      index /= map.box[i];
      if (at < 0 || at >= static_cast<std::int64_t>(map.sizes[i])) return {};
      from += static_cast<std::uint64_t>(at) * map.strides[i - 1];
    }
    const std::int64_t first = coordinates[0], size = map.sizes[0], length = map.box[0];
    const std::int64_t begin = std::clamp<std::int64_t>(first, 0, size),
                       end = std::clamp<std::int64_t>(first + length, 0, size);
    const std::int64_t bytes = map.element_bytes;
    return {from + static_cast<std::uint64_t>(begin * bytes), static_cast<unsigned>((begin - first) * bytes),
            static_cast<unsigned>(std::max<std::int64_t>(end - begin, 0) * bytes)};
  }

  /// Where a piece of 16 bytes of a line goes: the swizzle turns address bits 4 to 6 by bits 7 to 9.
  char* place(unsigned line, unsigned piece) const {
    const unsigned offset = offset_in_shared_memory(to) + line * line_bytes() + piece * kPiece;
    return at_shared_offset(map.swizzles != 0 ? offset ^ (offset >> 3 & 0x70u) : offset);
  }

  void check_and_count() const;
  void land() const;
};

void TileCopy::check_and_count() const {
  for (unsigned i = 0; i < lines(); ++i) {
    const TileLine from = line(i);
    if (from.inside > 0 && !global_shadow().covers(from.from))
      engine().raise(FaultKind::host_pointer, where, "a copy of a tile of what is no device memory");
    if (from.inside > 0) global_shadow().access(from.from, from.inside, Access::read, where);
    if (!lint_is_on()) continue;
    const Engine::Aside aside(engine());
    std::array<std::uintptr_t, kSectorGroup> pieces{};
    for (unsigned piece = 0; piece < line_bytes() / kPiece; piece += kSectorGroup) {
      const unsigned count = std::min(kSectorGroup, line_bytes() / kPiece - piece);
      for (unsigned k = 0; k < count; ++k) pieces[k] = reinterpret_cast<std::uintptr_t>(place(i, piece + k));
      count_request_of(pieces.data(), count, kPiece, true, true, where);
    }
    for (unsigned byte = 0; byte < from.inside; byte += kPiece * kSectorGroup) {
      const unsigned count = std::min(kSectorGroup, (from.inside - byte) / kPiece);
      for (unsigned k = 0; k < count; ++k) pieces[k] = from.from + byte + k * kPiece;
      count_request_of(pieces.data(), count, kPiece, false, false, where);
    }
  }
  const auto at = reinterpret_cast<std::uintptr_t>(to);
  shared_shadow().access(at, std::size_t{line_bytes()} * lines(), Access::write, where);
  shared_shadow().set(at, std::size_t{line_bytes()} * lines(), Stamp::kBeingCopied, where);
}

void TileCopy::land() const {
  std::vector<char> bytes(line_bytes());
  for (unsigned i = 0; i < lines(); ++i) {
    const TileLine from = line(i);
    std::fill(bytes.begin(), bytes.end(), char{});
    if (from.inside > 0) std::memcpy(bytes.data() + from.before, reinterpret_cast<const void*>(from.from), from.inside);
    for (unsigned piece = 0; piece < line_bytes() / kPiece; ++piece)
      std::memcpy(place(i, piece), bytes.data() + piece * kPiece, kPiece);
  }
  if constexpr (kChecksMemory)
    shared_shadow().set(reinterpret_cast<std::uintptr_t>(to), std::size_t{line_bytes()} * lines(), stamp, where);
}

}  // namespace

void start_tile_copy(void* shared, const CUtensorMap* encoded, std::uint64_t* barrier, const int* coordinates,
                     unsigned rank, std::source_location where) {
  Engine& e = engine();
  const SiteId site = site_id(where);
  TileCopy copy{{}, static_cast<char*>(shared), {}, site, e.now()};
  move_bytes(&copy.map, encoded, sizeof copy.map);
  if (copy.map.mark != kMark || copy.map.rank != rank)
    e.raise(FaultKind::async_copy, site,
            fmt::format("a copy of a tile of {} dimensions by what is no tensor map of as many", rank));
  const auto at = reinterpret_cast<std::uintptr_t>(shared);
  if (!is_shared_address(shared) || at % 128 != 0)
    e.raise(FaultKind::misaligned, site,
            fmt::format("a copy of a tile to {:#x}; it goes to shared memory, to a multiple of 128", at));
  std::copy_n(coordinates, rank, copy.coordinates.begin());
  if constexpr (kChecksMemory) copy.check_and_count();
  const std::uint32_t bytes = copy.line_bytes() * copy.lines();
  Arrival arrival;
  {
    const Engine::Aside aside(e);
    std::memset(shared, 0xff, bytes);
    arrival = {bytes, [copy] { copy.land(); }};
  }
  bring_to_mbarrier(barrier, std::move(arrival), where);
}

}  // namespace tandem::simulator

CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS                 ? "no error"
          : error == CUDA_ERROR_INVALID_VALUE   ? "invalid argument"
          : error == CUDA_ERROR_INVALID_CONTEXT ? "invalid device context"
                                                : nullptr;
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  using tandem::simulator::kMark;
  if (!tandem::simulator::has_context()) return CUDA_ERROR_INVALID_CONTEXT;
  tandem::simulator::TensorMap encoded{};
  encoded.mark = kMark;
  encoded.address = reinterpret_cast<std::uint64_t>(address);
  encoded.rank = rank;
  encoded.element_bytes = type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 ? 4 : 2;
  encoded.swizzles = swizzle == CU_TENSOR_MAP_SWIZZLE_128B ? 1 : 0;
  if (map == nullptr || rank < 1 || rank > tandem::simulator::kMostDimensions || encoded.address % 16 != 0)
    return CUDA_ERROR_INVALID_VALUE;
  for (cuuint32_t i = 0; i < rank; ++i) {
    if (sizes[i] == 0 || sizes[i] > (cuuint64_t{1} << 32) - 1 || box[i] == 0 || box[i] > 256 || element_strides[i] != 1)
      return CUDA_ERROR_INVALID_VALUE;
    encoded.sizes[i] = static_cast<std::uint32_t>(sizes[i]);
    encoded.box[i] = box[i];
    if (i == 0) continue;
    if (strides[i - 1] % 16 != 0 || strides[i - 1] >= cuuint64_t{1} << 40) return CUDA_ERROR_INVALID_VALUE;
    encoded.strides[i - 1] = strides[i - 1];
  }
  const cuuint32_t line = box[0] * encoded.element_bytes;
  if (line % 16 != 0 || (encoded.swizzles != 0 && line > 128)) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(map, &encoded, sizeof encoded);
  return CUDA_SUCCESS;
}
