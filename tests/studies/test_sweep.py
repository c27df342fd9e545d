# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Sweeps on real clusters of processes, which are killed: no row is lost and none is there twice."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import sweep_points
from test_sweep_store import lines

from modmill.flow import tools
from modmill.studies.sweep.plan import read
from modmill.studies.sweep.run import sweep
from modmill.studies.sweep.store import Store
from processes import alive

HERE = Path(__file__).parent
SOURCE = Path(tools.__file__).parents[2]
POINTS = 8
"""Points of the plan, all with rows of their own."""
BUSY = 2
"""A sweep ends within 5 s on a machine that does nothing else."""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a plan; processes below find stand-ins and package."""
    monkeypatch.setenv("SWEEP_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("PYTHONPATH", f"{SOURCE}:{HERE}")
    (tmp_path / "plan.toml").write_text(sweep_points.PLAN)
    return tmp_path


def start(place, *arguments, measure="slow"):
    """A sweep of the plan with a stand-in, in a session of its own as on a terminal."""
    command = [sys.executable, str(HERE / "sweep_points.py"), measure, "sweep", "plan.toml", "--store", "store"]
    return subprocess.Popen(
        [*command, *arguments], cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def ended(process, status):
    """The outputs of a sweep that ends with this status."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == status, err
    assert "Traceback" not in err
    return out, err


def until(condition, seconds=180):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def rows(place):
    """The number of rows, of which none is there twice."""
    found = lines(place / "store") if [*(place / "store").glob("*.parquet")] else []
    assert len(found) == len(set(found))
    return len(found)


def logged(place):
    """The number of measurements that ended."""
    log = place / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def workers(process):
    """The worker processes of a local cluster."""
    below = psutil.Process(process.pid).children(recursive=True)
    return [p for p in below if alive(p) and "spawn_main" in " ".join(p.cmdline())]


def all_gone(processes):
    return until(lambda: not any(map(alive, processes)), 10)


@contextmanager
def threads():
    """A cluster in this process."""
    from distributed import Client

    options = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": None, "set_as_default": False}
    with Client(processes=False, **options) as client:
        yield client


def test_a_sweep_that_is_interrupted_goes_on_and_measures_no_point_twice(place):
    points, store = read(place / "plan.toml").points(), Store(place / "store")

    def interrupt(text, done, total):
        assert total == POINTS
        if done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(points, store, threads, measure="sweep_points:fast", progress=interrupt)
    kept = rows(place)
    assert 2 <= kept < POINTS and len(store.rows) == kept
    summary = sweep(points, Store(place / "store"), threads, measure="sweep_points:fast", most=POINTS - kept - 1)
    assert summary.describe() == {"states": {"measured": POINTS - kept - 1}, "before": kept, "left": 1, "failures": []}
    assert rows(place) == POINTS - 1


@pytest.mark.long
def test_a_sweep_survives_the_kill_of_a_worker_and_ctrl_c(place):
    process = start(place, "--jobs", "1")
    until(lambda: rows(place) >= 2)
    workers(process)[0].send_signal(signal.SIGKILL)
    until(lambda: rows(place) >= 4)
    below = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to all of the group
    began = time.monotonic()
    out, err = ended(process, 130)
    assert time.monotonic() - began < BUSY * 5
    assert all_gone(below)
    kept, measured = rows(place), logged(place)
    assert out == "" and 4 <= kept <= measured < POINTS
    *before, last = err.splitlines()
    assert last == "modmill: interrupted; finished rows are in store; the same command goes on"
    assert all(re.fullmatch(r"modmill: (dashboard: http://127.0.0.1:\d+/status|\d+ s: .*)", line) for line in before)

    out, _ = ended(start(place, "--jobs", "1", measure="fast"), 0)
    assert out == f"8 points: {POINTS - kept} measured, {kept} before; 8 rows in store\n"
    assert rows(place) == POINTS and logged(place) == measured + POINTS - kept
    out, _ = ended(start(place, "--json", measure="raising"), 0)
    assert json.loads(out) == {
        "store": "store", "points": POINTS, "states": {}, "before": POINTS, "left": 0, "failures": []
    }  # fmt: skip


