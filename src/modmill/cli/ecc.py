# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The commands ``modmill ecc``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modmill.cli import complete, options
from modmill.cli.command import command, group
from modmill.cli.options import BlindCoordinates, BlindScalar, File, Json, Multiplier
from modmill.cli.output import passphrase_of, signature_verdict, write
from modmill.cli.progress import note, show

if TYPE_CHECKING:
    from modmill.engines.ecc.blinding import Ecc, PointEngine
    from modmill.engines.ecc.keys import Key
    from modmill.numbers.curves.affine import Curve, Point

_PATH = 1000
"""Length in characters from which a text is not a path."""
AllowPairing = Annotated[
    bool, typer.Option("--allow-pairing", help="Also curves for pairings and of even cofactor, without ECDH and ECDSA.")
]

app = group("Elliptic curves with real keys: ECDH, ECDSA, X25519, X448 and EdDSA.")
run = group("One operation with a real key through an engine.")
app.add_typer(run, name="run")

Private = Annotated[Path, typer.Argument(metavar="KEY.pem", help="A private key, PEM or DER.")]
Public = Annotated[Path, typer.Argument(metavar="KEY.pem", help="A public or private key, PEM or DER.")]
Peer = Annotated[Path, typer.Option("--peer", metavar="KEY.pem", help="The other side's public key.")]
Message = Annotated[Path, typer.Option("--message", metavar="FILE", help="The signed file.")]
SignatureFile = Annotated[Path, typer.Option("--signature", metavar="FILE", help="The signature of the file.")]
Passphrase = Annotated[Path | None, typer.Option("--passphrase-file", help="File with the key's passphrase.")]
Engine = Annotated[
    str, typer.Option("--engine", metavar="DIR|reference", help="A built core (simulated), or the reference in Python.")
]
Check = Annotated[bool, typer.Option("--check/--no-check", help="Verify a signature before it is released.")]
Hash = Annotated[str, typer.Option("--hash", help="Hash of the message.")]
Form = Annotated[str, typer.Option("--form", help="der, or raw: r followed by s.")]
Nonce = Annotated[str, typer.Option(help="deterministic (RFC 6979), hedged (the same with random data), or random.")]
Identity = Annotated[str, typer.Option("--id", help="The signer's identity; default: that of GM/T 0009.")]
LowS = Annotated[bool, typer.Option("--low-s/--any-s", help="Only s up to n / 2, as in Bitcoin.")]
AllowZero = Annotated[
    bool, typer.Option("--allow-zero/--no-allow-zero", help="Release an all-zero secret (peer of small order).")
]
Context = Annotated[str, typer.Option("--context", help="The context, a text of up to 255 bytes.")]
Prehash = Annotated[bool, typer.Option("--prehash/--no-prehash", help="Use Ed25519ph or Ed448ph.")]


@command(run, "ecc run ecdh key.pem --peer peer.pem -o secret")
def ecdh(
    key: Private,
    peer: Peer,
    passphrase: Passphrase = None,
    engine: Engine = "reference",
    blind_scalar: BlindScalar = 0,
    blind_coordinates: BlindCoordinates = False,
    output: File = None,
) -> None:
    """Compute the shared secret of two keys on a Weierstrass curve: the raw x-coordinate. The peer's point is
    validated."""
    from modmill.engines.ecc import ecdh as protocol

    own, other = _pair(key, peer, passphrase)
    ecc = find_ecc(engine, own.curve, blind_scalar, blind_coordinates)
    write(protocol.exchange(ecc, [(own.scalar, _point(ecc, other))])[0], output)
    report(ecc)


@command(
    run, "ecc run ecdsa-sign key.pem --message file -o signature",
    "ecc run ecdsa-sign key.pem --message file --engine ecc-core -o signature", name="ecdsa-sign",
)  # fmt: skip
def ecdsa_sign(
    key: Private,
    message: Message,
    hash_name: Hash = "sha256",
    nonce: Nonce = "deterministic",
    form: Form = "der",
    low_s: LowS = False,
    check: Check = True,
    passphrase: Passphrase = None,
    engine: Engine = "reference",
    blind_scalar: BlindScalar = 0,
    blind_coordinates: BlindCoordinates = False,
    output: File = None,
) -> None:
    """Sign a file with ECDSA."""
    from modmill.engines.ecc import ecdsa

    own = _key(key, passphrase)
    ecc = find_ecc(engine, own.curve, blind_scalar, blind_coordinates, check)
    (signature,) = ecdsa.sign(ecc, [(own.scalar, message.read_bytes())], hash_name, nonce, low_s=low_s)
    write(ecdsa.encode(own.curve, signature, form), output)
    report(ecc, order=True)


