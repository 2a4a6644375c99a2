// Sharing statuses, and looking at them.
#include "tandem/comm/doctor/status_board.h"

#include "tandem/comm/doctor/fixed_text.h"
#include "tandem/comm/launch/network_interface.h"
#include "tandem/core/error.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <sstream>
#include <system_error>

namespace tandem::comm {

namespace {

/// What all ranks know of a rank.
struct Identity {
  std::int64_t process = 0;
  std::string host;
  std::string machine;  ///< alike for processes that see each other, whatever hosts a simulated network puts them on
};

std::string own_identity() {
  std::string start;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> start;
  std::error_code none;
  return fmt::format("{} {} {}:{}:{}", getpid(), host_name(), host_name(), start,
                     std::filesystem::read_symlink("/proc/self/ns/pid", none).string());
}

Identity identity_of(const std::string& text) {
  Identity result;
  std::istringstream(text) >> result.process >> result.host >> result.machine;
  return result;
}

/// By rank. Collective.
std::vector<Identity> exchange_identities(Backend& backend) {
  std::vector<Identity> all;
  for (const std::string& text : backend.all_gather_bytes(own_identity())) all.push_back(identity_of(text));
  return all;
}

/// A file may hold anything: what a terminal would obey is no text.
std::string printable(std::string text) {
  std::ranges::replace_if(text, [](char c) { return (c >= '\0' && c < ' ') || c == '\x7f'; }, '?');
  return text;
}

double seconds_since(std::int64_t then, std::int64_t now) {
  return then == 0 ? 0.0 : std::max(0.0, (static_cast<double>(now) - static_cast<double>(then)) * 1e-9);
}

/// By rising number.
template <std::size_t Size>
std::vector<OperationView> last_of(const OperationRecord (&records)[Size]) {
  std::vector<OperationView> result;
  for (std::size_t i = 0; i < Size; ++i)
    if (const OperationView view = records[i].get(); view.number != 0 && view.number % Size == i)
      result.push_back(view);
  std::ranges::sort(result, {}, &OperationView::number);
  return result;
}

bool is_far(const RankStatus& status) { return status.magic.load(std::memory_order_acquire) == RankStatus::kFar; }

ProcessState state_of(const RankStatus& status) {
  if (is_far(status)) return static_cast<ProcessState>(status.heard_state.load(std::memory_order_acquire));
  return state_of_process(status.process, status.time_namespace == time_namespace() ? status.process_start : 0);
}

RankView view_of(const RankStatus& status, int rank, std::int64_t now) {
  RankView view;
  view.rank = rank;
  const std::uint64_t magic = status.magic.load(std::memory_order_acquire);
  if (magic != RankStatus::kMagic && magic != RankStatus::kElsewhere && magic != RankStatus::kFar) return view;
  view.host = printable(text_in(status.host));
  view.process = status.process;
  view.whole_rank = status.whole_rank;
  view.is_known = magic != RankStatus::kElsewhere;
  if (!view.is_known) return view;
  const bool is_saved = status.saved_at != 0;
  view.state = is_saved ? static_cast<ProcessState>(status.saved_state) : state_of(status);
  if (is_saved) now = status.saved_at;
  view.end = status.end.load(std::memory_order_acquire);
  view.is_far = magic == RankStatus::kFar;
  if (view.is_far) {
    view.heard_ago = seconds_since(status.heard_at.load(std::memory_order_relaxed), now);
    view.is_inferred = status.is_inferred.load(std::memory_order_relaxed) != 0;
    const bool is_lost = view.heard_ago > std::chrono::duration<double>(StatusBoard::kSilence).count();
    view.is_known = !is_lost || view.end != RankEnd::none || view.state == ProcessState::ended ||
                    view.state == ProcessState::halted;
    if (!view.is_known) return view;
  }
  view.has_found_fault = status.has_found_fault.load(std::memory_order_acquire) != 0;
  const std::uint64_t waits_for = status.waits_for.load(std::memory_order_acquire);
  view.finished = status.finished.load(std::memory_order_acquire);
  view.started = status.started.load(std::memory_order_acquire);
  view.finished_ago = seconds_since(status.finished_since.load(std::memory_order_relaxed), now);
  view.is_waiting = waits_for != 0;
  if (view.is_waiting) {
    view.waits_for = status.awaited_as(waits_for);
    view.waiting_time = seconds_since(status.waits_since.load(std::memory_order_relaxed), now);
    view.step = printable(status.step.waits());
  }
  view.is_in_long_work = status.long_work.load(std::memory_order_acquire) > 0;
  const OperationView elsewhere = status.elsewhere.get();
  view.waits_elsewhere = elsewhere.number != 0 || status.elsewhere_far.load(std::memory_order_relaxed) != 0;
  view.activity = elsewhere.number != 0 ? describe(elsewhere) + " of another group" : printable(status.activity.get());
  view.collectives = last_of(status.collectives);
  view.messages = last_of(status.messages);
  return view;
}

/// Names the ranks that cannot show anything here themselves: those of other hosts, or all others.
void show_identities(std::span<const Identity> identities, std::span<const int> numbers, int own_rank,
                     bool shares_memory, std::span<RankStatus> statuses) {
  const auto own = static_cast<std::size_t>(own_rank);
  for (std::size_t rank = 0; rank < identities.size(); ++rank) {
    const Identity& identity = identities[rank];
    if (rank == own || (shares_memory && identity.machine == identities[own].machine)) continue;
    statuses[rank].process = identity.process;
    statuses[rank].whole_rank = numbers[rank];
    copy_text(identity.host, statuses[rank].host);
    statuses[rank].magic.store(RankStatus::kElsewhere, std::memory_order_release);
  }
}

/// Takes from `status` what `view` shows no more: an operation that has failed since is not compared.
void take_back_others(const RankView& view, RankStatus& status) {
  const std::uint64_t first = view.collectives.empty() ? 1 : view.collectives.front().number;
  for (OperationRecord& record : status.collectives) {
    const std::uint64_t number = record.get().number;
    if (number >= first && number <= view.started &&
        std::ranges::find(view.collectives, number, &OperationView::number) == view.collectives.end())
      record.set({});
  }
}

}  // namespace

std::int64_t steady_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

GroupView view_of(std::span<const RankStatus> statuses, std::int64_t now) {
  GroupView group;
  for (std::size_t rank = 0; rank < statuses.size(); ++rank)
    group.ranks.push_back(view_of(statuses[rank], static_cast<int>(rank), now));
  const auto known = std::ranges::find_if(group.ranks, &RankView::is_known);
  if (known == group.ranks.end()) return group;
  const RankStatus& status = statuses[static_cast<std::size_t>(known->rank)];
  group.backend = printable(text_in(status.backend));
  group.timeout = status.timeout;
  return group;
}

StatusBoard::StatusBoard(Backend& backend, double timeout, std::span<const int> whole_ranks) : place_(backend.place()) {
  constexpr std::int64_t kBytes = sizeof(RankStatus);
  const auto ranks = static_cast<std::size_t>(place_.size);
  std::vector<int> numbers(whole_ranks.begin(), whole_ranks.end());
  for (int rank = static_cast<int>(numbers.size()); rank < place_.size; ++rank) numbers.push_back(rank);
  const std::vector<Identity> identities = exchange_identities(backend);
  for (const Identity& identity : identities)
    first_ranks_.push_back(
        static_cast<int>(std::ranges::find(identities, identity.machine, &Identity::machine) - identities.begin()));
  const int first = first_ranks_[static_cast<std::size_t>(place_.rank)];
  SharedByRanks shared = share_memory(backend, kBytes, {.maker = first, .name = kFileName, .keeps_file = true});
  memory_ = std::move(shared.memory);
  obstacle_ = std::move(shared.obstacle);
  std::byte* data = nullptr;
  if (memory_) {
    data = memory_->data();
  } else {
    const std::size_t bytes = ranks * sizeof(RankStatus);
    own_memory_.resize(bytes + alignof(RankStatus));
    void* begin = own_memory_.data();
    std::size_t space = own_memory_.size();
    data = static_cast<std::byte*>(std::align(alignof(RankStatus), bytes, begin, space));
  }
  statuses_ = {reinterpret_cast<RankStatus*>(data), ranks};
  if (place_.rank == first || !memory_)
    show_identities(identities, numbers, place_.rank, memory_ != nullptr, statuses_);
  RankStatus& status = mine();
  status.process = getpid();
  status.whole_rank = numbers[static_cast<std::size_t>(place_.rank)];
  status.process_start = start_of_process(getpid());
  status.time_namespace = time_namespace();
  copy_text(host_name(), status.host);
  copy_text(backend.name(), status.backend);
  status.timeout = timeout;
  status.finished_since.store(steady_nanoseconds(), std::memory_order_relaxed);
  status.magic.store(RankStatus::kMagic, std::memory_order_release);
}

GroupView StatusBoard::look() const { return view_of(statuses_, steady_nanoseconds()); }

std::vector<RankView> StatusBoard::look_here() const {
  std::vector<RankView> views;
  const std::int64_t now = steady_nanoseconds();
  for (std::size_t rank = 0; rank < statuses_.size(); ++rank)
    if (statuses_[rank].magic.load(std::memory_order_acquire) == RankStatus::kMagic)
      views.push_back(view_of(statuses_[rank], static_cast<int>(rank), now));
  return views;
}

void StatusBoard::show_far(const RankView& view, std::int64_t now) {
  const auto ago = [now](double seconds) { return now - static_cast<std::int64_t>(std::min(seconds, 1e9) * 1e9); };
  RankStatus& status = statuses_[static_cast<std::size_t>(view.rank)];
  status.end.store(view.end, std::memory_order_release);
  take_back_others(view, status);
  for (const OperationView& operation : view.collectives)
    status.collectives[operation.number % RankStatus::kCollectives].set(operation);
  for (const OperationView& operation : view.messages)
    status.messages[operation.number % RankStatus::kMessages].set(operation);
  status.finished.store(view.finished, std::memory_order_release);
  status.started.store(view.started, std::memory_order_release);
  status.finished_since.store(ago(view.finished_ago), std::memory_order_relaxed);
  status.waits_since.store(ago(view.waiting_time), std::memory_order_relaxed);
  status.wait_for(view.is_waiting ? view.waits_for : OperationView{});
  status.step.wait(view.step);
  status.activity.set(view.activity);
  status.elsewhere_far.store(view.waits_elsewhere ? 1 : 0, std::memory_order_relaxed);
  status.long_work.store(view.is_in_long_work ? 1 : 0, std::memory_order_release);
  status.has_found_fault.store(view.has_found_fault ? 1 : 0, std::memory_order_release);
  // Last: whoever sees that it has ended is to see all that it did.
  status.is_inferred.store(0, std::memory_order_relaxed);
  status.heard_state.store(static_cast<std::int32_t>(view.state), std::memory_order_release);
  status.heard_at.store(now, std::memory_order_release);
  status.magic.store(RankStatus::kFar, std::memory_order_release);
}

void StatusBoard::show_far_state(int rank, ProcessState state) {
  RankStatus& status = statuses_[static_cast<std::size_t>(rank)];
  if (!is_far(status) || status.end.load(std::memory_order_acquire) != RankEnd::none) return;
  status.is_inferred.store(1, std::memory_order_relaxed);
  status.heard_state.store(static_cast<std::int32_t>(state), std::memory_order_release);
}

bool StatusBoard::save(const std::string& path) const {
  std::vector<std::byte> copy(statuses_.size_bytes());
  for (std::size_t rank = 0; rank < statuses_.size(); ++rank) {
    const RankStatus& status = statuses_[rank];
    std::byte* const at = copy.data() + rank * sizeof(RankStatus);
    std::memcpy(at, reinterpret_cast<const std::byte*>(&status), sizeof(RankStatus));
    const std::int64_t now = steady_nanoseconds();
    const auto state = static_cast<std::int32_t>(state_of(status));
    std::memcpy(at + offsetof(RankStatus, saved_at), &now, sizeof now);
    std::memcpy(at + offsetof(RankStatus, saved_state), &state, sizeof state);
  }
  // Whoever reads meanwhile sees the old file or the new one.
  const std::string temporary = fmt::format("{}.{}.part", path, getpid());
  std::ofstream file(temporary, std::ios::binary);
  file.write(reinterpret_cast<const char*>(copy.data()), static_cast<std::streamsize>(copy.size()));
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(temporary, path, error);
  if (file && !error) return true;
  std::filesystem::remove(temporary, error);
  return false;
}

}  // namespace tandem::comm
