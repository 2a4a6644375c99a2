// The choice, which is one for all ranks.
#include "tandem/comm/progress/progress_choice.h"

#include "tandem/comm/agreement.h"
#include "tandem/comm/backends.h"
#include "tandem/comm/launch/host_cores.h"
#include "tandem/core/suggest.h"

#include <algorithm>
#include <vector>

namespace tandem::comm {

namespace {

/// What the ranks say, by rank.
struct Answers {
  std::vector<std::string> places;
  std::string obstacle;  // the first one
};

Answers ask_all(Backend& backend) {
  Answers answers;
  for (const std::string& text :
       backend.all_gather_bytes(place_text(backend.place().node) + "\n" + backend.thread_obstacle())) {
    const std::size_t end = text.find('\n');
    answers.places.push_back(text.substr(0, end));
    if (answers.obstacle.empty()) answers.obstacle = text.substr(end + 1);
  }
  return answers;
}

}  // namespace

ProgressChoice choose_progress(std::string_view name, Backend& backend) {
  const std::vector<std::string> names = progress_names();
  if (std::ranges::find(names, name) == names.end()) throw AgreedError(unknown_name("kind of progress", name, names));
  if (!backend.moves_by_polls()) {
    if (name != "thread") return {};
    throw AgreedError(
        fmt::format("progress thread: is for backends native, threads and mpi, and {} needs none; choose progress auto",
                    backend.name()));
  }
  if (name == "poll") return {};
  const Answers answers = ask_all(backend);
  ProgressChoice choice{.has_spare_cores = has_spare_cores(cores_by_host(answers.places))};
  const bool is_wanted = name == "thread" || (choice.has_spare_cores && backend.place().size > 1);
  choice.by_thread = is_wanted && answers.obstacle.empty();
  if (!is_wanted || choice.by_thread) return choice;
  const std::string reason = fmt::format("backend {}: {}", backend.name(), answers.obstacle);
  if (name == "thread") throw AgreedError(fmt::format("progress thread: {}; choose progress poll", reason));
  choice.notice = fmt::format("no progress thread: {}", reason);
  return choice;
}

}  // namespace tandem::comm
