# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The moduli that the papers take."""

from itertools import islice

from modmill.numbers.rns.residues import pseudo_mersenne


def greedy(w, count):
    """The largest ones of w bits, each coprime to those before."""
    return tuple(islice(pseudo_mersenne(w, even=True), count))
