# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The commands ``modmill rsa``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from modmill.cli import complete, options
from modmill.cli.command import command, group
from modmill.cli.output import engine_results, passphrase_of, recorded, signature_verdict, write
from modmill.cli.progress import keep, note, show

if TYPE_CHECKING:
    from modmill.cores.rsa.machine import EngineCore
    from modmill.engines.rsa.rsa import Engine
    from modmill.report.engines import EngineRaceResult

app = group("RSA with real keys on an exponentiation engine around any multiplier.")

Method = Annotated[str, typer.Option(help="window or ladder; both take the same time for every exponent.")]
Window = Annotated[int, typer.Option(min=1, max=8, help="Bits of a digit of the exponent, for --method window.")]
Io = Annotated[str, typer.Option(help="Form of the multiplier: native, montgomery, or plain without a factor.")]
Threads = Annotated[int, typer.Option(min=0, max=64, help="Powers interleaved; 0: as many as fill the multiplier.")]

Bits = Annotated[int, typer.Option(help="Length of the RSA modulus, 1024 to 4096.")]
Circuit = Annotated[bool, typer.Option("--circuit", help="The circuit of the radix-64K paper, for its multipliers.")]
Word = Annotated[int, typer.Option(min=16, max=64, help="Bits of a word of the streams.")]
Blind = Annotated[int, typer.Option(min=0, max=128, help="Largest number of bits of an exponent's blinding.")]
Modulus = Annotated[
    str,
    typer.Option(
        "--modulus", "-m", metavar="MODULUS", help="Build this modulus in, of any length, instead of --bits.",
        autocompletion=complete.moduli,
    ),
]  # fmt: skip


@command(app, "rsa build --bits 2048 --multiplier hbe -o rsa-core", "rsa build --circuit -m 2^64-59")
def build(
    bits: Bits = 2048,
    multiplier: options.Multiplier = "",
    sets: options.Set = [],  # noqa: B006 - typer reads the default, nothing changes it
    io: Io = "native",
    method: Method = "window",
    window: Window = 5,
    threads: Threads = 0,
    word: Word = 32,
    crt: Annotated[bool, typer.Option("--crt/--no-crt", help="An engine for the primes, or for the modulus.")] = True,
    blind: Blind = 64,
    cores: options.Cores = 1,
    circuit: Circuit = False,
    modulus: Modulus = "",
    output: options.Folder = None,
    top: options.Top = "engine",
    bus: options.Bus = "",
    bus_clock: options.BusClock = "same",
    key_slots: options.KeySlots = 0,
    lockstep: options.Lockstep = False,
    check_result: options.CheckPower = False,
    parity: options.Parity = False,
    fixed_addresses: options.FixedAddresses = False,
    public_exponent: options.PublicExponent = 65537,
    random: options.RandomExponent = "host",
    blind_messages: options.BlindMessages = False,
    random_entropy: options.RandomEntropy = 32,
) -> None:
    """Emit an engine: Verilog, its messages, and vectors. With CRT it has half the width of the modulus."""
    import shlex

    from modmill.cores.rsa.engine import CIRCUIT, DEFAULT
    from modmill.design import parse_set
    from modmill.engines.rsa.exponentiation import PUBLIC
    from modmill.flow.emit import require_name

    require_name(top)
    chosen, (p, width) = multiplier or (CIRCUIT if circuit else DEFAULT), _modulus(modulus, bits, crt)
    show(f"building an engine around {chosen}")
    core = _built(
        circuit, chosen, p, width, parse_set(sets), method=method, window=window, threads=threads, word=word, io=io,
        top=top, cores=cores, bus=bus, bus_clock=bus_clock, key_slots=key_slots, lockstep=lockstep,
        check_result=check_result, parity=parity, fixed_addresses=fixed_addresses, public_exponent=public_exponent,
        blind_messages=blind_messages,
        **_exponents(width, random, blind, random_entropy),
    )  # fmt: skip
    words = [
        *(("--modulus", modulus) if p else ("--bits", bits)), "--multiplier", chosen,
        *(w for s in sets for w in ("--set", s)), "--io", io,
        "--method", method, "--window", window, "--threads", threads, "--word", word, "--crt" if crt else "--no-crt",
        *(["--cores", cores] if cores > 1 else []), *(["--top", top] if top != "engine" else []), "--blind", blind,
    ]  # fmt: skip
    words += [*(["--circuit"] if circuit else []), *options.behind(core.behind), *options.flags(core.protection)]
    words += ["--public-exponent", public_exponent] if public_exponent != PUBLIC else []
    words += options.random_words(core.from_port)
    line = shlex.join(["modmill", "rsa", "build", *map(str, words)])
    target = output or Path(f"rsa-{width if p else bits}-{chosen}")
    keep(f"{target} was not written")
    folder = core.write(target, line)
    _tell(folder, core, circuit)


