// Threads per rank from the cores that ranks may use.
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/launch/threads.h"
#include "tandem/core/parallel.h"
#include "tests/support/catch.h"

#include <cstdlib>
#include <optional>

using namespace tandem;
using namespace tandem::comm;

namespace {

CoreSet cores(int first, int count) {
  CoreSet result;
  for (int i = 0; i < count; ++i) result.push_back(first + i);
  return result;
}

int share(const std::vector<CoreSet>& all) { return fair_share(all.front(), all); }

/// Sets or removes OMP_NUM_THREADS while it lives.
class ThreadsVariable {
 public:
  explicit ThreadsVariable(const char* value) {
    if (const char* old = std::getenv(kName)) old_ = old;
    if (value != nullptr)
      setenv(kName, value, 1);
    else
      unsetenv(kName);
  }
  ~ThreadsVariable() {
    if (old_)
      setenv(kName, old_->c_str(), 1);
    else
      unsetenv(kName);
  }

 private:
  static constexpr const char* kName = "OMP_NUM_THREADS";
  std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("unbound ranks share all cores") {
  CHECK(share({cores(0, 2), cores(0, 2)}) == 1);
  CHECK(share({cores(0, 16), cores(0, 16)}) == 8);
  CHECK(share({cores(0, 16), cores(0, 16), cores(0, 16)}) == 5);
  CHECK(share({cores(0, 3), cores(0, 3), cores(0, 3)}) == 1);
  CHECK(share({cores(0, 6), cores(0, 6), cores(0, 6)}) == 2);  // six thirds, which add up to less than 2
  CHECK(share({cores(0, 8)}) == 8);
}

TEST_CASE("bound ranks use the cores they are bound to") {
  CHECK(share({cores(0, 1), cores(1, 1)}) == 1);
  CHECK(share({cores(0, 8), cores(8, 8)}) == 8);
  CHECK(share({cores(0, 8), cores(0, 8), cores(8, 8)}) == 4);
}

TEST_CASE("more ranks than cores still have a thread each") {
  CHECK(share({cores(0, 2), cores(0, 2), cores(0, 2), cores(0, 2), cores(0, 2)}) == 1);
  CHECK(fair_share({}, {}) == 1);
}

TEST_CASE("OMP_NUM_THREADS decides where it is set") {
  ProcessGroup group(make_self_backend());
  for (const auto& [text, threads] : {std::pair{"3", 3}, {"5,2", 5}, {" 4 ,2", 4}, {"100000", kMostThreads}}) {
    INFO(text);
    const ThreadsVariable variable(text);
    CHECK(default_threads(group) == threads);
    CHECK(threads_asked_for() == threads);
  }
  for (const char* text : {static_cast<const char*>(nullptr), "", "0", "-3", "4x", "many", "99999999999"}) {
    INFO((text != nullptr ? text : "not set"));
    const ThreadsVariable variable(text);
    CHECK(default_threads(group) == static_cast<int>(allowed_cores().size()));
    CHECK(threads_asked_for() == 0);
  }
}
