"""What scripts/check_snippets.py does with commands and programs of pages that it cannot run as they stand. Each line must be needed by
some page, and each test that is named must be there."""
import fnmatch
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Pages and what tests them. "titled": the blocks that have a file's name above them; "cpp": those of that kind; "all": every block;
# "all but sh": every other one.
TESTED = [
    ("README.md", "cpp", "docs: the README shows examples/train.cpp"),
    ("docs/adding-an-op.md", "titled", "docs: the example of adding an op, on the CPU"),
    ("docs/your-own-program.md", "titled", "docs: a program of your own, by find_package, on one rank and on two"),
    ("docs/modules.md", "titled", "docs: lists of modules, weights of another model, freezing and hooks"),
    ("docs/synchronous-sgd.md", "all", "sgd_lab: guide"),
    ("docs/tutorial/README.md", "all", "docs: tutorial, its programs, answers and commands"),
    ("docs/tutorial/[0-9]*.md", "all but sh", "docs: tutorial, its programs, answers and commands"),
    ("docs/reference/flags.md", "all", "docs: the tables of flags and of the environment"),
]

# Commands that are not run here: a pattern of the command, and why.
ELSEWHERE = [
    (r"^scripts/(run|test|setup|build)\.sh", "it installs packages or builds; .ci/run has it"),
    (r"--preset (simulated|minimal|cuda)", "it builds another preset; .ci/run builds all of them"),
    (r"build/simulated", "it takes preset simulated, which .ci/run builds and tests"),
    (r"cmake --install build/minimal", "it takes preset minimal, which .ci/run builds"),
    (r"&& build/first_tensor$", "it takes the folder of programs that the reader makes; the tutorial's test compiles them"),
    (r"build/cuda/|compare_torch_gpu|--device cuda|spirals cuda|gpu_check\.sh", "it takes a GPU"),
    (r"^srun ", "it takes Slurm"),
    (r"--host |--hostfile|> hosts$", "it takes several hosts; the tests 'hosts: ...' train on network namespaces"),
    (r"docker|apptainer", "it takes a container engine"),
    (r"pip install|offline_bundle|^tandem data", "it takes the network"),
    (r"get_data\.sh", "it takes the network, or files that were fetched"),
    (r"checkpoint_to_pytorch", "it takes PyTorch; tests/parity/ has it"),
    (r"compare_pytorch|compare_torch_conv", "it takes PyTorch and minutes; the test 'scripts: comparison with PyTorch' has it short"),
    (r"--map-by ppr:1:numa", "it takes two NUMA domains"),
    (r"^tensorboard ", "it serves pages until it is stopped"),
    (r"build/debug|portable-shared", "it makes a build of its own, in minutes"),
    (r"build/cpu/tests/tandem_(optim|kernels)_tests(\s|$)(?!-s)", "it runs whole programs of tests; scripts/test.sh runs them"),
    (r"--optimizer lion", "it takes the optimizer that the reader has written"),
]

# What is made shorter before a command runs, or lets it run without network: a pattern, and what stands in its place.
TRAINING = r"(tandem train|cifar_train)(?= )"
SHORTER = [
    (rf"{TRAINING}(?![^&;|]*--dataset)", r"\1 --dataset synthetic"),
    (rf"{TRAINING}(?![^&;|]*--limit-train)", r"\1 --limit-train 256 --limit-test 128"),
    (r"--dataset (cifar10|fashion-mnist)", "--dataset synthetic"),
    (r"--epochs \d+", "--epochs 1"),
    (r"--steps \d+", "--steps 4"),
    (r"--batch \d+", "--batch 1"),
    (r"(conv_bench)(?= )(?![^&;|]*--groups)", r"\1 --groups 1"),
    (r"--max-bytes \d+", "--max-bytes 262144"),
    (r"study (run|all)\b", r"study \1 --plan --dataset synthetic"),
    (r"cmake --preset cpu && ", ""),
    (r"cmake --build --preset cpu( --target)?", "ninja -C build/cpu -n"),
]


class Rules:
    """The tables above for a build with these tests, and which of their lines were needed."""

    def __init__(self, tests):
        self.tests, self.needed, self.problems = tests, set(), []

    def need(self, table, line):
        self.needed.add((table, line))

    def tested(self, block):
        """The test that has this block, if there is one."""
        for line in TESTED:
            pattern, which, test = line
            if fnmatch.fnmatch(block.page, pattern) and (
                    which in ("all", block.kind) or which == "titled" and block.title or which == "all but sh" and block.kind != "sh"):
                self.need("TESTED", line)
                return self.known(test, block.place)
        return None

    def known(self, test, place):
        if test not in self.tests and not (test.startswith("tests/") and (ROOT / test).is_file()):
            self.problems.append(f"{place}: there is no test '{test}'")
        return test

    def elsewhere(self, command):
        """Why a command is not run, or None."""
        for line in ELSEWHERE:
            pattern, reason = line
            if re.search(pattern, command, re.MULTILINE):
                self.need("ELSEWHERE", line)
                for test in re.findall(r"the test '([^']+)'", reason):
                    self.known(test, "scripts/snippet_rules.py")
                return reason
        return None

    def shortened(self, command):
        for line in SHORTER:
            pattern, replacement = line
            changed = re.sub(pattern, replacement, command, flags=re.MULTILINE)
            if changed != command:
                self.need("SHORTER", line)
                command = changed
        return command

    def idle(self):
        """The lines that nothing needed."""
        for table in ("TESTED", "ELSEWHERE", "SHORTER"):
            for line in globals()[table]:
                if (table, line) not in self.needed:
                    yield f"scripts/snippet_rules.py: no page needs the line of {table} with '{line[0]}'"
