// Where a run goes on, in words.
#include "resume_text.h"

#include "tests/support/catch.h"

using namespace tandem::apps;

TEST_CASE("a run that goes on tells epochs as epochs and steps as steps") {
  const auto text = [](std::int64_t epochs_done, std::int64_t steps_done, std::int64_t epochs) {
    return resume_point_text(
        {.epochs_done = epochs_done, .steps_done = steps_done, .steps_per_epoch = 30, .epochs = epochs});
  };
  CHECK(text(0, 0, 4) == "goes on with epoch 1 of 4 (0 of 120 steps are done)");
  CHECK(text(2, 75, 4) == "goes on in epoch 3 of 4, behind 15 of its 30 steps (75 of 120 steps are done)");
  CHECK(text(2, 60, 4) == "goes on with epoch 3 of 4 (60 of 120 steps are done)");
  CHECK(text(2, 90, 4) == "goes on with the evaluation of epoch 3 of 4 (90 of 120 steps are done)");
  CHECK(text(3, 120, 4) == "goes on with the evaluation of epoch 4 of 4 (120 of 120 steps are done)");
  CHECK(text(4, 120, 4) == "no step is left: all 120 are done; the run is evaluated again");
  CHECK(text(4, 120, 6) == "goes on with epoch 5 of 6 (120 of 180 steps are done)");
  CHECK(text(4, 120, 2) == "no step is left: 120 are done, and the run is to have 60; it is evaluated again");
}

TEST_CASE("a run of so many steps, and one that stopped early, tell their ends") {
  ResumePoint point{.epochs_done = 1, .steps_done = 40, .steps_per_epoch = 30, .epochs = 3, .steps = 80};
  CHECK(resume_point_text(point) == "goes on in epoch 2 of 3, behind 10 of its 30 steps (40 of 80 steps are done)");
  point.steps = 40;
  CHECK(resume_point_text(point) == "no step is left: all 40 are done; the run is evaluated again");
  point = {.epochs_done = 2, .steps_done = 60, .steps_per_epoch = 30, .epochs = 4, .stopped_early = true};
  CHECK(resume_point_text(point) ==
        "no step is left: early stopping ended the run behind epoch 2 (60 of 120 steps are done); it is evaluated "
        "again");
}
