// What is declared of CUPTI here, beside NVIDIA's headers of the version that this is compiled with.
#if __has_include(<cupti.h>)
#include <cupti.h>

#include "tandem/core/cupti/abi.h"
#include "tandem/core/cupti/library.h"

#include <cstddef>
#include <type_traits>

using namespace tandem::cupti;

namespace {

#define TANDEM_SAME_PLACE(ours, our_member, theirs, their_member)              \
  static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member)); \
  static_assert(sizeof(ours::our_member) == sizeof(theirs::their_member))

#define TANDEM_SAME_HEAD(ours, theirs)                 \
  TANDEM_SAME_PLACE(ours, kind, theirs, kind);         \
  TANDEM_SAME_PLACE(ours, start, theirs, start);       \
  TANDEM_SAME_PLACE(ours, end, theirs, end);           \
  TANDEM_SAME_PLACE(ours, device, theirs, deviceId);   \
  TANDEM_SAME_PLACE(ours, context, theirs, contextId); \
  TANDEM_SAME_PLACE(ours, stream, theirs, streamId);   \
  TANDEM_SAME_PLACE(ours, correlation, theirs, correlationId)

// CUDA 12's newest record of kernels, which CUDA 13 still declares.
TANDEM_SAME_HEAD(KernelRecord, CUpti_ActivityKernel9);
TANDEM_SAME_PLACE(KernelRecord, registers_per_thread, CUpti_ActivityKernel9, registersPerThread);
static_assert(offsetof(KernelRecord, grid) == offsetof(CUpti_ActivityKernel9, gridX));
static_assert(offsetof(KernelRecord, block) == offsetof(CUpti_ActivityKernel9, blockX));
TANDEM_SAME_PLACE(KernelRecord, static_shared_memory, CUpti_ActivityKernel9, staticSharedMemory);
TANDEM_SAME_PLACE(KernelRecord, dynamic_shared_memory, CUpti_ActivityKernel9, dynamicSharedMemory);
TANDEM_SAME_PLACE(KernelRecord, name, CUpti_ActivityKernel9, name);
static_assert(sizeof(KernelRecord) <= sizeof(CUpti_ActivityKernel9));
#if CUPTI_API_VERSION >= 130000
TANDEM_SAME_HEAD(KernelRecord, CUpti_ActivityKernel10);
TANDEM_SAME_PLACE(KernelRecord, registers_per_thread, CUpti_ActivityKernel10, registersPerThread);
static_assert(offsetof(KernelRecord, grid) == offsetof(CUpti_ActivityKernel10, gridX));
static_assert(offsetof(KernelRecord, block) == offsetof(CUpti_ActivityKernel10, blockX));
TANDEM_SAME_PLACE(KernelRecord, static_shared_memory, CUpti_ActivityKernel10, staticSharedMemory);
TANDEM_SAME_PLACE(KernelRecord, dynamic_shared_memory, CUpti_ActivityKernel10, dynamicSharedMemory);
TANDEM_SAME_PLACE(KernelRecord, name, CUpti_ActivityKernel10, name);
TANDEM_SAME_HEAD(CopyRecord, CUpti_ActivityMemcpy6);
TANDEM_SAME_PLACE(CopyRecord, copy_kind, CUpti_ActivityMemcpy6, copyKind);
TANDEM_SAME_PLACE(CopyRecord, bytes, CUpti_ActivityMemcpy6, bytes);
#endif
TANDEM_SAME_HEAD(CopyRecord, CUpti_ActivityMemcpy5);
TANDEM_SAME_PLACE(CopyRecord, copy_kind, CUpti_ActivityMemcpy5, copyKind);
TANDEM_SAME_PLACE(CopyRecord, bytes, CUpti_ActivityMemcpy5, bytes);
TANDEM_SAME_HEAD(DeviceCopyRecord, CUpti_ActivityMemcpyPtoP4);
TANDEM_SAME_PLACE(DeviceCopyRecord, copy_kind, CUpti_ActivityMemcpyPtoP4, copyKind);
TANDEM_SAME_PLACE(DeviceCopyRecord, bytes, CUpti_ActivityMemcpyPtoP4, bytes);
TANDEM_SAME_HEAD(FillRecord, CUpti_ActivityMemset4);
TANDEM_SAME_PLACE(FillRecord, bytes, CUpti_ActivityMemset4, bytes);
TANDEM_SAME_PLACE(CorrelationRecord, external_kind, CUpti_ActivityExternalCorrelation, externalKind);
TANDEM_SAME_PLACE(CorrelationRecord, number, CUpti_ActivityExternalCorrelation, externalId);
TANDEM_SAME_PLACE(CorrelationRecord, correlation, CUpti_ActivityExternalCorrelation, correlationId);
static_assert(sizeof(CorrelationRecord) <= sizeof(CUpti_ActivityExternalCorrelation));
static_assert(sizeof(Record) == sizeof(CUpti_Activity) || sizeof(Record) == sizeof(CUpti_ActivityKind));

