// Convolutions by cuDNN 9: plans are made once per task and device, and executed on the current stream.
#include "tandem/core/memory.h"
#include "tandem/kernels/conv/cudnn/conv_library.h"
#include "tandem/kernels/conv/cudnn/functions.h"
#include "tandem/kernels/conv/cudnn/plans.h"
#include "tandem/kernels/conv/cudnn/symbols.h"
#include "tandem/kernels/library_stream.h"

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
  explicit CuDnn(const LibraryFile& file) : version_("cuDNN " + version_text(file.version())), cudnn_(file) {
    use_library(file);
  }

  std::string version() const override { return version_; }

  bool supports(const ConvTask& task, Device device) override {
    if (task.dtype != DType::f32 && task.dtype != DType::f16 && task.dtype != DType::bf16) return false;
    const std::scoped_lock lock(mutex_);
    return plans_for(task, device).has(0);
  }

  int plan_count(const ConvTask& task, Device device) override {
    if (!supports(task, device)) return 0;
    const std::scoped_lock lock(mutex_);
    Plans& plans = plans_for(task, device);
    int count = 1;
    while (count < kMostPlans && plans.has(static_cast<std::size_t>(count))) ++count;
    return count;
  }

  void run(const ConvTask& task, const ConvTensors& tensors, int plan) override {
    const std::scoped_lock lock(mutex_);
    const Device device = tensors.y.device();
    const auto number = static_cast<std::size_t>(plan);
    Plans& plans = plans_for(task, device);
    if (!plans.has(number)) {
      require(!plans.has(0), "cuDNN: no plan number {} for {}: ask plan_count() of the same task", plan,
              name_of(task.pass));
      fail("cuDNN: no plan for {}{}{}", name_of(task.pass), plans.refusal().empty() ? "" : ": ", plans.refusal());
    }
    const MemoryTagScope scope(MemoryTag::workspace);
    const Tensor workspace = Tensor::empty({plans.workspace_bytes(number)}, {.dtype = DType::u8, .device = device});
    plans.run(handle_for(device), tensors, Out(workspace).raw_data(), number);
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
    if (handle == nullptr) TANDEM_CHECK_CUDNN(cudnn_, Create(&handle));
    TANDEM_CHECK_CUDNN(cudnn_, SetStream(handle, static_cast<cudaStream_t>(stream.native())));
    return handle;
  }

  Plans& plans_for(const ConvTask& task, Device device) {
    const cudnnHandle_t handle = handle_for(device);
    const auto known = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& entry) { return entry.device == device && entry.task == task; });
    if (known != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, known);
    } else {
      entries_.push_front({task, device, std::make_unique<Plans>(handle, task)});
      if (entries_.size() > kMostTasks) entries_.pop_back();
    }
    return *entries_.front().plans;
  }

  std::string version_;
  CudnnFunctions cudnn_;
  std::mutex mutex_;
  std::map<int, cudnnHandle_t> handles_;
  std::list<Entry> entries_;  // the last used first
};

LibraryVersion read_version(const LibraryFile& library) {
  decltype(&cudnnGetVersion) get_version = nullptr;
  library.find("cudnnGetVersion", get_version);
  return version_of(static_cast<int>(get_version()));
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

std::unique_ptr<ConvLibrary> open_cudnn() {
  const LibraryRequest request = cudnn_library();
  return make_cudnn({request, library_files(request, environment_variable)});
}

}  // namespace tandem::kernels
