# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A register in a stream loses no word and none twice, stalls what it should, and passes a word every cycle."""

import random

import pytest

from modmill.rtl.stream_register import StreamRegister
from trial.bench import drive


@pytest.mark.parametrize(("stall", "gap"), [(0, 0), (0.5, 0), (0, 0.5), (0.4, 0.4)])
def test_words_pass_in_order(stall, gap):
    rnd = random.Random(1)
    words = [rnd.getrandbits(8) for _ in range(200)]
    offers = [("i", {"i_data": word}) for word in words]
    trace = drive(StreamRegister(8), offers, out=["o_data"], want=len(words), stall=stall, gap=gap, limit=5000)
    assert [word for (word,) in trace.out] == words