template <typename Theirs>
constexpr bool is_same_number(auto ours, Theirs theirs) {
  return static_cast<long long>(ours) == static_cast<long long>(theirs);
}
static_assert(is_same_number(RecordKind::copy, CUPTI_ACTIVITY_KIND_MEMCPY));
static_assert(is_same_number(RecordKind::fill, CUPTI_ACTIVITY_KIND_MEMSET));
static_assert(is_same_number(RecordKind::driver_call, CUPTI_ACTIVITY_KIND_DRIVER));
static_assert(is_same_number(RecordKind::runtime_call, CUPTI_ACTIVITY_KIND_RUNTIME));
static_assert(is_same_number(RecordKind::kernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
static_assert(is_same_number(RecordKind::copy_between_devices, CUPTI_ACTIVITY_KIND_MEMCPY2));
static_assert(is_same_number(RecordKind::external_correlation, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION));
static_assert(is_same_number(kFlushAll, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
static_assert(is_same_number(kOwnRanges, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0));
static_assert(is_same_number(kSuccess, CUPTI_SUCCESS));
static_assert(is_same_number(kNoMoreRecords, CUPTI_ERROR_MAX_LIMIT_REACHED));

// Functions take what ours take, as the same bits.
template <typename Ours, typename Theirs>
struct IsSameCall : std::false_type {};
template <typename... A, typename... B>
struct IsSameCall<Result (*)(A...), CUptiResult (*)(B...)>
    : std::bool_constant<sizeof...(A) == sizeof...(B) && ((sizeof(A) == sizeof(B)) && ...) &&
                         ((std::is_pointer_v<A> == std::is_pointer_v<B>) && ...)> {};
static_assert(IsSameCall<decltype(Library::result_string), decltype(&cuptiGetResultString)>::value);
static_assert(IsSameCall<decltype(Library::timestamp), decltype(&cuptiGetTimestamp)>::value);
static_assert(IsSameCall<decltype(Library::register_callbacks), decltype(&cuptiActivityRegisterCallbacks)>::value);
static_assert(IsSameCall<decltype(Library::enable), decltype(&cuptiActivityEnable)>::value);
static_assert(IsSameCall<decltype(Library::disable), decltype(&cuptiActivityDisable)>::value);
static_assert(IsSameCall<decltype(Library::flush), decltype(&cuptiActivityFlushAll)>::value);
static_assert(IsSameCall<decltype(Library::next_record), decltype(&cuptiActivityGetNextRecord)>::value);
static_assert(IsSameCall<decltype(Library::dropped_records), decltype(&cuptiActivityGetNumDroppedRecords)>::value);
static_assert(IsSameCall<decltype(Library::push_number), decltype(&cuptiActivityPushExternalCorrelationId)>::value);
static_assert(IsSameCall<decltype(Library::pop_number), decltype(&cuptiActivityPopExternalCorrelationId)>::value);

}  // namespace
#endif
