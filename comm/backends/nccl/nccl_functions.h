// NCCL's functions, by a table: the program is not linked against NCCL. Only for *_nccl.cpp files.
#pragma once

#include "tandem/core/failed_call.h"
#include "tandem/core/library_file.h"

#include <nccl.h>

namespace tandem::comm {

/// What is used of NCCL, under its own names without the prefix.
struct NcclFunctions {
  explicit NcclFunctions(const LibraryFile& file) {
    file.find("ncclGetUniqueId", GetUniqueId);
    file.find("ncclCommInitRankConfig", CommInitRankConfig);
    file.find("ncclCommGetAsyncError", CommGetAsyncError);
    file.find("ncclCommFinalize", CommFinalize);
    file.find("ncclCommDestroy", CommDestroy);
    file.find("ncclCommAbort", CommAbort);
    file.find("ncclAllReduce", AllReduce);
    file.find("ncclReduce", Reduce);
    file.find("ncclReduceScatter", ReduceScatter);
    file.find("ncclBroadcast", Broadcast);
    file.find("ncclAllGather", AllGather);
    file.find("ncclSend", Send);
    file.find("ncclRecv", Recv);
    file.find("ncclGroupStart", GroupStart);
    file.find("ncclGroupEnd", GroupEnd);
    file.find("ncclGetErrorString", GetErrorString);
    file.find("ncclGetLastError", GetLastError);
  }

  /// Throws Error with NCCL's words unless `result` is success or, for calls that return at once, on the way to it.
  void throw_if_failed(ncclResult_t result, ncclComm_t communicator, const char* call, const SourceLine& where) const;

  decltype(&ncclGetUniqueId) GetUniqueId;
  decltype(&ncclCommInitRankConfig) CommInitRankConfig;
  decltype(&ncclCommGetAsyncError) CommGetAsyncError;
  decltype(&ncclCommFinalize) CommFinalize;
  decltype(&ncclCommDestroy) CommDestroy;
  decltype(&ncclCommAbort) CommAbort;
  decltype(&ncclAllReduce) AllReduce;
  decltype(&ncclReduce) Reduce;
  decltype(&ncclReduceScatter) ReduceScatter;
  decltype(&ncclBroadcast) Broadcast;
  decltype(&ncclAllGather) AllGather;
  decltype(&ncclSend) Send;
  decltype(&ncclRecv) Recv;
  decltype(&ncclGroupStart) GroupStart;
  decltype(&ncclGroupEnd) GroupEnd;
  decltype(&ncclGetErrorString) GetErrorString;
  decltype(&ncclGetLastError) GetLastError;
};

}  // namespace tandem::comm

/// Evaluates a call of a function of the table `nccl`, named without its prefix, for `communicator` (which may be
/// null), and throws Error where it fails. A macro only to have the call's text.
#define TANDEM_CHECK_NCCL(nccl, communicator, call) \
  (nccl).throw_if_failed((nccl).call, communicator, "nccl" #call, {__FILE__, __LINE__})
