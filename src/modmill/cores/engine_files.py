# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Files of a built engine: rendered from its record, sealed, read back, compared with recomputed files.

engine.v or ecc.v    a header, an empty line, the Verilog
.json of that name   the record, with a digest of each other file and a seal (report/seal.py)
vectors.json         messages with their answers
README.md            the data sheet
test_engine.py or test_ecc.py, engine.core or ecc.core, component.xml, lint.vlt
                     cocotb bench, files for FuseSoC, IP-XACT and Verilator's lint
bus.v and others     with a bus: the engine behind it (`buses/files.py`)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modmill.buses.adapters import find_bus
from modmill.buses.files import bus_texts, section
from modmill.contract import ALARM
from modmill.cores.behind_bus import bus_files, bus_record
from modmill.cores.folder import json_object
from modmill.engines.machine.random_port import FALSE_ALARM, PORTS, RANDOM_WORD, WAIT, WINDOW, HealthTests
from modmill.flow.emit import digest
from modmill.flow.modules import module_ports
from modmill.report import packaging, sheet
from modmill.report.seal import folder_texts, record_text, seal_differences, sealed

if TYPE_CHECKING:
    from modmill.cores.built import BuiltEngine

_MEANINGS = {
    "clk": "clock, rising edge",
    "rst": "synchronous reset, active high",
    "i_valid": "a word of a message is offered",
    "i_ready": "the word is accepted in this cycle if offered",
    "i_data": "word of a message",
    "o_valid": "a word of an answer is there",
    "o_ready": "the word is taken in this cycle if there",
    "o_data": "word of an answer",
    "o_last": "the word is the last one of its answer",
    ALARM: "a fault was found; nothing moves until the reset",
    "random_valid": "a random word is offered",
    "random_ready": "the random word is taken in this cycle if offered",
    "random_data": "random word",
}
_KINDS = {"engine": "Exponentiation engine", "ecc": "Coprocessor for elliptic curves"}
_CLEARED = "messages and answers in flight (send the modulus again)"
SHEET = "README.md"
"""Name of the data sheet."""
_ONLY_WRITTEN = ("modmill", "command", "tools", "digest", "measured", "proved")
"""Keys of the record that a check does not recompute; only the seal covers them."""


def stream_ports(word: int, *, alarm: bool = False, random: bool = False) -> dict[str, dict[str, Any]]:
    """Direction (in, out) and width of every port, for words of ``word`` bits; ``alarm``: with `ALARM`; ``random``:
    with a port for random words."""
    outputs = ("i_ready", "o_valid", "o_data", "o_last", ALARM, "random_ready")
    widths = {"i_data": word, "o_data": word, "random_data": RANDOM_WORD}
    return {
        name: {"direction": "out" if name in outputs else "in", "width": widths.get(name, 1)}
        for name in _MEANINGS
        if (alarm or name != ALARM) and (random or name not in PORTS)
    }


def sheet_head(title: str, stem: str, record: Mapping[str, Any], instructions: str, alone: str = "") -> str:
    """Return the data sheet from its title to the section on packets.

    ``instructions``: sentence on threads and instructions, without its first word, the number of threads; ``alone``:
    paragraph on limited use.
    """
    options = record["options"]
    ports = "\n".join(
        f"| `{name}` | {p['direction']} | {p['width']} | {_MEANINGS[name]} |" for name, p in record["ports"].items()
    )
    power_up = record["power_up_reset"]
    longer = f", and over {power_up} after power-up" if power_up > 1 else ""
    if options.get("lockstep"):
        longer = f", and over {power_up} whenever it is reset: the second engine's reset comes a cycle later"
    parity = """
Each word of the memories of numbers, programs and digits has a bit of parity, which is checked when the word is used.
After a wrong one `o_alarm` is high and only words 0 leave, until the reset. After power-up SETUP must come before the
first job."""
    return f"""# {title}

Made by `{record["command"]}`; RTL digest {record["digest"]}.
Generated cores belong to you: use, change and ship them as you like.
{alone}
`{stem}.v` holds the module `{options["top"]}`:

| port | direction | bits | meaning |
|---|---|---|---|
{ports}

Hold `rst` high over at least one rising edge of `clk` before the first word{longer}.
A word moves in every cycle in which valid and ready are high; `o_last` goes with the last word of an answer. Numbers
are sent least significant word first, {record["number_words"]} words each.{parity if options.get("parity") else ""}
{options["threads"]} {instructions}
{_packets(options["cores"])}"""


