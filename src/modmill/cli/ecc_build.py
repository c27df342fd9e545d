# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The commands ``modmill ecc build`` and ``race``: coprocessors around any multiplier."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from modmill.cli import complete, options
from modmill.cli.ecc import AllowPairing, read_curve
from modmill.cli.output import either, engine_results, recorded
from modmill.cli.progress import keep, say, show

Joint = Annotated[bool, typer.Option("--joint/--no-joint", help="One table for both halves of a scalar.")]
Endomorphism = Annotated[
    bool,
    typer.Option(
        "--endomorphism/--no-endomorphism",
        help="multiply takes a scalar in two halves, on curves with a = 0 such as secp256k1.",
    ),
]
Sums = Annotated[int, typer.Option(min=0, max=8, help="Most sums in a row.")]
Word = Annotated[int, typer.Option(min=8, max=64, help="Bits of a word of the streams.")]
Operations = Annotated[
    list[str],
    typer.Option(
        "--operation",
        help="multiply, multiply-base, multiply-two or ladder; repeatable. Default: the first.",
        autocompletion=complete.operations,
    ),
]
Order = Annotated[
    bool | None,
    typer.Option("--order/--no-order", help="Also arithmetic modulo n for signatures. Default: if n is loadable."),
]


def build(
    curve: options.CurveText,
    multiplier: options.Multiplier = "montgomery-array",
    operations: Operations = [],  # noqa: B006
    sets: options.Set = [],  # noqa: B006 - typer reads the default, nothing changes it
    io: options.Io = "",
    blind: options.Blind = 0,
    random: options.Random = "host",
    random_entropy: options.RandomEntropy = 32,
    window: options.Window = 4,
    teeth: options.Teeth = 5,
    columns: options.Columns = 2,
    joint: Joint = False,
    endomorphism: Endomorphism = False,
    threads: options.Threads = 0,
    sums: Sums = 3,
    word: Word = 32,
    cores: options.Cores = 1,
    output: options.Folder = None,
    top: options.Top = "ecc",
    bus: options.Bus = "",
    bus_clock: options.BusClock = "same",
    key_slots: options.KeySlots = 0,
    lockstep: options.Lockstep = False,
    check_result: options.CheckResult = False,
    parity: options.Parity = False,
    fixed_addresses: options.FixedAddresses = False,
    order: Order = None,
    allow_pairing: AllowPairing = False,
) -> None:
    """Emit a coprocessor: Verilog, its messages, and vectors."""
    import shlex

    from modmill.cores.ecc.machine import ecc, takes_order
    from modmill.design import parse_set
    from modmill.engines.ecc.blinding import scalar_bits
    from modmill.engines.ecc.point_engine import Shape
    from modmill.flow.emit import require_name
    from modmill.report.sheet import UNPROVED_ENGINE, proving
    from modmill.studies.race.ecc import operation_of

    require_name(top)
    on = read_curve(curve, pairing=allow_pairing)
    bits = scalar_bits(on, blind)
    chosen = tuple(dict.fromkeys(operation_of(on, name) for name in operations))
    with_order = takes_order(on, multiplier, parse_set(sets), chosen) if order is None else order
    show(f"building a coprocessor of {on.title}")
    core = ecc(
        on, multiplier, parse_set(sets), operations=chosen, bits=bits,
        shape=Shape(window, teeth, columns, joint, endomorphism),
        threads=threads, sums=sums, word=word, io=io, top=top, cores=cores, order=with_order, bus=bus,
        bus_clock=bus_clock, key_slots=key_slots, lockstep=lockstep, check_result=check_result, parity=parity,
        fixed_addresses=fixed_addresses, **options.from_port(random, blind, random_entropy),
    )  # fmt: skip
    if on.arithmetic:
        say(f"{on.title}: arithmetic only, no ECDH or ECDSA: {on.unsuited()}")
    words = [
        "--curve", curve, "--multiplier", multiplier, *(["--allow-pairing"] if allow_pairing else []),
        *(w for name in core.operations for w in ("--operation", name)),
        *(w for name, value in core.given.items() for w in ("--set", f"{name}={value}")),
        "--io", core.io, "--blind", blind, "--window", window, "--teeth", teeth, "--columns", columns,
        *(["--joint"] if joint else []), *(["--endomorphism"] if endomorphism else []),
        "--threads", core.layout.threads, "--sums", sums, "--word", word,
        "--order" if core.order else "--no-order", *(["--cores", cores] if cores > 1 else []),
        *(["--top", top] if top != "ecc" else []), *options.behind(core.behind),
        *options.flags(core.protection), *options.random_words(core.from_port),
    ]  # fmt: skip
    command = shlex.join(["modmill", "ecc", "build", *map(str, words)])
    target = output or Path(f"ecc-{on.name}-{multiplier}")
    keep(f"{target} was not written")
    folder = core.write(target, command)
    cycles = ", ".join(f"{name} {core.cycles(name):,} cycles" for name in core.jobs)
    machines = f"{cores} machines, " if cores > 1 else ""
    print(
        f"{folder}: {on.title}, {multiplier}, {machines}{core.layout.threads} runs interleaved, {cycles}, "
        f"{(2 if lockstep else 1) * cores * core.fitted.cost.dsp:,} DSP blocks predicted"
    )
    print(f"proofs not run: {proving(UNPROVED_ENGINE, str(folder))}")


