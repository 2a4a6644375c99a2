"""Programs that take turns: processes that time something on request, one of them at a time, while the others sleep."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from command_line import complain

SETTLE_SECONDS = 0.15  # after a turn, until the last thread of that process is asleep

# How a process's memory comes and goes. As "default" has it, glibc maps large blocks anew for each tensor, so that the
# kernel fills pages with zeros in every step; "kept", glibc takes them from what it has, and gives nothing back.
MEMORY = {
    "default": {},
    "kept": {"MALLOC_MMAP_THRESHOLD_": str(2**32), "MALLOC_TRIM_THRESHOLD_": str(2**34)},
}


class Party:
    """A process that answers each line on its standard input by one line of JSON, after a first one as a greeting."""

    def __init__(self, command, environment, first_line=None):
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
            )
        except OSError as error:
            complain(f"{command[0]}: {error.strerror}")
        self.greeting = self.answer() if first_line is None else self.request(first_line)

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            if code == 2:
                sys.exit(2)  # it has said why
            complain(f"{self.process.args[0]} ended with {code}", code=1)
        try:
            return json.loads(line)
        except ValueError:
            self.process.kill()
            complain(f"{self.process.args[0]}: answered '{line.strip()}', which is no JSON: is it the right program?")

    def request(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended: answer() says how
        return self.answer()

    def peak_memory(self):
        """The largest resident set so far, in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def quit(self):
        self.process.stdin.write("quit\n")
        self.process.stdin.close()
        self.process.wait()


class Turns:
    """Lets one of some parties work while the others should not, and notes where they did."""

    def __init__(self, parties):
        self.parties = parties
        self.intruder = {name: 0.0 for name in parties}

    def take(self, name, line):
        """The answer, and the seconds of processor time that the party took for it."""
        before = {other: party.cpu_seconds() for other, party in self.parties.items()}
        start = time.perf_counter()
        answer = self.parties[name].request(line)
        elapsed = time.perf_counter() - start
        used = {other: party.cpu_seconds() - before[other] for other, party in self.parties.items()}
        own = used.pop(name)
        for other, seconds in used.items():
            # Processor time is counted in hundredths of a second.
            self.intruder[other] = max(self.intruder[other], (seconds - 0.02) / max(elapsed, 0.1))
        time.sleep(SETTLE_SECONDS)
        return answer, own

    def complain(self):
        for name, share in self.intruder.items():
            if share > 0.05:
                print(
                    f"warning: {name} used {100 * share:.0f} % of a core while it should have waited", file=sys.stderr
                )


def add_torch_memory(parser):
    parser.add_argument(
        "--torch-memory",
        choices=list(MEMORY),
        default="kept",
        help="of PyTorch's process; kept: settings of glibc by which it gives none back (default), else default",
    )


def environment_for(threads, memory="default"):
    """`memory`: a key of MEMORY."""
    return {**os.environ, **MEMORY[memory], "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}


