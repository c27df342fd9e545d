# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The files of a front say the same: RDL, C, Python, Markdown, HTML, IP-XACT, and the Verilog as it answers."""

import re
import runpy
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import stub_engine as stub
from systemrdl import RDLCompiler

from modmill.buses.adapters import find_bus
from modmill.buses.files import bus_texts, descriptions
from modmill.buses.registers import CAUSES, NUMBERS, register_map
from modmill.buses.simulate import BusDriver, BusSimulator

BUS = find_bus("apb")


@pytest.fixture(scope="module")
def texts():
    return bus_texts(stub.DEVICE, BUS, stub.VERILOG)


# Each function reads one file: register -> (offset, field -> (low bit, bits, kind of access, reset value)).
# Kinds of access: r, w, rw; w1c and pop as they are.


def of_rdl(text, folder):
    path = folder / "registers.rdl"
    path.write_text(text)
    compiler = RDLCompiler()
    compiler.compile_file(str(path))
    found = {}
    for register in compiler.elaborate().top.registers():
        fields = {}
        for f in register.fields():
            access = {(True, True): "rw", (True, False): "r", (False, True): "w"}[f.is_sw_readable, f.is_sw_writable]
            access = "w1c" if f.get_property("onwrite") else "pop" if f.get_property("onread") else access
            fields[f.inst_name] = f.low, f.width, access, f.get_property("reset")
        found[register.inst_name] = register.address_offset, fields
    return found


def of_c(text, _folder):
    offsets = {name: int(at, 16) for name, at in re.findall(r"define STUB_(\w+)_OFFSET (0x\w+)u", text)}
    found = {name: (at, {}) for name, at in offsets.items()}
    for name, low, mask, reset in re.findall(
        r"define STUB_(\w+)_LSB (\d+)u\n.*_MASK (0x\w+)u\n.*_RESET (0x\w+)u", text
    ):
        register = max((r for r in offsets if name.startswith(f"{r}_")), key=len)
        bits = (int(mask, 16) >> int(low)).bit_length()
        assert int(mask, 16) == ((1 << bits) - 1) << int(low)
        found[register][1][name.removeprefix(f"{register}_").lower()] = int(low), bits, None, int(reset, 16)
    return found


_SHORT = {"ro": "r", "wo": "w"}


def of_python(text, folder):
    path = folder / "map.py"
    path.write_text(text)
    return {
        name: (r["offset"], {f: (low, n, _SHORT.get(a, a), reset) for f, (low, n, a, reset) in r["fields"].items()})
        for name, r in runpy.run_path(str(path))["REGISTERS"].items()
    }


def of_markdown(text, _folder):
    found = {}
    for name, at, table in re.findall(
        r"^## ([A-Z_]+)\n.*?Offset (0x\w+),(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE
    ):
        rows = re.findall(r"^\| (\d+):(\d+) \| (\w+) \| (\w+) \| (0x\w+) \|", table, re.MULTILINE)
        found[name] = (
            int(at, 16),
            {
                f: (int(low), int(high) - int(low) + 1, _SHORT.get(a, a), int(reset, 16))
                for high, low, f, a, reset in rows
            },
        )
    return found


class Page(HTMLParser):
    """The headings of level 2 of a page, with their ids and the cells of the rows below; ``links``: the ids that it
    links to."""

    def __init__(self, text):
        super().__init__()
        self.sections, self.links, self._cell = [], set(), None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "h2":
            self.sections.append((given["id"], [], []))
        elif tag == "a":
            self.links.add(given["href"])
        elif tag == "tr" and self.sections:
            self.sections[-1][2].append([])

    def handle_data(self, data):
        if self.sections and data.strip():
            rows = self.sections[-1][2]
            (rows[-1] if rows else self.sections[-1][1]).append(data.strip())


def of_html(text, _folder):
    page, found = Page(text), {}
    for name, (title, words), rows in ((at, said[:2], rows) for at, said, rows in page.sections if len(said) == 2):
        assert title.lower() == name and f"#{name}" in page.links
        fields = {}
        for bits, f, access, reset, _ in (row for row in rows if len(row) == 5 and row[0][0].isdigit()):
            high, low = map(int, bits.split(":"))
            fields[f] = low, high - low + 1, _SHORT.get(access, access), int(reset, 16)
        found[title] = int(re.search(r"Offset (0x\w+),", words)[1], 16), fields
    return found


def of_ipxact(text, _folder):
    space = "{http://www.accellera.org/XMLSchema/IPXACT/1685-2014}"
    found = {}
    for register in ET.fromstring(text).iter(f"{space}register"):
        fields = {}
        for f in register.iter(f"{space}field"):
            get = lambda name, f=f: f.find(f".//{space}{name}")  # noqa: E731
            access = {"read-only": "r", "write-only": "w", "read-write": "rw"}[get("access").text]
            access = "w1c" if get("modifiedWriteValue") is not None else access
            access = "pop" if get("readAction") is not None else access
            numbers = (int(get(name).text) for name in ("bitOffset", "bitWidth", "value"))
            low, bits, reset = numbers
            fields[get("name").text] = low, bits, access, reset
        found[register.find(f"{space}name").text] = int(register.find(f"{space}addressOffset").text), fields
    return found


READERS = {
    "registers.rdl": of_rdl, "stub.h": of_c, "stub.py": of_python, "registers.md": of_markdown,
    "registers.html": of_html, "bus.xml": of_ipxact,
}  # fmt: skip


