# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Options of several commands. Each name means the same in all of them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from modmill.cli import complete


def new_file(path: Path | None) -> Path | None:
    """Refuse a file that cannot be written now, and not after minutes. Raises ValueError."""
    if path is not None and path.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it")
    if path is not None and not path.parent.is_dir():
        raise ValueError(f"{path} cannot be written: {path.parent} is not a folder")
    return path


Modulus = Annotated[
    str,
    typer.Option(
        "--modulus", "-m", metavar="MODULUS", autocompletion=complete.moduli,
        help="A name (secp256k1), an expression (2^255-19), 0x hex, or a decimal.",
    ),
]  # fmt: skip
Design = Annotated[
    str,
    typer.Argument(metavar="DESIGN", help="A design; `modmill designs` lists them.", autocompletion=complete.designs),
]
Designs = Annotated[
    list[str],
    typer.Option(
        "--design", metavar="DESIGN", help="Only this design; repeatable. Default: all.",
        autocompletion=complete.designs,
    ),
]  # fmt: skip
Multiplier = Annotated[
    str,
    typer.Option(
        "--multiplier", metavar="DESIGN", help="The design of the engine's multiplier; `modmill designs` lists them.",
        autocompletion=complete.designs,
    ),
]  # fmt: skip
Multipliers = Annotated[
    list[str],
    typer.Option(
        "--multiplier", metavar="DESIGN", help="Only engines around this design; repeatable. Default: all that fit.",
        autocompletion=complete.designs,
    ),
]  # fmt: skip
Set = Annotated[
    list[str],
    typer.Option(
        "--set", metavar="KEY=VALUE", help="A setting of the design; repeatable.", autocompletion=complete.settings
    ),
]
Target = Annotated[
    str, typer.Option(metavar="DEVICE", help="`modmill targets` lists them.", autocompletion=complete.targets)
]
Route = Annotated[bool, typer.Option("--route", help="Also place and route (minutes to hours).")]
Router = Annotated[
    str,
    typer.Option(
        help="router1; router2, which often ends sooner if wires are scarce; router2@MHZ, which reroutes slower paths; "
        "default: a recorded row of any router, else router1."
    ),
]
Floorplan = Annotated[
    bool,
    typer.Option(
        "--floorplan", help="Fix the sites of DSP blocks and block RAMs, each core in its region of the device."
    ),
]
Seeds = Annotated[int, typer.Option(min=1, max=100, help="Number of seeds of place and route, from 1 on.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout instead.")]
Record = Annotated[Path | None, typer.Option(metavar="FILE", help="Add the rows to a results file.", callback=new_file)]
Folder = Annotated[Path | None, typer.Option("--output", "-o", metavar="DIR", help="Folder to write.")]
File = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="File to write; default: stdout.", callback=new_file),
]
Top = Annotated[str, typer.Option(metavar="NAME", help="Name of the Verilog module, and prefix of its submodules.")]
Cores = Annotated[
    int, typer.Option(min=1, max=64, help="Machines side by side behind one pair of streams, or one bus.")
]
Bus = Annotated[
    str,
    typer.Option(
        metavar="BUS", help="Also write it behind a bus: axi4-lite, wishbone, apb, ahb-lite, axi-stream.",
        autocompletion=complete.buses,
    ),
]  # fmt: skip

