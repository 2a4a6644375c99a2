// Style and scripts of the page.
#include "apps/sgd_lab/page.h"

namespace tandem::sgd_lab {

std::string_view page_style() {
  return R"css(
#ring { list-style: none; margin: 0; padding: 0; display: grid; gap: 26px; }
#ring td, #ring th { text-align: center; padding: 6px 4px; } #ring td.changed { background: var(--rule); font-weight: 600; }
#ring th { white-space: nowrap; } @media screen and (max-width: 720px) { .sum { display: none; } }
.round { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); gap: 14px 28px; align-items: center; break-inside: avoid; }
.round > div { min-width: 0; } .round.below { grid-template-columns: minmax(0, 1fr); }
.ring-picture { position: relative; width: 100%; margin: 0 auto; } .message { position: absolute; }
@media screen and (prefers-reduced-motion: no-preference) {
  .steps .message { animation: send 0.7s ease-out; } @keyframes send { from { transform: translate(var(--x), var(--y)); } } }
@media (prefers-reduced-motion: reduce) { #ring-Play { display: none; } }
.controls { margin-bottom: 14px; } .controls button { font: inherit; padding: 4px 14px; margin-right: 8px; }
.sliders { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 180px), 1fr)); gap: 10px 24px; margin-bottom: 16px; }
.sliders[hidden], .controls[hidden] { display: none; } .sliders input { width: 100%; } .sliders output { font-weight: 600; float: right; }
.bar { height: 10px; background: var(--s1); border-radius: 2px; } td.wide-cell { width: 32%; } #speed td { vertical-align: middle; }
.step + .step, .step + .card, .grid + .card { margin-top: 18px; } h3.part { font-size: 15px; margin: 30px 0 10px; }
details { margin-bottom: 10px; } summary { cursor: pointer; } details p { margin: 6px 0 0 18px; }
code { overflow-wrap: anywhere; }
@media print { #ring li[hidden] { display: list-item; } .controls, .sliders { display: none; }
  details::details-content { content-visibility: visible; block-size: auto; } }
)css";
}

std::string_view ring_script() {
  return R"js(
(() => {
  const element = (id) => document.getElementById(id);
  const back = element('ring-Back'), next = element('ring-Next'), play = element('ring-Play');
  const rounds = [...document.querySelectorAll('#ring > li')];
  let at = 0, timer = 0;
  const show = (round) => {
    at = round;
    rounds.forEach((item, i) => { item.hidden = i !== at; });
    back.disabled = at === 0;
    next.disabled = at === rounds.length - 1;
  };
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    play.textContent = 'Play';
  };
  back.onclick = () => { stop(); show(at - 1); };
  next.onclick = () => { stop(); show(at + 1); };
  play.onclick = () => {
    if (timer) return stop();
    show(at === rounds.length - 1 ? 0 : at + 1);
    play.textContent = 'Stop';
    timer = setInterval(() => {
      show(at + 1);
      if (at === rounds.length - 1) stop();
    }, 1600);
  };
  element('ring').className = 'steps';
  element('ring-controls').hidden = false;
  show(0);
})();
)js";
}

std::string_view exercise_script() {
  return R"js(
(() => {
  const closed = [];
  window.addEventListener('beforeprint', () => {
    closed.push(...document.querySelectorAll('details:not([open])'));
    for (const exercise of closed) exercise.open = true;
  });
  window.addEventListener('afterprint', () => {
    for (const exercise of closed.splice(0)) exercise.open = false;
  });
})();
)js";
}

std::string_view slider_script() {
  return R"js(
(() => {
  const element = (id) => document.getElementById(id);
  const sliders = ['batch', 'weights', 'gigabits', 'microseconds'];
  const update = () => {
    const place = {};
    for (const name of sliders) {
      place[name] = Number(element(name).value);
      const text = speed[name][place[name]].toLocaleString('en');
      element(name + '-value').textContent = text;
      element(name).setAttribute('aria-valuetext', text);
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
