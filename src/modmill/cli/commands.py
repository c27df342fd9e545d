# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command ``modmill``. Every refusal is one line on stderr and exit status 2; a failed check is status 1."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from modmill.version import __version__

if sys.argv[1:] == ["--version"]:  # answered before other imports, so that it is fast
    print(f"modmill {__version__}")
    sys.exit(0)

import typer

from modmill.cli import depth, ecc, ecc_build, explore, mutate, parameters, rsa, site, vectors
from modmill.cli.options import Folder, Json, Output, Record, Route, Router, Seeds, Set, Target, Top
from modmill.cli.output import bar, require_writable, results
from modmill.numbers.shown import name as shown_name

SHOWN_BITS = 521
"""Longest number that `build` prints."""

if TYPE_CHECKING:
    from modmill.contract import Contract
    from modmill.cores.multiplier.build import Core
    from modmill.numbers.rns.base_pairs import BasePair, Sufficiency

_MESSAGE = 380
"""Largest number of characters of a refusal."""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="From a modulus and a design to a verified, measured hardware core for modular multiplication.",
)

app.add_typer(rsa.app, name="rsa")
rsa.app.command("vectors")(vectors.rsa_vectors)
for _command in (ecc_build.build, ecc_build.check, ecc_build.race, vectors.results, vectors.timing, vectors.vectors):
    ecc.app.command()(_command)
app.add_typer(ecc.app, name="ecc")
app.add_typer(parameters.app, name="parameters")

Name = Annotated[str, typer.Argument(metavar="DESIGN", help="A design; `modmill designs` lists them.")]
Modulus = Annotated[
    str, typer.Option("--modulus", "-m", help="A name (secp256k1), an expression (2^255-19), 0x hex, or a decimal.")
]
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
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="The version.")] = False,
) -> None:
    pass


@app.command()
def designs(as_json: Json = False) -> None:
    """List every design with its source, its parameters and the moduli that it serves."""
    from modmill.designs import DESIGNS

    if as_json:
        rows = [
            {"name": d.name, "paper": d.paper, "title": d.title, "source": str(d.source), "needs": d.needs,
             "parameters": [s.describe() for s in d.settings]} for d in DESIGNS
        ]  # fmt: skip
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    for d in DESIGNS:
        print(f"{d.name}{f' ({d.paper})' if d.paper else ''}: {d.title}")
        print(f"    source  {d.source}")
        print(f"    needs   {d.needs}")
        for s in d.settings:
            print(f"    --set {s.name}={s.default}  {s.meaning} ({s.accepts}{f': {s.depends}' if s.depends else ''})")
        print()


@app.command()
def moduli(as_json: Json = False) -> None:
    """List the named moduli."""
    from modmill.numbers.moduli import MODULI

    if as_json:
        rows = [{"name": m.name, "bits": m.bits, "value": hex(m.value), "source": m.source} for m in MODULI]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    for m in MODULI:
        text = m.text if len(m.text) < 50 else f"{hex(m.value)[:40]}…"
        print(f"{m.name or '':<18} {m.bits:>4} bits  {text}  [{m.source}]")


@app.command()
def targets(as_json: Json = False) -> None:
    """List the devices for synthesis."""
    from dataclasses import asdict

    from modmill.flow.targets import DEFAULT, TARGETS

    if as_json:
        rows = [
            {"name": t.name, "vendor": t.vendor, "device": t.device, "capacity": asdict(t.capacity),
             "place_and_route": t.routable, "default": t.name == DEFAULT} for t in TARGETS
        ]  # fmt: skip
        print(json.dumps(rows, indent=2))
        return
    for t in TARGETS:
        c = t.capacity
        print(
            f"{t.name:<10} {t.vendor:<8} {t.device:<10} {c.dsp:>5} DSP {c.lut:>7} LUT {c.ff:>7} FF {c.bram:>5} BRAM  "
            f"{'synthesis, place and route' if t.routable else 'synthesis'}{' (default)' if t.name == DEFAULT else ''}"
        )


