# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The rows that a machine's sequencer takes, in the order of the interpreter: from the start of a run, by induction.

Each run begins with a state that holds all states that the machine can have there: all that is not stated is unknown.

    start     after `start` the first issue slot begins with the program's first row and the first thread, whenever the
              multiplier accepts; the first product, which belongs to no row, is stored nowhere
    steps     one issue slot leads to the next: the same row for the next thread, or after the last thread the next row,
              or the loop's first row with one pass less, or the end; with the next digit if the row says so
    sums      a row has as many sums as its first entry says
    products  a row's product is offered, accepted and stored in its cycles, or there is none; the queue of destinations
              gives them in their order
    tables    an entry and a word of digits are those of their address
    end       after the last row no row begins, and the machine becomes idle as it was before the start

`surroundings` lists what each run takes from the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from modmill.cores.proofs.sequence.ends import end, start
from modmill.cores.proofs.sequence.memories import tables
from modmill.cores.proofs.sequence.products import products, sums
from modmill.cores.proofs.sequence.steps import steps
from modmill.cores.proofs.surroundings import Surroundings

THEOREM = (
    "from a start to the end of a run the netlist takes the rows of the program in the interpreter's order, each for "
    "all threads, with the loop's passes and the next digit where a row says so; products are stored in their order"
)


def sequence_faults(around: Surroundings) -> Iterator[str]:
    """What of the statement is not seen, as lines."""
    for name, part in (
        ("start", start), ("steps", steps), ("sums", sums), ("products", products), ("tables", tables),
        ("end", end),
    ):  # fmt: skip
        yield from (f"{name}: {what}" for what in part(around))
