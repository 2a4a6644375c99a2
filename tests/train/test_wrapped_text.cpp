// Lines at terminals of several widths.
#include "tandem/train/wrapped_text.h"

#include "tests/support/catch.h"

using tandem::train::wrapped;
using tandem::train::wrapped_command;

TEST_CASE("lines that fit stay, and what is wider goes on below its text") {
  const std::string header = "Tandem 0.1.0 on vm\n  data     fashion-mnist, 60,000 images for training\n";
  CHECK(wrapped(header, 0) == header);
  CHECK(wrapped(header, 80) == header);
  CHECK(wrapped(header, 52) == header);
  CHECK(wrapped(header, 51) ==
        "Tandem 0.1.0 on vm\n  data     fashion-mnist, 60,000 images for\n           training\n");
  CHECK(wrapped("  data     a b\n", 10) == "  data     a\n  b\n");  // no room below the text
  CHECK(wrapped("", 40).empty());
  CHECK(wrapped("no line end, and\nnone", 12) == "no line end,\n  and\nnone");
}

TEST_CASE("lines are broken at gaps, and words stay whole") {
  CHECK(wrapped("epoch 1/3  loss 0.5 acc 82.4%  test loss 0.3 acc 87.8%   10s\n", 40) ==
        "epoch 1/3  loss 0.5 acc 82.4%\n  test loss 0.3 acc 87.8%   10s\n");
  CHECK(wrapped("  report   /a/path/that/is/long/report.html and more words\n", 30) ==
        "  report   /a/path/that/is/long/report.html\n           and more words\n");
  CHECK(wrapped("  kept in  /a/path/that/is/long/of/a/run\n", 20) == "  kept in  /a/path/that/is/long/of/a/run\n");
  CHECK(wrapped("a \xc3\xa4\xc3\xa4\xc3\xa4 b", 7) == "a \xc3\xa4\xc3\xa4\xc3\xa4 b");  // of 7 columns, not 10
}

TEST_CASE("what is for a shell can be copied to it") {
  CHECK(wrapped("  --resume auto --run-dir runs/a --config runs/a/config.toml\n", 40) ==
        "  --resume auto --run-dir runs/a \\\n    --config runs/a/config.toml\n");
  CHECK(wrapped_command("  tandem train --epochs 3 --lr 0.1", 30) == "  tandem train --epochs 3 \\\n    --lr 0.1");
  CHECK(wrapped_command("a --b 'c --d' --e", 8) == "a \\\n  --b 'c --d' \\\n  --e");
  CHECK(wrapped_command("a --b 'c'\\'' --d' --e", 8) == "a \\\n  --b 'c'\\'' --d' \\\n  --e");
  CHECK(wrapped_command("a --it's --b", 8) == "a \\\n  --it's \\\n  --b");
  CHECK(wrapped_command("  tandem train --epochs 3", 0) == "  tandem train --epochs 3");
}