def race(
    raced_curve: options.Curve = "",
    curve: options.CurveText = "",
    operation: Annotated[
        str,
        typer.Option(
            help="scalar-multiplication, multiply, multiply-base, multiply-two or ladder.",
            autocompletion=complete.operations,
        ),
    ] = "scalar-multiplication",
    multiplier: options.Multipliers = [],  # noqa: B006
    sets: options.Set = [],  # noqa: B006 - typer reads the default, nothing changes it
    io: options.Io = "",
    blind: options.Blind = 0,
    random: options.Random = "host",
    random_entropy: options.RandomEntropy = 32,
    window: options.Window = 4,
    teeth: options.Teeth = 5,
    columns: options.Columns = 2,
    joint: Joint = False,
    endomorphism: Endomorphism = False,
    threads: options.Threads = 0,
    sums: Sums = 3,
    word: Word = 32,
    cores: options.Cores = 1,
    target: options.Target = "ecp5-85k",
    route: options.Route = False,
    router: options.Router = "",
    seeds: options.Seeds = 3,
    floorplan: options.Floorplan = False,
    lockstep: options.Lockstep = False,
    check_result: options.CheckResult = False,
    parity: options.Parity = False,
    fixed_addresses: options.FixedAddresses = False,
    allow_pairing: AllowPairing = False,
    as_json: options.Json = False,
    record: options.Record = None,
) -> None:
    """Race whole coprocessors around several multipliers: simulated, synthesised, routed; operations per second."""
    from modmill.design import parse_set
    from modmill.engines.ecc.blinding import scalar_bits
    from modmill.engines.ecc.point_engine import Shape
    from modmill.studies.race.ecc import race_operation

    named = either(raced_curve, curve, "ecc race needs one CURVE, for example: modmill ecc race P-256")
    on = read_curve(named, pairing=allow_pairing)
    keep("finished rows are kept; the same command goes on from them")
    show(f"racing coprocessors of {on.title}")
    found, refused = race_operation(
        on, operation, multiplier, target=target, settings=parse_set(sets), with_route=route, router=router,
        seeds=seeds, record=record, io=io,
        shape=Shape(window, teeth, columns, joint, endomorphism), threads=threads, sums=sums,
        word=word, cores=cores, lockstep=lockstep, check_result=check_result, parity=parity,
        fixed_addresses=fixed_addresses, floorplan=floorplan, progress=show,
        bits=scalar_bits(on, blind), **options.from_port(random, blind, random_entropy),
    )  # fmt: skip
    recorded(record)
    about = {"curve": on.title, "operation": operation, "target": target}
    engine_results(found, f"{on.title}, {operation}, on {target}", about, as_json, refused)
