# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The certificate in a folder: written while products are proved, checked again, noted in the record and data sheet."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from modmill.cores.folder import CERTIFICATE
from modmill.proofs.arithmetic.products import ProductProof


def certified(folder: Path, proved: Callable[[IO[str]], ProductProof]) -> ProductProof:
    """What ``proved`` returns, whose certificate takes the place of a former one if all is PROVED."""
    with _beside(folder / CERTIFICATE) as new:
        with (
            new.open("wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as packed,
            io.TextIOWrapper(packed, "ascii", write_through=True) as text,
        ):  # fmt: skip
            proof = proved(text)
        if proof.state == "PROVED":
            new.chmod(0o644)
            new.replace(folder / CERTIFICATE)
    return proof


@contextmanager
def _beside(file: Path) -> Iterator[Path]:
    """A new file in the same folder, which is gone in the end if it was not renamed."""
    handle, name = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def certificate_digest(folder: Path) -> str:
    """The digest of the certificate in a folder, as ``sha256sum`` prints it. Raises ValueError if there is none."""
    return f"sha256:{hashlib.sha256(_bytes(folder)).hexdigest()}"


def _bytes(folder: Path) -> bytes:
    try:
        return (folder / CERTIFICATE).read_bytes()
    except FileNotFoundError:
        raise ValueError(f"{folder / CERTIFICATE} is missing; modmill prove {folder} --products writes it") from None


def certificate_lines(folder: Path) -> Iterator[str]:
    """The lines of the certificate in a folder. Raises ValueError if it is missing or no such file."""
    with io.BytesIO(_bytes(folder)) as file, gzip.GzipFile("", "rb", fileobj=file) as packed:
        try:
            yield from io.TextIOWrapper(packed, "ascii")
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise ValueError(f"{folder / CERTIFICATE} is damaged: {error}") from None
