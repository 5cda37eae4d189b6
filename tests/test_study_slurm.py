"""Workers as jobs of a real Slurm: a cluster of one node, which this file starts where its daemons are installed.

As root, after `apt-get install slurm-wlm munge`; other launchers of dask-jobqueue differ in their commands alone.
"""

import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from uppertail.cli import main

DAEMONS = ("munged", "slurmctld", "slurmd")
CONFIGURATION = """
ClusterName=one
SlurmctldHost={host}
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation={folder}
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
MpiDefault=none
ReturnToService=2
KillWait=5
NodeName={host} CPUs=2 RealMemory=8000
PartitionName=cpu Nodes=ALL Default=YES
"""
BASE = {"env": "Chain", "env.length": 4, "seeds": 1, "network.width": 8, "replay_size": 999}
BASE |= {"episodes": 1_000_000, "steps": 20_000, "checkpoint_every": 1}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.name != "posix" or os.geteuid() != 0 or not all(map(shutil.which, DAEMONS)),
        reason="needs Slurm's daemons and root: apt-get install slurm-wlm munge",
    ),
]


def wait_for(holds, seconds=120):
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end
        time.sleep(0.2)
    return found


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """A cluster of this machine, and nothing else."""
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    folder, host = tmp_path_factory.mktemp("slurm"), platform.node()
    (folder / "spool").mkdir()
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o600)
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    (folder / "slurm.conf").write_text(CONFIGURATION.format(host=host, folder=folder, ports=ports))
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    files = {"key": "key", "socket": "socket", "log": "log", "pid": "pid", "seed": "seed"}
    munge = [f"--{kind}{'' if kind == 'socket' else '-file'}={folder}/munge.{name}" for kind, name in files.items()]
    commands = [["munged", "--foreground", "--force", *munge], ["slurmctld", "-D"], ["slurmd", "-D"]]
    with pytest.MonkeyPatch.context() as patch, (folder / "log").open("w") as log:
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        daemons = []
        try:
            for command in commands:
                daemons.append(subprocess.Popen(command, stdout=log, stderr=log))
                time.sleep(1)
            wait_for(lambda: "idle" in said("sinfo", "--noheader", "--format=%T"), 60)
            yield folder
        finally:
            for daemon in reversed(daemons):
                daemon.terminate()
                daemon.wait(30)


def test_a_job_that_is_cancelled_is_replaced_and_its_cell_goes_on_from_the_checkpoint(slurm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jobs = {"interface": "lo", "memory": "2GB", "walltime": "00:20:00"}
    Path("study.yaml").write_text(yaml.safe_dump({"base": BASE, "grid": {"seed": [0]}, "jobs": jobs}))
    command = [sys.executable, "-m", "uppertail", "study", "study.yaml", "--quiet", "--out"]
    with subprocess.Popen([*command, "jobs", "--launcher", "slurm", "--workers", "1"]) as study:
        try:
            checkpoints = Path("jobs", "cells", "seed=0", "checkpoints")
            wait_for(lambda: list(checkpoints.glob("step-*")), 300)
            (job,) = said("squeue", "--noheader", "--format=%i").split()
            subprocess.run(["scancel", job], check=True)
            assert study.wait(400) == 0
        except BaseException:
            study.send_signal(signal.SIGINT)
            raise
    assert len(list(Path("jobs", "jobs").glob("*.err"))) >= 2
    assert not said("squeue", "--noheader").strip()
    assert main(["study", "study.yaml", "--quiet", "--out", "here", "--workers", "1"]) == 0
    episodes = [Path(place, "cells", "seed=0", "episodes.npz").read_bytes() for place in ("jobs", "here")]
    assert episodes[0] == episodes[1]
    steps = [json.loads(line)["step"] for line in (checkpoints.parent / "log.jsonl").read_text().splitlines()]
    assert steps == sorted(set(steps)) and steps[-1] >= 20_000