@pytest.mark.long
def test_a_sweep_survives_the_kill_of_its_client(place):
    process = start(place, "--jobs", "2")
    until(lambda: rows(place) >= 3)
    below = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert all_gone(below)
    kept = rows(place)
    out, _ = ended(start(place, measure="fast"), 0)
    assert out == f"8 points: {POINTS - kept} measured, {kept} before; 8 rows in store\n"
    assert rows(place) == POINTS


@pytest.mark.long
def test_two_sweeps_on_one_store_share_its_points(place):
    first, second = start(place, "--jobs", "1"), start(place, "--jobs", "1")
    for process in (first, second):
        out, _ = ended(process, 0)
        assert out.endswith("; 8 rows in store\n")
    assert rows(place) == POINTS and len(Store(place / "store").rows) == POINTS


@pytest.mark.long
def test_failures_are_results_and_end_nothing(place):
    (place / "plan.toml").write_text(sweep_points.PLAN + "[limits]\nseconds = 1\n")
    out, _ = ended(start(place, "--most", "3", measure="hanging"), 1)
    first, *failures = out.splitlines()
    assert first == "8 points: 3 timeout, 5 left; 0 rows in store"
    assert [line.split(": ", 1)[1] for line in failures] == ["timeout: stopped after 1 s"] * 3
    (place / "plan.toml").write_text(sweep_points.PLAN)
    out, _ = ended(start(place, measure="fast"), 0)
    assert out == "8 points: 5 measured, 3 before; 5 rows in store\n"
    out, _ = ended(start(place, "--retry", measure="fast"), 0)
    assert out == "8 points: 3 measured, 5 before; 8 rows in store\n"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def scheduler(place):
    """The address of a scheduler with two workers, and the three processes."""
    address = f"tcp://127.0.0.1:{free_port()}"
    port = address.rsplit(":", 1)[1]
    common = {"cwd": place, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask = [sys.executable, "-m", "dask.__main__"]
    options = ["--host", "127.0.0.1", "--port", port, "--no-dashboard"]
    started = [subprocess.Popen([*dask, "scheduler", *options], **common)]
    worker = [*dask, "worker", address, "--nthreads", "1", "--no-dashboard", "--local-directory", str(place / "dask")]
    started += [subprocess.Popen(worker, **common) for _ in range(2)]
    below = [psutil.Process(p.pid) for p in started]
    yield address, started
    for process in below:
        for each in [*process.children(recursive=True), process] if alive(process) else []:
            each.kill()
    for process in started:
        process.wait()


@pytest.mark.long
def test_the_plan_runs_on_a_scheduler_that_loses_a_worker(place, scheduler):
    address, (_, one, _) = scheduler
    process = start(place, "--scheduler", address)
    until(lambda: rows(place) >= 2)
    for each in [*psutil.Process(one.pid).children(recursive=True), psutil.Process(one.pid)]:
        each.kill()
    out, _ = ended(process, 0)
    assert out == "8 points: 8 measured; 8 rows in store\n" and rows(place) == POINTS


@pytest.mark.long
def test_the_kill_of_the_scheduler_ends_the_sweep_with_one_line(place, scheduler):
    address, (main, *_) = scheduler
    process = start(place, "--scheduler", address)
    until(lambda: rows(place) >= 3)
    main.send_signal(signal.SIGKILL)
    began = time.monotonic()
    out, err = ended(process, 2)
    assert time.monotonic() - began < 15 and out == ""
    kept = rows(place)
    assert (
        err.splitlines()[-1] == "modmill: the scheduler is gone; finished rows are in store; the same command goes on"
    )
    out, _ = ended(start(place, measure="fast"), 0)
    assert out == f"8 points: {POINTS - kept} measured, {kept} before; 8 rows in store\n"


@pytest.mark.long
def test_ctrl_c_frees_the_workers_of_a_scheduler(place, scheduler, monkeypatch):
    address, _ = scheduler
    process = start(place, "--scheduler", address, measure="hanging")
    until(lambda: logged(place) == 2)
    programs = [psutil.Process(int(line)) for line in (place / "log").read_text().split()]
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    ended(process, 130)
    assert time.monotonic() - began < BUSY * 5
    assert all_gone(programs)


SUBMIT = """#!/bin/sh
# Stands in for a queue: runs the script, a file or the input, at once, and says so as the queue's command does.
cat "$@" > {place}/script
setsid sh {place}/script > {place}/job.log 2>&1 &
echo $! >> {place}/jobs
echo "{says}"
"""
CANCEL = """#!/bin/sh
kill -- -"${{1%%.*}}"
"""
QUEUES = {
    "slurm": ("sbatch", "scancel", "Submitted batch job $!", "#SBATCH -t 00:10:00"),
    "pbs": ("qsub", "qdel", "$!.server", "#PBS -l walltime=00:10:00"),
    "sge": ("qsub", "qdel", "Your job $! (dask-worker) has been submitted", "#$ -l h_rt=00:10:00"),
    "lsf": ("bsub", "bkill", "Job <$!> is submitted to default queue <normal>.", "#BSUB -W 00:10"),
}
"""Command that submits, that cancels, what the first one says, and a line of the script, by kind of queue."""
CLUSTER = """
[cluster]
kind = "{kind}"
jobs = 2
cores = 1
memory = "1GB"
walltime = "{walltime}"
interface = "lo"
"""


@pytest.mark.long
@pytest.mark.parametrize("kind", QUEUES)
def test_the_plan_runs_on_a_queue(place, monkeypatch, kind):
    submit, cancel, says, line = QUEUES[kind]
    walltime = "00:10" if kind == "lsf" else "00:10:00"
    (place / "plan.toml").write_text(sweep_points.PLAN + CLUSTER.format(kind=kind, walltime=walltime))
    _, err = ended(start(place), 2)
    assert err.splitlines()[-1].startswith(f"modmill: a {kind} cluster needs {submit} on PATH; --local or --scheduler ")
    (place / "bin").mkdir()
    for name, text in ((submit, SUBMIT), (cancel, CANCEL)):
        (place / "bin" / name).write_text(text.format(place=place, says=says))
        (place / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}/bin:{os.environ['PATH']}")
    out, _ = ended(start(place), 0)
    assert out == "8 points: 8 measured; 8 rows in store\n" and rows(place) == POINTS
    jobs = [int(line) for line in (place / "jobs").read_text().split()]
    assert len(jobs) == 2 and line in (place / "script").read_text()
    assert all_gone([psutil.Process(job) for job in jobs if psutil.pid_exists(job)])
    out, _ = ended(start(place, "--local"), 0)
    assert out == "8 points: 8 before; 8 rows in store\n"


PODS = """import subprocess, sys
from distributed import LocalCluster


class KubeCluster(LocalCluster):
    \"\"\"Stands in for pods: a scheduler of this machine, and workers that are processes beside it.\"\"\"

    def __init__(self, image, quiet, namespace="default"):
        if image != "modmill" or not quiet:
            raise ValueError("no image\\nof that name")
        super().__init__(n_workers=0, dashboard_address=":0")

    def scale(self, n):
        for _ in range(n):
            command = [sys.executable, "-m", "distributed.cli.dask_worker", self.scheduler_address, "--nthreads", "1"]
            pod = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with open("{place}/jobs", "a") as jobs:
                print(pod.pid, file=jobs)


def reap_clusters():
    pass
"""


@pytest.mark.long
def test_the_plan_runs_on_kubernetes(place, monkeypatch):
    plan = place / "plan.toml"
    plan.write_text(sweep_points.PLAN + '\n[cluster]\nkind = "kubernetes"\njobs = 2\nimage = "other"\n')
    _, err = ended(start(place), 2)
    assert err.splitlines()[-1].startswith("modmill: a kubernetes cluster needs dask-kubernetes beside Modmill ")
    package = place / "site" / "dask_kubernetes" / "operator" / "kubecluster"
    package.mkdir(parents=True)
    for folder in (package, *package.parents[:2]):
        (folder / "__init__.py").touch()
    (package / "kubecluster.py").write_text(PODS.format(place=place))
    monkeypatch.setenv("PYTHONPATH", f"{place}/site:{os.environ.get('PYTHONPATH', '')}")
    _, err = ended(start(place), 2)
    assert err.splitlines()[-1].endswith("as kubectl has and Dask's operator: no image of that name")
    plan.write_text(plan.read_text().replace("other", "modmill"))
    out, _ = ended(start(place), 0)
    assert out == "8 points: 8 measured; 8 rows in store\n" and rows(place) == POINTS
    pods = [int(line) for line in (place / "jobs").read_text().split()]
    assert len(pods) == 2 and all_gone([psutil.Process(pod) for pod in pods if psutil.pid_exists(pod)])
