// What a kernel writes counts as changed, so that autograd can refuse a saved tensor that is no longer what it was.
#include "tandem/kernels/augment/augment_images.h"
#include "tandem/kernels/conv/conv.h"
#include "tandem/kernels/dropout/dropout.h"
#include "tandem/kernels/gemm/gemm.h"
#include "tandem/kernels/gemm/linear.h"
#include "tandem/kernels/loss/softmax_cross_entropy.h"
#include "tandem/kernels/norm/batch_norm.h"
#include "tandem/kernels/pool/avg_pool2d.h"
#include "tandem/kernels/pool/global_avg_pool2d.h"
#include "tandem/kernels/pool/max_pool2d.h"
#include "tests/support/catch.h"

#include <functional>

using namespace tandem;
using namespace tandem::kernels;

namespace {

Tensor image(std::int64_t channels = 4, std::int64_t size = 4) {
  return Tensor::zeros({2, channels, size, size}, {.layout = Layout::channels_last});
}

/// True if `call` counts a change of every one of `tensors`.
bool marks(const std::vector<Tensor>& tensors, const std::function<void()>& call) {
  std::vector<std::uint64_t> before;
  for (const Tensor& tensor : tensors) before.push_back(tensor.storage()->version());
  call();
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].storage()->version() == before[i]) return false;
  return true;
}

}  // namespace

TEST_CASE("what a kernel writes counts as changed") {
  const Tensor a = Tensor::zeros({2, 3}), b = Tensor::zeros({3, 3}), c = Tensor::zeros({2, 3});
  const Tensor bias = Tensor::zeros({3});
  CHECK(marks({c}, [&] { gemm(a, b, {}, Out(c)); }));
  CHECK(marks({c}, [&] { linear_forward(a, b, bias, false, Out(c)); }));
  const Tensor da = Tensor::zeros({2, 3}), db = Tensor::zeros({3, 3}), dbias = Tensor::zeros({3});
  CHECK(marks({da, db, dbias}, [&] { linear_backward(a, b, Tensor(), c, Out(da), Out(db), Out(dbias)); }));
  CHECK(marks({c}, [&] { dropout_forward(a, 0.5, {}, Out(c)); }));
  CHECK(marks({c}, [&] { dropout_backward(a, 0.5, {}, Out(c)); }));

  const Tensor labels = Tensor::from<std::int64_t>({0, 1}, {2}), loss = Tensor::zeros({});
  CHECK(marks({loss, c}, [&] { softmax_cross_entropy_forward(a, labels, 0.0, Out(loss), Out(c)); }));
  CHECK(marks({da}, [&] { softmax_cross_entropy_backward(c, labels, 0.0, loss, Out(da)); }));

  const Tensor x = image(), y = image(), pooled = image(4, 2), one = image(4, 1);
  const Tensor indices = Tensor::zeros({2, 4, 2, 2}, {.dtype = DType::u8, .layout = Layout::channels_last});
  CHECK(marks({pooled, indices}, [&] { max_pool2d_forward(x, {}, Out(pooled), Out(indices)); }));
  const Tensor sums = Tensor::zeros({4});
  CHECK(marks({x, sums}, [&] { max_pool2d_backward(pooled, indices, {}, Out(x), Out(sums)); }));
  CHECK(marks({pooled}, [&] { avg_pool2d_forward(x, {}, Out(pooled)); }));
  CHECK(marks({x}, [&] { avg_pool2d_backward(pooled, {}, Out(x)); }));
  CHECK(marks({one}, [&] { global_avg_pool2d_forward(x, Out(one)); }));
  CHECK(marks({x}, [&] { global_avg_pool2d_backward(one, Out(x)); }));

  const Tensor w = Tensor::zeros({4, 4, 3, 3}, {.layout = Layout::channels_last}), dw = empty_like(w);
  const Tensor channel = Tensor::zeros({4}), channel2 = Tensor::zeros({4});
  const Conv2dOptions same{.padding = {1, 1}};
  const Tensor mask = Tensor::zeros(conv_mask_shape(y.shape()), {.dtype = DType::u8});
  CHECK(marks({y}, [&] { conv2d_forward(x, w, channel, same, Out(y)); }));
  CHECK(marks({x}, [&] { conv2d_backward_input(y, w, same, Out(x)); }));
  CHECK(marks({dw}, [&] { conv2d_backward_weight(x, y, same, Out(dw)); }));
  CHECK(marks({channel2}, [&] { conv2d_backward_bias(y, Out(channel2)); }));
  CHECK(marks({y, mask}, [&] { conv_bias_relu_forward(x, w, channel, same, Out(y), Out(mask)); }));
  const Tensor dx = image();
  CHECK(marks({dx, dw, channel2}, [&] {
    conv_bias_relu_backward(same, {.x = x, .w = w, .mask = mask, .grad_y = y},
                            {.x = Out(dx), .w = Out(dw), .bias = Out(channel2)});
  }));

  const Tensor mean = Tensor::zeros({4}), inverse = Tensor::zeros({4}), dweight = Tensor::zeros({4});
  const Tensor running_mean = Tensor::zeros({4}), running_var = Tensor::zeros({4});
  CHECK(marks({y, running_mean, running_var, mean, inverse}, [&] {
    batch_norm_forward_train(x, channel, channel, Out(running_mean), Out(running_var), {.training = true}, Out(y),
                             Out(mean), Out(inverse));
  }));
  CHECK(marks({y, mean, inverse}, [&] {
    batch_norm_forward_eval(x, channel, channel, running_mean, running_var, {.training = false}, Out(y), Out(mean),
                            Out(inverse));
  }));
  CHECK(marks({dx, dweight, channel2}, [&] {
    batch_norm_backward(x, channel, channel, mean, inverse, {.training = true}, y, Out(dx), Out(dweight),
                        Out(channel2));
  }));

  const Tensor bytes = Tensor::zeros({1, 1, 2, 2}, {.dtype = DType::u8}), out = Tensor::zeros({1, 1, 2, 2});
  const std::array<std::int64_t, 1> indices_of_images{0};
  const std::array<float, 1> mean_of_images{0.5F}, deviation{0.25F};
  const AugmentImagesOptions options{.mean = mean_of_images, .deviation = deviation};
  CHECK(marks({out}, [&] { augment_images(bytes, indices_of_images, {}, options, Out(out)); }));
}
