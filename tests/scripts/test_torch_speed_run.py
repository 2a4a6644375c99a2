"""What scripts/torch_speed_run.py says of wrong files and options, and how long it trains, on a few images.

usage: test_torch_speed_run.py SCRIPTS; exit code 77 where there is no PyTorch
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import torch  # noqa: F401
except ImportError as error:
    print(f"skipped: {sys.executable} cannot import torch ({error}); install python3-torch")
    sys.exit(77)

SCRIPT = Path(sys.argv.pop(1)).resolve() / "torch_speed_run.py"
IMAGE = 3073


class TorchSpeedRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.data = Path(folder.name)
        for number in range(1, 6):  # a batch of 1024 and one image more
            self.write(f"data_batch_{number}.bin", 205)
        self.write("test_batch.bin", 8)

    def write(self, name, images):
        records = bytearray((7 * i + len(name)) * (i % 11) % 256 for i in range(images * IMAGE))
        for image in range(images):
            records[image * IMAGE] = image % 10
        (self.data / name).write_bytes(records)

    def start(self, *arguments):
        command = [sys.executable, SCRIPT, "--data", self.data, "--width", "0.05", "--threads", "1", "--quiet", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def refused(self, text, *arguments):
        done = self.start(*arguments)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        self.assertIn(text, done.stderr)

    def test_no_step_is_behind_the_end(self):
        figures = self.data / "figures.json"
        for asked, taken in ((1, 1), (9, 2)):
            done = self.start("--epochs", "2", "--steps", str(asked), "--json", figures)
            self.assertEqual(done.returncode, 0, done.stderr)
            (result,) = json.loads(figures.read_text())["runs"]
            self.assertEqual((result["steps"], len(result["losses"])), (taken, taken))
            self.assertGreater(min(result[name] for name in ("whitening_seconds", "train_seconds")), 0)
            self.assertGreater(result["seconds"], result["train_seconds"])
            self.assertAlmostEqual(result["published_seconds"], result["seconds"] + result["whitening_seconds"])

    def test_a_python_without_torch(self):
        done = subprocess.run([sys.executable, "-S", SCRIPT], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        self.assertIn("cannot import PyTorch and NumPy", done.stderr)

    def test_bad_files(self):
        for number in range(1, 6):
            self.write(f"data_batch_{number}.bin", 8)
        self.refused("40 training images do not fill a batch of 2000", "--recipe", "muon")
        (self.data / "data_batch_3.bin").write_bytes(b"1" * 5000)
        self.refused("data_batch_3.bin: 5000 bytes are no whole number of images of 3073")
        (self.data / "data_batch_3.bin").unlink()
        self.refused("data_batch_3.bin: No such file or directory")
        (self.data / "data_batch_1.bin").unlink()
        self.refused("there is no data_batch_1.bin; scripts/get_data.sh fetches CIFAR-10")


if __name__ == "__main__":
    unittest.main()