def bus_entry(core: BuiltEngine) -> dict[str, Any]:
    """What the record states of the bus; nothing without one."""
    with_calls = core.calls is not None
    made = core.bus and bus_record(
        find_bus(core.bus), core.top, with_calls=with_calls, clock=core.bus_clock, key_slots=core.key_slots
    )
    return {"bus": made} if made else {}


def health(entropy: int) -> str:
    """Return the sentences on the tests of random words with this least entropy."""
    tests = HealthTests(entropy)
    return f"""`o_alarm` rises if {tests.repetition} of these words in a row are equal, if {tests.proportion} of
{WINDOW} are equal to the first one, itself included (SP 800-90B, 4.4.1 and 4.4.2, for words of {entropy} bits of
entropy; false alarms have a probability of at most 2^-{FALSE_ALARM}), and if no word comes for {WAIT:,} cycles. Then no
word enters any more."""


def waiting(record: Mapping[str, Any]) -> str:
    """Return the sentence on the first job after SETUP; empty if loading a modulus takes no time."""
    load = record["multiplier"].get("load")
    return f"The first job after a modulus may wait up to {load['cycles']} cycles more for it.\n" if load else ""


def _packets(cores: int) -> str:
    """Return the section on packets; empty for one machine."""
    if cores == 1:
        return ""
    return f"""
## Packets

{cores} machines stand side by side, numbered from 0. Every message goes in a packet: the machine's number, or a word
of all ones for every machine; the number of words of the message in two words, least significant first; the message. An
answer is the machine's number, then its words; answers of different machines come in the order in which they are ready.
"""