def _tell(folder: Path, core: EngineCore, circuit: bool) -> None:
    """Print what was built."""
    from modmill.report.sheet import UNPROVED_ENGINE, proving

    copies = (2 if core.lockstep else 1) * core.cores
    print(
        f"{folder}: {core.design}, {core.fitted.p.bit_length()}-bit moduli, "
        f"{f'{core.cores} machines, ' if core.cores > 1 else ''}"
        f"{'one power at a time' if circuit else f'{core.results} powers interleaved'}, {core.cycles(0):,} cycles for "
        f"{'it' if circuit else 'them'}, {copies * core.fitted.cost.dsp:,} DSP blocks predicted"
    )
    print(f"proofs not run: {proving(UNPROVED_ENGINE, str(folder))}")


def _exponents(width: int, random: str, blind: int, entropy: int) -> dict[str, Any]:
    """The length of exponents of an engine, and the options of its port: it makes longer ones inside."""
    port = options.from_port(random, blind, entropy)
    return {"bits": width + (0 if port else blind), **port}


@command(app, "rsa race --bits 2048", "rsa race --bits 1024 --multiplier hbe --route --seeds 1")
def race(
    bits: Bits = 2048,
    multiplier: options.Multipliers = [],  # noqa: B006
    sets: options.Set = [],  # noqa: B006 - typer reads the default, nothing changes it
    io: Io = "native",
    method: Method = "window",
    window: Window = 5,
    threads: Threads = 0,
    word: Word = 32,
    crt: Annotated[bool, typer.Option("--crt/--no-crt", help="Two powers of half the length, or one.")] = True,
    blind: Blind = 0,
    cores: options.Cores = 1,
    circuit: Circuit = False,
    modulus: Modulus = "",
    target: options.Target = "ecp5-85k",
    route: options.Route = False,
    router: options.Router = "",
    floorplan: options.Floorplan = False,
    lockstep: options.Lockstep = False,
    check_result: options.CheckPower = False,
    parity: options.Parity = False,
    fixed_addresses: options.FixedAddresses = False,
    public_exponent: options.PublicExponent = 65537,
    random: options.RandomExponent = "host",
    blind_messages: options.BlindMessages = False,
    random_entropy: options.RandomEntropy = 32,
    seeds: options.Seeds = 3,
    as_json: options.Json = False,
    record: options.Record = None,
) -> None:
    """Race whole engines around several multipliers: simulated, synthesised, routed; private operations per second."""
    from modmill.cores.rsa.engine import circuits, loaded
    from modmill.design import parse_set
    from modmill.studies.race.machines import EngineRace

    (p, width), settings = _modulus(modulus, bits, crt), parse_set(sets)
    halves = crt and not p
    keep("finished rows are kept; the same command goes on from them")
    show("building the engines")
    raced = EngineRace(target, route, seeds, record, floorplan=floorplan, router=router)
    built = partial(
        _built, circuit, p=p, width=width, settings=settings, method=method, window=window, threads=threads, word=word,
        io=io, cores=cores, lockstep=lockstep, check_result=check_result, parity=parity,
        fixed_addresses=fixed_addresses, public_exponent=public_exponent, blind_messages=blind_messages,
        **_exponents(width, random, blind, random_entropy),
    )  # fmt: skip
    entrants = list(_entrants(multiplier or (circuits() if circuit else loaded()), built, bool(multiplier), circuit))
    found: list[EngineRaceResult] = []
    for entrant in entrants:
        raced.progress = partial(show, done=len(found), total=len(entrants))
        found.append(raced.measure(*entrant))
        found[-1].per_operation = 2 if halves else 1
    recorded(record)
    title = f"RSA-{bits} private operations {'with' if halves else 'without'} CRT on {target}"
    title = f"Powers modulo a number of {width} bits on {target}" if p else title
    engine_results(found, title, {"bits": width if p else bits, "crt": halves, "target": target}, as_json)


