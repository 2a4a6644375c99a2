// Holding out a part of a data set by class.
#include "tandem/data/stratified_split.h"

#include "tandem/data/synthetic.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace tandem;
using namespace tandem::test;
using data::StratifiedSplit;

namespace {

/// Labels of classes of these sizes, mixed.
std::vector<std::int64_t> labels_of(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> left = sizes, labels;
  while (std::accumulate(left.begin(), left.end(), std::int64_t{0}) > 0) {
    for (std::size_t label = 0; label < left.size(); ++label)
      if (left[label]-- > 0) labels.push_back(static_cast<std::int64_t>(label));
    for (std::int64_t& count : left) count = std::max<std::int64_t>(count, 0);
  }
  return labels;
}

std::vector<std::int64_t> counts_of(const std::vector<std::int64_t>& labels, const std::vector<std::int64_t>& numbers,
                                    std::size_t classes) {
  std::vector<std::int64_t> counts(classes, 0);
  for (const std::int64_t number : numbers)
    ++counts[static_cast<std::size_t>(labels[static_cast<std::size_t>(number)])];
  return counts;
}

}  // namespace

TEST_CASE("a stratified split holds out the share of each class, and every example is in one part") {
  struct Case {
    std::vector<std::int64_t> sizes;
    double fraction;
    std::vector<std::int64_t> held_out;
  };
  const Case one = GENERATE(Case{{10, 20, 30}, 0.1, {1, 2, 3}}, Case{{10, 10, 10, 10}, 0.25, {3, 3, 2, 2}},
                            Case{{7, 1, 12}, 0.5, {4, 0, 6}}, Case{{3, 5}, 0.2, {1, 1}}, Case{{100}, 0.33, {33}},
                            Case{{5000, 5000, 5000}, 0.1, {500, 500, 500}});
  CAPTURE(one.sizes, one.fraction);
  const std::vector<std::int64_t> labels = labels_of(one.sizes);
  const StratifiedSplit split = data::stratified_split(labels, one.fraction, 3);
  CHECK(counts_of(labels, split.held_out, one.sizes.size()) == one.held_out);
  CHECK(std::is_sorted(split.kept.begin(), split.kept.end()));
  CHECK(std::is_sorted(split.held_out.begin(), split.held_out.end()));
  std::vector<std::int64_t> all = split.kept, expected(labels.size());
  all.insert(all.end(), split.held_out.begin(), split.held_out.end());
  std::sort(all.begin(), all.end());
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(all == expected);
}

TEST_CASE("a stratified split is drawn from the seed, each example as likely as the others") {
  const std::vector<std::int64_t> labels = labels_of({40, 40});
  const StratifiedSplit first = data::stratified_split(labels, 0.25, 1);
  CHECK(data::stratified_split(labels, 0.25, 1).held_out == first.held_out);
  CHECK(data::stratified_split(labels, 0.25, 2).held_out != first.held_out);
  // Each is held out in a quarter of the splits: 500 of 2,000, with a deviation of 19.4; five of them are allowed.
  std::vector<std::int64_t> times(labels.size(), 0);
  for (std::uint64_t seed = 0; seed < 2000; ++seed)
    for (const std::int64_t number : data::stratified_split(labels, 0.25, seed).held_out)
      ++times[static_cast<std::size_t>(number)];
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  CHECK(*least > 500 - 97);
  CHECK(*most < 500 + 97);
}

TEST_CASE("a stratified split refuses fractions that leave nothing") {
  const std::vector<std::int64_t> labels = labels_of({3, 3});
  for (const double fraction : {0.0, 1.0, -0.5, 1.5, std::nan("")}) {
    CHECK_THAT(error_of([&] { data::stratified_split(labels, fraction, 1); }), ContainsText("between 0 and 1"));
  }
  CHECK_THAT(error_of([&] { data::stratified_split(labels, 0.01, 1); }),
             ContainsText("0.01 of 6 examples would leave 6 and hold out 0: both need one"));
  CHECK_THAT(error_of([&] { data::stratified_split(labels, 0.99, 1); }), ContainsText("leave 0 and hold out 6"));
}

TEST_CASE("a subset has the images and labels of its numbers") {
  const data::ImageDataset all = data::make_synthetic({.count = 12, .channels = 3, .side = 8, .seed = 2});
  const std::vector<std::int64_t> numbers{7, 0, 7, 11};
  const data::ImageDataset part = data::subset(all, numbers);
  check(part);
  REQUIRE(part.size() == 4);
  CHECK(part.class_names == all.class_names);
  CHECK(part.mean == all.mean);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    CHECK(part.images.select(0, place).to_vector<int>() == all.images.select(0, numbers[i]).to_vector<int>());
    CHECK(part.labels.select(0, place).item() == all.labels.select(0, numbers[i]).item());
  }
  CHECK_THAT(error_of([&] { data::subset(all, std::vector<std::int64_t>{12}); }),
             ContainsText("image 12 is not one of the 12 of data set 'synthetic'"));
}
