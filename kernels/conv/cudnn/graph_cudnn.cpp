// Descriptors of tensors and operations. Attributes: cuDNN's manual, "Backend Descriptor Types".
#include "kernels/conv/cudnn/graph.h"

#include "kernels/conv/cudnn/plan.h"

namespace tandem::kernels::cudnn {
namespace {

using Sizes = std::vector<std::int64_t>;

cudnnDataType_t type_of(DType dtype) {
  return dtype == DType::f16 ? CUDNN_DATA_HALF : dtype == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

/// Strides of n, c, h, w where channels are adjacent.
Sizes channels_last(const Sizes& sizes) { return {sizes[1] * sizes[2] * sizes[3], 1, sizes[1] * sizes[3], sizes[1]}; }

class GraphMaker {
 public:
  GraphMaker(const Functions& functions, const ConvTask& task)
      : functions_(functions), g_(task.geometry), pass_(task.pass), type_(type_of(task.dtype)) {}

  std::vector<Descriptor> operations() const {
    std::vector<Descriptor> all;
    if (pass_ == ConvPass::backward_weight) {
      all.push_back(weight_gradient());
      return all;
    }
    if (pass_ == ConvPass::backward_relu_bias) {
      all.push_back(gate(kY));
      all.push_back(column_sums());
      return all;
    }
    const bool sums = pass_ == ConvPass::backward_input_relu_bias;
    const bool gated = sums || pass_ == ConvPass::backward_input_relu;
    if (gated || pass_ == ConvPass::backward_input) {
      all.push_back(input_gradient(gated ? kGradient : kX));
      if (gated) all.push_back(gate(kGradient));
      if (sums) all.push_back(column_sums());
      return all;
    }
    const bool bias = pass_ == ConvPass::forward_bias || pass_ == ConvPass::forward_bias_relu;
    const bool relu = pass_ == ConvPass::forward_relu || pass_ == ConvPass::forward_bias_relu;
    all.push_back(convolution(bias || relu ? kSum : kY));
    if (bias) all.push_back(pointwise(CUDNN_POINTWISE_ADD, kSum, relu ? kBiased : kY));
    if (relu) all.push_back(pointwise(CUDNN_POINTWISE_RELU_FWD, bias ? kBiased : kSum, kY));
    return all;
  }

 private:
  Descriptor made(cudnnBackendDescriptorType_t kind) const { return {functions_, kind}; }

  Sizes sizes_of(TensorId id) const {
    switch (id) {
      case kX:
      case kGate:
      case kGradient:
        if (pass_ == ConvPass::backward_relu_bias) return {g_.n, g_.k, g_.p, g_.q};
        return {g_.n, g_.c, g_.h, g_.w};
      case kSums:
        return {1, pass_ == ConvPass::backward_relu_bias ? g_.k : g_.c, 1, 1};
      case kW:
        return {g_.k, g_.group_c(), g_.r, g_.s};  // the library counts the groups by the channels of x and w
      case kBias:
        return {1, g_.k, 1, 1};
      default:
        return {g_.n, g_.k, g_.p, g_.q};
    }
  }

  /// What is between two operations is never stored, and float.
  Descriptor tensor(TensorId id) const {
    const bool between = id == kSum || id == kBiased || id == kGradient;
    const bool is_float = between || id == kSums;
    const Sizes sizes = sizes_of(id);
    Descriptor tensor = made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, static_cast<std::int64_t>(id));
    tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, is_float ? CUDNN_DATA_FLOAT : type_);
    tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, sizes);
    tensor.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, channels_last(sizes));
    tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kLibraryAlignment);
    tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, between);
    tensor.finalize();
    return tensor;
  }

  Descriptor window() const {
    const Sizes padding{g_.pad_h, g_.pad_w};
    Descriptor window = made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    window.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    window.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
    window.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2});
    window.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, padding);
    window.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, padding);
    window.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, Sizes{g_.stride_h, g_.stride_w});
    window.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, Sizes{g_.dilation_h, g_.dilation_w});
    window.finalize();
    return window;
  }

  Descriptor convolution(TensorId result) const {
    Descriptor operation = made(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, window());
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, tensor(kX));
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, tensor(kW));
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, tensor(result));
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1.0f);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 0.0f);
    operation.finalize();
    return operation;
  }

  Descriptor input_gradient(TensorId result) const {
    Descriptor operation = made(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, window());
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, tensor(result));
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, tensor(kW));
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, tensor(kY));
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT, 1.0f);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT, 0.0f);
    operation.finalize();
    return operation;
  }

  Descriptor weight_gradient() const {
    Descriptor operation = made(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, window());
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, tensor(kX));
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, tensor(kW));
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, tensor(kY));
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT, 1.0f);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT, 0.0f);
    operation.finalize();
    return operation;
  }

  Descriptor function(cudnnPointwiseMode_t mode) const {
    Descriptor function = made(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    function.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    function.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    if (mode != CUDNN_POINTWISE_ADD)
      function.set(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, CUDNN_PROPAGATE_NAN);
    function.finalize();
    return function;
  }

  /// A gradient where the gate is positive.
  Descriptor gate(TensorId gradient) const {
    Descriptor operation = made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function(CUDNN_POINTWISE_RELU_BWD));
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensor(kGate));
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, tensor(gradient));
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, tensor(kX));
    operation.finalize();
    return operation;
  }

  Descriptor column_sums() const {
    Descriptor sum = made(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    sum.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, CUDNN_REDUCE_TENSOR_ADD);
    sum.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    sum.finalize();
    Descriptor operation = made(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, std::move(sum));
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, tensor(kX));
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensor(kSums));
    operation.finalize();
    return operation;
  }

  Descriptor pointwise(cudnnPointwiseMode_t mode, TensorId from, TensorId to) const {
    Descriptor operation = made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function(mode));
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensor(from));
    if (mode == CUDNN_POINTWISE_ADD) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensor(kBias));
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensor(to));
    operation.finalize();
    return operation;
  }

  const Functions& functions_;
  const ConvGeometry& g_;
  ConvPass pass_;
  cudnnDataType_t type_;
};

}  // namespace

Descriptor make_graph(const Functions& functions, cudnnHandle_t handle, const ConvTask& task) {
  Descriptor graph(functions, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, GraphMaker(functions, task).operations());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  graph.finalize();
  return graph;
}

}  // namespace tandem::kernels::cudnn
