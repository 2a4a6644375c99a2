// Enqueueing, ordering and running work.
#include "tandem/simulator/timeline.h"

#include "tandem/simulator/device_memory.h"
#include "tandem/simulator/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace tandem::simulator {

void Clock::set(std::size_t stream, std::uint32_t count) {
  if (counts_.size() <= stream) counts_.resize(stream + 1);
  counts_[stream] = count;
}

void Clock::merge(const Clock& other) {
  if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size());
  for (std::size_t i = 0; i < other.counts_.size(); ++i) counts_[i] = std::max(counts_[i], other.counts_[i]);
}

std::recursive_mutex& runtime_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

Timeline& timeline() {
  static Timeline the_timeline;
  return the_timeline;
}

StreamState& Timeline::default_stream(int device) {
  for (StreamState& stream : streams_) {
    if (stream.is_default && stream.device == device) return stream;
  }
  return make_stream(device, true, true);
}

StreamState& Timeline::make_stream(int device, bool blocking, bool is_default) {
  StreamState& stream = streams_.emplace_back();
  stream.id = streams_.size() - 1;
  stream.device = device;
  stream.blocking = blocking;
  stream.is_default = is_default;
  return stream;
}

void Timeline::enqueue(StreamState& stream, std::string name, SiteId where, std::function<void()> run_it,
                       std::function<bool()> may_begin) {
  throw_kept_fault();
  stream.clock.merge(host_);
  if (stream.blocking) {  // the default stream waits for all blocking ones, and they for it
    for (const StreamState& other : streams_) {
      if (other.blocking && other.device == stream.device && (stream.is_default || other.is_default))
        stream.clock.merge(other.clock);
    }
  }
  auto work = std::make_shared<Work>();
  work->name = std::move(name);
  work->where = where;
  work->stream = stream.id;
  work->index = ++stream.enqueued;
  stream.clock.set(stream.id, work->index);
  work->clock = stream.clock;
  work->run = std::move(run_it);
  work->may_begin = std::move(may_begin);
  stream.queue.push_back(work);
  if (settings().streams == Streams::eager) synchronize_work(work->clock);
}

bool Timeline::may_run(const Work& work) const {
  for (std::size_t i = 0; i < work.clock.size(); ++i) {
    if (i != work.stream && streams_[i].done < work.clock.of(i)) return false;
  }
  return !work.may_begin || work.may_begin();
}

bool Timeline::waits_for_process() const {
  return std::ranges::any_of(streams_, [](const StreamState& stream) {
    return !stream.queue.empty() && stream.queue.front()->may_begin && !stream.queue.front()->may_begin();
  });
}

void Timeline::run(const std::shared_ptr<Work>& work) {
  StreamState& stream = streams_[work->stream];
  stream.queue.pop_front();
  ++stream.done;  // whatever happens: work that fails is not tried again
  work->first_serial = engine().next_serial();
  history_.push_back(work);
  const Work* const outer = current_;
  struct Restore {
    Timeline& timeline;
    const Work* outer;
    ~Restore() { timeline.current_ = outer; }
  } restore{*this, outer};
  current_ = work.get();
  const DeviceAccess access;
  const std::function<void()> run_it = std::exchange(work->run, nullptr);
  run_it();
}

bool Timeline::run_one(const Clock* needed) {
  std::vector<StreamState*> candidates;
  for (StreamState& stream : streams_) {
    if (!stream.queue.empty() && may_run(*stream.queue.front())) candidates.push_back(&stream);
  }
  if (needed != nullptr) {
    // Streams that nobody waits for run now and then: at any moment between.
    std::erase_if(candidates, [&](const StreamState* stream) {
      random_ = random_ * 6364136223846793005ull + 1442695040888963407ull + settings().seed;
      return stream->done >= needed->of(stream->id) && (random_ >> 60) != 0;
    });
    if (candidates.empty()) {
      for (StreamState& stream : streams_) {
        if (stream.done < needed->of(stream.id) && !stream.queue.empty() && may_run(*stream.queue.front()))
          candidates.push_back(&stream);
      }
    }
  }
  if (candidates.empty()) return false;
  random_ = random_ * 6364136223846793005ull + 1442695040888963407ull + settings().seed;
  const auto work = candidates[(random_ >> 33) % candidates.size()]->queue.front();
  run(work);
  return true;
}

bool Timeline::is_done(const Clock& clock) const {
  for (std::size_t i = 0; i < clock.size(); ++i) {
    if (streams_[i].done < clock.of(i)) return false;
  }
  return true;
}

void Timeline::synchronize_work(const Clock& clock) {
  throw_kept_fault();
  while (!is_done(clock)) {
    if (run_one(&clock)) continue;
    if (!waits_for_process()) throw std::logic_error("simulator: streams wait for each other");
    // What is left here may be what the other process waits for.
    if (!run_one(nullptr)) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void Timeline::synchronize(const Clock& clock) {
  synchronize_work(clock);
  host_.merge(clock);
  const bool all_known = std::all_of(streams_.begin(), streams_.end(),
                                     [&](const StreamState& stream) { return host_.of(stream.id) >= stream.done; });
  if (all_known) {
    history_.clear();
    settled_below_ = engine().next_serial();
  }
}

void Timeline::synchronize(StreamState& stream) { synchronize(Clock(stream.clock)); }

void Timeline::synchronize_all() {
  Clock all;
  for (const StreamState& stream : streams_) all.merge(stream.clock);
  synchronize(all);
}

void Timeline::wait(StreamState& stream, const Clock& clock) { stream.clock.merge(clock); }

const Work* Timeline::find(std::uint64_t serial) const {
  const auto after = std::upper_bound(history_.begin(), history_.end(), serial,
                                      [](std::uint64_t value, const auto& work) { return value < work->first_serial; });
  return after == history_.begin() ? nullptr : std::prev(after)->get();
}

bool Timeline::happened_before_current(std::uint64_t serial) {
  if (serial < settled_below_ || current_ == nullptr) return true;
  const Work* const earlier = find(serial);
  return earlier == nullptr || current_->clock.of(earlier->stream) >= earlier->index;
}

std::string Timeline::name_of(std::uint64_t serial) const {
  const Work* const work = find(serial);
  if (work == nullptr) return "earlier work";
  return fmt::format("{} on stream {}, enqueued at {},", work->name, work->stream, site_of(work->where).text());
}

void Timeline::forget() {
  history_.clear();
  settled_below_ = 0;
}

bool happened_before_current(std::uint64_t serial) { return timeline().happened_before_current(serial); }
std::string name_of_work(std::uint64_t serial) { return timeline().name_of(serial); }
void forget_timeline() { timeline().forget(); }

}  // namespace tandem::simulator
