// Calls of NCCL's functions, by a table: the program is not linked against NCCL.
#include "tandem/comm/backends/nccl/nccl_communicator.h"

#include "tandem/core/cuda/check.h"
#include "tandem/core/error.h"

#include <nccl.h>

#include <chrono>
#include <cstring>
#include <future>
#include <system_error>
#include <thread>

namespace tandem::comm {

namespace {

constexpr std::chrono::seconds kAbortTime{10};

/// What is used of NCCL, under its own names without the prefix.
struct Functions {
  explicit Functions(const LibraryFile& file) {
    file.find("ncclGetUniqueId", GetUniqueId);
    file.find("ncclCommInitRankConfig", CommInitRankConfig);
    file.find("ncclCommGetAsyncError", CommGetAsyncError);
    file.find("ncclCommFinalize", CommFinalize);
    file.find("ncclCommDestroy", CommDestroy);
    file.find("ncclCommAbort", CommAbort);
    file.find("ncclAllReduce", AllReduce);
    file.find("ncclBroadcast", Broadcast);
    file.find("ncclAllGather", AllGather);
    file.find("ncclSend", Send);
    file.find("ncclRecv", Recv);
    file.find("ncclGroupStart", GroupStart);
    file.find("ncclGroupEnd", GroupEnd);
    file.find("ncclGetErrorString", GetErrorString);
    file.find("ncclGetLastError", GetLastError);
  }

  decltype(&ncclGetUniqueId) GetUniqueId;
  decltype(&ncclCommInitRankConfig) CommInitRankConfig;
  decltype(&ncclCommGetAsyncError) CommGetAsyncError;
  decltype(&ncclCommFinalize) CommFinalize;
  decltype(&ncclCommDestroy) CommDestroy;
  decltype(&ncclCommAbort) CommAbort;
  decltype(&ncclAllReduce) AllReduce;
  decltype(&ncclBroadcast) Broadcast;
  decltype(&ncclAllGather) AllGather;
  decltype(&ncclSend) Send;
  decltype(&ncclRecv) Recv;
  decltype(&ncclGroupStart) GroupStart;
  decltype(&ncclGroupEnd) GroupEnd;
  decltype(&ncclGetErrorString) GetErrorString;
  decltype(&ncclGetLastError) GetLastError;
};

/// Throws Error unless `result` is success or, for calls that return at once, on the way to it.
void check(const Functions& nccl, ncclComm_t communicator, ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) [[likely]]
    return;
  const char* const detail = nccl.GetLastError(communicator);
  fail("NCCL: {} from {}{}{}; NCCL_DEBUG=WARN tells more", nccl.GetErrorString(result), call,
       detail != nullptr && *detail != '\0' ? ": " : "", detail != nullptr ? detail : "");
}

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return ncclFloat64;
    case DType::f32:
      return ncclFloat32;
    case DType::f16:
      return ncclFloat16;
    case DType::bf16:
      return ncclBfloat16;
    case DType::i64:
      return ncclInt64;
    case DType::i32:
      return ncclInt32;
    default:
      fail("nccl: no reduction of {}", name_of(dtype));
  }
}

ncclRedOp_t operation_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::average:
      return ncclAvg;
    case ReduceOp::min:
      return ncclMin;
    case ReduceOp::max:
      return ncclMax;
    default:
      return ncclSum;
  }
}

/// The first result that is neither success nor on the way to it stays.
void keep_error(ncclResult_t& kept, ncclResult_t result) {
  if (kept == ncclSuccess && result != ncclInProgress) kept = result;
}

cudaStream_t native(const Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

class Communicator final : public NcclCommunicator {
 public:
  Communicator(const LibraryFile& file, const std::string& id, const Place& place, Device device) : nccl_(file) {
    TANDEM_CHECK_CUDA(cudaSetDevice(device.index));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclUniqueId unique_id;
    require(id.size() == sizeof unique_id, "nccl: an id of {} bytes came in, not {}", id.size(), sizeof unique_id);
    std::memcpy(&unique_id, id.data(), sizeof unique_id);
    check(nccl_, nullptr, nccl_.CommInitRankConfig(&communicator_, place.size, unique_id, place.rank, &config),
          "ncclCommInitRankConfig");
  }

  bool is_ready() override {
    ncclResult_t state = ncclSuccess;
    accept(nccl_.CommGetAsyncError(communicator_, &state), "ncclCommGetAsyncError");
    accept(state, "an operation under way");
    return state == ncclSuccess;
  }

  void all_reduce(void* data, std::int64_t count, DType dtype, ReduceOp op, const Stream& stream) override {
    accept(nccl_.AllReduce(data, data, static_cast<std::size_t>(count), type_of(dtype), operation_of(op), communicator_,
                           native(stream)),
           "ncclAllReduce");
  }

  void broadcast(void* data, std::int64_t bytes, int root, const Stream& stream) override {
    accept(nccl_.Broadcast(data, data, static_cast<std::size_t>(bytes), ncclUint8, root, communicator_, native(stream)),
           "ncclBroadcast");
  }

  void all_gather(const void* mine, std::int64_t bytes, void* all, const Stream& stream) override {
    accept(nccl_.AllGather(mine, all, static_cast<std::size_t>(bytes), ncclUint8, communicator_, native(stream)),
           "ncclAllGather");
  }

  void swap(std::span<const NcclSwap> swaps, const Stream& stream) override {
    accept(nccl_.GroupStart(), "ncclGroupStart");
    ncclResult_t sends = ncclSuccess, receives = ncclSuccess;
    for (const NcclSwap& swap : swaps) {
      const auto bytes = static_cast<std::size_t>(swap.bytes);
      keep_error(sends, nccl_.Send(swap.from, bytes, ncclUint8, swap.rank, communicator_, native(stream)));
      keep_error(receives, nccl_.Recv(swap.into, bytes, ncclUint8, swap.rank, communicator_, native(stream)));
    }
    const ncclResult_t group = nccl_.GroupEnd();  // also after errors: a group that stays open takes in all later calls
    accept(sends, "ncclSend");
    accept(receives, "ncclRecv");
    accept(group, "ncclGroupEnd");
  }

  void finalize() override { accept(nccl_.CommFinalize(communicator_), "ncclCommFinalize"); }

  void close() override { accept(nccl_.CommDestroy(communicator_), "ncclCommDestroy"); }

  void abort() noexcept override {
    try {
      // It may itself wait for a GPU or a network that is gone: then it is left to the end of the process, which is
      // near.
      auto aborted = std::make_shared<std::promise<void>>();
      const std::future<void> done = aborted->get_future();
      std::thread([abort = nccl_.CommAbort, communicator = communicator_, aborted] {
        abort(communicator);
        aborted->set_value();
      }).detach();
      done.wait_for(kAbortTime);
    } catch (const std::system_error&) {  // no thread to be had: then it is the end of the process that aborts
    }
  }

 private:
  void accept(ncclResult_t result, const char* call) const { check(nccl_, communicator_, result, call); }

  Functions nccl_;
  ncclComm_t communicator_ = nullptr;
};

}  // namespace

std::string make_nccl_id(const LibraryFile& file) {
  const Functions nccl(file);
  ncclUniqueId id;
  check(nccl, nullptr, nccl.GetUniqueId(&id), "ncclGetUniqueId");
  return {reinterpret_cast<const char*>(&id), sizeof id};
}

std::unique_ptr<NcclCommunicator> start_nccl_communicator(const LibraryFile& file, const std::string& id,
                                                          const Place& place, Device device) {
  return std::make_unique<Communicator>(file, id, place, device);
}

}  // namespace tandem::comm
