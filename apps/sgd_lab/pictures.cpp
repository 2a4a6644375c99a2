#include "apps/sgd_lab/pictures.h"

#include "apps/sgd_lab/charts.h"
#include "apps/sgd_lab/ring_picture.h"
#include "tandem/core/error.h"
#include "tandem/train/plot/svg.h"
#include "tandem/train/report/step_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace tandem::sgd_lab {

namespace {

namespace plot = train::plot;
constexpr double kMargin = 12.0;

std::string picture_of(plot::Size size, const std::string& description, const plot::Drawing& draw) {
  return plot::svg_picture(size, description, plot::SvgKind::file, draw);
}

/// Charts beside each other.
std::string picture_of(const std::vector<plot::LineChart>& charts) {
  constexpr double kWidth = 400.0, kHeight = 250.0;
  const double count = static_cast<double>(charts.size());
  return picture_of(
      {count * (kWidth + kMargin) + kMargin, kHeight + 2.0 * kMargin}, charts.front().title, [&](plot::Canvas& canvas) {
        for (std::size_t i = 0; i < charts.size(); ++i)
          draw_line_chart(canvas, {kMargin + static_cast<double>(i) * (kWidth + kMargin), kMargin, kWidth, kHeight},
                          charts[i]);
      });
}

std::string ring_picture(const RingLesson& ring, std::size_t round) {
  const RingPicture picture(ring, round);
  return picture_of(picture.size(), picture.description(), [&](plot::Canvas& canvas) {
    picture.draw(canvas);
    for (const Message& message : ring.rounds[round - 1].messages)
      draw_message(canvas, message, picture.middle_of(message));
  });
}

std::string step_picture(const TimedSteps& timed, const ExchangeWay& way) {
  constexpr double kWidth = 820.0;
  train::report::StepTrace step = way.picture;
  step.end = std::max(timed.behind.picture.end, timed.beside.picture.end);
  return picture_of({kWidth, train::report::height_of_step(step)}, "What each rank computes and exchanges in a step",
                    [&](plot::Canvas& canvas) { train::report::draw_step(canvas, step, kWidth); });
}

struct Picture {
  Chapter chapter;
  std::string name;
  std::function<std::string(const Lesson&)> draw;
};

std::vector<Picture> pictures_of(const LabOptions& options) {
  std::vector<Picture> all{
      {Chapter::ring, "ring-first-round", [](const Lesson& lesson) { return ring_picture(lesson.ring, 1); }},
      {Chapter::ring, "ring-last-round",
       [](const Lesson& lesson) { return ring_picture(lesson.ring, lesson.ring.rounds.size()); }},
      {Chapter::time, "step-behind",
       [](const Lesson& lesson) { return step_picture(lesson.timed.front(), lesson.timed.front().behind); }},
      {Chapter::time, "step-beside",
       [](const Lesson& lesson) { return step_picture(lesson.timed.front(), lesson.timed.front().beside); }},
      {Chapter::speed_up, "speed-up", [](const Lesson& lesson) { return picture_of({speed_chart(lesson)}); }},
      {Chapter::batch_size, "batch-size", [](const Lesson& lesson) {
         return picture_of({batch_chart("Loss, all by one learning rate", lesson.batches.same),
                            batch_chart("Loss, the learning rate scaled as the batch", lesson.batches.scaled)});
       }}};
  for (std::size_t i = 0; i < options.broken.size(); ++i)
    all.push_back({Chapter::broken, fmt::format("without-{}", options.broken[i].name), [i](const Lesson& lesson) {
                     const BrokenRun& run = lesson.broken[i];
                     return picture_of({loss_chart(lesson, run), distance_chart(lesson, run)});
                   }});
  std::erase_if(all, [&](const Picture& picture) { return !options.shows(picture.chapter); });
  return all;
}

}  // namespace

PictureFiles::PictureFiles(const std::string& folder, const LabOptions& options) {
  require(!pictures_of(options).empty(), "--pictures: this chapter has none; choose another, or leave --pictures out");
  for (const Picture& picture : pictures_of(options)) {
    names_.push_back(picture.name + ".svg");
    files_.push_back(std::make_unique<layers::AtomicFile>((std::filesystem::path(folder) / names_.back()).string()));
  }
}

void PictureFiles::write(const Lesson& lesson) {
  const std::vector<Picture> all = pictures_of(lesson.options);
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const std::string text = all[i].draw(lesson);
    files_[i]->write(text.data(), static_cast<std::int64_t>(text.size()));
    files_[i]->commit();
  }
}

}  // namespace tandem::sgd_lab