def _entrants(
    names: list[str], built: Callable[[str], EngineCore], chosen: bool, circuit: bool
) -> Iterator[tuple[str, EngineCore, dict[str, Any]]]:
    """Name, engine and description of each engine that can be built. Raises UnsupportedError if one cannot, and its
    multiplier was ``chosen``."""
    from modmill.contract import UnsupportedError

    for name in names:
        try:
            core = built(name)
            yield f"{name} circuit" if circuit else name, core, core.about()
        except UnsupportedError as error:
            if chosen:
                raise
            note(f"{name} does not apply: {error}")


def _built(circuit: bool, name: str, p: int, width: int, settings: dict[str, str], **options: Any) -> EngineCore:
    """An engine, or with ``circuit`` one on the circuit, which has no choice of method, window, threads, form or number
    of machines. Raises UnsupportedError as `engine` does, and for such a choice."""
    from modmill.contract import UnsupportedError
    from modmill.cores.rsa.circuit import circuit_engine
    from modmill.cores.rsa.machine import engine

    if not circuit:
        return engine(name, p=p, width=width, settings=settings, **options)
    usual = {"method": ("window",), "window": (5,), "threads": (0, 1), "io": ("native",), "cores": (1,)}
    for option, values in usual.items():
        if options.pop(option) not in values:
            raise UnsupportedError(f"--circuit computes one power at a time, by squares and products; omit --{option}")
    return circuit_engine(name, p=p, width=width, settings=settings, **options)


def _modulus(text: str, bits: int, crt: bool) -> tuple[int, int]:
    """The modulus that is built in, 0 for none, and the bits of the engine's moduli. Raises UnsupportedError for a text
    that is no odd modulus, and as `engine_width` does."""
    from modmill.engines.rsa.rsa import engine_width
    from modmill.numbers.moduli import parse_modulus

    p = parse_modulus(text).value if text else 0
    return p, p.bit_length() if p else engine_width(bits, crt)


