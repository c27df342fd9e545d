# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""One site for all tests here, written once whatever the number of workers."""

import fcntl
import json
import os
import sys
import time
from pathlib import Path

import pytest

from modmill.studies.site import MARK, write

sys.path.insert(0, str(Path(__file__).parent))


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
