# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A computation splits into copies of the process, each with what was computed before, and only results stay."""

import os

import pytest

from modmill.proofs.arithmetic.branches import joined


def test_ways_go_on_from_what_was_computed_before():
    here, seen = os.getpid(), []

    def words(branches):
        word, found = "", []
        for _ in range(3):
            other = branches.split()
            found = [] if other is None else [*found, *other]
            word += "b" if other is None else "a"
            seen.append(word)
        assert (os.getpid() == here) == (word == "aaa")
        return [*found, word]

    assert joined(words) == ["bbb", "bba", "bab", "baa", "abb", "aba", "aab", "aaa"]
    assert seen == ["a", "aa", "aaa"]


def test_what_a_copy_raises_is_raised_here():
    def fail(branches):
        if branches.split() is None:
            raise ValueError("in the copy")
        return 1

    with pytest.raises(ValueError, match="in the copy"):
        joined(fail)


def test_a_copy_without_a_result_is_an_error():
    def end(branches):
        if branches.split() is None:
            os._exit(1)
        return 1

    with pytest.raises(ChildProcessError, match="without a result"):
        joined(end)
