# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Proofs of the RTL in a folder, for all operands. Only record and Verilog are read; the core is not built again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

from modmill.contract import Binary, Digits, Form
from modmill.cores.folder import CERTIFICATE, json_object, kind_of, read_text
from modmill.cores.multiplier.noted import note
from modmill.cores.proofs.blinded_proof import blinded_time, is_blinded
from modmill.cores.proofs.certified import certificate_digest, certificate_lines, certified
from modmill.cores.proofs.cluster_proof import cluster_time
from modmill.cores.proofs.engine_noted import note_engine
from modmill.cores.proofs.engine_proof import CIRCUIT_HEADERS, HEADERS, circuit_time, machine_time, router_time
from modmill.cores.proofs.engine_theorem import class_of, operations_of
from modmill.cores.proofs.locked_proof import locked_time, sent_in_reset
from modmill.engines.machine.lockstep import engine_module
from modmill.engines.theorem.parts import Part
from modmill.flow import tools
from modmill.flow.emit import digest
from modmill.proofs.arithmetic.products import Claim, ProductProof, prove_products
from modmill.proofs.arithmetic.residue_words import Channels
from modmill.proofs.checker.recheck import RefusedError
from modmill.proofs.checker.replay import check
from modmill.proofs.handshake.constant_time import PUBLIC, ConstantTime, constant_time
from modmill.proofs.handshake.control import ControlProof, prove_control
from modmill.proofs.handshake.monitors import Pace
from modmill.proofs.netlist import Netlist
from modmill.report import sheet
from modmill.report.proof_rows import record_proof

