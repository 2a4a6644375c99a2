"""A small Slurm cluster on hosts that are network namespaces (hosts.py): the daemons of Debian's slurmctld, slurmd and munge."""
import os
import pathlib
import secrets
import shutil
import subprocess
import tempfile
import time

from hosts import name_of, skip

DAEMONS = ("munged", "slurmctld", "slurmd", "srun", "sinfo")
CONFIGURATION = """ClusterName=tandem
SlurmctldHost={names[0]}({addresses[0]})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
MpiDefault=none
SlurmdParameters=config_overrides
KillWait=2
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def need_daemons():
    missing = [name for name in DAEMONS if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
    if missing:
        skip(f"no Slurm here ({', '.join(missing)}): apt-get install slurmctld slurmd slurm-client munge")


class Slurm:
    """A cluster of all hosts, each with `cpus` CPUs. Use it in a with statement, within that of the hosts."""

    def __init__(self, hosts, cpus=4):
        self.hosts = hosts
        self.daemons = []
        self.folder = tempfile.TemporaryDirectory(prefix="tandem-slurm-")
        folder = pathlib.Path(self.folder.name)
        folder.chmod(0o755)
        text = CONFIGURATION.format(names=hosts.names, addresses=hosts.addresses, folder=folder)
        for name, address in zip(hosts.names, hosts.addresses):
            text += f"NodeName={name} NodeAddr={address} CPUs={cpus} State=UNKNOWN\n"
        (folder / "slurm.conf").write_text(text)
        # A folder that hosts do not share: both would make the same one in it.
        (folder / "mpi.conf").write_text("PMIxCliTmpDirBase=/dev/shm\n")
        for name in ("state", *(f"spool-{name}" for name in hosts.names)):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.touch(mode=0o400)
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"),
                            "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}

    def __enter__(self):
        folder = self.folder.name
        try:
            self._start(0, "munged", "--foreground", "--force", f"--socket={folder}/munge.socket", f"--key-file={folder}/munge.key",
                        f"--pid-file={folder}/munge.pid", f"--seed-file={folder}/munge.seed", f"--log-file={folder}/munge.log")
            self._wait_for(lambda: os.path.exists(f"{folder}/munge.socket"), "a munged")
            self._start(0, "slurmctld", "-D")
            for i in range(len(self.hosts.names)):
                self._start(i, "slurmd", "-D")
            self._wait_for(self._nodes_are_idle, "an idle Slurm")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in reversed(self.daemons):
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.folder.cleanup()

    def _start(self, i, *command):
        with open(f"{self.folder.name}/daemons.log", "ab") as log:
            self.daemons.append(subprocess.Popen([*self.hosts.on(i), *command], env=self.environment, stdout=log, stderr=log))

    def _wait_for(self, condition, what, seconds=30):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end or any(daemon.poll() is not None for daemon in self.daemons):
                raise RuntimeError(f"there is not {what}:\n{self.logs()}")
            time.sleep(0.2)

    def _nodes_are_idle(self):
        result = subprocess.run([*self.hosts.on(0), "sinfo", "--noheader", "--format=%T %D"], env=self.environment,
                                capture_output=True, text=True, check=False)
        return result.stdout.split() == ["idle", str(len(self.hosts.names))]

    def wait_until_idle(self):
        """Until no step of a job is left on any host."""
        self._wait_for(lambda: self._nodes_are_idle() and not any("slurmstepd" in name_of(p) for p in self.hosts.running()), "an idle Slurm")

    def logs(self):
        return "\n".join(f"{path.name}: {path.read_text(errors='replace')[-1500:]}"
                         for path in sorted(pathlib.Path(self.folder.name).glob("*.log")))

    def srun(self, ranks, *options):
        """The words before a program that start `ranks` of it on each host."""
        count = len(self.hosts.names)
        settings = [f"OMPI_MCA_{name}={value}" for name, value in self.hosts.messages().items()]
        return (*self.hosts.on(0), "env", *settings, "srun", f"--nodes={count}", f"--ntasks={count * ranks}",
                f"--ntasks-per-node={ranks}", *options)
