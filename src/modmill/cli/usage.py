# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Refusals of the command line itself in one line: a wrong command, option, number of arguments or type.

Typer raises these errors; its own texts do not say what would be accepted.
"""

from __future__ import annotations

import sys
from ast import literal_eval
from typing import Any

from modmill.numbers.shown import name as shown_name
from modmill.numbers.shown import near, shortened

_KINDS = {"int": "a whole number", "float": "a number"}


def refusal(error: Any) -> str:
    """The line for an error of typer, which has `format_message`."""
    context = getattr(error, "ctx", None)
    kind = type(error).__name__
    if kind == "BadOptionUsage" and "requires" in error.message:
        return f"{error.option_name} needs a value"
    if context is None:
        return str(error.format_message())
    if kind == "NoArgsIsHelpError":
        return f"{_where(context)} needs one of the commands above"
    if kind == "NoSuchOption":
        return _unknown_option(context, error.option_name)
    if kind == "MissingParameter":
        return _missing(context, error.param)
    if kind == "BadParameter" and error.param is not None:
        return _bad_value(error)
    if error.message.startswith("No such command"):
        return _unknown_command(context, error.message)
    if error.message.startswith("Got unexpected extra argument"):
        return _surplus(context, error.message)
    return f"{error.format_message().rstrip('.')}; {context.command_path} -h shows what it takes"


def _where(context: Any) -> str:
    """The command without `modmill`, with which the line begins."""
    return str(context.command_path).removeprefix("modmill ")


def _unknown_command(context: Any, message: str) -> str:
    commands = [name for name, command in context.command.commands.items() if not command.hidden]
    wanted = literal_eval(message.removeprefix("No such command ").removesuffix("."))
    hint = near(wanted, commands, f"there are {', '.join(commands)}")
    where = _where(context)
    subject = "there is" if where == "modmill" else f"{where} has"
    return f"{subject} no command {shortened(wanted)}; {hint}"


def _unknown_option(context: Any, wanted: str) -> str:
    names = [opt for p in context.command.get_params(context) for opt in (*p.opts, *p.secondary_opts) if opt[:1] == "-"]
    longs = [opt for opt in names if opt.startswith("--")]
    hint = near(wanted, longs, f"it has {', '.join(longs)}")
    return f"{_where(context)} has no option {shown_name(wanted)}; {hint}"


def _missing(context: Any, parameter: Any) -> str:
    name = parameter.metavar if parameter.param_type_name == "argument" else " or ".join(parameter.opts)
    return f"{_where(context)} needs {name or parameter.name}{_example(context)}"


def _surplus(context: Any, message: str) -> str:
    extra = message[message.rindex("(") + 1 : -1].split()[0] if "(" in message else ""
    if "--json" in sys.argv:
        return f"{_where(context)} takes no argument {shortened(extra)} here; --json prints to stdout: --json > FILE"
    return f"{_where(context)} takes no argument {shortened(extra)} here{_example(context)}"


def _example(context: Any) -> str:
    lines = [line.strip() for line in (context.command.epilog or "").split("\n\n")[1:]]
    return f", for example: {lines[0]}" if lines else f"; {context.command_path} -h shows what it takes"


def _bad_value(error: Any) -> str:
    parameter = error.param
    name = parameter.metavar if parameter.param_type_name == "argument" else parameter.opts[0]
    kind = _KINDS.get(parameter.bare_type())
    errors = getattr(error.__cause__, "errors", None)
    if kind is None or errors is None:
        return f"{name}: {error.message.removeprefix('Value error, ')}"
    least, most = parameter.min, parameter.max
    limits = f" from {least:,} to {most:,}" if least is not None and most is not None else ""
    limits = limits or (f" from {least:,} on" if least is not None else "")
    return f"{name} takes {kind}{limits}, not {shortened(errors()[0]['input'])}"