_FILES = {
    "a multiplier": ("contract.json", "core.v"),
    "an RSA engine": ("engine.json", "engine.v"),
    "a coprocessor of a curve": ("ecc.json", "ecc.v"),
}
"""Record and Verilog of each kind of folder."""
_MOST_RESET = 10_000
"""Cycles of a reset that are followed at most."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSUMED = (
    "Yosys {yosys} reads the Verilog as synthesis does",
    "an output bit of a cell depends on no other inputs than Modmill's rules say",
    "a memory takes the same time for every address, and contents at power-up do not depend on data",
)
_FOR_PRODUCTS = (
    "a cell computes what Modmill's rules say",
    "registers that no operand reaches and no reset sets begin with random bits, others alone and between products",
    "pauses and stalls change no result: only runs without them are followed",
)
_FOR_CONTROL = (
    "each reset lasts {} cycles at least, and registers may contain anything before it",
    "no path from operands to the handshake is left out: this is the proof of constant time",
)
_FOR_OPERATIONS = (
    "messages put digits and inputs in their places before a run, and send its results; `check` simulates them",
    "SETUP has loaded the modulus and the constants of the data sheet, and the blind is not 0",
    "points are on the curve, and multiples of the base point if the curve is for arithmetic only; p and n are prime",
    "each product is as the contract of the multiplier says",
)
ADDRESSES = "addresses of memories"
"""What depends on no data, besides the handshake, in an engine with fixed addresses."""
PUBLIC_MODULUS = " for a public modulus"
_HEADERS = "the words that the machine takes in the states {states} are the header words of README.md"
_FROM_BLOCK = "the block for random words gives the machine the digits and factors of README.md; `check` simulates it"
_RANDOM_HEADERS = (
    "so are the words that the block for random words takes as a command and as a number of words of digits"
)
_CALM = "no test of random words fails; how they depend on each other does not count"
_PUBLIC_BITS = "a job of variable time reads only bits of its own exponent, which is public"
_LOCKED = (
    "each reset lasts {} cycles at least, and registers that no reset sets do not change what an engine sends",
    "no check of a result fails, and nothing changes what an engine does",
)


@dataclass(frozen=True)
class Proof:
    """A proof of constant time. ``about``: what the record of the folder says; ``found``: the result of each module;
    ``but``: the words of data that are public; ``assumed``: what the proof assumes; ``notes``: what does not fit.
    ``claim``, ``products``: what was to be proved of the results, and how far it is, if this was asked for;
    ``control``: the same of the handshake; ``operations``: the parts of what an engine computes."""

    folder: str
    about: Mapping[str, Any]
    found: Mapping[str, ConstantTime]
    but: str = ""
    assumed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    claim: Claim | None = None
    products: ProductProof | None = None
    control: ControlProof | None = None
    public_modulus: bool = False
    operations: tuple[Part, ...] = ()

    @property
    def timing(self) -> str:
        """State of the proof of constant time."""
        return "OPEN" if any(found.state == "OPEN" for found in self.found.values()) else "PROVED"

    @property
    def state(self) -> str:
        """PROVED, OPEN or REFUTED, of all that was to be proved."""
        states = {self.timing, *(proof.state for proof in (self.control, self.products, *self.operations) if proof)}
        return next((state for state in ("REFUTED", "OPEN") if state in states), "PROVED")

    def states(self, folder: Path) -> dict[str, Any]:
        """What the record of the folder says of the proofs that were made."""
        made: dict[str, Any] = {"constant_time": f"{self.timing}{PUBLIC_MODULUS if self.public_modulus else ''}"}
        if self.products:
            made["products"] = self.products.state
            if self.products.state == "PROVED":
                made["certificate"] = certificate_digest(folder)
        if self.control:
            made["control"] = self.control.state
            made["parts"] = {part.name: part.state for part in self.control.parts}
        if self.operations:
            made["operations"] = _whole(self.operations)
            made["parts"] = {part.name: part.state for part in self.operations}
        return made

    def theorem(self, found: ConstantTime) -> str:
        """The statement for a module."""
        return f"{_listed(found.handshake)} do not depend on {_listed(found.data)} in any cycle{self.but}"

    @property
    def lines(self) -> list[str]:
        """The proof as text."""
        out = [f"{self.timing} constant time of {self.about['name']}"]
        for module, found in self.found.items():
            out.append(f"  {found.state} {module}: {self.theorem(found)}")
            if found.remains:
                out.append(f"    remains: {found.remains}")
            if found.path:
                out += [
                    "    remains: a path of nets, which values may or may not take:",
                    f"    {' -> '.join(found.path)}",
                ]
            for kind in dict.fromkeys(table.kind for table in found.tables):
                names = [table.name for table in found.tables if table.kind == kind]
                more = f" and {len(names) - 1} more" if len(names) > 1 else ""
                out.append(f"    memory {names[0]}{more}: {kind}")
        if self.control:
            out += self._control_lines(self.control)
        if self.products and self.claim:
            out += self._product_lines(self.products, self.claim)
        if self.operations:
            out.append(f"{_whole(self.operations)} operations of {self.about['name']}")
            for part in self.operations:
                out += [f"  {part.state} {part.name}: {part.theorem}", *(f"    remains: {x}" for x in part.remains)]
        out += [f"  assumed: {line}" for line in self.assumed]
        return [*out, f"  RTL {self.about['digest']}", *(f"  note: {note}" for note in self.notes)]

    def _control_lines(self, control: ControlProof) -> Iterator[str]:
        yield f"{control.state} control of {self.about['name']}"
        for part in control.parts:
            yield f"  {part.state} {part.name}: {part.theorem}"
            if part.states:
                yield f"    {part.states:,} states"
            yield from (f"    made by {line} after the acceptance" for line in part.made)
            if part.remains:
                yield f"    {'it happens' if part.state == 'REFUTED' else 'remains'}: {part.remains}"
            if part.schedule:
                yield f"    in the last of {len(part.schedule)} cycles after the reset, with"
                yield from (f"      {name} {bits}" for name, bits in part.signals.items())

    def _product_lines(self, products: ProductProof, claim: Claim) -> Iterator[str]:
        seconds, runs = sum(o.seconds for o in products.outcomes), len(products.outcomes)
        yield f"{products.state} products of {self.about['name']}"
        yield f"  {claim.line}"
        cycles = "first operands in every cycle of an interval whose state no earlier one covers"
        yield f"  {runs} runs: {cycles}, alone and between others; {seconds:.1f} s"
        for outcome in products.open:
            yield from (f"    remains: {outcome.start.line}: {line}" for line in outcome.open)

    def describe(self) -> dict[str, Any]:
        """The proof as JSON."""
        return {
            **self.about,
            "folder": self.folder,
            "constant_time": {
                "state": self.timing,
                "modules": {
                    module: {
                        "state": found.state, "theorem": self.theorem(found), "path": list(found.path),
                        "remains": found.remains,
                        "memories": [vars(table) for table in found.tables],
                    } for module, found in self.found.items()
                },
            },
            **({"products": {
                "state": self.products.state, "theorem": self.claim.line,
                "runs": [
                    {"phase": o.start.phase, "full": o.start.full, "open": list(o.open), "seconds": round(o.seconds, 1)}
                    for o in self.products.outcomes
                ],
            }} if self.products and self.claim else {}),
            **({"control": {
                "state": self.control.state, "parts": [
                    {"name": part.name, "state": part.state, "theorem": part.theorem, "states": part.states,
                     "remains": part.remains, "made": list(part.made), "schedule": dict(part.signals)}
                    for part in self.control.parts
                ],
            }} if self.control else {}),
            **({"operations": {"state": _whole(self.operations), "parts": [
                {**vars(part), "state": part.state} for part in self.operations
            ]}} if self.operations else {}),
            "assumed": list(self.assumed),
            "notes": list(self.notes),
        }  # fmt: skip


def _whole(parts: tuple[Part, ...]) -> str:
    return "OPEN" if any(part.state == "OPEN" for part in parts) else "PROVED"


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def prove(
    path: str | Path, *, public_modulus: bool = False, products: bool = False, control: bool = False,
    operations: bool = False, rows: Path | None = None, progress: Callable[[str, int, int], None] | None = None,
) -> Proof:  # fmt: skip
    """Prove that timing does not depend on operands, nor on a loaded modulus unless it is ``public_modulus``; for a
    machine, that it depends on header words only. ``products``, ``control``: also prove the results of a multiplier, or
    its handshake; ``operations``: also what an engine computes. ``rows``: a file that takes the states.

    Raises ValueError if a file of the folder is missing or malformed, ToolError if Yosys cannot read the Verilog.
    """
    folder = Path(path)
    kind = kind_of(folder)
    record_file, verilog_file = (folder / name for name in _FILES[kind])
    record = json_object(read_text(record_file), record_file)
    verilog = sheet.split(read_text(verilog_file))[1]
    multiplier = kind == "a multiplier"
    options = record if multiplier else record.get("options")
    top = _top(options, record_file)
    assert isinstance(options, dict)
    but, assumed = "", [line.format(yosys=tools.version("yosys")) for line in _ASSUMED]
    computed: tuple[Part, ...] = ()
    if multiplier:
        if operations:
            raise ValueError("--operations is for engines; --products is for multipliers")
        public = (*PUBLIC, *(["k_m"] if public_modulus else []))
        net = Netlist.read(verilog, top)
        found = {top: constant_time(net, public)}
    else:
        if products or control:
            raise ValueError(f"{'--products' if products else '--control'} is for multipliers")
        if public_modulus:
            raise ValueError("--public-modulus is for multipliers; the words of a machine's SETUP are secret")
        machines = _machines(verilog, top, record, record_file)
        found, but = machines.found, machines.but
        assumed += machines.assumed
        if operations:
            engine = class_of(folder, kind).remade(folder)
            computed = operations_of(engine, machines.net, verilog, next(iter(found)).partition(".")[0])
            assumed += [*_FOR_OPERATIONS, *([_FROM_BLOCK] if engine.random_blind else [])]
    about: dict[str, Any] = {
        "name": folder.resolve().name,
        **{key: record[key] for key in ("design", "modulus_name", "modulus_bits", "io") if key in record},
        "top": top,
        "digest": digest(verilog),
    }
    claim = claimed(record, record_file) if products else None
    pace = _pace(record, record_file) if control else None
    if pace:
        assumed += [line.format(pace.reset) for line in _FOR_CONTROL]
    if claim:
        assumed += _FOR_PRODUCTS
    notes = [] if record.get("digest") == about["digest"] else [f"{record_file.name} has the digest of another RTL"]
    proved = certified(folder, lambda text: prove_products(net, claim, progress, certificate=text)) if claim else None
    handshake = prove_control(net, pace) if pace else None
    proof = Proof(
        str(path), about, found, but, tuple(assumed), tuple(notes), claim, proved, handshake, public_modulus, computed
    )
    return replace(proof, notes=(*proof.notes, *_keep(proof, folder, kind, record, rows)))


def _keep(proof: Proof, folder: Path, kind: str, record: Mapping[str, Any], rows: Path | None) -> list[str]:
    """Write the states into the folder, and into ``rows``; returns why the folder does not take them. Raises ValueError
    if ``rows`` cannot take them either."""
    states, sha = proof.states(folder), proof.about["digest"]
    if kind == "a multiplier":
        told = note(folder, sha, states)
    else:
        told = note_engine(class_of(folder, kind), folder, sha, states)
    if rows and (told or proof.notes):
        raise ValueError(f"no row of a proof is recorded: {[*told, *proof.notes][0]}")
    if rows:
        record_proof(rows, record, states, f"yosys {tools.version('yosys')}")
    return told


@dataclass(frozen=True)
class Rechecked:
    """What the checker says of the certificate in a folder. ``refused``: the reason; empty if it is accepted."""

    name: str
    theorem: str
    runs: int
    certificate: str
    refused: str = ""

    @property
    def lines(self) -> list[str]:
        """The answer as text."""
        found = [f"{'REFUSED' if self.refused else 'ACCEPTED'} certificate of the products of {self.name}"]
        found += [f"  {self.refused}"] if self.refused else [f"  {self.theorem}", f"  {self.runs} runs"]
        return [*found, f"  {CERTIFICATE} {self.certificate}"]


def recheck(path: str | Path) -> Rechecked:
    """Check the certificate in a folder against the Verilog and the contract that lie there.

    Raises ValueError if a file of the folder is missing or malformed, ToolError if Yosys cannot read the Verilog."""
    folder = Path(path)
    if kind_of(folder) != "a multiplier":
        raise ValueError(f"--certificate is for multipliers; {folder} holds {kind_of(folder)}")
    record_file, verilog_file = (folder / name for name in _FILES["a multiplier"])
    record = json_object(read_text(record_file), record_file)
    claim, sha = claimed(record, record_file), certificate_digest(folder)
    net = Netlist.read(sheet.split(read_text(verilog_file))[1], _top(record, record_file))
    name = folder.resolve().name
    try:
        runs = check(net.module, claim.describe(), certificate_lines(folder))
    except RefusedError as error:
        return Rechecked(name, claim.line, 0, sha, str(error))
    return Rechecked(name, claim.line, runs, sha)


def _top(options: Any, file: Path) -> str:
    """The name of the first module. Raises ValueError if it is missing or malformed."""
    top = options.get("top") if isinstance(options, dict) else None
    if not isinstance(top, str) or not _NAME.fullmatch(top):
        raise ValueError(f"{file}: 'top' is missing or no name of a module")
    return top


def _pace(record: Mapping[str, Any], file: Path) -> Pace:
    """Timing from the contract. Raises ValueError if it is missing or malformed."""
    numbers = [n for key in ("latency", "interval", "power_up_reset") if isinstance(n := record.get(key), int)]
    if len(numbers) < 3 or not all(0 < n < _MOST_RESET for n in numbers):
        raise ValueError(f"{file}: 'latency', 'interval' or 'power_up_reset' is missing or malformed")
    return Pace(*numbers)


def claimed(record: Mapping[str, Any], file: Path) -> Claim:
    """What a contract, read from ``file``, says of the results. Raises ValueError if they cannot be proved here."""
    try:
        p, load = int(record["modulus"], 16), record.get("load") or {"words": [], "cycles": 0}
        least = Fraction(record["operand_bound"]) * p
        return Claim(
            p, int(record["factor"], 16), _form(record["operand"]), _form(record["result"]), ceil(least) - 1,
            ceil(Fraction(record["result_bound"]) * p), record["latency"], record["interval"], record["in_flight"],
            record["power_up_reset"], tuple(int(word, 16) for word in load["words"]), load["cycles"],
        )  # fmt: skip
    except (KeyError, TypeError) as error:
        raise ValueError(f"{file}: {error} is missing or malformed") from None


def _form(form: Mapping[str, Any]) -> Form | Channels:
    """A form from its entry in the contract."""
    match form["kind"]:
        case "binary":
            return Binary(form["width"])
        case "digits":
            return Digits(form["radix_bits"], form["digits"])
        case "residues":
            moduli, bits = tuple(int(m, 16) for m in form["moduli"]), form["channel_bits"]
            return Channels(bits, moduli, tuple(int(s, 16) for s in form.get("scales", ["0x1"] * len(moduli))))
    raise ValueError(f"products of numbers as {form['kind']} are not proved")


def with_addresses(found: ConstantTime) -> ConstantTime:
    """The theorem of a machine, of which no address may depend on data."""
    depends = f"addresses of memory {found.tables[0].name} may depend on data" if found.tables else ""
    return replace(found, handshake=(*found.handshake, ADDRESSES), remains=found.remains or depends)


@dataclass(frozen=True)
class _Machines:
    """Constant time of an engine: of each module, but for which words, with what is assumed; ``net``: one machine."""

    found: dict[str, ConstantTime]
    but: str
    assumed: tuple[str, ...]
    net: Netlist


def _machines(verilog: str, top: str, record: Mapping[str, Any], file: Path) -> _Machines:
    """Prove one machine, or the machine and the router of several. Raises ValueError if the record is malformed."""
    cores, power_up = record["options"].get("cores", 1), record.get("power_up_reset", 1)
    if not isinstance(cores, int) or not isinstance(power_up, int) or not 0 < power_up < _MOST_RESET:
        raise ValueError(f"{file}: 'cores' or 'power_up_reset' is malformed")
    circuit, locked = record.get("circuit") is True, record["options"].get("lockstep") is True
    whole, top = top, engine_module(top) if locked else top
    machine, router = (top, None) if cores == 1 else (f"{top}_core", f"{top}_router")
    net = Netlist.read(verilog, machine)
    blinded = is_blinded(net)
    if blinded:
        found = {f"{machine}.{part}": each for part, each in blinded_time(net, power_up).items()}
    else:
        found = {machine: (circuit_time if circuit else machine_time)(net, power_up)}
    if record["options"].get("fixed_addresses") is True:
        found = {name: with_addresses(each) for name, each in found.items()}
    sends = net
    if router:
        sends = Netlist.read(verilog, router)
        found[router] = router_time(sends)
        whole_of = Netlist.read(verilog, top, f"{machine} {router}")
        found[top] = cluster_time(whole_of, {machine: net, router: sends})
    if locked:
        joined = locked_time(Netlist.read(verilog, whole, top), top, power_up)
        found[whole] = replace(joined, remains=joined.remains or sent_in_reset(sends, power_up))
    but = ", except on header words" + (" and on exponents of jobs of variable time" if circuit else "")
    headers = _HEADERS.format(states=_listed(CIRCUIT_HEADERS if circuit else HEADERS))
    where = {
        _RANDOM_HEADERS: blinded,
        _CALM: blinded,
        _PUBLIC_BITS: circuit,
        _LOCKED[0].format(power_up): locked,
        _LOCKED[1]: locked,
    }
    assumed = (headers, *(line for line, holds in where.items() if holds))
    return _Machines(found, but, assumed, net)
