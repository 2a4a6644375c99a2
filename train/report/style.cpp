// One style sheet. The names of colours are those of train/plot/palette.h.
#include "tandem/train/report/style.h"

namespace tandem::train::report {

std::string_view style_sheet() {
  return R"css(
:root { color-scheme: light dark;
  --paper: #f6f7f8; --card: #ffffff; --ink: #1d2127; --muted: #69707b; --rule: #e3e6ea; --on-pale: #000000;
  --train: #2f6fbb; --validation: #b7710a; --test: #12805f; --wrong: #c23b3b; --accent: #2f6fbb;
  --s1: #2f6fbb; --s2: #b7710a; --s3: #12805f; --s4: #b0478a; --s5: #7257c9; --s6: #c2503b; --s7: #17869b; --s8: #7a7d1c; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #121417; --card: #1b1e23; --ink: #e6e8eb; --muted: #98a0ab; --rule: #2e333b; --on-pale: #ffffff;
  --train: #6fa8ea; --validation: #e0a34a; --test: #52c39c; --wrong: #ef7d7d; --accent: #6fa8ea;
  --s1: #6fa8ea; --s2: #e0a34a; --s3: #52c39c; --s4: #e38bc4; --s5: #ab95f2; --s6: #f09380; --s7: #5fc3d6; --s8: #bfc25a; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue",
  Arial, sans-serif; font-variant-numeric: tabular-nums; }
main { max-width: 1120px; margin: 0 auto; padding: 40px 24px 64px; }
header { margin-bottom: 28px; }
h1 { font-size: 27px; line-height: 1.25; margin: 0; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 44px 0 14px; letter-spacing: -0.005em; }
h3 { font-size: 14px; margin: 0 0 10px; font-weight: 600; }
p { margin: 0 0 10px; max-width: 76ch; overflow-wrap: anywhere; }
p:last-child { margin-bottom: 0; }
.sub, .note { color: var(--muted); }
.sub { margin-top: 6px; overflow-wrap: anywhere; }
.note { font-size: 13px; margin-top: 12px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(126px, 1fr)); background: var(--card);
  border: 1px solid var(--rule); border-radius: 10px; overflow: hidden; }
.tile { background: var(--card); padding: 14px 18px; }
.tile b { display: block; font-size: 21px; font-weight: 600; line-height: 1.3; }
.tile span { color: var(--muted); font-size: 13px; }
.verdict, .card { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; padding: 20px 22px; min-width: 0; }
.verdict { margin-top: 18px; border-left: 4px solid var(--muted); }
.verdict strong { display: block; font-size: 18px; margin-bottom: 6px; }
.verdict.good { border-left-color: var(--test); }
.verdict.warn { border-left-color: var(--validation); }
.verdict.bad { border-left-color: var(--wrong); }
.banner { background: var(--card); border: 1px solid var(--validation); border-radius: 10px; padding: 12px 18px; margin: 0 0 18px;
  overflow-wrap: anywhere; }
.banner p { max-width: none; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); gap: 18px; }
.grid > .wide { grid-column: 1 / -1; }
.flow { columns: 2 400px; column-gap: 18px; margin-bottom: -18px; }
.flow > .card { break-inside: avoid; margin-bottom: 18px; }
.flow + .note { margin-top: 30px; }
svg { display: block; width: 100%; height: auto; font-family: inherit; overflow: visible; }
.card svg { max-width: 640px; }
.narrow svg { max-width: 560px; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { text-align: left; padding: 5px 14px 5px 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
th { color: var(--muted); font-weight: 500; }
tr:last-child td, tr:last-child th { border-bottom: 0; }
td.n, th.n { text-align: right; }
td { overflow-wrap: anywhere; }
td.n, td.word { white-space: nowrap; }
th:last-child, td:last-child { padding-right: 0; }
.scroll { overflow-x: auto; }
.scroll td:not(.n) { min-width: 7ch; }
.scroll td.name { min-width: 18ch; }
.named { display: flex; } .named .key { flex: none; margin-top: 6px; }
.pairs { columns: 2 340px; column-gap: 36px; }
.pairs div { display: flex; justify-content: space-between; gap: 16px; break-inside: avoid; padding: 4px 0;
  border-bottom: 1px solid var(--rule); font-size: 14px; }
.pairs span { color: var(--muted); overflow-wrap: anywhere; }
.pairs b { font-weight: 500; text-align: right; overflow-wrap: anywhere; min-width: 0; }
.worst { display: grid; grid-template-columns: repeat(auto-fill, minmax(104px, 1fr)); gap: 18px 14px; }
figure { margin: 0; font-size: 12.5px; line-height: 1.4; overflow-wrap: anywhere; }
figure img { width: 100%; aspect-ratio: 1; object-fit: contain; image-rendering: pixelated; border-radius: 6px; background: var(--rule); }
figure .said { color: var(--wrong); font-weight: 600; display: block; margin-top: 4px; }
figure .is { display: block; }
figure .sure { display: block; color: var(--muted); }
pre { margin: 0; overflow-x: auto; font-size: 13px;
  white-space: pre-wrap; overflow-wrap: anywhere; }
.key { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 8px; background: var(--key); }
.key.dashed { background: repeating-linear-gradient(90deg, var(--key) 0 4px, transparent 4px 6px) center / 100% 2px no-repeat; }
footer { margin-top: 44px; color: var(--muted); font-size: 13px; }
@media screen and (max-width: 720px) {
  .stack, .stack tbody, .stack tr { display: block; } .stack tr { padding: 9px 0; border-bottom: 1px solid var(--rule); }
  .stack tr:first-child { display: none; } .stack tr:nth-child(2) { padding-top: 0; } .stack tr:last-child { border-bottom: 0; padding-bottom: 0; }
  .stack td, .stack td.n { display: flex; justify-content: space-between; gap: 16px; padding: 2px 0; border: 0; white-space: normal;
    text-align: right; overflow-wrap: anywhere; }
  .stack td:first-child { display: block; min-width: 0; text-align: left; font-weight: 600; } .stack td:empty { display: none; }
  .stack td[data-name]::before { content: attr(data-name); color: var(--muted); text-align: left; overflow-wrap: normal; } }
@media (max-width: 560px) { main { padding: 24px 14px 40px; } h1 { font-size: 22px; } .card, .verdict { padding: 15px 14px; }
  .tiles { grid-template-columns: 1fr 1fr; } .tile { padding: 12px 14px; } .worst { grid-template-columns: repeat(auto-fill, minmax(84px, 1fr)); } }
@media print { :root { --paper: #ffffff; --card: #ffffff; --ink: #000000; --muted: #555555; --rule: #cccccc; --on-pale: #000000;
    --train: #2f6fbb; --validation: #b7710a; --test: #12805f; --wrong: #c23b3b; }
  body { font-size: 11px; print-color-adjust: exact; -webkit-print-color-adjust: exact; } main { max-width: none; padding: 0; }
  .card, .verdict, figure { break-inside: avoid; } h2 { break-after: avoid; margin-top: 22px; }
  .scroll { overflow: visible; } table { font-size: 9px; } th, td, td.n, td.word { white-space: normal; padding-right: 8px; }
  td.n { overflow-wrap: normal; }
  .scroll td:not(.n), .scroll td.name { min-width: 0; } tr { break-inside: avoid; }
  .grid { grid-template-columns: 1fr 1fr; } .flow { columns: 2; } }
)css";
}

}  // namespace tandem::train::report
