// What messages of ranks must do that tell each other of them first: by threads here, by processes under mpirun.
#pragma once

#include "tandem/comm/process_group.h"
#include "tandem/core/out.h"
#include "tests/support/error_of.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tandem::test {

/// Of a message: whole numbers that differ from those of other messages.
inline Tensor numbers_of(std::int64_t count, int message) {
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>((i * 7 + message * 1000) % 65521));
  return Tensor::from(numbers, {count});
}

/// "" where a tensor has the numbers of a message, else where it does not.
inline std::string fault_of_numbers(const Tensor& tensor, int message) {
  const auto expected = numbers_of(tensor.numel(), message).to_vector<float>(), got = tensor.to_vector<float>();
  for (std::size_t i = 0; i < got.size(); ++i)
    if (got[i] != expected[i])
      return fmt::format("message {} of {}: element {} is {}, not {}; ", message, got.size(), i, got[i], expected[i]);
  return "";
}

/// Messages from rank 0 to rank 1, and back, that fit: "" where all arrived. Collective.
inline std::string fault_of_equal_messages(comm::ProcessGroup& group) {
  const int rank = group.rank(), other = 1 - rank;
  const std::vector<std::int64_t> counts{3, 0, 300000, 1};
  const Tensor one = Tensor::full({1}, 1.0);
  std::string faults;
  const auto receive = [&](std::int64_t count, int message, int tag) {
    const Tensor tensor = Tensor::full({count}, -1.0);
    group.receive(Out(tensor), other, tag);
    faults += fault_of_numbers(tensor, message);
  };
  const auto all_come = [&] {
    const Tensor sum = one.clone();
    group.all_reduce(Out(sum));
    if (sum.item() != group.size()) faults += "a sum is wrong; ";
  };

  // Of one tag, several at once, waited for from the last to the first.
  if (rank < 2) {
    std::vector<Tensor> tensors;
    std::vector<std::unique_ptr<comm::Work>> works;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const int message = static_cast<int>(i);
      tensors.push_back(rank == 0 ? numbers_of(counts[i], message) : Tensor::full({counts[i]}, -1.0));
      works.push_back(rank == 0 ? group.send_async(tensors[i], 1, 7) : group.receive_async(Out(tensors[i]), 0, 7));
    }
    for (std::size_t i = works.size(); i-- > 0;) works[i]->wait();
    for (std::size_t i = 0; i < counts.size(); ++i) faults += fault_of_numbers(tensors[i], static_cast<int>(i));
  }
  // Of two tags, received in the other order.
  if (rank == 0) {
    const Tensor first = numbers_of(300000, 10), second = numbers_of(20, 11);
    const auto one_work = group.send_async(first, 1, 1), other_work = group.send_async(second, 1, 8191);
    one_work->wait();
    other_work->wait();
  } else if (rank == 1) {
    receive(20, 11, 8191);
    receive(300000, 10, 1);
  }
  // To each other, with the same tag.
  if (rank < 2) {
    const Tensor mine = numbers_of(100000, 20 + rank);
    const auto sending = group.send_async(mine, other, 2);
    receive(100000, 20 + other, 2);
    sending->wait();
  }
  // A sender that goes on to a collective which its receiver enters later, and the other way round.
  if (rank == 0) {
    const Tensor mine = numbers_of(300000, 30);
    const auto sending = group.send_async(mine, 1, 3);
    all_come();
    sending->wait();
    group.send(numbers_of(300000, 31), 1, 3);
    all_come();
  } else if (rank == 1) {
    receive(300000, 30, 3);
    all_come();
    const Tensor tensor = Tensor::full({300000}, -1.0);
    const auto receiving = group.receive_async(Out(tensor), 0, 3);
    all_come();
    while (!receiving->wait_for(std::chrono::milliseconds(10))) continue;
    faults += fault_of_numbers(tensor, 31);
  } else {
    all_come();
    all_come();
  }
  // A receiver that has begun a collective in which its sender waits already.
  const Tensor sum = one.clone(), mine = rank == 0 ? numbers_of(300000, 40) : Tensor();
  const auto sending = rank == 0 ? group.send_async(mine, 1, 4) : nullptr;
  const auto adding = group.all_reduce_async(Out(sum));
  if (rank == 1) receive(300000, 40, 4);
  adding->wait();
  if (sending) sending->wait();
  if (sum.item() != group.size()) faults += "a sum is wrong; ";
  return faults;
}

