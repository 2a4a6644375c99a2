// The threads of parallel_for: one crew for each thread that calls it.
#include "tandem/core/parallel.h"

#include "tandem/core/serial_scope.h"

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#ifdef __linux__
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tandem {

namespace {

/// How long a thread that waits for another spins before it sleeps: the work of a training step comes in loops that
/// follow each other within microseconds, and waking a thread takes about as long as this.
constexpr std::chrono::microseconds kSpinTime{50};

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// True as soon as `done()`, false after kSpinTime.
template <typename Done>
bool spin_until(Done&& done) {
  constexpr int kLooksPerClock = 32;
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kLooksPerClock; ++i) {
      if (done()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

#ifdef __linux__
// Not std::atomic::wait: it yields the core before it sleeps, and a thread that has yielded to another program gets its
// core back when that one's time slice is over, while one that sleeps is put to work when it is woken.
static_assert(sizeof(std::atomic<int>) == sizeof(int));

/// Sleeps unless `word` differs from `value`; may also return for no reason.
void sleep_while(std::atomic<int>& word, int value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void wake(std::atomic<int>& word) { syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }
#else
void sleep_while(std::atomic<int>& word, int value) { word.wait(value); }
void wake(std::atomic<int>& word) { word.notify_one(); }
#endif

/// Counts the forks that led to this process: threads do not come along.
std::atomic<int> forks = 0;

void count_forks() {
#ifdef __linux__
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  static_cast<void>(registered);
#endif
}

[[maybe_unused]] const bool counts_forks = (count_forks(), true);  // before there are threads

thread_local bool inside_part = false;

/// The threads that help one other thread, their leader, with one job at a time. Member i is offered part i + 1; it
/// must claim a part before it looks at the job, as the leader takes back what nobody has claimed.
class Crew {
 public:
  Crew() : forks_(forks) { count_forks(); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() {
    forget_members_of_parent();
    for (const auto& member : members_) offer(*member, kEnd);
    for (const auto& member : members_) member->thread.join();
  }

  void run(std::int64_t parts, detail::PartFunction function) {
    forget_members_of_parent();
    hire(static_cast<std::size_t>(parts - 1));
    const auto helpers = static_cast<std::size_t>(std::min<std::int64_t>(parts - 1, std::ssize(members_)));
    function_ = function;
    error_ = nullptr;
    unfinished_.store(static_cast<int>(helpers), std::memory_order_relaxed);
    for (std::size_t i = 0; i < helpers; ++i) offer(*members_[i], kOffered);
    do_part(0);
    for (std::int64_t part = static_cast<std::int64_t>(helpers) + 1; part < parts; ++part) do_part(part);
    for (std::size_t i = 0; i < helpers; ++i) {
      if (!claim(*members_[i])) continue;
      do_part(static_cast<std::int64_t>(i) + 1);
      unfinished_.fetch_sub(1, std::memory_order_relaxed);
    }
    wait_for_members();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  // What a member's `offer` says.
  static constexpr int kNothing = 0, kAsleep = 1, kOffered = 2, kEnd = 3;
  // Beside the count in unfinished_.
  static constexpr int kLeaderSleeps = 1 << 30;

  struct alignas(64) Member {
    std::atomic<int> offer = kNothing;
    std::thread thread;
  };

  /// After a fork: the threads are gone, and their handles mean nothing here.
  void forget_members_of_parent() {
    if (forks_ == forks) return;
    forks_ = forks;
    for (const auto& member : members_) std::construct_at(&member->thread);  // neither joined nor detached
    members_.clear();
  }

  /// At least `count` members, or as many as the system allows.
  void hire(std::size_t count) {
    while (members_.size() < count) {
      auto member = std::make_unique<Member>();
      const std::int64_t part = std::ssize(members_) + 1;
      try {
        members_.reserve(members_.size() + 1);
        member->thread = std::thread([this, part, self = member.get()] { serve(*self, part); });
      } catch (const std::system_error&) {
        return;  // the leader does their parts
      }
      members_.push_back(std::move(member));
    }
  }

  static void offer(Member& member, int what) {
    if (member.offer.exchange(what, std::memory_order_acq_rel) == kAsleep) wake(member.offer);
  }

  static bool claim(Member& member) {
    int expected = kOffered;
    return member.offer.compare_exchange_strong(expected, kNothing, std::memory_order_acq_rel,
                                                std::memory_order_relaxed);
  }

  void do_part(std::int64_t part) {
    const SerialScope inside;
    try {
      function_.call(function_.body, part);
    } catch (...) {
      const std::scoped_lock lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  void serve(Member& self, std::int64_t part) {
    while (wait_for_offer(self) != kEnd) {
      if (!claim(self)) continue;
      do_part(part);
      if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == (kLeaderSleeps | 1)) wake(unfinished_);
    }
  }

  static int wait_for_offer(Member& self) {
    const auto is_there = [&] { return self.offer.load(std::memory_order_relaxed) >= kOffered; };
    while (!spin_until(is_there)) {
      int expected = kNothing;
      self.offer.compare_exchange_strong(expected, kAsleep, std::memory_order_relaxed);
      while (self.offer.load(std::memory_order_relaxed) == kAsleep) sleep_while(self.offer, kAsleep);
    }
    return self.offer.load(std::memory_order_acquire);
  }

  void wait_for_members() {
    if (spin_until([this] { return unfinished_.load(std::memory_order_acquire) == 0; })) return;
    int now = unfinished_.fetch_or(kLeaderSleeps, std::memory_order_acq_rel) | kLeaderSleeps;
    while (now != kLeaderSleeps) {
      sleep_while(unfinished_, now);
      now = unfinished_.load(std::memory_order_acquire);
    }
  }

  std::vector<std::unique_ptr<Member>> members_;
  int forks_;
  detail::PartFunction function_{};
  alignas(64) std::atomic<int> unfinished_ = 0;  // parts that members have not done
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

/// This thread's crew; none before its first use, and none while the thread ends.
class CrewOfThread {
 public:
  CrewOfThread() { state = State::present; }
  CrewOfThread(const CrewOfThread&) = delete;
  CrewOfThread& operator=(const CrewOfThread&) = delete;
  ~CrewOfThread() { state = State::ended; }

  /// Null where objects of this thread are being destroyed, this one among them.
  static Crew* get() {
    if (state == State::ended) return nullptr;
    static thread_local CrewOfThread crew;
    return &crew.crew_;
  }

 private:
  enum class State : std::uint8_t { absent, present, ended };
  static thread_local State state;
  Crew crew_;
};

thread_local CrewOfThread::State CrewOfThread::state = State::absent;

int default_threads() {
  if (const int asked = threads_asked_for(); asked > 0) return asked;
#ifdef __linux__
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::atomic<int> threads_set = 0;  // 0: nobody has

}  // namespace

int threads_asked_for() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr) return 0;
  while (*text == ' ') ++text;
  int threads = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), threads);
  const bool whole = error == std::errc() && (*end == '\0' || *end == ',' || *end == ' ');
  return whole && threads > 0 ? std::min(threads, kMostThreads) : 0;
}

int num_threads() {
  const int set = threads_set.load(std::memory_order_relaxed);
  if (set > 0) return set;
  static const int by_default = default_threads();
  return by_default;
}

void set_num_threads(int threads) {
  threads_set.store(std::clamp(threads, 1, kMostThreads), std::memory_order_relaxed);
}

namespace detail {

bool in_parallel() { return inside_part; }

void run_parts(std::int64_t parts, PartFunction function) {
  if (Crew* const crew = CrewOfThread::get()) {
    crew->run(parts, function);
    return;
  }
  for (std::int64_t part = 0; part < parts; ++part) function.call(function.body, part);
}

}  // namespace detail

SerialScope::SerialScope() : before_(inside_part) { inside_part = true; }
SerialScope::~SerialScope() { inside_part = before_; }

}  // namespace tandem