@command(run, "ecc run ecdsa-verify key.pem --message file --signature signature", name="ecdsa-verify")
def ecdsa_verify(
    key: Public,
    message: Message,
    signature: SignatureFile,
    hash_name: Hash = "sha256",
    form: Form = "der",
    low_s: LowS = False,
    passphrase: Passphrase = None,
    engine: Engine = "reference",
) -> None:
    """Verify a file's ECDSA signature; status 1 if it is wrong."""
    from modmill.engines.ecc import ecdsa

    theirs = _key(key, passphrase)
    ecc = find_ecc(engine, theirs.curve)
    Q = _point(ecc, theirs)
    numbers = ecdsa.decode(theirs.curve, signature.read_bytes(), form)
    (good,) = ecdsa.verify(ecc, [(Q, message.read_bytes(), numbers)], hash_name, low_s=low_s)
    report(ecc, order=True)
    signature_verdict(good)


@command(run, "ecc run sm2-sign key.pem --message file --id alice -o signature", name="sm2-sign")
def sm2_sign(
    key: Private,
    message: Message,
    identity: Identity = "",
    nonce: Nonce = "deterministic",
    form: Form = "der",
    check: Check = True,
    passphrase: Passphrase = None,
    engine: Engine = "reference",
    blind_scalar: BlindScalar = 0,
    blind_coordinates: BlindCoordinates = False,
    output: File = None,
) -> None:
    """Sign a file with SM2 and SM3."""
    from modmill.engines.ecc import ecdsa, sm2

    own = _key(key, passphrase)
    ecc = find_ecc(engine, own.curve, blind_scalar, blind_coordinates, check)
    (signature,) = sm2.sign(ecc, [(own.scalar, message.read_bytes())], identity.encode() or sm2.ID, nonce)
    write(ecdsa.encode(own.curve, signature, form), output)
    report(ecc, order=True)


@command(run, "ecc run sm2-verify key.pem --message file --id alice --signature signature", name="sm2-verify")
def sm2_verify(
    key: Public,
    message: Message,
    signature: SignatureFile,
    identity: Identity = "",
    form: Form = "der",
    passphrase: Passphrase = None,
    engine: Engine = "reference",
) -> None:
    """Verify a file's SM2 signature; status 1 if it is wrong."""
    from modmill.engines.ecc import ecdsa, sm2

    theirs = _key(key, passphrase)
    ecc = find_ecc(engine, theirs.curve)
    numbers = ecdsa.decode(theirs.curve, signature.read_bytes(), form)
    item = _point(ecc, theirs), message.read_bytes(), numbers
    (good,) = sm2.verify(ecc, [item], identity.encode() or sm2.ID)
    report(ecc)
    signature_verdict(good)


def _ladder(name: str) -> None:
    """Add the key exchange command of a Montgomery curve."""

    def exchange(
        key: Private,
        peer: Peer,
        allow_zero: AllowZero = False,
        passphrase: Passphrase = None,
        engine: Engine = "reference",
        blind_scalar: BlindScalar = 0,
        blind_coordinates: BlindCoordinates = False,
        output: File = None,
    ) -> None:
        from modmill.contract import UnsupportedError
        from modmill.engines.ecc.ecdh import exchange_u, public_u

        own, other = _pair(key, peer, passphrase)
        if name not in own.curve.aliases:
            raise UnsupportedError(f"{name} needs a key of its own curve; this key is on {own.curve.title}")
        ecc = find_ecc(engine, own.curve, blind_scalar, blind_coordinates)
        public = other.public or public_u(ecc, [other.private])[0]
        write(exchange_u(ecc, [(own.private, public)], allow_zero=allow_zero)[0], output)
        report(ecc)

    exchange.__doc__ = f"Compute the raw shared secret of two {name} keys."
    word = name.lower()
    command(run, f"ecc run {word} key.pem --peer peer.pem -o secret", name=word)(exchange)


