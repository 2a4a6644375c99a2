// Hooks; start-up and consistency of replicas.
#include "tandem/comm/ddp/distributed_data_parallel.h"

#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tandem/comm/agreement.h"
#include "tandem/comm/backends/flat_math.h"
#include "tandem/comm/ddp/gradient_exchange.h"
#include "tandem/comm/ddp/hash.h"
#include "tandem/core/profiler.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace tandem::comm {

namespace {

std::string_view kind_of(Device device) { return device.type == DeviceType::cpu ? "a CPU" : "a GPU"; }

/// "name=f32[64, 3, 3, 3] on a CPU ..." per tensor: what must agree before elements can be exchanged.
std::string table_of(const NamedTensors& parameters, const NamedTensors& buffers) {
  std::string table;
  for (const auto& [name, tensor] : parameters) {
    const bool trained = autograd::requires_grad(tensor);
    table += fmt::format("{}={} on {} strides {}{}\n", name, describe(tensor), kind_of(tensor.device()),
                         to_string(tensor.strides()), trained ? "" : " without gradient");
  }
  for (const auto& [name, tensor] : buffers) {
    table += fmt::format("{}={} on {} strides {}\n", name, describe(tensor), kind_of(tensor.device()),
                         to_string(tensor.strides()));
  }
  return table;
}

void broadcast_in_place(ProcessGroup& group, const Tensor& tensor) {
  const autograd::NoGrad no_grad;
  if (tensor.is_dense()) return group.broadcast(Out(tensor));
  const Tensor dense = tensor.contiguous();
  group.broadcast(Out(dense));
  tensor.copy_from(dense);
}

bool contains(const std::vector<Tensor>& tensors, const Tensor& tensor) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const Tensor& other) { return other.is_same(tensor); });
}

}  // namespace

DistributedDataParallel::DistributedDataParallel(ProcessGroup& group, NamedTensors parameters, NamedTensors buffers,
                                                 DistributedOptions options)
    : group_(group), parameters_(std::move(parameters)), buffers_(std::move(buffers)) {
  for (const NamedTensors* tensors : {&parameters_, &buffers_})
    for (const auto& [name, tensor] : *tensors)
      require(tensor.defined(), "DistributedDataParallel: tensor '{}' is undefined; leave it out", name);
  std::vector<Tensor> trained;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : parameters_) {
    if (!autograd::requires_grad(tensor) || contains(trained, tensor)) continue;
    if (!trained.empty()) {
      const Device device = trained.front().device();
      require(tensor.device() == device,
              "DistributedDataParallel: parameter '{}' is on {}, '{}' on {}; move the whole module by to(device)", name,
              name_of(tensor.device()), names.front(), name_of(device));
    }
    trained.push_back(tensor);
    names.push_back(name);
  }
  if (group.size() > 1) check_same(group, "the model", table_of(parameters_, buffers_));
  exchange_ = std::make_shared<GradientExchange>(group, std::move(trained), std::move(names), options);
  if (group.size() == 1) {
    watch_first_bucket();
    return;
  }

  check_same(group, "DistributedDataParallel's options",
             fmt::format("first_bucket_bytes={}\nbucket_bytes={}\nhalf={}\n", exchange_->first_bucket_bytes(),
                         exchange_->bucket_bytes(), options.half == HalfExchange::as_half ? "as_half" : "in_f32"));
  for (const auto& [name, tensor] : parameters_) broadcast_in_place(group, tensor);
  sync_buffers();

  exchange_->make_buckets();
  for (std::size_t i = 0; i < exchange_->parameters().size(); ++i) {
    autograd::on_gradient_final(exchange_->parameters()[i],
                                [weak = std::weak_ptr(exchange_), i](const Tensor& gradient) {
                                  const auto alive = weak.lock();
                                  return alive ? alive->put(i, gradient) : gradient;
                                });
  }
}

/// On one rank, for the times of an exchange between several.
void DistributedDataParallel::watch_first_bucket() {
  if (exchange_->plan().empty()) return;
  for (const std::size_t i : exchange_->plan().front())
    autograd::on_gradient_final(exchange_->parameters()[i], [weak = std::weak_ptr(exchange_)](Tensor gradient) {
      if (const auto alive = weak.lock()) alive->count_in_first_bucket();
      return gradient;
    });
}

DistributedDataParallel::~DistributedDataParallel() = default;

void DistributedDataParallel::set_gradient_weight(double weight) {
  require(weight >= 0.0 && weight < 1e300, "set_gradient_weight: {} is not a weight; it must be 0 or more", weight);
  require(!exchange_->has_started(),
          "set_gradient_weight: gradients of this step are under way already; set it before backward");
  exchange_->set_weight(weight);
}

