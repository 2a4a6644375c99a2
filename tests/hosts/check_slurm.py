#!/usr/bin/env python3
"""Training under srun, on two hosts of a Slurm cluster of this machine (slurm.py).

usage: check_slurm.py MPIRUN FOLDER_OF_THE_PROGRAMS
Exit code 77, and the reason, where there is no Slurm, or no namespaces.
"""
import argparse
import hashlib
import pathlib
import signal
import subprocess
import sys
import time

from check_hosts import SMALL, limited, require, require_empty, run
from hosts import Hosts, enter_own_namespaces
from slurm import Slurm, need_daemons


def trains(slurm, programs):
    """Two hosts with two ranks each, by PMIx, have the bits of one rank alone."""
    folder = pathlib.Path(slurm.hosts.folder.name)
    train = [programs / "cifar_train", *SMALL, "--limit-train", "256", "--epochs", "2", "--check-replicas", "--canonical", "4"]
    digests = []
    for name, words in (("srun", slurm.srun(2, "--mpi=pmix")), ("alone", ())):
        weights = folder / f"{name}.safetensors"
        code, output = run([*words, *train, "--save-weights", weights], slurm.environment)
        require(code == 0, f"{name}: training ended with {code}", output + slurm.logs())
        require(name == "alone" or "ranks    4 x 1 thread" in output, "not all ranks were one run", output)
        digests.append(hashlib.sha256(weights.read_bytes()).hexdigest())
    require(digests[0] == digests[1], "weights differ from those of one rank", "")
    print("srun --mpi=pmix, 2 hosts x 2 ranks: the bits of one rank alone", flush=True)


def is_refused_without_pmi(slurm, programs):
    """Tasks that cannot find each other would be runs of their own."""
    code, output = run([*slurm.srun(1, "--mpi=none"), programs / "cifar_train", *SMALL, "--epochs", "1"], slurm.environment)
    require(code == 2 and "started by srun as 2 tasks without PMI" in output and "srun --mpi=pmix" in output,
            f"--mpi=none ended with {code}", output)
    print("srun --mpi=none: refused", flush=True)


def stops_by_signal(slurm, programs):
    """What scancel, or the end of a job's time, sends ends in a checkpoint from which the run goes on."""
    folder = pathlib.Path(slurm.hosts.folder.name)
    train = [programs / "cifar_train", *(word for word in SMALL if word != "--no-run-dir"), "--limit-train", "20000", "--epochs", "99",
             "--run-dir", folder / "run", "--log", folder / "log.jsonl", "--log-every", "1"]
    command = limited([*slurm.srun(1, "--mpi=pmix", "--job-name=train"), *train])
    with subprocess.Popen(command, env=slurm.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        end = time.monotonic() + 60
        log = folder / "log.jsonl"
        while not (log.exists() and log.read_text(encoding="utf-8").count('"step"') > 3) and time.monotonic() < end:
            time.sleep(0.1)
        subprocess.run([*slurm.hosts.on(0), "scancel", "--name=train", "--signal=TERM"], env=slurm.environment, check=True)
        output = process.communicate()[0]
    checkpoints = list((folder / "run" / "checkpoints").glob("*"))
    require(process.returncode in (0, 128 + signal.SIGTERM) and checkpoints, f"SIGTERM ended in {process.returncode}", output + slurm.logs())
    print(f"scancel --signal=TERM: exit code {process.returncode}, a checkpoint is there", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mpirun")
    parser.add_argument("programs", type=pathlib.Path)
    args = parser.parse_args()
    need_daemons()
    enter_own_namespaces(args.mpirun)
    with Hosts(2, args.mpirun) as hosts:
        with Slurm(hosts) as slurm:
            for case in (trains, is_refused_without_pmi, stops_by_signal):
                case(slurm, args.programs)
                slurm.wait_until_idle()
        require_empty(hosts)


if __name__ == "__main__":
    sys.exit(main())