def described(texts, folder, device=stub.DEVICE):
    """What the description says, and each file."""
    model = {
        r.name: (r.offset, {f.name: (f.low, f.width, _SHORT.get(f.access, f.access), f.reset) for f in r.fields})
        for r in register_map(device).registers
    }
    without = {r: (at, {f: (*x[:2], None, x[3]) for f, x in fields.items()}) for r, (at, fields) in model.items()}
    for name, read in READERS.items():
        yield name, read(texts[name], folder) == (without if name == "stub.h" else model)


def test_six_files_say_the_same(texts, tmp_path):
    assert dict(described(texts, tmp_path)) == dict.fromkeys(READERS, True)


def test_six_files_say_the_same_of_an_alarm(tmp_path):
    device = replace(stub.DEVICE, alarm=True)
    texts = descriptions(device, BUS)
    assert dict(described(texts, tmp_path, device)) == dict.fromkeys(READERS, True)
    assert not all(same for _, same in described(texts, tmp_path))
    assert f"define STUB_ERROR_ALARM {NUMBERS['ALARM']} " in texts["stub.h"]


@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [
        ("registers.rdl", "STATUS @ 0x1c", "STATUS @ 0x5c"), ("registers.rdl", "error[5:5]", "error[13:13]"),
        ("stub.h", "LEVEL_WORDS_LSB 16u", "LEVEL_WORDS_LSB 17u"),
        ("stub.h", "DATA_IN_OFFSET 0x30u", "DATA_IN_OFFSET 0x34u"),
        ("stub.py", '"cause": (8, 4,', '"cause": (9, 4,'), ("registers.md", "| 11:8 | cause", "| 12:9 | cause"),
        ("registers.html", "<td>11:8</td>\n<td>cause", "<td>12:9</td>\n<td>cause"),
        ("registers.html", "Offset 0x1c", "Offset 0x5c"),
        ("bus.xml", "<ipxact:addressOffset>28<", "<ipxact:addressOffset>32<"),
        ("bus.xml", "<ipxact:bitOffset>5<", "<ipxact:bitOffset>6<"),
    ],
)  # fmt: skip
def test_a_planted_shift_is_caught(file, right, wrong, texts, tmp_path):
    edited = {**texts, file: texts[file].replace(right, wrong)}
    assert edited[file] != texts[file]
    try:
        same = dict(described(edited, tmp_path))[file]
    except AssertionError:
        same = False
    assert not same


def verilog_faults(text, found):
    """What the Verilog does otherwise than the registers ``found`` say: accesses, reset values, fields that change."""
    bus = BusSimulator(text, stub.DEVICE, BUS)
    driver = BusDriver(stub.DEVICE, bus)
    bus.wait(20)
    offsets = {at: (name, fields) for name, (at, fields) in found.items()}
    ready = {"STATUS": {"ready": 1, "busy": 0}}
    for at in range(0, 256, 4):
        name, fields = offsets.get(at, ("", {}))
        kinds = {f[2] for f in fields.values()}
        word, refused = bus.read(at)
        if refused != (not kinds - {"w"}):
            yield f"read of {at:#x}"
        for f, (low, bits, _, reset) in fields.items():
            if kinds - {"w"} and word >> low & (1 << bits) - 1 != ready.get(name, {}).get(f, reset):
                yield f"{name}.{f}"
        if name != "COMMAND" and bus.write(at, 0) != (not kinds & {"rw", "w", "w1c"}):
            yield f"write of {at:#x}"
    if driver.error() != "LONG":  # of the write to DATA_IN, after the read of DATA_OUT
        yield "STATUS.cause"

    def field(register, name):
        low, bits, _, _ = found[register][1][name]
        return bus.read(found[register][0])[0] >> low & (1 << bits) - 1

    bus.write(found["IRQ_ENABLE"][0], 1 << found["IRQ_ENABLE"][1]["error"][0])
    seen = [field("IRQ_ENABLE", "error"), field("IRQ_ENABLE", "done")]
    bus.write(found["COMMAND"][0], 0)
    seen += [field("STATUS", "receiving"), field("STATUS", "ready")]
    for word in (1, 2, 3):
        bus.write(found["DATA_IN"][0], word)
    driver.ready()
    seen += [field("STATUS", "loaded"), field("IRQ_STATUS", "done"), field("IRQ_STATUS", "error")]
    bus.write(found["COMMAND"][0], 2)
    bus.write(found["DATA_IN"][0], 7)
    seen += [field("STATUS", "busy")]
    bus.wait(200)
    seen += [field("STATUS", "done"), field("LEVEL", "words"), field("LEVEL", "free"), field("JOBS", "count")]
    bus.write(found["COMMAND"][0], 2)
    causes = [name for name, _ in CAUSES]
    seen += [field("STATUS", "error"), field("STATUS", "cause") == causes.index("BUSY"), field("IRQ_STATUS", "error")]
    seen += [bus.read(found["DATA_OUT"][0])[0], field("LEVEL", "words")]
    if seen != [1, 0, 1, 0, 1, 1, 0, 1, 1, 1, 16, 1, 1, True, 1, 13, 0]:
        yield f"fields: {seen}"


def test_the_verilog_does_what_the_map_says(texts, tmp_path):
    found = of_python(texts["stub.py"], tmp_path)
    assert list(verilog_faults(texts["bus.v"], found)) == []
    shifted = texts["bus.v"].replace(
        "value_level = {11'h000, out_level, 11'h000, in_free}", "value_level = {10'h000, out_level, 12'h000, in_free}"
    )
    assert shifted != texts["bus.v"] and any("fields" in fault for fault in verilog_faults(shifted, found))