for _name in ("X25519", "X448"):
    _ladder(_name)


@command(run, "ecc run eddsa-sign key.pem --message file -o signature", name="eddsa-sign")
def eddsa_sign(
    key: Private,
    message: Message,
    context: Context = "",
    prehash: Prehash = False,
    check: Check = True,
    passphrase: Passphrase = None,
    engine: Engine = "reference",
    blind_scalar: BlindScalar = 0,
    blind_coordinates: BlindCoordinates = False,
    output: File = None,
) -> None:
    """Sign a file with Ed25519 or Ed448, according to the key."""
    from modmill.engines.ecc import eddsa

    own = _key(key, passphrase)
    ecc = find_ecc(engine, own.curve, blind_scalar, blind_coordinates, check)
    (signature,) = eddsa.sign(ecc, [(own.private, message.read_bytes())], context.encode(), prehash)
    write(signature, output)
    report(ecc, order=True)


@command(run, "ecc run eddsa-verify key.pem --message file --signature signature", name="eddsa-verify")
def eddsa_verify(
    key: Public,
    message: Message,
    signature: SignatureFile,
    context: Context = "",
    prehash: Prehash = False,
    passphrase: Passphrase = None,
    engine: Engine = "reference",
) -> None:
    """Verify a file's Ed25519 or Ed448 signature, with the cofactor; status 1 if it is wrong."""
    from modmill.engines.ecc import eddsa

    theirs = _key(key, passphrase)
    ecc = find_ecc(engine, theirs.curve)
    public = theirs.public or eddsa.public(ecc, [theirs.private])[0]
    item = public, message.read_bytes(), signature.read_bytes()
    (good,) = eddsa.verify(ecc, [item], context.encode(), prehash)
    report(ecc, order=True)
    signature_verdict(good)


@command(app, "ecc curves")
def curves(as_json: Json = False) -> None:
    """List every named curve with its form, length, object identifier and source."""
    import json

    from modmill.numbers.curves.named import CURVES

    if as_json:
        rows = [{"name": c.name, "aliases": list(c.aliases), "form": type(c).__name__, "bits": c.bits, "cofactor": c.h,
                 "oid": c.oid, "source": c.source} for c in CURVES]  # fmt: skip
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    for curve in CURVES:
        names = ", ".join((curve.name, *curve.aliases))
        print(f"{names}: {type(curve).__name__}, {curve.bits} bits, cofactor {curve.h}, {curve.oid}; {curve.source}")


@command(app, "ecc curve P-256", "ecc curve 'weierstrass p=11 a=1 b=6 x=2 y=4 n=13 h=1'", name="curve")
def curve_(text: options.Curve) -> None:
    """Validate a curve and print its parameters. An unusable curve is refused."""
    show("validating the curve")
    curve = read_curve(text)
    curve.validate()
    print(f"{curve.title}: {type(curve).__name__}, {curve.bits} bits, {curve.source}")
    values = {"p": curve.p, **curve.coefficients(), "x": curve.base[0], "y": curve.base[1], "n": curve.n, "h": curve.h}
    for letter, value in values.items():
        print(f"    {letter} = {value:#x}")


@command(app, "ecc program P-256 --multiplier hbe", "ecc program P-256 --multiplier hbe --operation multiply")
def program(
    curve: options.Curve,
    multiplier: Multiplier,
    operation: Annotated[
        str,
        typer.Option(
            help="Draw the rows of this operation; default: a table of all.", autocompletion=complete.operations
        ),
    ] = "",
    io: Annotated[
        str, typer.Option(help="Form of the multiplier: native, montgomery, or plain without a factor.")
    ] = "native",
    sums: Annotated[int, typer.Option(help="Most sums in a row.")] = 3,
    product_distance: Annotated[int, typer.Option(help="Rows after which a product can be read.")] = 1,
    sum_distance: Annotated[int, typer.Option(help="Rows after which a sum can be read.")] = 1,
    window: Annotated[int, typer.Option(min=2, max=6, help="Bits of a digit of a given point.")] = 4,
    teeth: Annotated[int, typer.Option(min=1, max=9, help="Bits of a digit of the comb.")] = 5,
    columns: Annotated[int, typer.Option(min=1, max=8, help="Digits of the comb in a pass.")] = 2,
    joint: Annotated[bool, typer.Option("--joint/--no-joint", help="One table for both halves of a scalar.")] = False,
    endomorphism: Annotated[
        bool, typer.Option("--endomorphism/--no-endomorphism", help="multiply takes a scalar in two halves.")
    ] = False,
    sets: options.Set = [],  # noqa: B006
    width: Annotated[int, typer.Option(min=40, help="Columns of the chart.")] = 100,
) -> None:
    """Print the programs for multiples of points: numbers of rows, products and slots, or the rows drawn."""
    from modmill.cores.ecc.explain import OnDesign, explanation, table
    from modmill.design import parse_set
    from modmill.designs import design
    from modmill.engines.ecc.point_engine import Shape

    show(f"assembling the programs on {multiplier}")
    on = OnDesign(
        read_curve(curve), multiplier, io, sums, (product_distance, sum_distance),
        Shape(window, teeth, columns, joint, endomorphism), design(multiplier).checked(parse_set(sets)),
    )  # fmt: skip
    print(explanation(on, operation, width) if operation else table(on))


