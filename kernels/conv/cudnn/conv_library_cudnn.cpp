// Convolutions by cuDNN 9: plans are made once per task and device, and executed on the current stream.
#include "core/memory.h"
#include "kernels/conv/cudnn/conv_library.h"
#include "kernels/conv/cudnn/plan.h"
#include "kernels/library_stream.h"

#include <algorithm>
#include <list>
#include <map>
#include <mutex>

namespace tandem::kernels {
namespace {

using namespace cudnn;

constexpr std::size_t kMostTasks = 512;

class CuDnn final : public ConvLibrary {
 public:
  explicit CuDnn(const LibraryFile& file) : functions_(file), version_("cuDNN " + version_text(file.version())) {}

  std::string version() const override { return version_; }

  bool supports(const ConvTask& task, Device device) override {
    if (task.dtype != DType::f32 && task.dtype != DType::f16 && task.dtype != DType::bf16) return false;
    const std::scoped_lock lock(mutex_);
    return plan_for(task, device, 0) != nullptr;
  }

  int plan_count(const ConvTask& task, Device device) override {
    if (!supports(task, device)) return 0;
    const std::scoped_lock lock(mutex_);
    int count = 1;
    while (count < kMostPlans && plan_for(task, device, count) != nullptr) ++count;
    return count;
  }

  void run(const ConvTask& task, const ConvTensors& tensors, int number) override {
    const std::scoped_lock lock(mutex_);
    const Device device = tensors.y.device();
    const Plan* const plan = plan_for(task, device, number);
    require(plan != nullptr || plan_for(task, device, 0) == nullptr,
            "cuDNN: no plan number {} for {}: ask plan_count() of the same task", number, name_of(task.pass));
    require(plan != nullptr, "cuDNN: no plan for {}", name_of(task.pass));
    const MemoryTagScope scope(MemoryTag::workspace);
    const Tensor workspace = Tensor::empty({plan->workspace_bytes}, {.dtype = DType::u8, .device = device});
    std::vector<std::int64_t> names;
    std::vector<void*> addresses;
    const std::pair<TensorId, const Tensor&> all[] = {{kX, tensors.x},       {kW, tensors.w},
                                                      {kY, tensors.y},       {kBias, tensors.bias},
                                                      {kGate, tensors.gate}, {kSums, tensors.sums}};
    for (const auto& [name, tensor] : all) {
      if (!tensor.defined()) continue;
      names.push_back(name);
      addresses.push_back(tensor.raw_data());
    }
    Descriptor pack(functions_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, names);
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, addresses);
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace.raw_data());
    pack.finalize();
    functions_.check(functions_.BackendExecute(handle_for(device), plan->execution.get(), pack.get()),
                     "cudnnBackendExecute");
  }

 private:
  struct Entry {
    ConvTask task;
    Device device;
    std::unique_ptr<Plans> plans;
  };

  /// A handle that works on the current stream of its device.
  cudnnHandle_t handle_for(Device device) {
    const Stream stream = library_stream(device);
    cudnnHandle_t& handle = handles_[device.index];
    if (handle == nullptr) functions_.check(functions_.Create(&handle), "cudnnCreate");
    functions_.check(functions_.SetStream(handle, static_cast<cudaStream_t>(stream.native())), "cudnnSetStream");
    return handle;
  }

  /// Null if there are not so many.
  const Plan* plan_for(const ConvTask& task, Device device, int number) {
    const auto known = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& entry) { return entry.device == device && entry.task == task; });
    if (known != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, known);
    } else {
      entries_.push_front({task, device, std::make_unique<Plans>(functions_, handle_for(device), task)});
      if (entries_.size() > kMostTasks) entries_.pop_back();
    }
    return entries_.front().plans->at(static_cast<std::size_t>(number), handle_for(device));
  }

  Functions functions_;
  std::string version_;
  std::mutex mutex_;
  std::map<int, cudnnHandle_t> handles_;
  std::list<Entry> entries_;  // the last used first
};

LibraryVersion read_version(const LibraryFile& library) {
  decltype(&cudnnGetVersion) get_version = nullptr;
  library.find("cudnnGetVersion", get_version);
  const int number = static_cast<int>(get_version());
  const int major_unit = number < 10000 ? 1000 : 10000;  // counted otherwise up to 8.9
  return {number / major_unit, number % major_unit / 100, number % 100};
}

}  // namespace

LibraryRequest cudnn_library() {
#ifdef TANDEM_CUDNN_FILE
  constexpr const char* kBuiltWith = TANDEM_CUDNN_FILE;
#else
  constexpr const char* kBuiltWith = "";
#endif
  return {.name = "cuDNN",
          .file = "libcudnn.so.9",
          .variable = "TANDEM_CUDNN_LIBRARY",
          .built_with = kBuiltWith,
          .least = {9, 0, 0},
          .read_version = read_version};
}

std::unique_ptr<ConvLibrary> make_cudnn(const LibraryFile& file) { return std::make_unique<CuDnn>(file); }

}  // namespace tandem::kernels