/// Messages between ranks 0 and 1 that do not fit: "" where both ranks say so, nothing was written, and the group goes
/// on. Collective.
inline std::string fault_of_unequal_messages(comm::ProcessGroup& group) {
  struct End {
    DType dtype;
    std::int64_t count;
  };
  const int rank = group.rank();
  std::string faults;
  int tag = 100;
  // Messages of one tag, all begun before one is waited for. `sent` and `received` have as many.
  const auto exchange = [&](int from, const std::vector<End>& sent, const std::vector<End>& received,
                            const std::vector<std::string>& expected) {
    ++tag;
    if (rank < 2) {
      std::vector<Tensor> tensors;
      std::vector<std::unique_ptr<comm::Work>> works;
      for (const End& end : rank == from ? sent : received) {
        tensors.push_back(Tensor::full({end.count}, rank == from ? 5.0 : 1.0, {.dtype = end.dtype}));
        works.push_back(rank == from ? group.send_async(tensors.back(), 1 - rank, tag)
                                     : group.receive_async(Out(tensors.back()), 1 - rank, tag));
      }
      for (std::size_t i = 0; i < works.size(); ++i) {
        const bool is_wrong = !expected[i].empty();
        const std::string start =
            is_wrong ? fmt::format("message #{} from rank {} to rank {} (tag {}) does not fit: rank {} sends {}", i + 1,
                                   from, 1 - from, tag, from, expected[i])
                     : "no error";
        const std::string error = error_of([&] { works[i]->wait(); });
        if (!error.starts_with(start)) faults += fmt::format("'{}' is not '{}'; ", error, start);
        for (const double element : tensors[i].to_vector<double>())
          if (rank != from && element != (is_wrong ? 1.0 : 5.0)) {
            faults += fmt::format("message {} of tag {} has {}; ", i, tag, element);
            break;
          }
      }
    }
    const Tensor sum = Tensor::full({1}, 1.0);
    group.all_reduce(Out(sum));
    if (sum.item() != group.size()) faults += "a sum is wrong; ";
  };
  const End ten{DType::f32, 10}, twenty{DType::f32, 20}, none{DType::f32, 0}, integers{DType::i32, 10},
      many{DType::f32, 300000};
  exchange(0, {ten}, {twenty}, {"f32[10], and rank 1 receives f32[20]; "});
  exchange(1, {twenty}, {ten}, {"f32[20], and rank 0 receives f32[10]; "});
  exchange(0, {many}, {ten}, {"f32[300000], and rank 1 receives f32[10]; "});
  exchange(0, {ten}, {integers}, {"f32[10], and rank 1 receives i32[10]; "});
  exchange(0, {none}, {ten}, {"f32[0], and rank 1 receives f32[10]; "});
  exchange(1, {ten}, {none}, {"f32[10], and rank 0 receives f32[0]; "});
  exchange(0, {none}, {{DType::i64, 0}}, {"f32[0], and rank 1 receives i64[0]; "});
  exchange(0, {ten, twenty}, {twenty, ten},
           {"f32[10], and rank 1 receives f32[20]; ", "f32[20], and rank 1 receives f32[10]; "});
  exchange(0, {ten, many, twenty}, {ten, twenty, twenty}, {"", "f32[300000], and rank 1 receives f32[20]; ", ""});
  return faults;
}

}  // namespace tandem::test