void DistributedDataParallel::finish() {
  const ProfileRange range("finish gradients");
  if (group_.size() > 1) return exchange_->finish();
  exchange_->finish_alone();
  const double weight = exchange_->take_weight();
  if (weight == 1.0) return;
  for (const Tensor& parameter : exchange_->parameters()) {
    const Tensor gradient = autograd::grad(parameter);
    if (!gradient.defined()) continue;
    const Tensor dense = gradient.contiguous();
    scale(dense, weight);
    autograd::set_grad(parameter, dense);
  }
}

std::shared_ptr<Work> DistributedDataParallel::exchange_under_way() const { return exchange_->under_way(); }

std::string DistributedDataParallel::recording_obstacle() const {
  if (group_.size() == 1 || exchange_->parameters().empty()) return "";
  return group_.recording_obstacle(exchange_->parameters().front().device());
}

void DistributedDataParallel::finish_launched() {
  if (group_.size() > 1 && !exchange_->parameters().empty()) exchange_->finish_launched();
}

void DistributedDataParallel::abandon_step() { exchange_->abandon_step(); }

DistributedDataParallel::NoSync DistributedDataParallel::no_sync() { return NoSync(exchange_->synchronising()); }

void DistributedDataParallel::sync_buffers() {
  if (group_.size() == 1) return;
  for (const auto& [name, tensor] : buffers_) broadcast_in_place(group_, tensor);
}

void DistributedDataParallel::check_replicas() {
  if (group_.size() == 1) return;
  std::vector<std::int64_t> mine;
  std::vector<std::string_view> names;
  for (const NamedTensors* tensors : {&parameters_, &buffers_}) {
    for (const auto& [name, tensor] : *tensors) {
      mine.push_back(static_cast<std::int64_t>(hash_tensor(tensor)));
      names.push_back(name);
    }
  }
  const auto count = static_cast<std::int64_t>(mine.size());
  const auto all = group_.all_gather(Tensor::from(mine, {count})).to_vector<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    std::string ranks;
    for (std::int64_t rank = 1; rank < group_.size(); ++rank) {
      const bool same = all[static_cast<std::size_t>(rank * count + i)] == all[static_cast<std::size_t>(i)];
      if (!same) ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
    }
    if (ranks.empty()) continue;
    throw AgreedError(fmt::format("replicas differ: '{}' on rank {} is not what it is on rank 0",
                                  names[static_cast<std::size_t>(i)], ranks));
  }
}

ExchangeTotals DistributedDataParallel::take_totals() { return exchange_->take_totals(); }

const std::vector<std::int64_t>& DistributedDataParallel::gradient_order() const { return exchange_->order(); }

void DistributedDataParallel::check_gradient_order(const std::vector<std::int64_t>& order) const {
  std::vector<std::int64_t> sorted = order, all(exchange_->parameters().size());
  std::ranges::sort(sorted);
  std::iota(all.begin(), all.end(), std::int64_t{0});
  require(
      order.empty() || sorted == all,
      "DistributedDataParallel: an order of {} gradients must have each of 0 to {} once, and this one has {} entries",
      all.size(), std::ssize(all) - 1, order.size());
}

void DistributedDataParallel::set_gradient_order(const std::vector<std::int64_t>& order) {
  check_gradient_order(order);
  require(!exchange_->has_started(),
          "set_gradient_order: gradients of this step are under way already; set it before backward");
  if (group_.size() == 1) return;
  check_same(group_, "set_gradient_order's order", fmt::format("{}", fmt::join(order, " ")));
  exchange_->take_order(order);
}

std::size_t DistributedDataParallel::gradient_count() const { return exchange_->parameters().size(); }

std::size_t DistributedDataParallel::bucket_count() const { return exchange_->bucket_count(); }

std::int64_t DistributedDataParallel::bucket_bytes() const { return exchange_->bucket_bytes(); }

std::vector<std::int64_t> DistributedDataParallel::bucket_sizes() const {
  std::vector<std::int64_t> sizes;
  for (const std::vector<std::size_t>& members : exchange_->plan()) {
    std::int64_t bytes = 0;
    for (const std::size_t i : members) {
      const Tensor& parameter = exchange_->parameters()[i];
      bytes += parameter.numel() * size_of(exchange_dtype(parameter.dtype(), exchange_->half()));
    }
    sizes.push_back(bytes);
  }
  return sizes;
}

}  // namespace tandem::comm
