// An element-wise function of your own, from two functions of numbers: its value and its gradient.
// Example:
//     #include "tandem/autograd/variable.h"
//     #include <cmath>
//     Tensor sine(const Tensor& x) {
//       return elementwise(
//           "sine", x, [](auto v) { return std::sin(v); }, [](auto v, auto grad) { return grad * std::cos(v); });
//     }
//     const Tensor x = set_requires_grad(Tensor::from<float>({0, 1.5}, {2}));
//     const Tensor y = sine(x);
//     const std::vector<float> values = y.to_vector<float>();  // {0, 0.997495}
//     backward(y, Tensor::full({2}, 1.0));
//     const std::vector<float> slopes = grad(x).to_vector<float>();  // {1, 0.0707372}
#pragma once

#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"
#include "tandem/kernels/elementwise/map.h"

#include <string>
#include <utility>
#include <vector>

namespace tandem::autograd {

/// Where elementwise() computes: on the CPU, which is all that functions of a .cpp file can do. OnDevice
/// (autograd/elementwise.cuh) does both.
struct OnHost {
  /// Sets each element of `out` to `function` of those of `in`. Throws Error that begins with `op` where shapes or
  /// dtypes differ.
  template <typename Function, typename... Tensors>
  static void map(std::string_view op, const Function& function, const Out& out, const Tensors&... in) {
    (kernels::check_elementwise(op, in, out), ...);
    require(out.device().type == DeviceType::cpu,
            "{}: {} is on {}, but its function was compiled for the CPU; move the tensor by to(Device{{}}), or call "
            "elementwise<OnDevice>() with __device__ functors in a .cu file (tandem/autograd/elementwise.cuh)",
            op, out.tensor(), name_of(out.device()));
    if (kernels::map_supports(out)) {
      kernels::cpu::map(in..., out, function);
    } else {
      kernels::reference::map_each_of<double>(out, function, in...);  // the one dtype that is left: less to compile
    }
  }
};

/// y = value(x), element by element, and for backward grad_x = gradient(x, grad_y). The two are called on `double` for
/// f64 x and on `float` for f32, f16 and bf16, which are rounded once; write them for both (`auto`), and without side
/// effects: several threads call them. Any shape and strides; keeps x. `name` stands in errors and on the tape. Throws
/// Error unless x is floating, and for one on a GPU unless `Where` is OnDevice.
template <typename Where = OnHost, typename Value, typename Gradient>
Tensor elementwise(std::string_view name, const Tensor& x, const Value& value, const Gradient& gradient) {
  require(x.defined(), "{}: needs a defined tensor, got {}", name, x);
  const Tensor y = empty_like(x);
  unrecorded([&] { Where::map(name, value, Out(y), x); });
  if (!should_record({x})) return y;
  return record(name, {x}, y,
                [name = std::string(name), gradient, saved = SavedTensor(x)](const BackwardContext& context) {
                  const Tensor kept = saved.get();
                  const Tensor grad_x = empty_like(kept);
                  Where::map(name, gradient, Out(grad_x), kept, context.grad_output());
                  return std::vector<Tensor>{grad_x};
                });
}

}  // namespace tandem::autograd
