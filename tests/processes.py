# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Whether a process is still there."""

import psutil


def alive(process):
    """Whether a process is there and has not ended."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
