# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill``: all commands, and those that make multipliers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modmill.cli import (
    asic,
    attack,
    bases,
    certify,
    complete,
    depth,
    ecc,
    ecc_build,
    explore,
    lists,
    mutate,
    parameters,
    rsa,
    site,
    soc,
    upkeep,
    vectors,
)  # fmt: skip
from modmill.cli import bitstream as bitstreams
from modmill.cli import bus as buses
from modmill.cli import check as checks
from modmill.cli import prove as proofs
from modmill.cli import recommend as recommends
from modmill.cli import search as searches
from modmill.cli import serve as devices
from modmill.cli import sweep as sweeps
from modmill.cli.command import Quiet, Verbose, command, group
from modmill.cli.options import (
    Bus,
    BusClock,
    Design,
    Designs,
    Folder,
    Json,
    Modulus,
    Record,
    Route,
    Router,
    Seeds,
    Set,
    Target,
    Top,
)  # fmt: skip
from modmill.cli.output import either, recorded, results
from modmill.cli.progress import keep, show
from modmill.version import __version__

SHOWN_BITS = 521
"""Longest number that `build` prints."""

if TYPE_CHECKING:
    from modmill.contract import Contract
    from modmill.cores.multiplier.build import Core

app = group(
    "From a modulus and a design to a verified, measured hardware core for modular multiplication.", completion=True
)

Io = Annotated[
    str,
    typer.Option(
        help="plain: integers below p, a b mod p; montgomery: the same with a b R^-1 mod p; native: the design's own "
        "representation."
    ),
]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"modmill {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="The version.")
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    context.obj = {"quiet": quiet, "verbose": verbose}


def _core(design: str, modulus: str, sets: list[str], io: str, top: str = "core", **bus: str) -> Core:
    from modmill.cores.multiplier.build import build
    from modmill.design import parse_set
    from modmill.designs import design as find_design

    given = find_design(design).checked(parse_set(sets))
    show(f"choosing constants and schedule of {design}")
    return build(design, modulus, io, top, **bus, **given)


@command(app, "build wide -m P-256 -o multiplier", "build sor-1m-p -m secp256k1 --set n=20 --io native")
def build(
    design: Design,
    modulus: Modulus,
    sets: Set = [],  # noqa: B006 - typer reads the default, nothing changes it
    io: Io = "plain",
    output: Folder = None,
    top: Top = "core",
    bus: Bus = "",
    bus_clock: BusClock = "same",
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Write the core without simulating it; its files record this.")
    ] = False,
) -> None:
    """Make a core: one Verilog file with its contract, vectors, test bench and data sheet.

    It is simulated before it is written; a core with a wrong result is not written.
    """
    from modmill.cores.multiplier.build import require_replaceable
    from modmill.report.sheet import UNPROVED, proving

    core = _core(design, modulus, sets, io, top, bus=bus, bus_clock=bus_clock)
    folder = output or Path(core.name)
    require_replaceable(folder)
    keep(f"{folder} was not written")
    show(f"building {core.name}")
    core.write(folder, check=not no_check)
    c = core.contract
    print(
        f"{folder}: {core.name}, latency {c.timing.latency}, interval {c.timing.interval}, "
        f"{core.fitted.cost.dsp:,} DSP blocks predicted{' without conversions' if io != 'native' else ''}, "
        f"{core.digest[:23]}..."
    )
    print(_factor_left(c))
    print(f"proofs not run: {proving(UNPROVED, str(folder))}")


def _factor_left(contract: Contract) -> str:
    """What a core computes, and the factor that it leaves on each result."""
    product = "a" if contract.operands == 1 else "a b"
    if contract.factor == 1:
        return f"o_r = {product} (mod p): no factor is left"
    square = hex(pow(contract.factor, -2, contract.p)) if contract.p.bit_length() <= SHOWN_BITS else "in README.md"
    return f"o_r = {product} R^-1 (mod p): the factor R^-1 is left; R^2 mod p: {square}"


@command(app, "load my-core -m secp256k1")
def load(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder with a core whose modulus is loaded.")],
    modulus: Modulus,
    as_json: Json = False,
) -> None:
    """Print the words that load another modulus into a built core, one hexadecimal word a line."""
    from modmill.cores.folder import kind_of
    from modmill.cores.multiplier.folder import words_for

    if (kind := kind_of(folder)) != "a multiplier":
        other = f"; modmill rsa setup {folder} -m MODULUS is for it" if kind == "an RSA engine" else ""
        raise ValueError(f"load takes a folder with a multiplier, and {folder} holds {kind}{other}")
    contract = words_for(folder, modulus).contract
    if as_json:
        print(json.dumps(contract.describe(), indent=2))
        return
    assert contract.load is not None
    for word in contract.load.words:
        print(f"{word:0{-(-contract.load.width // 4)}x}")


@command(app, "explain sor-1m-p -m 2^61-1 --set n=20", "explain solinas -m P-256")
def explain(
    design: Design,
    modulus: Modulus,
    sets: Set = [],  # noqa: B006 - typer reads the default, nothing changes it
    width: Annotated[int, typer.Option(min=0, help="Columns of the output; 0: as the terminal.")] = 0,
) -> None:
    """Print the algorithm's constants and bounds, and its schedule as a cycle chart."""
    import shutil

    from modmill.cores.multiplier.explain import explanation

    core = _core(design, modulus, sets, "native")
    print(explanation(core, width or shutil.get_terminal_size((100, 24)).columns))


