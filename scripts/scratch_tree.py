"""A copy of the tree in which commands run as a reader would type them, without network and without harm to the tree itself."""
import os
import pathlib
import shutil
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIMEOUT = 300  # seconds for a command


class ScratchTree:
    """A copy of the tree in which the commands of a page run, with the build in its place."""

    def __init__(self, folder, build):
        self.tree, self.home, self.build = folder / "tree", folder / "home", build
        self.home.mkdir()
        self.is_installed = False
        self.environment = dict(os.environ, HOME=str(self.home), PATH=f"{build / 'apps'}:{os.environ['PATH']}", OMP_NUM_THREADS="1",
                                OMPI_MCA_btl_vader_single_copy_mechanism="none", LC_ALL="C.UTF-8",
                                http_proxy="http://127.0.0.1:9", https_proxy="http://127.0.0.1:9")
        for line in (ROOT / "scripts/mpi.env").read_text().splitlines():
            if line[:1].isupper():
                self.environment.setdefault(*line.split("=", 1))

    def begin(self):
        """The tree as it is, without what an earlier page has left there."""
        shutil.rmtree(self.tree, ignore_errors=True)
        listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
        for file in listed.stdout.split("\0")[:-1]:
            if os.path.lexists(ROOT / file):
                (self.tree / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / file, self.tree / file, follow_symlinks=False)
        (self.tree / "build").mkdir()
        (self.tree / "build/cpu").symlink_to(self.build)

    def install(self):
        """The library in ~/tandem, when it is needed for the first time."""
        if not self.is_installed:
            subprocess.run(["cmake", "--install", self.build, "--prefix", self.home / "tandem"], stdout=subprocess.DEVNULL, check=True)
        self.is_installed = True

    def run(self, command, folder=None):
        """All that is printed, and the exit code; a command that takes too long is killed with its children."""
        if "~/tandem" in command or "$HOME/tandem" in command:
            self.install()
        process = subprocess.Popen(["bash", "-euo", "pipefail", "-c", command], cwd=folder or self.tree, env=self.environment, text=True, errors="replace",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            return process.communicate(timeout=TIMEOUT)[0], process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return process.communicate()[0] + f"takes more than {TIMEOUT} s\n", 124