def read_curve(text: str, *, pairing: bool = False) -> Curve:
    """The curve of a user's text: a name, parameters, or a file with `EC PARAMETERS` or a key. ``pairing`` as in
    `parse_curve`.

    Raises ValueError for any other text, and for a curve that fails its validation.
    """
    from modmill.engines.ecc.keys import read_curve as of_file
    from modmill.numbers.curves.text import parse_curve

    if "=" not in text and len(text) < _PATH and Path(text).is_file():
        return of_file(Path(text).read_bytes(), pairing=pairing)
    return parse_curve(text, pairing=pairing)


def _engine(text: str, curve: Curve, modelled: bool) -> PointEngine:
    """The engine named by ``--engine``, for a curve."""
    from modmill.contract import UnsupportedError
    from modmill.cores.ecc.engine import ExactPointEngine, RtlPointEngine
    from modmill.cores.ecc.machine import read
    from modmill.engines.ecc.blinding import ReferenceEngine

    show(f"computing with {text}")
    if text == "reference":
        return ReferenceEngine(curve)
    if not Path(text).is_dir():
        raise UnsupportedError(f"--engine takes reference or the folder of a built core; {text} is neither")
    core = read(text)
    if core.curve.arithmetic:
        raise UnsupportedError(f"the core in {text} is only for arithmetic, not for keys: {core.curve.unsuited()}")
    if core.curve != curve:
        raise UnsupportedError(f"the core in {text} is for {core.curve.title}, the key for {curve.title}")
    return ExactPointEngine(core) if modelled else RtlPointEngine(core)


def find_ecc(
    engine: str, curve: Curve, blind: int = 0, coordinates: bool = False, check: bool = True, *, modelled: bool = False
) -> Ecc:
    """The protocols on the engine named by ``--engine``. ``modelled``: interpret a core's programs, not its Verilog."""
    from modmill.engines.ecc.blinding import Ecc, HostOrder

    found = _engine(engine, curve, modelled)
    order = getattr(found, "order", HostOrder())
    return Ecc(found, blind_scalar=blind, blind_coordinates=coordinates, check=check, order=order)


def _key(path: Path, passphrase: Path | None = None) -> Key:
    from modmill.engines.ecc.keys import read_key

    return read_key(path.read_bytes(), passphrase_of(passphrase))


def _pair(own: Path, peer: Path, passphrase: Path | None) -> tuple[Key, Key]:
    """A key and the peer's key, on one curve. Raises UnsupportedError if their curves differ."""
    from modmill.contract import UnsupportedError

    first, second = _key(own, passphrase), _key(peer)
    if first.curve != second.curve:
        raise UnsupportedError(f"the keys are on different curves, {first.curve.title} and {second.curve.title}")
    return first, second


def _point(ecc: Ecc, key: Key) -> Point:
    """The public point of a key; computed for a private key without it."""
    return ecc.multiply_base([key.scalar])[0] if key.public is None else key.point


def report(ecc: Ecc, order: bool = False) -> None:
    """Print on stderr a line for each item of an engine's ``work``, and where the arithmetic modulo the order ran."""
    work = getattr(ecc.engine, "work", ())
    for piece in work:
        note(f"{piece}")
    if work and order:
        note(f"arithmetic modulo the order: {ecc.order.where}")