@app.command()
def bases(
    modulus: Modulus,
    width: Annotated[int, typer.Option("--width", "-w", min=2, max=256, help="Channel width w in bits.")],
    columns: Annotated[int, typer.Option("--columns", "-c", min=1, help="Moduli in a row: 1 KBE, more HBE.")] = 1,
    channels: Annotated[int | None, typer.Option("--channels", "-n", min=1, help="Moduli in each base.")] = None,
    objective: Annotated[
        str, typer.Option(help="nearest: the smallest largest u; reduction: the front of fewest signed digits in u.")
    ] = "nearest",
    as_json: Json = False,
) -> None:
    """Print two bases for RNS Montgomery multiplication, with every inequality that proves them sufficient."""
    from modmill.cli.bases import reduction
    from modmill.contract import UnsupportedError
    from modmill.numbers.moduli import parse_modulus
    from modmill.numbers.rns.base_pairs import base_pair

    wanted = parse_modulus(modulus)
    if objective not in ("nearest", "reduction"):
        raise UnsupportedError(f"--objective takes nearest or reduction, not {shown_name(objective)}")
    if objective == "reduction":
        reduction(wanted, width, columns, channels, as_json=as_json)
        return
    pair, proof = base_pair(wanted.value, width, columns, n=channels)
    if as_json:
        rows = {
            f"u_{name}": [base.u[i : i + columns] for i in range(0, pair.n, columns)]
            for name, base in (("A", pair.a), ("B", pair.b))
        }
        record = {
            "modulus": hex(wanted.value), "modulus_name": wanted.name, "width": width, "channels": pair.n,
            "columns": columns, **rows, "largest_u": pair.largest_u, "largest_u_proved_minimal": pair.proved,
            **proof.describe(),
        }  # fmt: skip
        print(json.dumps(record, indent=2))
        return
    for line in _bases_lines(wanted.name or f"a {wanted.bits}-bit modulus", pair, proof):
        print(line)


def _bases_lines(name: str, pair: BasePair, proof: Sufficiency) -> Iterator[str]:
    from math import log2
    from textwrap import wrap

    from modmill.numbers.rns.base_pairs import approximate, kawamura_condition

    c = pair.columns
    kind = f"{pair.n} + {pair.n} moduli 2^{pair.w} - u in rows of {c}"
    yield f"{name}: {kind}; ~ marks a rounded number, all others are exact"
    for side, base in (("A", pair.a), ("B", pair.b)):
        rows = [" ".join(map(str, base.u[i : i + c])) for i in range(0, base.n, c)]
        text = (" " if c == 1 else " | ").join(rows)
        yield from wrap(text, 110, initial_indent=f"    {side}  ", subsequent_indent=" " * 7)
    minimal = "the smallest possible" if pair.proved else "not proved to be the smallest possible"
    yield f"    largest u {pair.largest_u}, {minimal} for {2 * pair.n} moduli"
    yield ""
    yield "Closed loop: first extension without a cox, second exact, residues up to 2^w - 1"
    error, result, most = (approximate(x) for x in (proof.coxes[1].error, proof.result, proof.largest_products))
    for symbol, value, meaning in (
        ("t", str(proof.t), "fraction bits of the cox, the fewest that suffice"),
        ("d", str(proof.offset), f"its offset in units of 2^-t; the cox's error E_B is {error}"),
        ("g", approximate(proof.gain), "the first extension gives Q <= g A"),
        ("lambda", approximate(proof.operand), f"operands below lambda p give results below {result} p"),
        ("G", str(proof.products), f"products per reduction; these bases carry up to {most}"),
    ):
        yield f"    {symbol:<7} {value:<10} {meaning}"
    yield ""
    yield "Sufficient, all of them together:"
    for row in proof.inequalities:
        yield f"    {row.name:<17} {row.text:<47} {row.numbers:<24} {'holds' if row.holds else 'FAILS'}"
    yield "Shown beside them, not used:"
    bits, needed = pair.n * pair.w, log2(proof.p)
    yield f"    n w > log2 p      {bits} {'>' if bits > needed else '<='} ~{needed:.3f}; not sufficient"
    if c == 1:
        a, b = (approximate(kawamura_condition(base, proof.t)) for base in (pair.a, pair.b))
        yield f"    n (e + d) < 1     {a} for A, {b} for B; Kawamura's condition, sufficient for least residues only"


@app.command()
def survey(
    modulus: Modulus,
    width: Annotated[int, typer.Option("--width", "-w", min=12, max=34, help="Channel width w in bits.")] = 17,
    as_json: Json = False,
) -> None:
    """Count the operations of every RNS multiplication that the HBE paper compares, and name our machine of it."""
    from modmill.numbers.moduli import parse_modulus
    from modmill.studies import rns_methods

    wanted = parse_modulus(modulus)
    found = list(rns_methods.survey(wanted.value, width))
    if as_json:
        print(json.dumps([row.describe() for row in found], indent=2))
        return
    for line in rns_methods.lines(wanted.name or f"a {wanted.bits}-bit modulus", width, found):
        print(line)


def _core(design: str, modulus: str, sets: list[str], io: str, top: str = "core") -> Core:
    from modmill.cores.multiplier.build import build
    from modmill.design import parse_set
    from modmill.designs import design as find_design

    given = find_design(design).checked(parse_set(sets))
    return build(design, modulus, io, top, **given)