# Options of coprocessors of curves.
CurveText = Annotated[
    str,
    typer.Option("--curve", metavar="CURVE", help="A name, parameters, or a PEM file.", autocompletion=complete.curves),
]
BusClock = Annotated[
    Literal["same", "separate"], typer.Option("--bus-clock", help="Clock behind the bus: that of the bus, or its own.")
]
KeySlots = Annotated[
    int,
    typer.Option(
        "--key-slots", min=0, max=16, help="Slots behind the bus for keys that are written once and never read back."
    ),
]
Lockstep = Annotated[
    bool,
    typer.Option(
        "--lockstep", help="Two equal engines, compared word by word: one fault in either releases no wrong result."
    ),
]
Parity = Annotated[
    bool,
    typer.Option(
        "--parity",
        help="A bit of parity in each word of the memories of numbers, programs and digits; after a wrong one only 0 "
        "leaves.",
    ),
]
CheckResult = Annotated[
    bool,
    typer.Option(
        "--check-result",
        help="Points are checked before they leave: on the curve, or both of a ladder belong together.",
    ),
]
FixedAddresses = Annotated[
    bool,
    typer.Option(
        "--fixed-addresses",
        help="For each digit of a scalar or exponent all entries of a table are read, and one is selected, so that no "
        "address depends on digits.",
    ),
]
CheckPower = Annotated[
    bool,
    typer.Option(
        "--check-result",
        help="Private powers s of x are checked before they leave: s^e = x. Then the engine computes no other powers "
        "with secret exponents.",
    ),
]
PublicExponent = Annotated[
    int, typer.Option("--public-exponent", metavar="E", help="The exponent e of --check-result and --random port.")
]
Random = Annotated[
    Literal["host", "port"],
    typer.Option(
        "--random",
        help="Who adds the random multiples of --blind to secret scalars: the host, before it sends them, or the "
        "engine, with random words from a port of its own.",
    ),
]
RandomExponent = Annotated[
    Literal["host", "port"],
    typer.Option(
        "--random",
        help="Who blinds exponents by the bits of --blind: the host, before it sends them, or the engine, with random "
        "words from a port of its own; then exponents must be inverses of --public-exponent.",
    ),
]
BlindMessages = Annotated[
    bool,
    typer.Option(
        "--blind-messages/--no-blind-messages",
        help="With --random port also blind messages: (x u^e)^d / u with a random u for each x, for a product more in "
        "each digit of d.",
    ),
]
RandomEntropy = Annotated[
    int,
    typer.Option(
        "--random-entropy", min=1, max=32, help="Least bits of entropy of a random word, for the tests of the port."
    ),
]
Blind = Annotated[int, typer.Option(min=0, max=128, help="Largest number of bits of a scalar's blinding.")]
Curve = Annotated[
    str,
    typer.Argument(
        metavar="CURVE", help="A name, a PEM file, or 'FORM KEY=VALUE ...' (p a b x y n h).",
        autocompletion=complete.curves,
    ),
]  # fmt: skip
BlindScalar = Annotated[
    int,
    typer.Option("--blind-scalar", min=0, max=128, help="Bits of a random multiple of the order that the host adds."),
]
BlindCoordinates = Annotated[
    bool, typer.Option("--blind-coordinates/--no-blind-coordinates", help="Random projective coordinates.")
]
Io = Annotated[
    str,
    typer.Option(
        help="Form of the multiplier: native, montgomery, or plain without a factor; default: one that allows sums."
    ),
]
Window = Annotated[int, typer.Option(min=1, max=6, help="Bits of a digit of a scalar.")]
Teeth = Annotated[int, typer.Option(min=1, max=8, help="Teeth of the comb for the base point.")]
Columns = Annotated[int, typer.Option(min=1, max=8, help="Tables of the comb.")]
Threads = Annotated[int, typer.Option(min=0, max=64, help="Runs interleaved; 0: as many as fill the multiplier.")]


def behind(given: Mapping[str, str | int]) -> list[str]:
    """Options of a command line by their names in Python."""
    return [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def flags(given: Iterable[str]) -> list[str]:
    """Options of a command line without values, by their names in Python."""
    return [f"--{name.replace('_', '-')}" for name in given]


def from_port(random: str, blind: int, entropy: int) -> dict[str, Any]:
    """The options of an engine for ``--random``, ``--blind`` and ``--random-entropy``; nothing for the host. Raises
    UnsupportedError if they do not fit."""
    from modmill.contract import UnsupportedError
    from modmill.engines.machine.random_port import RANDOM_WORD

    if random == "port" and not blind:
        raise UnsupportedError("--random port needs --blind BITS: the bits of the random number of each secret")
    if random == "host" and entropy != RANDOM_WORD:
        raise UnsupportedError("--random-entropy is for --random port: the host's random numbers are not tested")
    return {"random_blind": blind, "random_entropy": entropy} if random == "port" else {}


def random_words(given: Mapping[str, int]) -> list[str]:
    """Options of a command line, besides ``--blind``, for those of `from_port`."""
    return ["--random", "port", "--random-entropy", str(given["random_entropy"])] if given else []
