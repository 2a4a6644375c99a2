"""Several hosts on one machine, for tests: namespaces with a network, a name and a /dev/shm of their own, joined by a bridge.

All of it, and every process started there, is in namespaces of the test program, and ends with it, however that ends.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
NETWORKS = ("10.88.0", "10.99.0")
INTERFACES = ("eth0", "eth1")  # of each host: in the first network, and in the second
OWN_NAMESPACES = ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
INSIDE = "TANDEM_TEST_IS_INSIDE_NAMESPACES"


def skip(reason):
    print(f"skipped: {reason}", flush=True)
    sys.exit(SKIPPED)


def call(*command):
    subprocess.run(command, check=True)


def obstacle(*command):
    """What keeps a command from working; "" where nothing does."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    return "" if result.returncode == 0 else (result.stderr.strip() or f"{command[0]} ends with {result.returncode}")


def enter_own_namespaces(mpirun):
    """Begins this program anew where it can make hosts, or ends it with exit code 77 and the reason."""
    if os.environ.get(INSIDE) and os.getpid() == 1:
        return
    why = obstacle(*OWN_NAMESPACES, "true")
    if why:
        skip(f"no network namespaces here ({why}); they need root, or CAP_SYS_ADMIN and CAP_NET_ADMIN")
    why = obstacle(*OWN_NAMESPACES, "ip", "link", "add", "name", "bridge0", "type", "bridge")
    if why:
        skip(f"no bridge between hosts can be made here ({why}): apt-get install iproute2")
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True, check=False).stdout
    if not re.search(r"\((Open MPI|OpenRTE)\) 4\.", version):
        skip("hosts are reached by an agent in place of ssh, as Open MPI 4 takes it; mpirun is another")
    # There it is process 1.
    os.execvpe(OWN_NAMESPACES[0], [*OWN_NAMESPACES, sys.executable, *sys.argv], {**os.environ, INSIDE: "1"})


def processes():
    """Numbers of all processes in this process namespace that run, this one left out."""
    found = []
    for path in pathlib.Path("/proc").iterdir():
        if not path.name.isdigit() or int(path.name) == os.getpid():
            continue
        try:
            if (path / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] not in "ZX":
                found.append(int(path.name))
        except OSError:
            pass
    return found


def name_of(process):
    try:
        return pathlib.Path(f"/proc/{process}/cmdline").read_text(errors="replace").replace("\0", " ").strip()
    except OSError:
        return "?"


