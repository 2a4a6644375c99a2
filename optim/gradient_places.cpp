// Places for gradients, one behind the other.
#include "tandem/optim/gradient_places.h"

#include "tandem/autograd/precision.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/allocator.h"
#include "tandem/core/describe.h"
#include "tandem/core/memory.h"

#include <utility>

namespace tandem::optim {

GradientPlaces::GradientPlaces(std::vector<Tensor> parameters, HalfGradients half) {
  require(!parameters.empty(), "gradient places: there are no parameters");
  const Device device = parameters.front().device();
  std::vector<DType> dtypes;
  std::vector<std::int64_t> begins;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    require(parameters[i].defined(), "gradient places: parameter {} is undefined", i);
  for (const Tensor& parameter : parameters) {
    require(parameter.device() == device, "gradient places: {} is on {}, and the first parameter on {}", parameter,
            name_of(parameter.device()), name_of(device));
    require(autograd::is_leaf(parameter) && is_floating(parameter.dtype()),
            "gradient places: {} is no floating leaf, and has no gradient", parameter);
    require(!autograd::gradient_place(parameter).defined(),
            "gradient places: the gradient of {} has a place already, in a bucket of DistributedDataParallel, say, "
            "which stays as well",
            parameter);
    dtypes.push_back(half == HalfGradients::in_f32 ? autograd::wide_dtype(parameter.dtype()) : parameter.dtype());
    begins.push_back(bytes);
    bytes += (parameter.numel() * size_of(dtypes.back()) + kAlignment - 1) / kAlignment * kAlignment;
  }
  const MemoryTagScope scope(MemoryTag::gradients);
  const Tensor all = Tensor::zeros({bytes}, {.dtype = DType::u8, .device = device});
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& parameter = parameters[i];
    const Strides strides =
        parameter.is_dense() ? parameter.strides() : dense_strides(parameter.shape(), Layout::row_major);
    places_.push_back(Tensor::on(all.storage(), {bytes / size_of(dtypes[i])}, dtypes[i])
                          .as_strided(parameter.shape(), strides, begins[i] / size_of(dtypes[i])));
  }
  for (std::size_t i = 0; i < parameters.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      require(!parameters[i].is_same(parameters[j]), "gradient places: parameters {} and {} are the same one, {}", j, i,
              parameters[i]);
  parameters_ = std::move(parameters);
  for (std::size_t i = 0; i < parameters_.size(); ++i) autograd::set_gradient_place(parameters_[i], places_[i]);
}

GradientPlaces::~GradientPlaces() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor place = autograd::gradient_place(parameters_[i]);
    if (place.defined() && place.is_same(places_[i])) autograd::set_gradient_place(parameters_[i], {});
  }
}

Tensor GradientPlaces::place(std::size_t index) const {
  require(index < places_.size(), "gradient places: there is no parameter {}: there are {}, counted from 0", index,
          places_.size());
  return places_[index];
}

void GradientPlaces::check() const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor gradient = autograd::grad(parameters_[i]);
    require(!gradient.defined() || gradient.is_same(places_[i]),
            "gradient places: the gradient of parameter {}, {}, is not in its place: it was given by set_grad() or a "
            "hook, or added to in f32 (HalfGradients::in_f32 has room for that)",
            i, parameters_[i]);
  }
}

}  // namespace tandem::optim
