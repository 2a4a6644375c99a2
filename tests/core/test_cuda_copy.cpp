// Copies and fills on and between devices, against the CPU's.
#include "tandem/core/random.h"
#include "tandem/core/tensor.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr DType kDTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8};

/// Distinct small numbers, exact in every dtype but for wrapping at 251.
Tensor numbered(const Shape& shape, DType dtype, Layout layout = Layout::row_major) {
  const Tensor tensor = Tensor::empty(shape, {.dtype = dtype, .layout = layout});
  const Tensor flat = tensor.as_strided({tensor.numel()}, {1}, 0);
  for (std::int64_t i = 0; i < flat.numel(); ++i) flat.narrow(0, i, 1).fill(static_cast<double>(i % 251));
  return tensor;
}

/// Views of one tensor that between them need every path: dense, transposed, sliced, stepped, expanded, offset by one
/// element (so that wide words are not aligned), of one element, and empty.
std::vector<std::pair<std::string, Tensor>> views_of(const Tensor& t) {  // t: [4, 6, 5, 8]
  const int order[] = {2, 0, 3, 1};
  return {{"dense", t},
          {"transposed", t.transpose(1, 3)},
          {"permuted", t.permute(order)},
          {"rows", t.narrow(1, 2, 3)},
          {"columns", t.narrow(3, 2, 4)},
          {"odd columns", t.narrow(3, 1, 5)},
          {"odd rows", t.as_strided({5, 4}, {7, 1}, 0)},
          {"stepped", t.narrow(3, 1, 3, 2)},
          {"off by one", t.as_strided({16, 8}, {8, 1}, 1)},
          {"expanded", t.narrow(1, 3, 1).expand({4, 9, 5, 8})},
          {"one", t.select(0, 1).select(0, 2).select(0, 3).select(0, 4)},
          {"empty", t.narrow(2, 1, 0)}};
}

/// The same view of a copy of the whole storage on a device.
Tensor same_view_on(Device device, const Tensor& view) {
  const Tensor whole = view.as_strided({view.storage()->bytes() / size_of(view.dtype())}, {1}, 0);
  return whole.to(device).as_strided(view.shape(), view.strides(), view.offset());
}

}  // namespace

TEST_CASE("tensors go to the device and back in every dtype, view and layout", "[cuda]") {
  if (!has_gpu()) return;
  for (const DType dtype : kDTypes) {
    for (const Layout layout : {Layout::row_major, Layout::channels_last}) {
      for (const auto& [name, view] : views_of(numbered({4, 6, 5, 8}, dtype, layout))) {
        INFO(name_of(dtype) << ' ' << name);
        const std::vector<double> expected = view.to_vector<double>();
        const Tensor there = view.to(kGpu);
        CHECK(there.device() == kGpu);
        CHECK(there.dtype() == dtype);
        CHECK(there.shape() == view.shape());
        if (view.is_dense() && view.numel() > 0) CHECK(there.strides() == view.strides());
        CHECK(there.to_vector<double>() == expected);
        CHECK(there.to(Device{}).to_vector<double>() == expected);
        CHECK(there.to(kGpu).is_same(there));
        CHECK(same_view_on(kGpu, view).to_vector<double>() == expected);
        CHECK(same_view_on(kGpu, view).to(Device{}).to_vector<double>() == expected);
      }
    }
  }
}

TEST_CASE("copies between views on and across devices equal the CPU's, and touch nothing else", "[cuda]") {
  if (!has_gpu()) return;
  for (const DType dtype : kDTypes) {
    const auto sources = views_of(numbered({4, 6, 5, 8}, dtype));
    const auto targets = views_of(numbered({4, 6, 5, 8}, dtype, Layout::channels_last));
    for (std::size_t i = 0; i < sources.size(); ++i) {
      for (std::size_t k = 0; k < targets.size(); ++k) {
        const auto& [from_name, from] = sources[i];
        const auto& [to_name, to] = targets[k];
        if (from.shape() != to.shape() || to_name == "expanded") continue;
        INFO(name_of(dtype) << ' ' << from_name << " to " << to_name);
        const auto whole = [](const Tensor& t) {
          return t.as_strided({t.storage()->bytes() / size_of(t.dtype())}, {1}, 0).to_vector<double>();
        };
        const Tensor reference = Tensor::empty({to.storage()->bytes() / size_of(dtype)}, {.dtype = dtype});
        reference.copy_from(to.as_strided(reference.shape(), {1}, 0));
        const Tensor reference_view = reference.as_strided(to.shape(), to.strides(), to.offset());
        const Tensor gpu = same_view_on(kGpu, to), gpu_from = same_view_on(kGpu, from);
        const Tensor from_host = same_view_on(kGpu, to);
        const Tensor host = reference.clone().as_strided(to.shape(), to.strides(), to.offset());
        reference_view.copy_from(from);
        gpu.copy_from(gpu_from);
        CHECK(whole(gpu) == whole(reference));
        from_host.copy_from(from);
        CHECK(whole(from_host) == whole(reference));
        host.copy_from(gpu_from);
        CHECK(whole(host) == whole(reference));
      }
    }
  }
}

