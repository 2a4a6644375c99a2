// Memory that simulated GPUs of several processes have in common.
#pragma once

#include "tandem/simulator/timeline.h"

#include <atomic>
#include <cstddef>
#include <memory>

namespace tandem::simulator {

/// A page of a file, mapped, which all processes that map it see.
class SharedPage {
 public:
  /// Null where it cannot be mapped. `owns_file`: closes the file with it.
  static std::shared_ptr<SharedPage> map(int file, std::size_t offset, bool owns_file);
  ~SharedPage();
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;

  /// Numbers in it, 0 at first.
  static constexpr std::size_t kNumbers = 4096 / sizeof(std::atomic<int>);
  std::atomic<int>& number(std::size_t index) const { return static_cast<std::atomic<int>*>(page_)[index]; }
  int file() const { return file_; }

 private:
  SharedPage(void* page, int file, bool owns_file) : page_(page), file_(file), owns_file_(owns_file) {}

  void* page_;
  int file_;
  bool owns_file_;
};

/// Nobody is to open this memory any more, if it was exported. How often it is open in processes that have not ended.
int take_back_export(void* start);

/// How often an event was recorded, and how many of these its stream has passed, as all processes see it.
constexpr std::size_t kRecorded = 0, kPassed = 1;

/// Lets streams come to what others may wait for though their host calls nothing, some time from now.
void pass_soon(const Clock& clock);

}  // namespace tandem::simulator
