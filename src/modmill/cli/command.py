# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""How a command is added to the command line: with examples in its help, -h, -q, -v and its progress."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, TypeVar

import typer

from modmill.cli.progress import display

_Function = TypeVar("_Function", bound=Callable[..., Any])
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes on stderr.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Each step and each tool's command on stderr.")]
_BOTH = "--quiet and --verbose exclude each other; omit one"


def group(about: str, *, completion: bool = False) -> typer.Typer:
    """A group of commands."""
    return typer.Typer(
        help=about, add_completion=completion, no_args_is_help=True, pretty_exceptions_enable=False,
        suggest_commands=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip


def command(
    app: typer.Typer, *examples: str, name: str | None = None, hidden: bool = False
) -> Callable[[_Function], _Function]:
    """Add the decorated function to ``app``, with -q and -v. ``examples``: lines of its help, without `modmill`."""
    epilog = "\n\n".join([f"Example{'s' * (len(examples) > 1)}:", *(f"  modmill {line}" for line in examples)])

    def add(function: _Function) -> _Function:
        @wraps(function)
        def run(typer_context: typer.Context, *args: Any, quiet: bool, verbose: bool, **given: Any) -> Any:
            before = typer_context.obj or {}
            quiet, verbose = quiet or before.get("quiet", False), verbose or before.get("verbose", False)
            if quiet and verbose:
                raise ValueError(_BOTH)
            with display(quiet=quiet, verbose=verbose):
                return function(*args, **given)

        def parameter(name: str, kind: Any, **default: Any) -> inspect.Parameter:
            return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, **default)

        own = inspect.signature(function, eval_str=True).parameters.values()
        shared = [parameter("quiet", Quiet, default=False), parameter("verbose", Verbose, default=False)]
        named = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
        run.__signature__ = inspect.Signature([parameter("typer_context", typer.Context), *named, *shared])  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in [*own, *shared]} | {"typer_context": typer.Context}
        app.command(name, epilog=epilog if examples else None, hidden=hidden)(run)
        return function

    return add
