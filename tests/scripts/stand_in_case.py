"""What tests of scripts that start cifar_train have in common: a folder, and a program in its place."""

import stat
import tempfile
import unittest
from pathlib import Path


class StandInCase(unittest.TestCase):
    stand_in_text = ""  # of a program

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.stand_in = self.folder / "cifar_train"
        self.stand_in.write_text(self.stand_in_text)
        self.stand_in.chmod(self.stand_in.stat().st_mode | stat.S_IXUSR)
        self.out = self.folder / "runs"
