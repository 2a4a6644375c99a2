// Collectives by NCCL.
#include "tandem/comm/backends/nccl/nccl_communicator.h"

#include "tandem/comm/backends/nccl/nccl_functions.h"
#include "tandem/core/cuda/check.h"
#include "tandem/core/error.h"

#include <chrono>
#include <cstring>
#include <future>
#include <system_error>
#include <thread>

namespace tandem::comm {

namespace {

constexpr std::chrono::seconds kAbortTime{10};

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
    case ReduceOp::product:
      return ncclProd;
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
    TANDEM_CHECK_NCCL(nccl_, nullptr, CommInitRankConfig(&communicator_, place.size, unique_id, place.rank, &config));
  }

  bool is_ready() override {
    ncclResult_t state = ncclSuccess;
    TANDEM_CHECK_NCCL(nccl_, communicator_, CommGetAsyncError(communicator_, &state));
    throw_if_failed(state, "an operation under way", {__FILE__, __LINE__});
    return state == ncclSuccess;
  }

  void all_reduce(const void* from, void* to, std::int64_t count, DType dtype, ReduceOp op,
                  const Stream& stream) override {
    TANDEM_CHECK_NCCL(nccl_, communicator_,
                      AllReduce(from, to, static_cast<std::size_t>(count), type_of(dtype), operation_of(op),
                                communicator_, native(stream)));
  }

  void reduce(const void* from, void* to, std::int64_t count, DType dtype, ReduceOp op, int root,
              const Stream& stream) override {
    TANDEM_CHECK_NCCL(nccl_, communicator_,
                      Reduce(from, to, static_cast<std::size_t>(count), type_of(dtype), operation_of(op), root,
                             communicator_, native(stream)));
  }

  void reduce_scatter(const void* from, void* to, std::int64_t count, DType dtype, ReduceOp op,
                      const Stream& stream) override {
    TANDEM_CHECK_NCCL(nccl_, communicator_,
                      ReduceScatter(from, to, static_cast<std::size_t>(count), type_of(dtype), operation_of(op),
                                    communicator_, native(stream)));
  }

  void broadcast(void* data, std::int64_t bytes, int root, const Stream& stream) override {
    TANDEM_CHECK_NCCL(
        nccl_, communicator_,
        Broadcast(data, data, static_cast<std::size_t>(bytes), ncclUint8, root, communicator_, native(stream)));
  }

  void all_gather(const void* mine, std::int64_t bytes, void* all, const Stream& stream) override {
    TANDEM_CHECK_NCCL(nccl_, communicator_,
                      AllGather(mine, all, static_cast<std::size_t>(bytes), ncclUint8, communicator_, native(stream)));
  }

  void exchange(std::span<const NcclExchange> exchanges, const Stream& stream) override {
    TANDEM_CHECK_NCCL(nccl_, communicator_, GroupStart());
    ncclResult_t sends = ncclSuccess, receives = ncclSuccess;
    for (const NcclExchange& each : exchanges) {
      const auto sent = static_cast<std::size_t>(each.bytes_sent),
                 received = static_cast<std::size_t>(each.bytes_received);
      if (sent > 0) keep_error(sends, nccl_.Send(each.from, sent, ncclUint8, each.rank, communicator_, native(stream)));
      if (received > 0)
        keep_error(receives, nccl_.Recv(each.into, received, ncclUint8, each.rank, communicator_, native(stream)));
    }
    const ncclResult_t group = nccl_.GroupEnd();  // also after errors: a group that stays open takes in all later calls
    throw_if_failed(sends, "ncclSend", {__FILE__, __LINE__});
    throw_if_failed(receives, "ncclRecv", {__FILE__, __LINE__});
    throw_if_failed(group, "ncclGroupEnd", {__FILE__, __LINE__});
  }

  void finalize() override { TANDEM_CHECK_NCCL(nccl_, communicator_, CommFinalize(communicator_)); }

  void close() override { TANDEM_CHECK_NCCL(nccl_, communicator_, CommDestroy(communicator_)); }

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
  /// For results that were kept.
  void throw_if_failed(ncclResult_t result, const char* call, const SourceLine& where) const {
    nccl_.throw_if_failed(result, communicator_, call, where);
  }

  NcclFunctions nccl_;
  ncclComm_t communicator_ = nullptr;
};

}  // namespace

std::string make_nccl_id(const LibraryFile& file) {
  const NcclFunctions nccl(file);
  ncclUniqueId id;
  TANDEM_CHECK_NCCL(nccl, nullptr, GetUniqueId(&id));
  return {reinterpret_cast<const char*>(&id), sizeof id};
}

std::unique_ptr<NcclCommunicator> start_nccl_communicator(const LibraryFile& file, const std::string& id,
                                                          const Place& place, Device device) {
  return std::make_unique<Communicator>(file, id, place, device);
}

}  // namespace tandem::comm