TEST_CASE("clones and dense copies on the device", "[cuda]") {
  if (!has_gpu()) return;
  for (const DType dtype : kDTypes) {
    for (const auto& [name, view] : views_of(numbered({4, 6, 5, 8}, dtype))) {
      INFO(name_of(dtype) << ' ' << name);
      const Tensor there = same_view_on(kGpu, view);
      const Tensor clone = there.clone();
      CHECK(clone.device() == kGpu);
      CHECK(clone.storage() != there.storage());
      CHECK(clone.to_vector<double>() == view.to_vector<double>());
      for (const Layout layout : {Layout::row_major, Layout::channels_last}) {
        const Tensor dense = there.contiguous(layout);
        CHECK(dense.is_dense(layout));
        CHECK(dense.device() == kGpu);
        CHECK(dense.to_vector<double>() == view.to_vector<double>());
      }
    }
  }
}

TEST_CASE("large transposes are right in every element", "[cuda]") {
  if (!has_gpu()) return;
  for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::f64}) {
    for (const Shape& shape : {Shape{2, 64, 17, 33}, Shape{3, 130, 8, 8}, Shape{1, 3, 64, 64}, Shape{5, 32, 32, 1}}) {
      INFO(name_of(dtype) << ' ' << to_string(shape));
      const Tensor rows = numbered(shape, dtype);
      const Tensor there = rows.to(kGpu);
      const Tensor channels_last = there.contiguous(Layout::channels_last);
      CHECK(channels_last.as_strided({channels_last.numel()}, {1}, 0).to_vector<double>() ==
            rows.contiguous(Layout::channels_last).as_strided({rows.numel()}, {1}, 0).to_vector<double>());
      CHECK(channels_last.contiguous().to_vector<double>() == rows.to_vector<double>());
    }
  }
}

TEST_CASE("transposes of every small size, also into and out of slices", "[cuda]") {
  if (!has_gpu()) return;
  for (const std::int64_t rows : {1, 7, 8, 31, 32, 33, 65}) {
    for (const std::int64_t columns : {1, 7, 8, 31, 32, 33, 65}) {
      INFO(rows << " x " << columns);
      const Tensor here = numbered({3, rows, columns}, DType::f32), there = here.to(kGpu);
      const Tensor to = Tensor::full({3, columns, rows + 2}, -1.0, {.device = kGpu});
      to.narrow(2, 1, rows).copy_from(there.transpose(1, 2));
      const Tensor expected = Tensor::full({3, columns, rows + 2}, -1.0);
      expected.narrow(2, 1, rows).copy_from(here.transpose(1, 2));
      CHECK(to.to_vector<float>() == expected.to_vector<float>());
      CHECK(to.narrow(2, 1, rows).transpose(1, 2).contiguous().to_vector<float>() == here.to_vector<float>());
    }
  }
}

TEST_CASE("elements further apart than 31 bits can count are copied and filled", "[cuda]") {
  if (!has_gpu()) return;
  if (cuda_is_simulated()) return;  // its memory is the CPU's
  constexpr std::int64_t kApart = (std::int64_t{1} << 31) + 16;
  const Tensor bytes = Tensor::zeros({kApart + 64}, {.dtype = DType::u8, .device = kGpu});
  const Tensor far = bytes.as_strided({2, 3}, {kApart, 5}, 1);
  const Tensor square = Tensor::from(std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6}, {2, 3}, Layout::row_major, kGpu);
  far.copy_from(square);
  CHECK(far.to_vector<std::int32_t>() == std::vector<std::int32_t>{1, 2, 3, 4, 5, 6});
  far.fill(7.0);
  CHECK(far.to_vector<std::int32_t>() == std::vector<std::int32_t>(6, 7));
  CHECK(bytes.narrow(0, kApart + 1, 12).to_vector<std::int32_t>() ==
        std::vector<std::int32_t>{7, 0, 0, 0, 0, 7, 0, 0, 0, 0, 7, 0});
}

