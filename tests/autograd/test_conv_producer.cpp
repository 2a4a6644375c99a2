// What fused convolutions, one right above the other, hand to each other.
#include "tandem/autograd/functions/conv_producer.h"
#include "tests/support/catch.h"

using namespace tandem;
using namespace tandem::autograd;

TEST_CASE("the sum for a bias goes with the gradient that it was made of, once") {
  const Tensor gradient = Tensor::zeros({2, 3}), bias_sum = Tensor::zeros({3});
  ConvProducer layer({}, {});
  layer.gradient = gradient;
  layer.grad_bias = bias_sum;
  Tensor sum;
  // Where another operation used the layer's result, too, another tensor arrives: the sum of both gradients.
  CHECK_FALSE(layer.consume_sum(Tensor::zeros({2, 3}), sum));
  CHECK_FALSE(sum.defined());
  CHECK_FALSE(layer.consume_sum(gradient, sum));

  layer.gradient = gradient;
  layer.grad_bias = bias_sum;
  CHECK(layer.consume_sum(gradient, sum));
  CHECK(sum.storage() == bias_sum.storage());
  CHECK_FALSE(layer.consume_sum(gradient, sum));
}
