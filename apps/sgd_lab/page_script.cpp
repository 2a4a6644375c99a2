// Style and script of the page.
#include "apps/sgd_lab/page.h"

namespace tandem::sgd_lab {

std::string_view page_style() {
  return R"css(
#ring { list-style: none; margin: 0; padding: 0; display: grid; gap: 22px; }
#ring td, #ring th { text-align: center; padding: 6px 4px; } #ring td.changed { background: var(--rule); font-weight: 600; }
.controls { margin-bottom: 14px; } .controls button { font: inherit; padding: 4px 14px; margin-right: 8px; }
.sliders { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 230px), 1fr)); gap: 10px 24px; margin-bottom: 16px; }
.sliders[hidden] { display: none; } .sliders input { width: 100%; } .sliders output { font-weight: 600; float: right; }
.bar { height: 10px; background: var(--s1); border-radius: 2px; } td.wide-cell { width: 40%; } #speed td { vertical-align: middle; }
details { margin-bottom: 10px; } summary { cursor: pointer; } details p { margin: 6px 0 0 18px; }
code { overflow-wrap: anywhere; }
)css";
}

std::string_view page_script() {
  return R"js(
(() => {
  const element = (id) => document.getElementById(id);
  const rounds = [...document.querySelectorAll('#ring > li')];
  let at = 0;
  const show = (next) => {
    at = next;
    rounds.forEach((round, i) => { round.hidden = i !== at; });
    element('back').disabled = at === 0;
    element('next').disabled = at === rounds.length - 1;
  };
  element('back').onclick = () => show(at - 1);
  element('next').onclick = () => show(at + 1);
  element('ring-controls').hidden = false;
  show(0);

  const sliders = ['batch', 'weights', 'gigabits', 'microseconds'];
  const update = () => {
    const place = {};
    for (const name of sliders) {
      place[name] = Number(element(name).value);
      element(name + '-value').textContent = speed[name][place[name]].toLocaleString('en');
    }
    const compute = speed.batch[place.batch] * speed.weights[place.weights] * speed.compute;
    element('compute').textContent = (1e3 * compute).toFixed(3);
    document.querySelectorAll('#speed tr[data-rank]').forEach((row, rank) => {
      const first = (place.gigabits * speed.microseconds.length + place.microseconds) * speed.weights.length + place.weights;
      const exchange = speed.exchange[first * speed.ranks.length + rank];
      const ranks = speed.ranks[rank], factor = ranks * compute / (compute + exchange);
      row.cells[1].textContent = (1e3 * exchange).toFixed(3);
      row.cells[2].textContent = factor.toFixed(2);
      row.cells[3].firstChild.style.width = (100 * factor / ranks).toFixed(1) + '%';
    });
  };
  for (const name of sliders) element(name).oninput = update;
  element('sliders').hidden = false;
  update();
})();
)js";
}

}  // namespace tandem::sgd_lab
