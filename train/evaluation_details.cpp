// Counts, and the worst mistakes.
#include "tandem/train/evaluation_details.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/core/describe.h"
#include "tandem/core/out.h"

#include <algorithm>
#include <cmath>

namespace tandem::train {
namespace {

/// Confidences are added up in these: what is lost of each is 2^-37 at most, and 2^27 of them fit 63 bits.
constexpr double kUnit = 0x1p-36;

/// The larger loss first; of equal ones, the smaller number.
bool is_worse(const Misclassified& a, const Misclassified& b) {
  return a.loss != b.loss ? a.loss > b.loss : a.index < b.index;
}

void insert_worst(std::vector<Misclassified>& worst, const Misclassified& image) {
  if (worst.size() == EvaluationDetails::kWorst && !is_worse(image, worst.back())) return;
  worst.insert(std::upper_bound(worst.begin(), worst.end(), image, is_worse), image);
  if (worst.size() > EvaluationDetails::kWorst) worst.pop_back();
}

/// Those of all ranks.
std::vector<Misclassified> merged(const std::vector<Misclassified>& mine, comm::ProcessGroup& group) {
  constexpr std::size_t kColumns = 5;
  std::vector<double> rows(EvaluationDetails::kWorst * kColumns, -1.0);  // an index of -1: none
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const Misclassified& image = mine[i];
    const double row[kColumns] = {static_cast<double>(image.index), static_cast<double>(image.label),
                                  static_cast<double>(image.predicted), image.confidence, image.loss};
    std::copy(std::begin(row), std::end(row), rows.begin() + static_cast<std::ptrdiff_t>(i * kColumns));
  }
  const Tensor all = group.all_gather(Tensor::from(rows, {static_cast<std::int64_t>(rows.size())}));
  const std::vector<double> values = all.to_vector<double>();
  std::vector<Misclassified> worst;
  for (std::size_t i = 0; i < values.size(); i += kColumns) {
    if (values[i] < 0.0) continue;
    insert_worst(worst, {static_cast<std::int64_t>(values[i]), static_cast<std::int64_t>(values[i + 1]),
                         static_cast<std::int64_t>(values[i + 2]), values[i + 3], values[i + 4]});
  }
  return worst;
}

}  // namespace

void EvaluationDetails::resize(std::int64_t classes) {
  require(classes_ == 0 || classes_ == classes, "evaluation: outputs of {} classes after those of {}", classes,
          classes_);
  if (classes_ == classes) return;
  classes_ = classes;
  confusion_.assign(static_cast<std::size_t>(classes * classes), 0);
  class_images_.assign(static_cast<std::size_t>(classes), 0);
}

void EvaluationDetails::add(const Tensor& logits, const Tensor& labels, std::span<const std::int64_t> numbers) {
  require(logits.rank() == 2 && is_floating(logits.dtype()) && labels.rank() == 1 && labels.dtype() == DType::i64 &&
              logits.size(0) == labels.size(0) && numbers.size() == static_cast<std::size_t>(labels.size(0)),
          "evaluation: needs outputs [N, C], labels i64 [N] and N numbers, got {}, {} and {}", describe(logits),
          describe(labels), numbers.size());
  const autograd::NoGrad no_grad;
  const Tensor rows = autograd::cast(logits.detach().to(Device{}), DType::f32).contiguous();
  const std::vector<std::int64_t> wanted = labels.to_vector<std::int64_t>();
  resize(rows.size(1));
  const auto* values = rows.data<float>();
  for (std::size_t n = 0; n < wanted.size(); ++n) {
    require(wanted[n] >= 0 && wanted[n] < classes_, "evaluation: label {} is not one of {} classes", wanted[n],
            classes_);
    add_image(values + static_cast<std::int64_t>(n) * classes_, wanted[n], numbers[n]);
  }
}

void EvaluationDetails::add_image(const float* outputs, std::int64_t label, std::int64_t number) {
  ++class_images_[static_cast<std::size_t>(label)];
  if (!std::all_of(outputs, outputs + classes_, [](float value) { return std::isfinite(value); })) return;
  const std::int64_t predicted = std::max_element(outputs, outputs + classes_) - outputs;  // the first of equal ones
  ++confusion_[static_cast<std::size_t>(label * classes_ + predicted)];
  const double largest = outputs[predicted];
  double sum = 0.0;
  for (std::int64_t c = 0; c < classes_; ++c) sum += std::exp(static_cast<double>(outputs[c]) - largest);
  const double confidence = 1.0 / sum;
  const auto bin = std::clamp(static_cast<std::int64_t>(std::ceil(confidence * kBins)) - 1, std::int64_t{0}, kBins - 1);
  Bin& own = bins_[static_cast<std::size_t>(bin)];
  ++own.images;
  own.correct += predicted == label ? 1 : 0;
  own.confidence += std::llround(confidence / kUnit);
  if (predicted == label) return;
  const double loss = largest - static_cast<double>(outputs[label]) + std::log(sum);
  insert_worst(worst_, {number, label, predicted, confidence, loss});
}

/// Everything that is added up over ranks.
std::vector<std::int64_t> EvaluationDetails::counts() const {
  std::vector<std::int64_t> all = confusion_;
  all.insert(all.end(), class_images_.begin(), class_images_.end());
  for (const Bin& bin : bins_) all.insert(all.end(), {bin.images, bin.correct, bin.confidence});
  return all;
}

EvaluationReport EvaluationDetails::report(comm::ProcessGroup& group) const {
  // A rank may have had no image.
  const Tensor most = Tensor::from<std::int64_t>({classes_}, {1});
  group.all_reduce(Out(most), comm::ReduceOp::max);
  EvaluationDetails mine = *this;
  mine.resize(most.to_vector<std::int64_t>().front());
  std::vector<std::int64_t> all = mine.counts();
  const Tensor sums = Tensor::from(all, {static_cast<std::int64_t>(all.size())});
  group.all_reduce(Out(sums));
  all = sums.to_vector<std::int64_t>();

  EvaluationReport report;
  report.classes = mine.classes_;
  const auto cells = all.begin() + static_cast<std::ptrdiff_t>(mine.confusion_.size());
  const auto rows = cells + static_cast<std::ptrdiff_t>(mine.class_images_.size());
  report.confusion.assign(all.begin(), cells);
  report.class_images.assign(cells, rows);
  for (const std::int64_t images : report.class_images) report.images += images;
  std::int64_t judged = 0;
  for (std::int64_t b = 0; b < kBins; ++b) {
    const auto counts = rows + 3 * b;
    ConfidenceBin bin{static_cast<double>(b) / kBins, static_cast<double>(b + 1) / kBins, counts[0], counts[1]};
    if (bin.images > 0) bin.confidence = static_cast<double>(counts[2]) * kUnit / static_cast<double>(bin.images);
    report.ece += static_cast<double>(bin.images) * std::abs(bin.accuracy() - bin.confidence);
    judged += bin.images;
    report.bins.push_back(bin);
  }
  if (judged > 0) report.ece /= static_cast<double>(judged);
  report.worst = merged(mine.worst_, group);
  return report;
}

}  // namespace tandem::train