@command(app, "race secp256k1", "race P-256 --design solinas --design wide --route")
def race(
    raced_modulus: Annotated[
        str, typer.Argument(metavar="MODULUS", help="As --modulus.", autocompletion=complete.moduli)
    ] = "",
    modulus: Modulus = "",
    design: Designs = [],  # noqa: B006
    target: Target = "ecp5-85k",
    io: Io = "native",
    route: Route = False,
    router: Router = "",
    seeds: Seeds = 3,
    vectors: Annotated[int, typer.Option(min=1, max=10_000_000, help="Number of random products in each check.")] = 500,
    sets: Set = [],  # noqa: B006 - typer reads the default, nothing changes it
    verify: Annotated[
        bool, typer.Option("--verify", help="Emit all RTL, and compare it with the digests of recorded rows.")
    ] = False,
    as_json: Json = False,
    record: Record = None,
) -> None:
    """Build, check and synthesise every design for a modulus, and print a table. Finished rows are kept.

    `modmill rsa race` and `modmill ecc race` do the same with whole engines.
    """
    from modmill.design import parse_set
    from modmill.numbers.moduli import parse_modulus
    from modmill.report import race_results
    from modmill.studies.race.cores import race as raced

    wanted = parse_modulus(
        either(raced_modulus, modulus, "race needs one MODULUS, for example: modmill race secp256k1")
    )
    keep("finished rows are kept; the same command goes on from them")
    show(f"racing {wanted.name or f'a {wanted.bits}-bit modulus'}")
    found = raced(
        wanted, design, target=target, io=io, with_route=route, router=router, seeds=seeds, vectors=vectors,
        settings=parse_set(sets), verify=verify, record=record, progress=show,
    )  # fmt: skip

    def print_table() -> None:
        from rich.console import Console

        name = wanted.name or f"a {wanted.bits}-bit modulus"
        console = Console(width=None if sys.stdout.isatty() else 170, highlight=False, markup=False)
        console.print(race_results.table(found, f"{name} on {target}, --io {io}"))
        print("\n".join(["", *race_results.footnotes(found)]))

    about = {"modulus": hex(wanted.value), "modulus_name": wanted.name, "target": target, "io": io}
    results({**about, "designs": [s.describe() for s in found]}, as_json, print_table)
    recorded(record)
    if any(s.state == "failed" for s in found):
        raise typer.Exit(1)
    if all(s.state == "does not apply" for s in found):
        raise typer.Exit(2)


command(app, "check my-core", "check my-core --vectors 100000 --json")(checks.check)
command(app, "prove my-core", "prove my-core --public-modulus --json")(proofs.prove)
command(app, "designs", "designs solinas")(lists.designs)
command(app, "moduli")(lists.moduli)
command(app, "targets")(lists.targets)
command(app, "bases -m P-256 -w 17", "bases -m secp256k1 -w 34 --objective reduction")(bases.bases)
command(app, "survey -m P-256")(bases.survey)
command(app, "reproduce sor", "reproduce -o site")(site.reproduce)
command(app, "errata", "errata sor 3")(site.errata)
command(app, "view", "view site --no-browser --port 8000")(site.view)
command(app, "mutate my-core --count 100 --seed 1", "mutate --subject multistep")(mutate.mutate)
command(app, "depth my-core")(depth.depth)
command(app, "asic my-core --liberty cells.lib")(asic.asic)
command(app, "serve my-core", "serve my-core --socket /tmp/x25519")(devices.serve)
command(app, "bus my-core", "bus my-core --route --record results/buses.jsonl")(buses.bus)
command(app, "bitstream x25519-core", "bitstream rsa-core --board ecpix5 -o board")(bitstreams.bitstream)
command(app, "sweep results/unrouted.toml", "sweep results/unrouted.toml --most 30 --store rows")(sweeps.sweep)
command(app, "recommend -m P-256 --target ecp5-25k --max-dsp 20", "recommend -m 2^255-19 --max-us 1 --want area")(
    recommends.recommend
)
command(app, "search -m P-256 --target ecp5-25k --max-dsp 20", "search -m 2^255-19 --route --most-routed 5")(
    searches.search
)
command(app, "explore --seconds 60 --design multistep")(explore.explore)
command(app, hidden=True)(upkeep.readme)
command(app, hidden=True)(upkeep.digests)
command(app, hidden=True)(upkeep.placements)

command(rsa.app, "rsa check rsa-core --short")(checks.check)
command(rsa.app, "rsa vectors --count 10", name="vectors")(vectors.rsa_vectors)
command(rsa.app, "rsa keygen --bits 2048 --engine rsa-core -o key.pem", name="keygen")(certify.rsa_keygen)
command(ecc.app, "ecc keygen P-256 --engine ecc-core -o key.pem", name="keygen")(certify.ecc_keygen)
command(app, "acvp request.json --engine ecc-core -o response.json")(certify.acvp)
command(ecc.app, "ecc build --curve P-256 --operation multiply-base -o ecc-core")(ecc_build.build)
command(ecc.app, "ecc check ecc-core")(checks.check)
command(ecc.app, "ecc race P-256", "ecc race X25519 --multiplier pseudo-mersenne --route")(ecc_build.race)
command(ecc.app, "ecc vectors --curve P-256 --count 100", "ecc vectors --engine rtl --curve X25519")(vectors.vectors)
command(ecc.app, "ecc timing --curve P-256 --scalars 100")(vectors.timing)
command(ecc.app, "ecc results")(vectors.results)
app.add_typer(attack.app, name="attack")
app.add_typer(rsa.app, name="rsa")
app.add_typer(ecc.app, name="ecc")
app.add_typer(parameters.app, name="parameters")
app.add_typer(soc.app, name="soc")
app.add_typer(sweeps.app, name="rows")
