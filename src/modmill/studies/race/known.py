# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The digests that ship with Modmill, emitted anew: of every multiplier that a shipped row describes and that a race
without further settings enters."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from modmill.cores.digests import MULTIPLIER, NAME, fingerprint, key, read, write
from modmill.cores.multiplier.build import Core, build
from modmill.report.rows import Store, shipped_folder


def described(folder: Path | None = None) -> Mapping[str, Core]:
    """The multipliers that rows of a folder (by default, the shipped ones) describe, by their keys.

    All settings but the DSP block, which a race takes from its target, have their defaults. Rows of a core that the
    designs no longer accept are left out.
    """
    found: dict[str, Core] = {}
    for row in Store(Path(os.devnull), folder).rows:
        about = row.about
        if "engine" in about or not {"design", "modulus", "io", "parameters"} <= about.keys():
            continue
        try:
            core = build(about["design"], about["modulus"], about["io"], **about["parameters"])
            block = {name: value for name, value in core.fitted.settings.items() if name == "dsp"}
            usual = build(about["design"], about["modulus"], about["io"], **block)
        except ValueError:
            continue
        if core.fitted.settings == usual.fitted.settings:
            found.setdefault(key(core), core)
    return found


def emitted(cores: Mapping[str, Core], progress: Callable[[str, int, int], None] | None = None) -> dict[str, str]:
    """The digests of these cores, each emitted; ``progress``: called with a key, the number done, and that of all."""
    found: dict[str, str] = {}
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        jobs = {pool.submit(_digest, *_words(core)): name for name, core in cores.items()}
        for job in as_completed(jobs):
            found[jobs[job]] = job.result()
            if progress:
                progress(jobs[job], len(found), len(jobs))
    return found


def _words(core: Core) -> tuple[str, str, str, dict[str, Any]]:
    return core.design.name, hex(core.modulus.value), core.io, dict(core.fitted.settings)


def _digest(design: str, modulus: str, io: str, settings: Mapping[str, Any]) -> str:
    return build(design, modulus, io, **settings).digest


def ship(progress: Callable[[str, int, int], None] | None = None) -> int:
    """Write the digests into the shipped results, and return their number. Those emitted by the same sources stay."""
    file, today, cores = shipped_folder() / NAME, fingerprint(MULTIPLIER), described()
    found = {name: digest for name, digest in read(file, today).items() if name in cores}
    found |= emitted({name: core for name, core in cores.items() if name not in found}, progress)
    write(file, {today: found})
    return len(found)
