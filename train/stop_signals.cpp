// Handlers that write a number.
#include "tandem/train/stop_signals.h"

#include "tandem/core/error.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>

namespace tandem::train {
namespace {

constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};

std::atomic<bool> installed = false;
std::atomic<int> received = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a handler may use it");
std::atomic<std::int64_t> received_at = 0;
std::array<struct sigaction, kSignals.size()> before;

constexpr std::int64_t kSameRequest = 500;  // milliseconds

std::int64_t milliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);  // which a handler may call
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

extern "C" void note_signal(int signal) {
  const std::int64_t now = milliseconds();
  int none = 0;
  if (received.compare_exchange_strong(none, signal)) {
    received_at = now;
    return;
  }
  if (now - received_at < kSameRequest) return;
  ::signal(signal, SIG_DFL);  // what it does by default
  ::raise(signal);
}

}  // namespace

StopSignals::StopSignals() {
  require(!installed.exchange(true), "StopSignals: there is one in this process already");
  received = 0;
  struct sigaction action{};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before[i], nullptr);
  installed = false;
}

int StopSignals::requested() const { return received; }

}  // namespace tandem::train
