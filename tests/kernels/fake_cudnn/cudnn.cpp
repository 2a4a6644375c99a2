// A library with the functions of cuDNN that are called for this project: it keeps descriptors as they are described to
// it, and carries out operation graphs in host memory. Of its five engines three do not write the results of
// convolutions, so that choosing one of them shows: the one that is not deterministic, the one with a note that today's
// headers do not know, and tensor cores for floats. One cannot be used at all.
#include "tandem/core/half.h"

#include <cudnn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

enum Engine : std::int64_t { kNondeterministic, kTensorCores, kFromTheFuture, kBroken, kGood, kEngines };

std::vector<cudnnBackendNumericalNote_t> notes_of(std::int64_t engine) {
  switch (engine) {
    case kNondeterministic:
      return {CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
    case kTensorCores:
      return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
    case kFromTheFuture:
      return {CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP, static_cast<cudnnBackendNumericalNote_t>(77)};
    case kGood:
      return {CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP};
    default:
      return {};
  }
}

struct Object {
  cudnnBackendDescriptorType_t kind;
  bool finalized = false;
  std::map<int, std::vector<char>> attributes;
  std::int64_t engine = 0;
  std::shared_ptr<Object> self = {};                // until it is destroyed
  std::vector<std::shared_ptr<Object>> parts = {};  // what it refers to, which callers may destroy before it

  template <typename T>
  std::vector<T> all(int name) const {
    const std::vector<char>& bytes = attributes.at(name);
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  template <typename T>
  T one(int name) const {
    T value;
    std::memcpy(&value, attributes.at(name).data(), sizeof value);
    return value;
  }
  const Object& part(int name) const { return *one<Object*>(name); }
  bool has(int name) const { return attributes.contains(name); }
};

Object& object_of(cudnnBackendDescriptor_t descriptor) { return *static_cast<Object*>(descriptor); }

std::size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    case CUDNN_TYPE_DOUBLE:
      return 8;
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    default:
      return 4;
  }
}

using Sizes = std::vector<std::int64_t>;

