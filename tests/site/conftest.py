# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""One site for all tests here, written once whatever the number of workers."""

import fcntl
import json
import os
import time
from pathlib import Path

import pytest

from modmill.designs import design
from modmill.report import pages
from modmill.report.rows import Store
from modmill.studies.site.site import MARK, Site, write


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of a site, with rows that ship only; ``seconds`` in its mark tells the processor time it took."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "shared-site"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = shared / "site"
        if not folder.exists():
            before = os.environ.get("MODMILL_CACHE")
            os.environ["MODMILL_CACHE"] = str(shared / "cache")  # as in a fresh clone
            try:
                start = time.process_time()
                write(folder)
                seconds = time.process_time() - start
            finally:
                if before is None:
                    del os.environ["MODMILL_CACHE"]
                else:
                    os.environ["MODMILL_CACHE"] = before
            mark = json.loads((folder / MARK).read_text())
            (folder / MARK).write_text(json.dumps(mark | {"seconds": seconds}))
    return folder


@pytest.fixture(scope="session")
def engines(tmp_path_factory):
    """A folder with the pages on which engines stand, from engines.jsonl and no other rows."""
    site = Site(())
    site._store = Store(Path("/nowhere"), Path(__file__).parent)
    site.__dict__["_predictions"] = [], []  # of the designs' curves, which take a while and have tests of their own
    made = dict([*site._engine_pages(), *site._method(), site._design(design("pseudo-mersenne"))])
    folder = tmp_path_factory.mktemp("engines")
    for name, text in {**made, **{name: pages.asset(name) for name in pages.ASSETS}}.items():
        (folder / name).write_text(text)
    (folder / "plotly.min.js").write_text(pages.plotly())
    return folder
