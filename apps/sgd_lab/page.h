// The lesson as a page.
#pragma once

#include "apps/sgd_lab/lesson.h"
#include "apps/sgd_lab/speed.h"

#include <string>
#include <string_view>

namespace tandem::sgd_lab {

/// An HTML page that loads nothing. Its script steps through the ring, follows the sliders, and opens answers where
/// the page is printed; without it the page shows all rounds, and the speed-up of one setting. `grid` is looked at for
/// Chapter::speed_up alone.
std::string lesson_page(const Lesson& lesson, const SpeedGrid& speed);

/// Of the page alone.
std::string_view page_style();
std::string_view ring_script();
/// Opens the answers of exercises where the page is printed.
std::string_view exercise_script();
/// Behind slider_data().
std::string_view slider_script();

}  // namespace tandem::sgd_lab