@command(
    app, "rsa run key.pem --sign file -o signature", "rsa run key.pem --verify file --signature signature",
    "rsa run key.pem --decrypt sealed --engine rsa-core",
)  # fmt: skip
def run(
    key_file: Annotated[Path, typer.Argument(metavar="KEY.pem", help="An RSA key, PEM or DER.")],
    decrypt: Annotated[Path | None, typer.Option(metavar="FILE", help="Decrypt this file.")] = None,
    encrypt: Annotated[Path | None, typer.Option(metavar="FILE", help="Encrypt this file.")] = None,
    sign: Annotated[Path | None, typer.Option(metavar="FILE", help="Sign this file.")] = None,
    verify: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Verify --signature of this file; status 1 if wrong.")
    ] = None,
    signature: Annotated[Path | None, typer.Option(metavar="FILE", help="The signature for --verify.")] = None,
    padding: Annotated[str, typer.Option(help="oaep or pkcs1 for encryption; pss or pkcs1 for signatures.")] = "",
    hash_name: Annotated[
        str, typer.Option("--hash", help="Hash of the message, of OAEP, and of their masks.")
    ] = "sha256",
    mask_hash: Annotated[str, typer.Option(help="Hash of the masks (MGF1); default: as --hash.")] = "",
    salt: Annotated[int | None, typer.Option(min=0, help="Bytes of the PSS salt; default: as the hash.")] = None,
    label: Annotated[str, typer.Option(help="The OAEP label.")] = "",
    passphrase: Annotated[Path | None, typer.Option("--passphrase-file", help="File with the passphrase.")] = None,
    multiplier: options.Multiplier = "",
    sets: options.Set = [],  # noqa: B006 - typer reads the default, nothing changes it
    engine: Annotated[
        str, typer.Option(help="model: on contracts; exact: bit-exact; rtl: simulated hardware; a folder: its engine.")
    ] = "model",
    io: Io = "native",
    method: Method = "window",
    window: Window = 5,
    threads: Threads = 1,
    crt: Annotated[bool, typer.Option("--crt/--no-crt", help="Two powers of half the length.")] = True,
    blind_message: Annotated[bool, typer.Option("--blind-message/--no-blind-message", help="A random factor.")] = True,
    blind_exponent: Annotated[int, typer.Option(min=0, max=128, help="Bits of a random multiple of p - 1.")] = 0,
    output: options.File = None,
) -> None:
    """Decrypt, encrypt, sign or verify with a real key. Every private result is checked before it is released."""
    from modmill.contract import UnsupportedError
    from modmill.engines.rsa import padding as padded
    from modmill.engines.rsa.rsa import Rsa

    wanted = [path for path in (decrypt, encrypt, sign, verify) if path is not None]
    if len(wanted) != 1:
        raise UnsupportedError("give exactly one of --decrypt, --encrypt, --sign and --verify")
    if (verify is None) != (signature is None):
        raise UnsupportedError("--verify and --signature must be given together")
    machine = find_engine(engine, multiplier, sets, method=method, window=window, threads=threads, io=io)
    show(f"computing with {engine}")
    rsa = Rsa(machine, crt=crt, blind_message=blind_message, blind_exponent=blind_exponent)
    key = padded.read_key(key_file.read_bytes(), passphrase_of(passphrase))
    data = wanted[0].read_bytes()
    sealed = padding or "oaep", hash_name, mask_hash, label.encode()
    signed = padding or "pss", hash_name, mask_hash, salt
    if verify is not None and signature is not None:
        good = padded.verify(rsa, key, data, signature.read_bytes(), *signed)
        report(machine)
        return signature_verdict(good)
    if sign is not None:
        out = padded.sign(rsa, key, data, *signed)
    elif decrypt is not None:
        out = padded.decrypt(rsa, key, data, *sealed)
    else:
        out = padded.encrypt(rsa, key, data, *sealed)
    write(out, output)
    report(machine)


@command(app, "rsa setup rsa-core -m 2^1024-105")
def setup(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `modmill rsa build` wrote.")],
    modulus: options.Modulus,
    bases: Annotated[
        int | None,
        typer.Option(metavar="SEED", help="Of a multiplier with bases=loaded: draw the bases; else the first."),
    ] = None,
) -> None:
    """Print the words that load a modulus into a built engine, one hexadecimal word a line."""
    import random

    from modmill.contract import UnsupportedError
    from modmill.cores.rsa.circuit import read_any
    from modmill.numbers.moduli import parse_modulus

    core = read_any(folder)
    if bases is not None:
        if core.fitted.choices == 1:
            raise UnsupportedError(
                f"the bases of {core.design} in {folder} are built in; --bases needs --set bases=loaded"
            )
        core = core.choose(random.Random(bases).randrange(core.fitted.choices))
    for word in core.setup(core.at(parse_modulus(modulus).value)):
        print(f"{word:0{-(-core.layout.word // 4)}x}")


def find_engine(name: str, multiplier: str, sets: list[str], *, modelled: bool = False, **options: Any) -> Engine:
    """The engine of that name around a multiplier, or the engine in that folder; ``modelled`` as in `Stored`.

    Raises UnsupportedError for a multiplier or settings beside a folder.
    """
    from modmill.contract import UnsupportedError
    from modmill.cores.rsa.engine import DEFAULT, Stored, engine_for
    from modmill.design import parse_set

    if not Path(name).is_dir():
        return engine_for(name, multiplier or DEFAULT, parse_set(sets), **options)
    if multiplier or sets:
        raise UnsupportedError(f"the engine in {name} has a fixed multiplier; omit --multiplier and --set")
    return Stored.read(name, modelled=modelled)


def report(machine: object) -> None:
    """Print the work of the simulated hardware on stderr."""
    for work in getattr(machine, "work", ()):
        note(
            f"{work.powers} power{'s' * (work.powers != 1)} modulo {work.modulus_bits} bits, {work.program},"
            f" {work.products:,} products, {work.cycles:,} cycles"
        )
