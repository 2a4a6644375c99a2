#!/usr/bin/env python3
"""`tandem` as people use it: check_tandem.py CASE PROGRAMS; PROGRAMS is the folder of the programs."""
import json
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile

from run_case import environment, mpirun
from terminal import open_terminal, parts_of

PROGRAMS = os.path.realpath(sys.argv[2])
TANDEM = os.path.join(PROGRAMS, "tandem")
SMALL = ("--device cpu --threads 1 --dataset synthetic --limit-train 32 --limit-test 16 --global-batch-size 16 --model mnist_cnn "
         "--layers 1 --epochs 1 --progress none")


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def run(command, code=0, **changes):
    values = dict(environment(), PATH=PROGRAMS + os.pathsep + os.environ["PATH"])
    for name, value in changes.items():
        if value is None:
            values.pop(name, None)
        else:
            values[name] = value
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                          env=values, timeout=200)
    check(done.returncode == code, f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done


# --- Completion: each script is sourced by its shell, which is then asked what follows a line -------------------------------

BASH = """source <(tandem completion bash)
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
words=($(complete -p "${COMP_WORDS[0]##*/}")) || exit 3
while [ "${words[0]}" != -F ]; do words=("${words[@]:1}"); done
"${words[1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
ZSH = """autoload -Uz compinit && compinit -u -D
source <(tandem completion zsh)
compadd() { [[ $1 == -- ]] && shift; print -rl -- "$@"; }
_files() { print files; }
words=("$@") CURRENT=$#
${_comps[${1:t}]:?no completion for it}
"""
FISH = "tandem completion fish | source\ncomplete -C $argv[1]\n"


def asked(shell, words):
    """What the shell completes the last of `words` to."""
    if shell == "fish":
        done = run(["fish", "--no-config", "-c", FISH, " ".join(words)])
        return [line.split("\t")[0] for line in done.stdout.splitlines()]
    script, options = (BASH, ["--norc", "--noprofile"]) if shell == "bash" else (ZSH, ["-f"])
    return run([shell, *options, "-c", script, shell, *words]).stdout.split()


def completion(shell):
    if shutil.which(shell) is None:
        print(f"skipped: there is no {shell}")
        sys.exit(77)
    for words, expected in ((["tandem", "tr"], ["train"]), (["tandem", "bench"], ["bench-comm", "bench-conv", "bench-train"]),
                            (["tandem", "train", "--schedule", "co"], ["constant", "cosine"]),
                            (["cifar_train", "--schedule", "co"], ["constant", "cosine"]),
                            (["tandem", "doctor", "--js"], ["--json"]), (["tandem_doctor", "--js"], ["--json"]),
                            (["conv_bench", "--no-in"], ["--no-input-gradient"])):
        found = asked(shell, words)
        check(sorted(found) == expected, f"{shell}: {words} is completed to {found}, not {expected}")
    # By a path, and with "=", which bash takes for a word.
    if shell == "bash":
        for words, expected in (([TANDEM, "tr"], ["train"]), ([os.path.join(PROGRAMS, "cifar_train"), "--epo"], ["--epochs"]),
                                (["tandem", "train", "--schedule", "=", "co"], ["cosine", "constant"]),
                                (["tandem", "train", "--model", "="], None)):
            found = asked(shell, words)
            check(sorted(found) == sorted(expected) if expected else "vgg_lite" in found, f"{words}: {found}")


# --- Commands -----------------------------------------------------------------------------------------------------------------


def at_terminal(command, columns):
    """What a command shows on a terminal of so many columns."""
    terminal, end = open_terminal(columns)
    process = subprocess.Popen(command, stdin=end, stdout=end, stderr=end, env=environment(), start_new_session=True)
    os.close(end)
    text = b"".join(parts_of(terminal))
    check(process.wait(timeout=100) == 0, f"{command}: exit code {process.returncode}\n{text}")
    return text.decode().replace("\r\n", "\n")


def help_pages():
    """Each command's help is as wide as the terminal, and calls the program what its user calls it."""
    commands = {"train": "cifar_train", "report": "tandem_report", "predict": "tandem_predict", "bench-conv": "conv_bench",
                "bench-train": "train_bench", "bench-comm": "allreduce_bench", "lab": "sgd_lab", "study": "study",
                "doctor": "tandem_doctor", "devices": "device_query"}
    for command, program in commands.items():
        if not os.path.exists(os.path.join(PROGRAMS, program)):
            continue
        for columns in (40, 80, 200):
            for words in ([TANDEM, command, "--help"], [TANDEM, "help", command]):
                text = at_terminal(words, columns)
                wide = [line for line in text.splitlines() if len(line) > min(columns, 80)]
                check(not wide, f"{words} at {columns} columns: {wide}")
                check(f"Usage: tandem {command} [" in text and (program == command or program not in text), f"{words}: {text}")
        own = run([os.path.join(PROGRAMS, program), "--help"]).stdout
        check(f"Usage: {program} [" in own and max(map(len, own.splitlines())) <= 80, own)
        check(max(map(len, run([TANDEM, command, "--help"], COLUMNS="40").stdout.splitlines())) <= 40, f"{command}: COLUMNS")
    check("tandem train (Tandem) " in run([TANDEM, "train", "--version"]).stdout, "--version")
    check("tandem report RUN..." in run([TANDEM, "report"], code=2).stderr, "tandem report")
    run([TANDEM, "train", *SMALL.split(), "--run-dir", "run"])
    with open("run/environment.json") as file:
        check(json.load(file)["command"][:3] == [TANDEM, "train", "--device"], "the command line of environment.json")
    for columns in (40, 80):
        wide = [line for line in at_terminal([TANDEM, "help"], columns).splitlines() if len(line) > columns]
        check(not wide, f"tandem help at {columns} columns: {wide}")


def data():
    """`tandem data` puts files where the other commands look for them."""
    names = [f"data_batch_{number}.bin" for number in range(1, 6)] + ["test_batch.bin"]
    os.mkdir("cifar-10-batches-bin")
    for name in names:
        with open(os.path.join("cifar-10-batches-bin", name), "w") as file:
            file.write(f"what {name} holds\n")
    with tarfile.open("c10.tar.gz", "w:gz") as archive:
        archive.add("cifar-10-batches-bin")
    refused = run([TANDEM, "data", "cifar10", "--from", "c10.tar.gz"], code=1).stderr
    check("c10.tar.gz: checksum is " in refused and not os.path.exists("datasets/cifar10"), refused)
    run([TANDEM, "data", "cifar10", "--from", "c10.tar.gz", "--no-verify"])
    for name in names:
        with open(os.path.join("datasets", "cifar10", name)) as file:
            check(file.read() == f"what {name} holds\n", f"{name} is not what the archive holds")
    error = run([TANDEM, "train", "--no-run-dir", "--device", "cpu"], code=2).stderr
    check("datasets/cifar10/data_batch_1.bin: truncated" in error, error)  # it is the folder that training takes


def ranks():
    """mpirun starts `tandem train` on several ranks."""
    done = run([*mpirun(), "-np", "2", TANDEM, "train", *SMALL.split(), "--run-dir", "run"])
    check("ranks    2 x 1 thread" in done.stdout and "test accuracy" in done.stdout, done.stdout)
    check(done.stdout.count("test accuracy") == 1, f"more than one rank reports: {done.stdout}")
    check(os.path.isfile("run/final.safetensors") and os.path.isfile("run/report.html"), os.listdir("run"))
    error = run([*mpirun(), "-np", "2", TANDEM, "train", "--lr", "fast"], code=2).stderr
    check(error.count("error: ") == 1 and "--lr 'fast'" in error, error)


def findings(code, *arguments, **changes):
    done = run([TANDEM, "doctor", "--json", *arguments], code, **changes)
    answer = json.loads(done.stdout)
    check(answer["faults"] == sum(entry["state"] == "fault" for entry in answer["findings"]), done.stdout)
    for entry in answer["findings"]:
        check(entry["state"] == "ok" or entry.get("remedy"), f"no remedy: {entry}")
        check(set(entry) <= {"state", "subject", "what", "remedy"}, entry)
    return {entry["subject"]: entry for entry in answer["findings"]}


def script(name, text):
    with open(name, "w") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(name, os.stat(name).st_mode | stat.S_IXUSR)
    return os.path.abspath(name)


def doctor():
    """`tandem doctor` finds what is planted, and nothing where all is well."""
    found = findings(0)
    has_mpi = "TANDEM_MPIEXEC" in os.environ
    gpu = "cuda:0" if "cuda:0" in found else "GPU"  # which says that there is none
    for subject in ("build", "oneDNN", "MPI", "libpng", gpu, "threads", "memory", "disk", "runs/", "/dev/shm"):
        check(subject in found and found[subject]["state"] != "fault", f"{subject}: {found.get(subject)}")
    text = run([TANDEM, "doctor"]).stdout
    check("no faults" in text.splitlines()[-1] and "ok     build" in text, text)

    if has_mpi:
        check("2 ranks started and summed up" in found["ranks"]["what"], found["ranks"])
        broken = {
            "exit 3": ("failed (exit code 3): nothing was printed", "docs/launching.md"),
            "echo; echo There are not enough slots >&2; exit 1": ("There are not enough slots", "--oversubscribe"),
            "exec $3 --rank-of-doctor": ("failed (exit code 2)", "right one first on the PATH"),  # no rank of anything
            "echo doctor: all is well; exit 1": ("failed (exit code 1)", ""),
            "echo all is well": ("failed (exit code 0)", ""),
        }
        for text, (what, remedy) in broken.items():
            found = findings(1, "--mpirun", script("launcher", text + "\n"))["ranks"]
            check(found["state"] == "fault" and what in found["what"] and remedy in found["remedy"], f"{text}: {found}")
        found = findings(1, "--mpirun", "no-such-launcher")["ranks"]
        check("cannot run no-such-launcher" in found["what"] and "openmpi-bin" in found["remedy"], found)
    else:
        check("ranks" not in found, found)

    # Threads, folders, data, tuning files.
    found = findings(0, OMP_NUM_THREADS="4000")["threads"]
    check(found["state"] == "note" and "OMP_NUM_THREADS" in found["remedy"], found)
    found = findings(0, OMP_NUM_THREADS="many")["OMP_NUM_THREADS"]
    check(found["state"] == "note" and "'many'" in found["what"], found)
    with open("runs", "w"):
        pass
    found = findings(1)["runs/"]
    check(found["state"] == "fault" and "--run-dir" in found["remedy"], found)
    os.remove("runs")
    os.makedirs("datasets/mnist")
    found = findings(1)["data mnist"]
    check(found["state"] == "fault" and "tandem data mnist --force" in found["remedy"], found)
    shutil.rmtree("datasets")
    with open("other.json", "w") as file:
        json.dump({"what": "no tuning file"}, file)
    with open("theirs.json", "w") as file:
        json.dump({"format": "tandem convolution tuning", "version": 2, "machine": "another", "passes": []}, file)
    found = findings(0)["tuning"]
    check(found["state"] == "note" and "theirs.json: ignored: measured on another" in found["what"], found)
    run([TANDEM, "train", "--no-run-dir", *SMALL.split(), "--autotune", "--tuning-file", "theirs.json"])
    check(findings(0, OMP_NUM_THREADS="1")["tuning"]["state"] == "ok", "what was measured here is not of this machine")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="tandem_check_") as folder:
        os.chdir(folder)
        case = sys.argv[1]
        completion(case) if case in ("bash", "zsh", "fish") else {"data": data, "help": help_pages, "ranks": ranks, "doctor": doctor}[case]()
        os.chdir("/")
