#!/usr/bin/env python3
"""Runs on two and three hosts, which are network namespaces of this machine (hosts.py), with real mpirun between them.

usage: check_hosts.py MPIRUN FOLDER_OF_THE_PROGRAMS CASE... [--backend B]
Exit code 77, and the reason, where this machine allows no namespaces.
"""
import argparse
import csv
import hashlib
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time

from hosts import Hosts, call, enter_own_namespaces

DEADLINE = 4  # seconds: of a wait
SLACK = 10  # seconds: for launcher and machine
LONGEST = 120
# Of Open MPI's launcher: seconds of silence before it asks whether a host is there, seconds between questions, questions.
KEEP_ALIVE = [word for name, value in (("time", 1), ("intvl", 1), ("probes", 1))
              for word in ("--mca", f"oob_tcp_keepalive_{name}", str(value))]
SMALL = ["--no-run-dir", "--dataset", "synthetic", "--model", "small_cnn", "--limit-test", "64", "--threads", "1", "--progress",
         "none"]


def limited(command, seconds=LONGEST):
    return ["timeout", "-k", "5", str(seconds), *map(str, command)]


def run(command, environment=None):
    """Exit code and output, with errors in it."""
    result = subprocess.run(limited(command), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            check=False)
    return result.returncode, result.stdout


def require(condition, what, output):
    if not condition:
        sys.exit(f"check_hosts: {what}\n{output}")


def require_empty(hosts, seconds=3):
    left = hosts.left_over(seconds)
    require(not left, f"{len(left)} processes are left on the hosts", "\n".join(left))


def train_on(count, ranks, args):
    """Weights in canonical mode have the same bits on any number of ranks, if and only if all messages are right."""
    with Hosts(count, args.mpirun) as hosts:
        canonical = ["--canonical", "4"] if count * ranks in (2, 4) else []
        train = [args.programs / "cifar_train", *SMALL, "--limit-train", "256", "--epochs", "2", "--check-replicas", *canonical]
        weights = pathlib.Path(hosts.folder.name, "hosts.safetensors")
        code, output = run([*hosts.launch(ranks), *train, "--backend", args.backend, "--save-weights", weights])
        require(code == 0, f"training on {count} x {ranks} ranks ended with {code}", output)
        require(f"ranks    {count * ranks} x 1 thread" in output, "not all ranks were one run", output)
        require(args.backend != "native" or "by-cost" in output, "ranks of several hosts do not send messages", output)
        if canonical:
            alone = pathlib.Path(hosts.folder.name, "alone.safetensors")
            code, text = run([*train, "--backend", "self", "--save-weights", alone])
            require(code == 0, "training on one rank", text)
            digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (weights, alone)]
            require(digests[0] == digests[1], "weights differ from those of one rank", output)
        require_empty(hosts)
        print(f"{count} hosts x {ranks}, {args.backend}: replicas are equal" +
              (", and have the bits of one rank alone" if canonical else ""), flush=True)


def trains(args):
    for count, ranks in ((2, 1), (2, 2), (3, 1), (3, 2)):
        train_on(count, ranks, args)


def trains_quickly(args):
    train_on(2, 1, args)


