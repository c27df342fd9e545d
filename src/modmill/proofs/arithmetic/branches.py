# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A computation that goes on in several ways from one place: each way but the last in a copy of this process, which has
all that was computed before, and of which only the result stays.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")


class Branches(Generic[T]):
    """Where `joined` may go on in one more way."""

    def __init__(self) -> None:
        self._answer: int | None = None

    def split(self) -> T | None:
        """None in a copy, which goes on at once; here, when it has come to its end, its result. Raises what it
        raised, and ChildProcessError if it ended without a result."""
        receive, send = os.pipe()
        copy = os.fork()
        if not copy:
            os.close(receive)
            self._answer = send
            return None
        os.close(send)
        with open(receive, "rb") as pipe:
            answer = pipe.read()
        os.waitpid(copy, 0)
        if not answer:
            raise ChildProcessError("a copy of this process ended without a result")
        result, error = pickle.loads(answer)
        if error:
            raise error
        found: T = result
        return found

    def end(self, result: T | None, error: BaseException | None) -> None:
        """The end of a copy, which does not return."""
        if self._answer is not None:
            self._tell(result, error)

    def _tell(self, result: T | None, error: BaseException | None) -> NoReturn:
        try:
            assert self._answer is not None
            with open(self._answer, "wb") as pipe:
                pipe.write(pickle.dumps((result, error)))
        finally:
            os._exit(0)


def joined(work: Callable[[Branches[T]], T]) -> T:
    """What ``work`` returns, which splits into copies as it likes."""
    branches = Branches[T]()
    try:
        result = work(branches)
    except BaseException as error:
        branches.end(None, error)
        raise
    branches.end(result, None)
    return result