@app.command()
def build(
    design: Name,
    modulus: Modulus,
    sets: Set = [],  # noqa: B006 - typer reads the default, nothing changes it
    io: Io = "plain",
    output: Folder = None,
    top: Top = "core",
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Write the core without simulating it; its files record this.")
    ] = False,
) -> None:
    """Make a core: one Verilog file with its contract, vectors, test bench and data sheet.

    It is simulated before it is written; a core with a wrong result is not written.
    """
    from modmill.cores.multiplier.build import require_replaceable

    core = _core(design, modulus, sets, io, top)
    folder = output or Path(core.name)
    require_replaceable(folder)
    with bar() as progress:
        progress(f"{core.name}: emitting, compiling, simulating", 0, 0)
        core.write(folder, check=not no_check)
    c = core.contract
    print(
        f"{folder}: {core.name}, latency {c.timing.latency}, interval {c.timing.interval}, "
        f"{core.fitted.cost.dsp:,} DSP blocks predicted{' without conversions' if io != 'native' else ''}, "
        f"{core.digest[:23]}..."
    )
    print(_factor_left(c))


def _factor_left(contract: Contract) -> str:
    """What a core computes, and the factor that it leaves on each result."""
    product = "a" if contract.operands == 1 else "a b"
    if contract.factor == 1:
        return f"o_r = {product} (mod p): no factor is left"
    square = hex(pow(contract.factor, -2, contract.p)) if contract.p.bit_length() <= SHOWN_BITS else "in README.md"
    return f"o_r = {product} R^-1 (mod p): the factor R^-1 is left; R^2 mod p: {square}"


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `modmill build` wrote.")],
    vectors: Annotated[
        int | None,
        typer.Option(min=0, max=10_000_000, help="Number of random products; default 2000, fewer if the core is slow."),
    ] = None,
    four_state: Annotated[
        bool, typer.Option("--four-state", help="Also simulate in four states with Icarus; no x may reach an output.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Verify the core in a folder: recompute its contract, simulate its RTL. Exit status 1 if it fails."""
    from modmill.cores.multiplier.check import SHOWN
    from modmill.cores.multiplier.check import check as checked

    report = checked(folder, vectors, four_state=four_state)
    if as_json:
        print(json.dumps(report.describe(), indent=2))
    else:
        print(report.line)
        for line in report.failures[:SHOWN]:
            print(f"  {line}")
        if len(report.failures) > SHOWN:
            print(f"  and {len(report.failures) - SHOWN} more")
    if not report.passed:
        raise typer.Exit(1)


@app.command()
def load(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder with a core whose modulus is loaded.")],
    modulus: Modulus,
    as_json: Json = False,
) -> None:
    """Print the words that load another modulus into a built core, one hexadecimal word a line."""
    from modmill.cores.multiplier.folder import words_for

    contract = words_for(folder, modulus).contract
    if as_json:
        print(json.dumps(contract.describe(), indent=2))
        return
    assert contract.load is not None
    for word in contract.load.words:
        print(f"{word:0{-(-contract.load.width // 4)}x}")


@app.command()
def explain(
    design: Name,
    modulus: Modulus,
    sets: Set = [],  # noqa: B006 - typer reads the default, nothing changes it
    width: Annotated[int, typer.Option(min=0, help="Columns of the output; 0: as the terminal.")] = 0,
) -> None:
    """Print the algorithm's constants and bounds, and its schedule as a cycle chart."""
    import shutil

    from modmill.cores.multiplier.explain import explanation

    core = _core(design, modulus, sets, "native")
    print(explanation(core, width or shutil.get_terminal_size((100, 24)).columns))


@app.command()
def race(
    modulus: Annotated[str, typer.Argument(metavar="MODULUS", help="As --modulus of `modmill build`.")],
    design: Annotated[list[str], typer.Option("--design", help="Race only this design; repeatable.")] = [],  # noqa: B006
    target: Target = "ecp5-85k",
    io: Io = "native",
    route: Route = False,
    router: Router = "",
    seeds: Seeds = 3,
    vectors: Annotated[int, typer.Option(min=1, max=10_000_000, help="Number of random products in each check.")] = 500,
    operation: Annotated[
        str, typer.Option(help="Race coprocessors of a curve: scalar-multiplication, multiply-base, ...")
    ] = "",
    sets: Set = [],  # noqa: B006 - typer reads the default, nothing changes it
    verify: Annotated[
        bool, typer.Option("--verify", help="Emit all RTL, and compare it with the digests of recorded rows.")
    ] = False,
    output: Output = None,
    record: Record = None,
) -> None:
    """Build, check and synthesise every design for a modulus, and print a table. Finished rows are kept.

    With --operation the modulus names a curve, and whole coprocessors race; `modmill ecc race` has more options.
    """
    if operation:
        ecc_build.race(modulus, operation, design, sets, target=target, route=route, router=router, seeds=seeds,
                       output=output, record=record)  # fmt: skip
        return
    from modmill.design import parse_set
    from modmill.numbers.moduli import parse_modulus
    from modmill.report import race_results
    from modmill.studies.race.cores import race as raced

    wanted = parse_modulus(modulus)
    require_writable(output)
    with bar() as progress:
        found = raced(
            wanted, design, target=target, io=io, with_route=route, router=router, seeds=seeds, vectors=vectors,
            settings=parse_set(sets), verify=verify, record=record, progress=progress,
        )  # fmt: skip

    def show() -> None:
        from rich.console import Console

        name = wanted.name or f"a {wanted.bits}-bit modulus"
        console = Console(width=None if sys.stdout.isatty() else 170, highlight=False, markup=False)
        console.print(race_results.table(found, f"{name} on {target}, --io {io}"))
        print("\n".join(["", *race_results.footnotes(found)]))

    about = {"modulus": hex(wanted.value), "modulus_name": wanted.name, "target": target, "io": io}
    results({**about, "designs": [s.describe() for s in found]}, output, show)
    if any(s.state == "failed" for s in found):
        raise typer.Exit(1)
    if all(s.state == "does not apply" for s in found):
        raise typer.Exit(2)


@app.command(hidden=True)
def readme(
    path: Annotated[Path, typer.Argument(metavar="README")] = Path("README.md"),
    check: Annotated[
        bool, typer.Option("--check", help="Only check whether it is up to date (status 1 if not).")
    ] = False,
    replay: Annotated[bool, typer.Option("--replay", help="Also run the README's commands for their outputs.")] = False,
) -> None:
    """Rewrite the README's results and picture and docs/results.md from the shipped rows, the picture of
    docs/architecture.md, docs/errata.md and docs/papers.md."""
    from modmill.report.architecture import redrawn
    from modmill.report.errata import markdown
    from modmill.report.readme import pages, replayed
    from modmill.report.rows import shipped_folder
    from modmill.studies.papers import items
    from modmill.studies.papers.errata import ERRATA
    from modmill.studies.race.measured_cores import race_picture

    house = path.parent / "docs" / "architecture.md"
    texts = {
        **pages(path.parent, shipped_folder()),
        path.parent / "docs" / "race.svg": race_picture(shipped_folder()),
        path.parent / "docs" / "errata.md": markdown(ERRATA.values()),
        path.parent / "docs" / "papers.md": items.markdown(),
    }
    if replay:
        with tempfile.TemporaryDirectory() as folder:
            texts[path] = replayed(texts[path], lambda words: _output(words, folder))
    if house.exists():
        texts[house] = redrawn(house.read_text(encoding="utf-8"), Path(__file__).resolve().parents[1])
    if check:
        raise typer.Exit(int(any(not p.exists() or p.read_text(encoding="utf-8") != t for p, t in texts.items())))
    for place, text in texts.items():
        place.write_text(text, encoding="utf-8")


def _output(words: Sequence[str], folder: str) -> str:
    """What this command prints in a folder for these arguments."""
    command = [sys.executable, "-m", "modmill", *words]
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout


@app.command(hidden=True)
def digests() -> None:
    """Emit every multiplier that shipped rows describe and write results/digests.json (minutes)."""
    from modmill.studies.race.known import ship

    with bar() as progress:
        print(f"{ship(progress)} digests")


@app.command(hidden=True)
def placements() -> None:
    """Solve the shipped schedules again and rewrite them (minutes)."""
    from modmill.studies.race.placements import solve_all

    with bar() as progress:
        print(f"{solve_all(lambda job: progress(job, 0, 0))} placements")


app.command()(site.reproduce)
app.command()(site.errata)
app.command()(site.view)
app.command()(mutate.mutate)
app.command()(depth.depth)
app.command()(explore.explore)


def main() -> None:
    """Run the command; turn every refusal into one line and a status. SIGTERM acts as Ctrl-C, also for running
    tools."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(_status())


def _status() -> int:
    try:
        status = app(standalone_mode=False)
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError) as error:
        return _say(_clipped(_one_line(error)), 2)
    except RuntimeError as error:  # a tool's error
        return _say(_one_line(error), 2)
    except Exception as error:
        message = getattr(error, "format_message", None)  # typer's errors: unknown option, missing argument
        if message is None:
            raise
        return _say(_clipped(message()) or "a command is missing; `modmill --help` lists the commands", 2)
    if status == 130:  # typer's status for Ctrl-C
        return _say("interrupted; finished results are kept", status)
    return status if isinstance(status, int) else 0


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{shown_name(str(error.filename))}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def _clipped(message: str) -> str:
    """A refusal shortened to a few lines of a terminal, because it may quote a long text of the user."""
    message = " ".join(message.split())
    return message if len(message) <= _MESSAGE else f"{message[: _MESSAGE - 90]} ... {message[-80:]}"


def _say(message: str, status: int) -> int:
    print(f"modmill: {message}", file=sys.stderr)
    return status