def bench(hosts, ranks, folder, *words, launch=()):
    """Rows of allreduce_bench, all of which must be right."""
    table = pathlib.Path(hosts.folder.name, "rows.csv")
    code, output = run([*hosts.launch(ranks, *launch), folder / "allreduce_bench", *words, "--csv", table])
    require(code == 0, f"allreduce_bench ended with {code}", output)
    print(output, flush=True)
    with open(table, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    require(rows, "no rows", output)
    return rows


def adds_up(args):
    """Two-level against flat: the results must be right; the times are printed."""
    with Hosts(2, args.mpirun) as hosts:
        rows = bench(hosts, 2, args.programs, "--backends", "mpi,native", "--algorithms", "ring,two-level,by-cost", "--min-bytes",
                     "256", "--max-bytes", "4194304", "--factor", "128", "--rounds", args.rounds)
        names = {row["backend"] for row in rows}
        require(len(names) == 5, f"not five contenders: {sorted(names)}", "")
        require(all(row["wrong"] == "0" for row in rows), "wrong sums", rows)
        require_empty(hosts)


def shaped(args):
    """All-reduce of 4 MiB where each host sends 200 Mbit/s, with Open MPI's choice and with each of its algorithms: native takes at
    most 1.1 times as long as the best of them, and 1.15 times as long as the bytes take."""
    size, rate = 4 << 20, 200e6 / 8
    times = {}
    with Hosts(2, args.mpirun) as hosts:
        # A burst of less than what the link passes on between two ticks of the kernel's clock would make it slower than it says; a
        # queue that drops packets would measure TCP.
        hosts.shape("tbf", "rate", "200mbit", "burst", "256kb", "latency", "2s")
        for algorithm in range(7):  # 0: its own choice; then linear, by a tree, recursive doubling, ring, segmented ring, Rabenseifner's
            launch = [word for name, value in (("use_dynamic_rules", 1), ("allreduce_algorithm", algorithm))
                      for word in ("--mca", f"coll_tuned_{name}", str(value))]
            rows = bench(hosts, 1, args.programs, "--backends", "mpi,native", "--min-bytes", size, "--max-bytes", size,
                         "--rounds", args.rounds, launch=launch if algorithm else ())
            require(all(row["wrong"] == "0" for row in rows), "wrong sums", rows)
            for row in rows:
                times.setdefault(row["backend"], []).append(float(row["in_place_seconds"]))
        require_empty(hosts)
    ours, best, bytes_take = statistics.median(times["native"]), min(times["mpi"]), size / rate
    print(f"200 Mbit/s, 4 MiB in place: native {1e3 * ours:.0f} ms (median of {len(times['native'])} runs), Open MPI at best "
          f"{1e3 * best:.0f} ms, the bytes alone {1e3 * bytes_take:.0f} ms", flush=True)
    require(ours < 1.1 * best and ours < 1.15 * bytes_take, "native is slower than that", times)


def begin_training(hosts, ranks, args, *options):
    """A run that would take minutes, in the midst of its first epoch; and the file that it writes to."""
    log, output = (pathlib.Path(hosts.folder.name, name) for name in ("log.jsonl", "output.txt"))
    command = [*hosts.launch(ranks, *options), args.programs / "cifar_train", *SMALL, "--limit-train", "20000", "--epochs", "99",
               "--backend", args.backend, "--comm-timeout", DEADLINE, "--log-every", "1", "--log", log]
    with open(output, "w", encoding="utf-8") as file:  # no pipe, which what is left over would hold open
        process = subprocess.Popen(limited(command, LONGEST), stdout=file, stderr=subprocess.STDOUT)
    end = time.monotonic() + 60
    while not (log.exists() and log.read_text().count("\n") > 10):
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            sys.exit(f"check_hosts: training did not begin\n{output.read_text()}")
        time.sleep(0.05)
    return process, output


def seconds_until(is_so, limit):
    begin = time.monotonic()
    while not is_so() and time.monotonic() - begin < limit:
        time.sleep(0.05)
    return time.monotonic() - begin


def cut(args):
    """The cable of the last host is taken out in the midst of an epoch. The ranks notice at their deadline."""
    for count, ranks in ((2, 1), (2, 2), (3, 1)):
        with Hosts(count, args.mpirun) as hosts:
            process, output = begin_training(hosts, ranks, args)
            hosts.cut(count - 1)
            far = (count - 1) * ranks
            named = re.compile(rf"error: rank 0: .*rank \d+ \(host {hosts.names[-1]}, pid \d+\)|"
                               rf"error: rank 0: (.*\n)+? +nor does rank {far} \(host {hosts.names[-1]}, pid \d+\)")
            told = seconds_until(lambda: named.search(output.read_text()), DEADLINE + SLACK)
            require(named.search(output.read_text()), "rank 0 does not name a rank of the host that was cut off", output.read_text())
            heard = re.compile(rf"host {hosts.names[-1]} has not been heard of for \d+\.\d s")
            require(heard.search(output.read_text()), "it is not told that the host is silent", output.read_text())
            ended = told + seconds_until(lambda: not hosts.running(str(args.programs / "cifar_train")), SLACK)
            require(not hosts.running(str(args.programs / "cifar_train")), f"ranks still run after {ended:.1f} s", output.read_text())
            # Open MPI's own processes wait for the network: for mpirun there is `timeout -k`, for its daemons a network.
            process.terminate()
            process.wait()
            require(process.returncode != 0, "exit code 0", output.read_text())
            hosts.mend(count - 1)
            require_empty(hosts, 30)
            print(f"{count} hosts x {ranks}, {args.backend}: named after {told:.1f} s, all ranks ended after {ended:.1f} s", flush=True)


def cut_noticed_by_mpirun(args):
    """The same, where mpirun asks for its hosts more often than the ranks' deadline: all ends by itself."""
    with Hosts(3, args.mpirun) as hosts:
        process, output = begin_training(hosts, 1, args, *KEEP_ALIVE)
        hosts.cut(2)
        took = seconds_until(lambda: process.poll() is not None, DEADLINE + SLACK)
        require(process.poll() not in (None, 0), f"exit code {process.returncode} after {took:.1f} s", output.read_text())
        require("lost communication with a remote daemon" in output.read_text() and hosts.addresses[2] in output.read_text(),
                "mpirun does not name the host", output.read_text())
        require_empty(hosts, SLACK)
        print(f"{args.backend}: mpirun ended after {took:.1f} s, and nothing is left on any host", flush=True)


def launcher_killed(args):
    """SIGKILL of mpirun: nothing may go on, on any host."""
    with Hosts(2, args.mpirun) as hosts:
        process, _ = begin_training(hosts, 1, args)
        launchers = subprocess.run(["pgrep", "-x", pathlib.Path(args.mpirun).name + "|orterun"], capture_output=True, text=True,
                                   check=False).stdout.split()
        require(launchers, "no mpirun is found", "")
        for launcher in launchers:
            os.kill(int(launcher), signal.SIGKILL)
        begin = time.monotonic()
        require_empty(hosts, DEADLINE + SLACK)
        took = time.monotonic() - begin
        for i, name in enumerate(hosts.names):
            files = subprocess.run([*hosts.on(i), "ls", "-A", "/dev/shm"], capture_output=True, text=True, check=True).stdout.split()
            # Open MPI leaves its own then, as docs/comm/doctor.md tells.
            ours = [file for file in files if not file.startswith("vader_segment.")]
            require(not ours, f"files are left in /dev/shm of host {name}", ours)
        print(f"{args.backend}: nothing is left {took:.1f} s after mpirun was killed", flush=True)
        process.wait()


def uses_interface(args):
    """Hosts with two networks: messages go over the one that --iface names, whatever mpirun was told."""
    wishes = (("eth1", "eth1"), ("10.99.0.0/24", "eth1"), ("10.88.0.1", "eth0"))
    with Hosts(2, args.mpirun, networks=2) as hosts:
        for backend in ("native", "mpi", "gloo"):
            for wish, interface in wishes if backend == "native" else wishes[:1]:
                before = hosts.sent(0)
                bench(hosts, 1, args.programs, "--backends", backend, "--min-bytes", "1048576", "--max-bytes", "1048576",
                      "--rounds", "3", "--iface", wish)
                sent = {name: after - before[name] for name, after in hosts.sent(0).items()}
                other = "eth0" if interface == "eth1" else "eth1"
                require(sent[interface] > 3e6 and sent[other] < 1e6, f"{backend} --iface {wish}: wrong network", sent)
                print(f"{backend} --iface {wish}: {sent}", flush=True)
        require_empty(hosts)


def refuses_interface(args):
    """One clear line of each host where the network interface is wrong, and exit code 2."""
    program = [args.programs / "cifar_train", *SMALL]
    there = r"there are lo 127\.0\.0\.1/8, eth0 10\.88\.0\.{i}/24, eth1 10\.99\.0\.{i}/24"
    with Hosts(2, args.mpirun, networks=2) as hosts:
        def refuse(words, *lines, ranks=2, programs=(program,)):
            for command in programs:
                code, output = run([*hosts.launch(ranks), *command, *words])
                require(code == 2, f"exit code {code}", output)
                told = sorted(line for line in output.splitlines() if "error: " in line)
                require(len(told) == len(lines) and all(re.fullmatch(line, text) for line, text in zip(lines, told)),
                        f"{words}: not {lines}", output)
                require_empty(hosts)
            print("\n".join(told), flush=True)

        refuse(["--iface", "eth7"], *(rf"error: rank {2 * i}: iface eth7: host {name} has no such network interface; " +
                                      there.format(i=i + 1) for i, name in enumerate(hosts.names)),
               programs=(program, [args.programs / "allreduce_bench"]))
        refuse(["--iface", "lo"], *(rf"error: rank {2 * i}: iface lo: lo leads nowhere but to host {name} itself, .*"
                                    for i, name in enumerate(hosts.names)))
        call(*hosts.on(1), "ip", "link", "set", "eth1", "down")
        refuse(["--iface", "eth1"], "error: rank 1: iface eth1: network interface eth1 of host beta is down; " +
               there.format(i=2) + r" \(down\)", ranks=1)
        call(*hosts.on(1), "ip", "addr", "flush", "dev", "eth1")
        call(*hosts.on(1), "ip", "link", "set", "eth1", "up")
        refuse(["--iface", "eth1"], r"error: rank 1: iface eth1: network interface eth1 of host beta has no IPv4 address; .*",
               ranks=1)
        refuse(["--iface", "10.99.0.1"], r"error: rank 1: iface 10\.99\.0\.1: host beta has no such network interface; .*",
               ranks=1)
        config = pathlib.Path(hosts.folder.name, "config.toml")
        config.write_text('iface = "eth7"\n')
        refuse(["--config", config], *(rf"error: rank {i}: iface eth7: host {name} .*" for i, name in enumerate(hosts.names)),
               ranks=1)
    for command in (program, [args.programs / "allreduce_bench"]):
        code, output = run([*command, "--iface", "eth0"])
        require(code == 2 and output.startswith("error: iface eth0: this process is alone, and sends nothing to other hosts;"),
                f"one process, exit code {code}", output)


# Of a rank of another host: what is told, where other ranks of its host are left, and where it is alone there.
OF_A_HOST = r"rank 1 \(host {host}, pid \d+"
FAULTS = {
    "stopped": (r"{who}, stopped\) has not entered all_reduce #[789] sum f32\[1000\]; it last finished #[678], ",
                r"{who}, does not run\) does not answer in all_reduce #\d+ .*; \d\.\d s ago, when it was last heard of, it had "),
    "killed": (r"{who}, ended\) has not entered all_reduce #[789] sum f32\[1000\]; it last finished #[678], ",
               r"{who}, ended\) did not end all_reduce #\d+ .*; \d\.\d s ago, when it was last heard of, it had "),
    "returns": (r"{who}(, ended)?\) has not entered all_reduce #[789] .*, and has left the group",) * 2,
    "computes": (r"{who}\) has not entered all_reduce #[789] sum f32\[1000\]; it last finished #[678], .* and is in backward conv2d",) * 2,
    "order": (r"{who}(, ended)?\) calls broadcast #[789] f32\[1000\] from rank 0, and "
              # What rank 0 calls may not have come yet.
              r"(ranks 0, 2(, 3)? call|ranks 2, 3 call|rank [023] calls) all_reduce #[789]",) * 2,
}


def names_rank(hosts, ranks, args, way):
    """Rank 1 of the hang program does not do its part; a rank of another host must name it in time."""
    layout = f"{len(hosts.names)} hosts x {ranks}, {args.backend}, {way}"
    host = hosts.names[0 if ranks > 1 else 1]
    wanted = FAULTS[way][0 if ranks > 1 else 1].format(who=OF_A_HOST.format(host=host))
    others = "|".join(str(rank) for rank in range(len(hosts.names) * ranks) if rank >= ranks or ranks == 1 and rank != 1)
    begin = time.monotonic()
    command = [*hosts.launch(ranks), args.hang_program, args.backend, "auto", DEADLINE, "-", way]
    code, output = run(command)
    took = time.monotonic() - begin
    told = re.search(rf"error: rank ({others}): (.*; )?{wanted}", output)  # behind what a library says itself
    require(code not in (0, 124) and told and took < DEADLINE + SLACK, f"{layout}: exit code {code} after {took:.1f} s", output)
    require_empty(hosts)
    print(f"{layout}: {told.group(0)}", flush=True)


def names_ranks_of_hosts(args):
    for count, ranks in ((3, 1), (2, 2)):
        with Hosts(count, args.mpirun) as hosts:
            for way in args.ways or FAULTS:
                for _ in range(args.repeats):
                    names_rank(hosts, ranks, args, way)


def stopped_in_training(args):
    """The only rank of another host is stopped in the midst of an epoch."""
    with Hosts(2, args.mpirun) as hosts:
        process, output = begin_training(hosts, 1, args)
        log_of_others = hosts.running(str(args.programs / "cifar_train"))
        far = [other for other in log_of_others if os.readlink(f"/proc/{other}/ns/net") == os.readlink(f"/proc/{hosts.holders[1].pid}/ns/net")]
        require(len(far) == 1, f"not one rank on host beta: {far}", output.read_text())
        os.kill(far[0], signal.SIGSTOP)
        wanted = re.compile(rf"error: rank 0: rank 1 \(host beta, pid {far[0]}, does not run\) does not answer in \w+ #\d+ .*"
                            r"\d\.\d s ago, when it was last heard of, it had finished #\d+")
        took = seconds_until(lambda: process.poll() is not None, DEADLINE + SLACK)
        require(process.poll() not in (None, 0) and wanted.search(output.read_text()), f"after {took:.1f} s", output.read_text())
        require_empty(hosts)
        print(f"{took:.1f} s: {wanted.search(output.read_text()).group(0)}", flush=True)


def probe_hosts(hosts, ranks, args, *words):
    """Exit code, seconds and output of a connectivity probe, which must end by itself."""
    begin = time.monotonic()
    code, output = run([*hosts.launch(ranks), args.programs / "allreduce_bench", "--connectivity", *words])
    print(output, flush=True)
    require_empty(hosts)
    return code, time.monotonic() - begin, output


def connectivity(args):
    """Who reaches whom, at which speed; and who does not, where the launcher reaches a host that messages do not."""
    with Hosts(3, args.mpirun, networks=2) as hosts:
        table = pathlib.Path(hosts.folder.name, "pairs.csv")
        hosts.shape("tbf", "rate", "200mbit", "burst", "16kb", "latency", "50ms")
        # Speeds of a busy machine may be anything, once.
        for last in (False, False, True):
            code, _, output = probe_hosts(hosts, 2, args, "--csv", table)
            require(code == 0 and "all ranks reach each other: ranks 0, 1 (host alpha), ranks 2, 3 (host beta), " in output,
                    f"exit code {code}", output)
            rows = list(csv.DictReader(table.read_text().splitlines()))
            require(len(rows) == 15 and all(row["reached"] == "1" for row in rows), "not all pairs", rows)
            between = [float(row["bandwidth"]) for row in rows if row["from_host"] != row["to_host"]]
            within = [float(row["bandwidth"]) for row in rows if row["from_host"] == row["to_host"]]
            if all(3e6 < speed < 40e6 for speed in between) and min(within) > 100e6:
                break
            require(not last, "at most 25 MB/s between hosts, and more within, were expected", rows)
        for last in (False, False, True):
            code, _, output = probe_hosts(hosts, 1, args, "--iface", "eth1", "--json")
            pairs = [json.loads(line) for line in output.splitlines() if line.startswith("{")]  # the launcher may add some
            require(code == 0 and len(pairs) == 3, f"exit code {code}", output)
            if all(pair["bandwidth"] > 100e6 for pair in pairs):
                break
            require(not last, "more than 100 MB/s were expected", output)

        # The launcher's network is eth0.
        hosts.block(2, network=1)
        code, took, output = probe_hosts(hosts, 1, args, "--iface", "eth1", "--csv", table)
        require(code == 2 and took < DEADLINE + SLACK, f"exit code {code} after {took:.1f} s", output)
        for line in (r"error: rank 0 \(host alpha\) gets no answer from rank 2 within 3 s",
                     r"error: rank 1 \(host beta\) gets no answer from rank 2 within 3 s",
                     r"error: rank 2 \(host gamma\) gets no answer from ranks 0, 1 within 3 s",
                     r" +0 +- +yes +NO", r" +2 +NO +NO +-"):
            require(re.search(f"^{line}$", output, re.MULTILINE), f"not told: {line}", output)
        require("0,2,alpha,,0,," in table.read_text(), "not in the CSV", table.read_text())
        hosts.unblock(2, network=1)

        # One pair alone: alpha and gamma cannot talk.
        for i, other in ((0, "10.99.0.3"), (2, "10.99.0.1")):
            call(*hosts.on(i), "ip", "neigh", "replace", other, "lladdr", "02:00:00:00:00:99", "dev", "eth1")
        code, took, output = probe_hosts(hosts, 1, args, "--iface", "eth1")
        require(code == 2 and took < DEADLINE + SLACK, f"exit code {code} after {took:.1f} s", output)
        for line in (r"error: rank 0 \(host alpha\) gets no answer from rank 2 \(host gamma\) within 3 s",
                     r"error: rank 2 \(host gamma\) gets no answer from rank 0 \(host alpha\) within 3 s",
                     r" +0 +- +yes +NO", r" +1 +yes +- +yes"):
            require(re.search(f"^{line}$", output, re.MULTILINE), f"not told: {line}", output)
        require("rank 1 (host beta) gets" not in output, "rank 1 reaches both", output)

        # A connection that the system refuses at once: Open MPI ends the processes itself, and names both ends.
        call(*hosts.on(0), "ip", "route", "add", "blackhole", "10.99.0.3")
        code, took, output = probe_hosts(hosts, 1, args, "--iface", "eth1")
        require(code not in (0, 124) and took < SLACK and re.search("from alpha to: .* Unable to connect to the peer 10.99.0.3", output),
                f"exit code {code} after {took:.1f} s", output)


def unreachable_host(args):
    """What mpirun says of a host that its agent does not reach, and of one that cannot reach it."""
    with Hosts(2, args.mpirun) as hosts:
        program = [args.programs / "allreduce_bench", "--connectivity"]
        begin = time.monotonic()
        code, output = run([*hosts.launch(1, addresses=[hosts.addresses[0], "10.88.0.9"]), *program])
        print(output, flush=True)
        require(code not in (0, 124) and "no host 10.88.0.9" in output and "unable to reliably start one or more daemons" in output,
                f"exit code {code} after {time.monotonic() - begin:.1f} s", output)
        require_empty(hosts)


CASES = {"trains": trains, "trains-quickly": trains_quickly, "adds-up": adds_up, "shaped": shaped, "cut": cut,
         "cut-noticed-by-mpirun": cut_noticed_by_mpirun, "launcher-killed": launcher_killed, "uses-interface": uses_interface,
         "refuses-interface": refuses_interface, "connectivity": connectivity, "unreachable-host": unreachable_host,
         "names-ranks-of-hosts": names_ranks_of_hosts, "stopped-in-training": stopped_in_training}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mpirun")
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("cases", nargs="+", choices=list(CASES))
    parser.add_argument("--backend", default="native")
    parser.add_argument("--rounds", default="3")
    parser.add_argument("--hang-program", type=pathlib.Path)
    parser.add_argument("--ways", nargs="*", choices=list(FAULTS), default=[])
    parser.add_argument("--repeats", type=int, default=1)
    args = parser.parse_args()
    enter_own_namespaces(args.mpirun)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("check_hosts: ended by SIGTERM"))
    for case in args.cases:
        CASES[case](args)


if __name__ == "__main__":
    main()