/// A tensor of a graph: values of its own if it is never stored.
struct Values {
  Values(const Object& tensor, void* address)
      : type(tensor.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
        sizes(tensor.all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        strides(tensor.all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES)),
        data(address) {}

  std::int64_t at(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const {
    return (sizes[0] == 1 ? 0 : a * strides[0]) + b * strides[1] + (sizes[2] == 1 ? 0 : c * strides[2]) +
           (sizes[3] == 1 ? 0 : d * strides[3]);
  }
  float get(std::int64_t i) const {
    if (type == CUDNN_DATA_HALF) return static_cast<float>(static_cast<tandem::Half*>(data)[i]);
    if (type == CUDNN_DATA_BFLOAT16) return static_cast<float>(static_cast<tandem::BFloat16*>(data)[i]);
    return static_cast<float*>(data)[i];
  }
  void set(std::int64_t i, float value) const {
    if (type == CUDNN_DATA_HALF) {
      static_cast<tandem::Half*>(data)[i] = static_cast<tandem::Half>(value);
    } else if (type == CUDNN_DATA_BFLOAT16) {
      static_cast<tandem::BFloat16*>(data)[i] = static_cast<tandem::BFloat16>(value);
    } else {
      static_cast<float*>(data)[i] = value;
    }
  }

  cudnnDataType_t type;
  Sizes sizes, strides;
  void* data;
};

/// What carries out one graph.
class Execution {
 public:
  Execution(const Object& pack, std::int64_t engine) : engine_(engine) {
    const auto names = pack.all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const auto addresses = pack.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    for (std::size_t i = 0; i < names.size(); ++i) addresses_[names[i]] = addresses.at(i);
  }

  void run(const Object& operation) {
    switch (operation.kind) {
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return convolve(operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC),
                        values(operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X)),
                        values(operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W)),
                        values(operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y)), 2);
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return convolve(operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC),
                        values(operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX)),
                        values(operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W)),
                        values(operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY)), 0);
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return convolve(operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC),
                        values(operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X)),
                        values(operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW)),
                        values(operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY)), 1);
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        // As cuDNN 9.19 and 9.28 have it: behind a convolution in a fixed order where that is asked for, alone never.
        if (operation.part(CUDNN_ATTR_OPERATION_REDUCTION_DESC).one<bool>(CUDNN_ATTR_REDUCTION_IS_DETERMINISTIC) !=
            convolved_)
          return;
        return add_up(values(operation.part(CUDNN_ATTR_OPERATION_REDUCTION_XDESC)),
                      values(operation.part(CUDNN_ATTR_OPERATION_REDUCTION_YDESC)));
      default:
        return pointwise(operation);
    }
  }

 private:
  Values values(const Object& tensor) {
    const auto name = tensor.one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    if (!tensor.has(CUDNN_ATTR_TENSOR_IS_VIRTUAL)) return {tensor, addresses_.at(name)};
    if (tensor.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE) != CUDNN_DATA_FLOAT)
      throw std::runtime_error("what is between two operations is rounded");
    std::vector<float>& memory = between_[name];
    Values result(tensor, nullptr);
    memory.resize(static_cast<std::size_t>(result.sizes[0] * result.sizes[1] * result.sizes[2] * result.sizes[3]));
    result.data = memory.data();
    return result;
  }

  /// Visits every product of the convolution; `result`: 0 adds to x, 1 to w, 2 to y.
  void convolve(const Object& window, const Values& x, const Values& w, const Values& y, int result) {
    convolved_ = true;
    if (engine_ == kNondeterministic || engine_ == kFromTheFuture) return;
    if (engine_ == kTensorCores && w.type == CUDNN_DATA_FLOAT) return;
    if (window.one<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT ||
        window.one<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION)
      throw std::runtime_error("a convolution of another kind");
    const Sizes before = window.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    const Sizes after = window.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
    const Sizes stride = window.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    const Sizes dilation = window.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    for (std::size_t i = 0; i < 2; ++i) {
      const std::int64_t room = x.sizes[2 + i] + before[i] + after[i] - dilation[i] * (w.sizes[2 + i] - 1) - 1;
      if (y.sizes[2 + i] != room / stride[i] + 1) throw std::runtime_error("sizes do not fit");
    }
    const std::int64_t groups = x.sizes[1] / w.sizes[1], group_k = w.sizes[0] / groups, group_c = w.sizes[1];
    const Values& into = result == 0 ? x : result == 1 ? w : y;
    std::map<std::int64_t, float> sums;
    for (std::int64_t i = 0; i < into.sizes[0]; ++i)
      for (std::int64_t j = 0; j < into.sizes[1]; ++j)
        for (std::int64_t r = 0; r < into.sizes[2]; ++r)
          for (std::int64_t s = 0; s < into.sizes[3]; ++s) sums[into.at(i, j, r, s)] = 0.0f;
    for (std::int64_t n = 0; n < y.sizes[0]; ++n)
      for (std::int64_t k = 0; k < y.sizes[1]; ++k)
        for (std::int64_t p = 0; p < y.sizes[2]; ++p)
          for (std::int64_t q = 0; q < y.sizes[3]; ++q)
            for (std::int64_t c = 0; c < group_c; ++c)
              for (std::int64_t r = 0; r < w.sizes[2]; ++r)
                for (std::int64_t s = 0; s < w.sizes[3]; ++s) {
                  const std::int64_t row = p * stride[0] + r * dilation[0] - before[0];
                  const std::int64_t column = q * stride[1] + s * dilation[1] - before[1];
                  if (row < 0 || row >= x.sizes[2] || column < 0 || column >= x.sizes[3]) continue;
                  const std::int64_t at_x = x.at(n, k / group_k * group_c + c, row, column);
                  const std::int64_t at_w = w.at(k, c, r, s), at_y = y.at(n, k, p, q);
                  if (result == 0) sums[at_x] += w.get(at_w) * y.get(at_y);
                  if (result == 1) sums[at_w] += x.get(at_x) * y.get(at_y);
                  if (result == 2) sums[at_y] += x.get(at_x) * w.get(at_w);
                }
    for (const auto& [at, sum] : sums) into.set(at, sum);
  }

  static void add_up(const Values& x, const Values& sums) {
    if (sums.sizes != Sizes{1, x.sizes[1], 1, 1}) throw std::runtime_error("only sums of channels here");
    for (std::int64_t k = 0; k < x.sizes[1]; ++k) {
      float sum = 0.0f;
      for (std::int64_t n = 0; n < x.sizes[0]; ++n)
        for (std::int64_t p = 0; p < x.sizes[2]; ++p)
          for (std::int64_t q = 0; q < x.sizes[3]; ++q) sum += x.get(x.at(n, k, p, q));
      sums.set(sums.at(0, k, 0, 0), sum);
    }
  }

  void pointwise(const Object& operation) {
    const Object& function = operation.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const auto mode = function.one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    if (function.one<cudnnDataType_t>(CUDNN_ATTR_POINTWISE_MATH_PREC) != CUDNN_DATA_FLOAT)
      throw std::runtime_error("arithmetic in halves");
    if (mode == CUDNN_POINTWISE_RELU_BWD) {
      const Values gate = values(operation.part(CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
      const Values from = values(operation.part(CUDNN_ATTR_OPERATION_POINTWISE_DYDESC));
      const Values to = values(operation.part(CUDNN_ATTR_OPERATION_POINTWISE_DXDESC));
      for (std::int64_t n = 0; n < to.sizes[0]; ++n)
        for (std::int64_t c = 0; c < to.sizes[1]; ++c)
          for (std::int64_t h = 0; h < to.sizes[2]; ++h)
            for (std::int64_t w = 0; w < to.sizes[3]; ++w)
              to.set(to.at(n, c, h, w), gate.get(gate.at(n, c, h, w)) > 0.0f ? from.get(from.at(n, c, h, w)) : 0.0f);
      return;
    }
    const Values from = values(operation.part(CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
    const Values to = values(operation.part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
    for (std::int64_t n = 0; n < to.sizes[0]; ++n)
      for (std::int64_t k = 0; k < to.sizes[1]; ++k)
        for (std::int64_t p = 0; p < to.sizes[2]; ++p)
          for (std::int64_t q = 0; q < to.sizes[3]; ++q) {
            float value = from.get(from.at(n, k, p, q));
            if (mode == CUDNN_POINTWISE_ADD) {
              const Values bias = values(operation.part(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
              value += bias.get(bias.at(0, k, 0, 0));
            } else if (function.one<cudnnNanPropagation_t>(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION) ==
                       CUDNN_PROPAGATE_NAN) {
              value = value < 0.0f ? 0.0f : value;
            } else {
              value = value > 0.0f ? value : 0.0f;
            }
            to.set(to.at(n, k, p, q), value);
          }
  }

  std::int64_t engine_;
  bool convolved_ = false;
  std::map<std::int64_t, void*> addresses_;
  std::map<std::int64_t, std::vector<float>> between_;
};

/// Says no to strides of 3, so that there is something it does not support; and to tensors that are not aligned as
/// promised.
bool supported(const Object& object) {
  if (object.kind == CUDNN_BACKEND_TENSOR_DESCRIPTOR)
    return object.one<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) == 16;
  if (object.kind == CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
    return object.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES).at(0) != 3;
  if (object.kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
    return object.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).engine != kBroken;
  return true;
}

/// Fills in up to `most` of the values; without room for any it only counts them.
template <typename Value>
cudnnStatus_t give(const std::vector<Value>& all, std::int64_t most, std::int64_t* count, void* values) {
  if (count != nullptr) *count = static_cast<std::int64_t>(all.size());
  if (values != nullptr) std::copy_n(all.begin(), std::min<std::size_t>(all.size(), most), static_cast<Value*>(values));
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

std::size_t cudnnGetVersion() { return FAKE_CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_NOT_SUPPORTED ? "not supported" : "bad parameter";
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  static int dummy;
  *handle = reinterpret_cast<cudnnHandle_t>(&dummy);
  return CUDNN_STATUS_SUCCESS;
}
void cudnnGetLastErrorString(char* text, std::size_t size) { std::strncpy(text, "the pretended cuDNN says no", size); }
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnGetStream(cudnnHandle_t, cudaStream_t* stream) {
  *stream = nullptr;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind, cudnnBackendDescriptor_t* descriptor) {
  const auto object = std::make_shared<Object>(Object{.kind = kind, .attributes = {}});
  object->self = object;
  *descriptor = object.get();
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  const std::shared_ptr<Object> last = std::move(object_of(descriptor).self);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
  Object& object = object_of(descriptor);
  if (object.finalized || count < 1) return CUDNN_STATUS_BAD_PARAM;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    for (std::int64_t i = 0; i < count; ++i) object.parts.push_back(static_cast<Object* const*>(values)[i]->self);
  const char* const bytes = static_cast<const char*>(values);
  object.attributes[name].assign(bytes, bytes + static_cast<std::size_t>(count) * size_of(type));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Object& object = object_of(descriptor);
  if (!supported(object)) return CUDNN_STATUS_NOT_SUPPORTED;
  object.finalized = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, std::int64_t most, std::int64_t* count,
                                       void* values) {
  const Object& object = object_of(descriptor);
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      *count =
          object.one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_A ? kBroken + 1 : kEngines;
      for (std::int64_t i = 0; i < std::min(most, *count); ++i) {
        Object& result = *static_cast<Object**>(values)[i];
        result.engine = i;
        result.parts = object.parts;
        result.attributes[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH] =
            object.attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      }
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      (*static_cast<Object**>(values))->engine = object.engine;
      *count = 1;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return give(notes_of(object.engine), most, count, values);
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      return give(std::vector<cudnnBackendBehaviorNote_t>{}, most, count, values);
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return give(std::vector{object.engine}, most, count, values);
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
      return give(std::vector<cudnnBackendDescriptor_t>{}, most, count, values);
    case CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED:
      return give(std::vector<std::int32_t>{1024}, most, count, values);
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return give(std::vector<std::int64_t>{4096}, most, count, values);
    default:
      return CUDNN_STATUS_BAD_PARAM;
  }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const Object& configuration = object_of(plan).part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Object& graph = configuration.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  if (handle == nullptr || !graph.finalized || !object_of(pack).finalized) return CUDNN_STATUS_BAD_PARAM;
  std::memset(object_of(pack).one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE), 0xff, 4096);
  for (void* const address : object_of(pack).all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS))
    if (reinterpret_cast<std::uintptr_t>(address) % 16 != 0) return CUDNN_STATUS_BAD_PARAM;
  Execution execution(object_of(pack), configuration.engine);
  for (Object* operation : graph.all<Object*>(CUDNN_ATTR_OPERATIONGRAPH_OPS)) execution.run(*operation);
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