def port_differences(verilog: str, top: str, ports: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each port that differs between module ``top`` of the Verilog and ``ports`` of the record."""
    found = module_ports(verilog, top)
    if found is None:
        yield f"there is no module {top}"
        return
    for name in sorted(found.keys() | ports.keys()):
        both = found.get(name), ports.get(name)
        real, said = (f"{p['direction']}put of {p['width']} bits" if p else "no port" for p in both)
        if real != said:
            yield f"port {name}: {real}, the data sheet says {said}"


def rendered(core: BuiltEngine, written: Mapping[str, Any]) -> dict[str, str]:
    """The text of each file, by name. ``written``: keys of the record that do not come from the engine."""
    stem = core.STEM
    made = core.record() | dict(written)
    package = _package(core, made)
    bus = find_bus(core.bus) if core.bus else None
    front = bus_texts(core.device, bus, core.verilog) if bus else {}
    texts = {
        f"{stem}.v": _header(stem, made) + "\n" + core.verilog,
        "vectors.json": json.dumps(core.vectors() | {"digest": made["digest"]}, indent=1) + "\n",
        SHEET: sheet_text(core, made),
        f"{package.bench}.py": sheet.template("test_engine.py.j2").render(
            stem=stem, rtl_file=package.source, bench=package.bench, name=package.name, top=core.top, cores=core.cores,
            word=core.word, binary=core.layout.binary, patience=core.patience, power_up_reset=core.power_up,
            random=core.blinding is not None,
        ),
        **package.files(f"{stem}.core"), **front,
    }  # fmt: skip
    return {**texts, f"{stem}.json": record_text(sealed(made, texts))}


def sheet_text(core: BuiltEngine, made: Mapping[str, Any]) -> str:
    """The data sheet of an engine for its record."""
    about_bus = section(core.device, find_bus(core.bus), made.get("measured", ())) if core.bus else ""
    return core.page(made) + about_bus + _sheet_tail(_package(core, made), made)


def _sheet_tail(package: packaging.Package, made: Mapping[str, Any]) -> str:
    """The data sheet's sections on proofs, measurements, clock, reset and other tools."""
    clock = sheet.clock(package.source, "engine", made.get("measured", ()), _CLEARED, bus=made.get("bus"))
    vlnv = sheet.packaging_name(package.name, package.version)
    tools = sheet.other_tools(package.source, package.top, package.bench, "engine", vlnv)
    command = "ecc" if package.source.startswith("ecc") else "rsa"
    check = f"- `modmill {command} check .` recomputes the files and simulates `{package.source}`."
    proved = sheet.proofs(made, sheet.UNPROVED_ENGINE)
    return f"\n## Proved\n{proved}\n\n{clock}\n## How to check\nCommands run in this folder.\n{check}\n{tools}"


def _package(core: BuiltEngine, made: Mapping[str, Any]) -> packaging.Package:
    stem, about = core.STEM, made.get("curve", {}).get("name") or f"{made.get('modulus_bits', '')}bit"
    return packaging.Package(
        f"{stem}.v", core.top, made["ports"], _MEANINGS, f"test_{stem}", (f"{stem}.json", "vectors.json"),
        f"{stem}_{core.design}_{about}", made["modmill"], f"{_KINDS[stem]} with {core.design}, {about}",
    )  # fmt: skip


def _header(stem: str, made: Mapping[str, Any]) -> str:
    command = " ".join(str(made.get("command", "")).split())  # a line break would end the comment
    return "".join(f"// {line}\n" for line in (
        "SPDX-License-Identifier: Apache-2.0",
        f"Made by Modmill {made['modmill']}. Generated cores belong to you: use, change and ship them as you like.",
        f"Command: {command}",
        f"RTL digest: {made['digest']} (of all text after the first empty line)",
        f"Ports, messages and numbers: README.md and {stem}.json",
    ))  # fmt: skip


def names(stem: str) -> tuple[str, ...]:
    """The names of all files, for the stem ``engine`` or ``ecc``."""
    own = f"{stem}.v", f"{stem}.json", "vectors.json", SHEET, f"test_{stem}.py", f"{stem}.core"
    return *own, *packaging.FILES


def texts_of(folder: Path, stem: str) -> dict[str, str]:
    """The text of each file of a folder, by name.

    Raises ValueError if a file is missing or no text, or if the record is malformed.
    """
    record = folder_texts(folder, [f"{stem}.json"]).get(f"{stem}.json", "{}")
    all_names = (*names(stem), *bus_files(json_object(record, f"{stem}.json")))
    found = folder_texts(folder, all_names)
    for name in all_names:
        if name not in found:
            raise ValueError(f"{folder / name} is missing")
    return found


def stored_verilog(folder: Path, stem: str) -> str:
    """The Verilog in a folder, without its header, for simulation.

    Raises ValueError if a file is missing or malformed, or if Verilog or record were edited.
    """
    texts = texts_of(folder, stem)
    for line in [*_other_digests(stem, texts), *seal_differences(texts, f"{stem}.json")]:
        if line.startswith((f"{stem}.v", f"{stem}.json")):
            raise ValueError(f"{folder / line}; run modmill {'ecc' if stem == 'ecc' else 'rsa'} check {folder}")
    return sheet.split(texts[f"{stem}.v"])[1]


def verilog_of(folder: Path, stem: str) -> str:
    """The Verilog in a folder, without its header, edited or not. Raises ValueError if a file is missing."""
    return sheet.split(texts_of(folder, stem)[f"{stem}.v"])[1]


def _other_digests(stem: str, texts: Mapping[str, str]) -> Iterator[str]:
    record = f"{stem}.json"
    header, text = sheet.split(texts[f"{stem}.v"])
    found = sheet.DIGEST_LINE.search(header)
    said = {f"{stem}.v": found and found[1], record: json_object(texts[record], record).get("digest")}
    for name, recorded in said.items():
        if recorded != digest(text):
            yield f"{name}: the RTL has another digest than it says"


def file_differences(folder: Path, core: BuiltEngine) -> Iterator[str]:
    """Yield a line for each difference between a folder and the files of ``core``, which is remade from the folder's
    record and Verilog. Raises ValueError if a file is missing or its JSON is malformed."""
    stem = core.STEM
    texts, name = texts_of(folder, stem), f"{stem}.json"
    record, _ = (json_object(texts[file], file) for file in (name, "vectors.json"))
    yield from seal_differences(texts, name)
    yield from _other_digests(stem, texts)
    wanted = rendered(core, {key: record[key] for key in _ONLY_WRITTEN if key in record})
    remade = json.loads(wanted[name])
    keys = (remade.keys() | record.keys()) - {"files", "seal", *_ONLY_WRITTEN}
    yield from (
        f"{name}: {key} differs from what is recomputed" for key in sorted(keys) if record.get(key) != remade.get(key)
    )
    yield from (f"{name}: {key} is missing" for key in _ONLY_WRITTEN if key not in record)
    header, again = (sheet.split(of[f"{stem}.v"])[0] for of in (texts, wanted))
    if header != again:
        yield f"{stem}.v: its header differs from what is recomputed"
    for other in [n for n in wanted if n not in names(stem)[:2]]:
        if texts.get(other) != wanted[other]:
            yield f"{other}: differs from what is recomputed"
    yield from (f"{stem}.v: {line}" for line in port_differences(core.verilog, core.top, remade["ports"]))