class Hosts:
    """Hosts "alpha", "beta", ... with addresses 10.88.0.1, 2, ..., and 10.99.0.1, 2, ... in a second network, if asked for.

    Use it in a with statement.
    """

    NAMES = ("alpha", "beta", "gamma")

    def __init__(self, count, mpirun, networks=1):
        self.names = self.NAMES[:count]
        self.networks = networks
        self.addresses = [f"{NETWORKS[0]}.{i + 1}" for i in range(count)]
        self.mpirun = mpirun
        self.holders = []
        self.folder = tempfile.TemporaryDirectory(prefix="tandem-hosts-")

    def __enter__(self):
        try:
            for network in range(self.networks):
                call("ip", "link", "add", "name", f"bridge{network}", "type", "bridge")
                call("ip", "link", "set", f"bridge{network}", "up")
            for i, name in enumerate(self.names):
                self._make_host(i, name)
            self._write_agent()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for network in range(self.networks):
            for i in range(len(self.names)):  # before the namespace of its other end, which the system takes away some time after its processes
                subprocess.run(["ip", "link", "delete", self.cable(i, network)], stderr=subprocess.DEVNULL, check=False)
        for holder in self.holders:
            holder.kill()
            holder.wait()
        for network in range(self.networks):
            subprocess.run(["ip", "link", "delete", f"bridge{network}"], check=False)
        self.folder.cleanup()

    def _make_host(self, i, name):
        holder = subprocess.Popen(["unshare", "--net", "--uts", "--mount", "sh", "-c",
                                   f"hostname {name} && mount -t tmpfs tmpfs /dev/shm && echo ready && exec sleep infinity"],
                                  stdout=subprocess.PIPE, text=True)
        self.holders.append(holder)
        if holder.stdout.readline() != "ready\n":
            raise RuntimeError(f"host {name} could not be made")
        call(*self.on(i), "ip", "link", "set", "lo", "up")
        for network, interface in enumerate(INTERFACES[:self.networks]):
            cable = self.cable(i, network)
            call("ip", "link", "add", cable, "type", "veth", "peer", "name", interface, "netns", str(holder.pid))
            call("ip", "link", "set", cable, "master", f"bridge{network}", "up")
            call(*self.on(i), "ip", "addr", "add", f"{NETWORKS[network]}.{i + 1}/24", "dev", interface)
            call(*self.on(i), "ip", "link", "set", interface, "up")

    def _write_agent(self):
        cases = "".join(f"  {address}) host={holder.pid} ;;\n" for address, holder in zip(self.addresses, self.holders))
        self.agent = pathlib.Path(self.folder.name, "agent.sh")
        self.agent.write_text(f'#!/bin/sh\ncase "$1" in\n{cases}  *) echo "no host $1" >&2; exit 1 ;;\nesac\nshift\n'
                              f'exec nsenter --target $host --net --uts --mount sh -c "cd {os.getcwd()} && $*"\n')
        self.agent.chmod(0o700)

    def on(self, i):
        """The words before a command that make it run on host i."""
        return ("nsenter", "--target", str(self.holders[i].pid), "--net", "--uts", "--mount", f"--wd={os.getcwd()}")

    @staticmethod
    def messages():
        """Open MPI's parameters of messages between hosts, and their values."""
        return {"pml": "ob1", "btl": "tcp,self,vader", "btl_tcp_if_include": f"{NETWORKS[0]}.0/24"}

    def cable(self, i, network=0):
        return f"to-{self.names[i]}" + (f"-{network}" if network else "")

    def launch(self, ranks, *options, addresses=None):
        """The words before a program that start `ranks` of it on each host, from the first one."""
        settings = {"plm": "rsh", "plm_rsh_agent": str(self.agent), "oob_tcp_if_include": f"{NETWORKS[0]}.0/24",
                    **self.messages()}
        return (*self.on(0), self.mpirun, "--host", ",".join(f"{address}:{ranks}" for address in addresses or self.addresses),
                *(word for name, value in settings.items() for word in ("--mca", name, value)), "--bind-to", "none",
                "-x", f"GLOO_SOCKET_IFNAME={INTERFACES[0]}", *options)

    def sent(self, i):
        """Bytes that host i has sent, by network interface."""
        text = subprocess.run([*self.on(i), "ip", "-s", "-j", "link"], stdout=subprocess.PIPE, text=True, check=True).stdout
        return {link["ifname"]: link["stats64"]["tx"]["bytes"] for link in json.loads(text)}

    def cut(self, i, network=0):
        """Takes the cable of a network out of host i."""
        call("ip", "link", "set", self.cable(i, network), "down")

    def mend(self, i, network=0):
        call("ip", "link", "set", self.cable(i, network), "up")

    def block(self, i, network=0):
        """What host i sends is lost behind its cable, and so is what others send to it, as by a firewall."""
        call("ip", "link", "set", self.cable(i, network), "nomaster")

    def unblock(self, i, network=0):
        call("ip", "link", "set", self.cable(i, network), "master", f"bridge{network}")

    def shape(self, *words):
        """Limits what each host sends, by words of `tc qdisc`."""
        for i in range(len(self.names)):
            call(*self.on(i), "tc", "qdisc", "replace", "dev", INTERFACES[0], "root", *words)

    def running(self, program=""):
        """Numbers of the processes on all hosts whose command begins with `program`'s path."""
        own = [holder.pid for holder in self.holders]
        return [process for process in processes() if process not in own and name_of(process).startswith(program)]

    def left_over(self, seconds):
        """The command lines of processes that still run on any host after at most so many seconds; they are killed."""
        end = time.monotonic() + seconds
        while (left := self.running()) and time.monotonic() < end:
            time.sleep(0.05)
        texts = [name_of(process) for process in left]
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return texts