TEST_CASE("fills reach the view and nothing else, as on the CPU", "[cuda]") {
  if (!has_gpu()) return;
  for (const DType dtype : kDTypes) {
    for (const double value : {0.0, 1.0, -1.0, 2.5, 255.0}) {
      if (value < 0.0 && dtype == DType::u8) continue;
      for (const auto& [name, view] : views_of(numbered({4, 6, 5, 8}, dtype))) {
        INFO(name_of(dtype) << ' ' << name << ' ' << value);
        const Tensor there = same_view_on(kGpu, view);
        const Tensor here = there.as_strided({there.storage()->bytes() / size_of(dtype)}, {1}, 0).to(Device{});
        there.fill(value);
        here.as_strided(view.shape(), view.strides(), view.offset()).fill(value);
        CHECK(there.as_strided(here.shape(), {1}, 0).to_vector<double>() == here.to_vector<double>());
      }
    }
  }
}

TEST_CASE("device tensors are made from values and read as numbers", "[cuda]") {
  if (!has_gpu()) return;
  const std::vector<float> values{1.5f, -2.0f, 3.25f, 0.0f, 5.0f, 6.0f};
  const Tensor there = Tensor::from(values, {2, 3}, Layout::row_major, kGpu);
  CHECK(there.device() == kGpu);
  CHECK(there.to_vector<float>() == values);
  CHECK(there.select(0, 0).narrow(0, 2, 1).item() == 3.25);
  CHECK(zeros_like(there).to_vector<float>() == std::vector<float>(6, 0.0f));
  CHECK(Tensor::full({}, 0.1, {.dtype = DType::f64, .device = kGpu}).item() == 0.1);
}

TEST_CASE("a copy counts as a change of the destination", "[cuda]") {
  if (!has_gpu()) return;
  const Tensor there = Tensor::zeros({4}, {.device = kGpu});
  const std::uint64_t version = there.storage()->version();
  there.copy_from(Tensor::zeros({4}));
  CHECK(there.storage()->version() == version + 1);
}

TEST_CASE("pinned memory: copy_from is done when it returns, copy_from_async when the stream is", "[cuda]") {
  if (!has_gpu()) return;
  constexpr std::int64_t kCount = 1 << 18;
  const Tensor there = Tensor::zeros({kCount}, {.device = kGpu});
  const Tensor pinned = Tensor::full({kCount}, 1.0, {.pinned = true});
  for (int round = 0; round < 3; ++round) {
    pinned.fill(round);
    there.copy_from(pinned);
    pinned.fill(-1.0);  // the copy has been made
    CHECK(there.narrow(0, kCount - 1, 1).item() == round);

    there.fill(round + 0.5);
    pinned.copy_from_async(there);
    current_stream(kGpu).synchronize();
    CHECK(pinned.narrow(0, kCount - 1, 1).item() == round + 0.5);

    there.fill(round + 0.75);
    pinned.copy_from(there);
    CHECK(pinned.narrow(0, kCount - 1, 1).item() == round + 0.75);

    there.fill(round + 0.25);
    const Shape square{1 << 9, 1 << 9};
    pinned.view(square).transpose(0, 1).copy_from(there.view(square));
    CHECK(pinned.narrow(0, kCount - 1, 1).item() == round + 0.25);
  }
}

TEST_CASE("a slice of host memory takes a device tensor, and is read at once", "[cuda]") {
  if (!has_gpu()) return;
  const Tensor there = Tensor::empty({1 << 10, 1 << 9}, {.device = kGpu});
  const Tensor here = Tensor::zeros({1 << 10, 1 << 10});
  for (int round = 1; round <= 10; ++round) {
    there.fill(round + 0.5);
    here.narrow(1, 1 << 9, 1 << 9).copy_from(there);
    CHECK(here.select(0, 1023).narrow(0, 1023, 1).item() == round + 0.5);
    CHECK(here.select(0, 1023).narrow(0, 0, 1).item() == 0.0);
  }
}

TEST_CASE("copies between two GPUs keep the order of both streams", "[cuda]") {
  if (!has_gpu(2)) return;
  const Device second{DeviceType::cuda, 1};
  for (const auto& [name, view] : views_of(numbered({4, 6, 5, 8}, DType::f32))) {
    INFO(name);
    const Tensor first = same_view_on(kGpu, view);
    const Tensor there = first.to(second);
    CHECK(there.device() == second);
    CHECK(there.to_vector<double>() == view.to_vector<double>());
    there.fill(3.0);
    first.clone().copy_from(there);
    const Tensor overwritten = Tensor::empty(view.shape(), {.device = second});
    for (int i = 0; i < 10; ++i) overwritten.fill(i);
    overwritten.copy_from(first);
    synchronize(kGpu);
    CHECK(overwritten.to_vector<double>() == view.to_vector<double>());
    const Tensor back = there.to(kGpu);
    there.fill(4.0);
    CHECK(back.to_vector<double>() == std::vector<double>(static_cast<std::size_t>(view.numel()), 3.0));
  }
}
