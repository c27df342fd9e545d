# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Where points run: processes of this machine, a Dask scheduler that runs already, the workers that a queue of a
cluster starts through dask-jobqueue, or pods of Kubernetes through dask-kubernetes."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from modmill.contract import UnsupportedError
from modmill.numbers.shown import shortened
from modmill.studies.exploring.workers import kill

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

QUEUES: Mapping[str, str] = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "lsf": "LSFCluster", "sge": "SGECluster"}
"""Kinds of queues, with the class of dask-jobqueue."""
KUBERNETES = "kubernetes"
KINDS = (*QUEUES, KUBERNETES)
"""Kinds of clusters of a plan."""
CONNECT_SECONDS = 10
CLOSE_SECONDS = 2
"""Limits for the first answer of a scheduler and for the end of a cluster."""


@contextmanager
def local(jobs: int = 0) -> Iterator[Client]:
    """Processes of this machine, one for each processor or ``jobs`` of them."""
    from distributed import Client, LocalCluster

    folder = tempfile.TemporaryDirectory(prefix="modmill-dask-", ignore_cleanup_errors=True)
    with folder as scratch, ExitStack() as end:
        with _deaf():
            cluster = LocalCluster(
                n_workers=jobs or len(os.sched_getaffinity(0)), threads_per_worker=1, processes=True, memory_limit=0,
                dashboard_address="127.0.0.1:0", local_directory=scratch, silence_logs=logging.CRITICAL,
                env={"TMPDIR": scratch},
            )  # fmt: skip
            end.enter_context(_closed(cluster))
            client = end.enter_context(_closed(Client(cluster, set_as_default=False)))
            end.callback(_kill_workers, cluster)
        yield client


def _kill_workers(cluster: LocalCluster) -> None:
    """End the workers with all that runs below them, at once."""
    for nanny in cluster.workers.values():
        nanny.close_gracefully()  # it starts no other worker
        if nanny.pid:
            kill(nanny.pid)


@contextmanager
def running(address: str) -> Iterator[Client]:
    """The scheduler with this address. Raises UnsupportedError if there is none."""
    from distributed import Client

    _quiet()
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise UnsupportedError(
            f"no scheduler answers at {shortened(address)} (host:port is accepted): {reason}"
        ) from None
    with _closed(client):
        yield client


@contextmanager
def remote(kind: str, jobs: int, options: Mapping[str, Any]) -> Iterator[Client]:
    """The workers of ``jobs`` jobs of a queue, or of as many pods. ``options``: as dask-jobqueue's class takes them, or
    KubeCluster of dask-kubernetes.

    Raises UnsupportedError if the queue's command is not on PATH, no Kubernetes answers, or options are refused.
    """
    from distributed import Client

    _quiet()
    cluster = _pods(options) if kind == KUBERNETES else _queue(kind, options)
    with _closed(cluster):
        cluster.scale(jobs) if kind == KUBERNETES else cluster.scale(jobs=jobs)
        with _closed(Client(cluster, set_as_default=False)) as client:
            yield client


def _queue(kind: str, options: Mapping[str, Any]) -> Any:
    import dask_jobqueue

    made = getattr(dask_jobqueue, QUEUES[kind])
    command = made.job_cls.submit_command.split()[0]
    if shutil.which(command) is None:
        raise UnsupportedError(
            f"a {kind} cluster needs {command} on PATH; --local or --scheduler runs the plan elsewhere"
        )
    try:
        return made(**options)
    except (TypeError, ValueError) as error:
        raise UnsupportedError(f"dask-jobqueue refuses [cluster]: {' '.join(str(error).split())}") from None


def _pods(options: Mapping[str, Any]) -> Any:
    try:
        from dask_kubernetes.operator.kubecluster import kubecluster
    except ImportError:
        raise UnsupportedError(
            "a kubernetes cluster needs dask-kubernetes beside Modmill (pip install dask-kubernetes); --local or "
            "--scheduler runs the plan elsewhere"
        ) from None
    try:
        return kubecluster.KubeCluster(**{"quiet": True, **options})
    except Exception as error:  # of several libraries: no credentials, no operator, no answer, a wrong option
        atexit.unregister(kubecluster.reap_clusters)  # it would look for the cluster once more
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UnsupportedError(
            f"Kubernetes does not start [cluster]; it needs credentials as kubectl has and Dask's operator: {reason}"
        ) from None


@contextmanager
def _closed(opened: Any) -> Iterator[Any]:
    """Close a client, which gives up its points, or a cluster; go on if that takes long."""
    try:
        yield opened
    finally:
        try:
            opened.close(timeout=CLOSE_SECONDS)
        except Exception:
            opened.shutdown_on_close = False  # else Dask waits once more when Python ends


def _quiet() -> None:
    """Let Dask's loggers, some of which have levels of their own, say nothing: the sweep says what counts."""
    for name in ("asyncio", *logging.root.manager.loggerDict):
        if name.split(".")[0] in (
            "asyncio",
            "distributed",
            "dask_jobqueue",
            "dask_kubernetes",
            "kr8s",
            "httpx",
            "tornado",
            "bokeh",
        ):
            logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def _deaf() -> Iterator[None]:
    """Threads that start inside, and their processes, do not hear Ctrl-C, which a terminal sends to all.

    The resource tracker is started first, because its start unblocks the signal.
    """
    _quiet()
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
