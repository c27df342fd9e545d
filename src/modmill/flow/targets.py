# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The devices for synthesis: their capacities and the weights of their cells.

Capacities come from the data sheets named beside them. nextpnr reports the sites of the devices that it routes, and
these are the capacities here. Those of AMD and Intel were entered from memory of the data sheets' tables and are not
confirmed. A `note` says what nextpnr's clock of a device leaves out, as seen by routing one multiplier with 0 to 3
register stages.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from modmill.numbers.shown import near, shortened

DEFAULT = "ecp5-85k"
ROUTED = f"`modmill targets` shows those that can, such as {DEFAULT}"
"""What a message about a device without place and route adds."""
PINS = "pins.txt"
"""The file of pins for place and route."""


@dataclass(frozen=True)
class Capacity:
    """Capacity of a device, in the family's own units: DSP blocks, look-up tables, flip-flops, block RAMs."""

    dsp: int
    lut: int
    ff: int
    bram: int

    def lacks(self, needed: Mapping[str, Any]) -> str:
        """The first resource of which these numbers need more than there is, in words; empty if they fit."""
        for name, there in asdict(self).items():
            if needed[name] > there:
                return f"needs {needed[name]:,} {name.upper()} of {there:,}"
        return ""


@dataclass(frozen=True)
class CellWeights:
    """Number of each resource that a netlist cell uses; a cell that is not listed uses none."""

    dsp: Mapping[str, int]
    lut: Mapping[str, int]
    ff: Mapping[str, int]
    bram: Mapping[str, int]


@dataclass(frozen=True)
class Nextpnr:
    """The nextpnr of a family: the package ``yowasp-nextpnr-<family>``.

    `device`: the options that name the device and the file of pins. `router`: its default. `pin` and `pins`: the text
    that puts a port on a pin, and pins for the three ports of the measuring shell; empty if the tool chooses them.
    """

    family: str
    device: tuple[str, ...]
    router: str = "router2"
    pin: str = ""
    pins: tuple[str, ...] = ()

    @property
    def package(self) -> str:
        """The Python package."""
        return f"yowasp-nextpnr-{self.family}"


@dataclass(frozen=True)
class Target:
    """One device of one family.

    `dsp_block` is the size of its multipliers, as the designs' setting `dsp` calls it. `dsp_cap_mhz` and `bram_cap_mhz`
    are documented limits of the blocks that place and route does not check; None where not known. `no_pads`: the option
    of `synth` that leaves out the buffers of ports, where place and route needs them. `note`: what clocks and counts of
    this device leave out; `partial`: whether a clock is only an upper limit, because paths through blocks are not timed
    and no limit of theirs is known.
    """

    name: str
    vendor: str
    family: str
    device: str
    synth: str
    synth_flatten: str
    capacity: Capacity
    weights: CellWeights
    dsp_block: str = "18x18"
    nextpnr: Nextpnr | None = None
    speed_grade: str = ""
    dsp_cap_mhz: float | None = None
    bram_cap_mhz: float | None = None
    no_pads: str = ""
    note: str = ""
    partial: bool = False

    @property
    def routable(self) -> bool:
        """Whether a nextpnr of the package registry places and routes it."""
        return self.nextpnr is not None

    def synth_command(self, top: str, *, hierarchy: bool, pads: bool = False) -> str:
        """The Yosys command; with `hierarchy` modules are optimised one by one instead of being flattened first.
        `pads`: buffers at the ports, as place and route of some families needs them."""
        flatten, keep = self.synth_flatten.split("|")
        words = [self.synth, "" if pads else self.no_pads, keep if hierarchy else flatten, "-top", top]
        return " ".join(filter(None, words))


# LUT4 equivalents as nextpnr-ecp5 and -nexus count them: a carry cell is two; a 16 x 4 distributed RAM is four plus the
# two of the slice that serves as its write port.
_ECP5 = CellWeights(
    {"MULT18X18D": 1, "MULT9X9D": 1},
    {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6},
    {"TRELLIS_FF": 1},
    {"DP16KD": 1, "PDPW16KD": 1},
)
_NEXUS = CellWeights(
    {"MULT9X9": 1, "MULT18X18": 1, "MULT18X36": 2, "MULT36X36": 4, "MULTADDSUB18X18": 1},
    {"LUT4": 1, "CCU2": 2, "DPR16X4": 6},
    {"FD1P3BX": 1, "FD1P3DX": 1, "FD1P3IX": 1, "FD1P3JX": 1},
    {"DP16K_MODE": 1, "PDP16K_MODE": 1, "PDPSC16K_MODE": 1, "SP16K_MODE": 1, "DP16K": 1, "PDP16K": 1, "PDPSC16K": 1},
)
# LUT6 sites as in UG474: RAM32M and RAM64M take the four of a SLICEM; CARRY4, MUXF7 and MUXF8 take none. INV is not
# counted, because the cell that it drives absorbs it. One RAMB36 is two blocks of 18 kbit.
_XILINX = CellWeights(
    {"DSP48E1": 1, "DSP48E2": 1},
    {
        **{f"LUT{k}": 1 for k in range(1, 7)},
        "RAM32X1S": 1, "RAM64X1S": 1, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1S": 2, "RAM128X1D": 4, "RAM256X1S": 4,
        "RAM32M": 4, "RAM64M": 4, "RAM32M16": 8, "RAM64M8": 8, "SRL16E": 1, "SRLC16E": 1, "SRLC32E": 1,
    },
    {"FDRE": 1, "FDSE": 1, "FDCE": 1, "FDPE": 1},
    {"RAMB18E1": 1, "RAMB36E1": 2, "RAMB18E2": 1, "RAMB36E2": 2},
)  # fmt: skip
# Adaptive LUTs: an ALM holds two. A DSP block holds two 18 x 18 multipliers; multipliers are counted.
_CYCLONEV = CellWeights(
    {"MISTRAL_MUL9X9": 1, "MISTRAL_MUL18X18": 1, "MISTRAL_MUL27X27": 2},
    {**{f"MISTRAL_ALUT{k}": 1 for k in range(2, 7)}, "MISTRAL_ALUT_ARITH": 1, "MISTRAL_MLAB": 1},
    {"MISTRAL_FF": 1},
    {"MISTRAL_M10K": 1},
)
_GOWIN = CellWeights(
    {"MULT9X9": 1, "MULT18X18": 1, "MULT36X36": 4, "MULTALU27X18": 1},
    {**{f"LUT{k}": 1 for k in range(1, 5)}, "ALU": 1, "RAM16S4": 4, "RAM16SDP4": 4, "RAM16SDP2": 2, "RAM16SDP1": 1},
    {f"DFF{kind}": 1 for kind in (
        "", "E", "S", "SE", "R", "RE", "P", "PE", "C", "CE",
        "N", "NE", "NS", "NSE", "NR", "NRE", "NP", "NPE", "NC", "NCE",
    )},
    {"SP": 1, "SPX9": 1, "SDPB": 1, "SDPX9B": 1, "DPB": 1, "DPX9B": 1, "pROM": 1, "pROMX9": 1},
)  # fmt: skip


# A LUT2 to LUT4 is half of a CPE, which has two flip-flops; with -luttree Yosys writes trees of two or three LUT2.
_GATEMATE = CellWeights(
    {},
    {**{f"CC_LUT{k}": 1 for k in (1, 2)}, "CC_L2T4": 1, "CC_L2T5": 2, "CC_MX2": 1, "CC_MX4": 2, "CC_ADDF": 1},
    {"CC_DFF": 1},
    {"CC_BRAM_20K": 1, "CC_BRAM_40K": 2},
)
_ICE40 = CellWeights(
    {"SB_MAC16": 1},
    {"SB_LUT4": 1},
    {f"SB_DFF{kind}": 1 for kind in (
        "", "E", "S", "SS", "R", "SR", "ESR", "ESS", "ER", "ES",
        "N", "NE", "NS", "NSS", "NR", "NSR", "NESR", "NESS", "NER", "NES",
    )},
    {f"SB_RAM40_4K{kind}": 1 for kind in ("", "NR", "NW", "NRNW")},
)  # fmt: skip


_SPEEDS = ("6", "7", "8")


def _ecp5(size: str, capacity: Capacity) -> Iterator[Target]:
    """The three speed grades of a device; the name of the slowest has no number."""
    for speed in _SPEEDS:
        name = f"ecp5-{size}" + (f"-{speed}" if speed != _SPEEDS[0] else "")
        nextpnr = Nextpnr(
            "ecp5", (f"--{size}", "--package", "CABGA381", "--speed", speed, "--lpf-allow-unconstrained"), "router1"
        )
        yield Target(
            name, "Lattice", "ecp5", f"LFE5U-{size[:-1]}F", "synth_ecp5", "|-noflatten", capacity, _ECP5,
            nextpnr=nextpnr, speed_grade=speed,
            # From memory of the data sheet for a fully registered 18 x 18 multiplier; from the device database for
            # DP16KD ("How to be fast on ECP5" in the toolchain notes). Both are for speed 6.
            dsp_cap_mhz=175.0, bram_cap_mhz=212.0,
            note="no delays in DSP blocks and block RAMs: the limits of speed 6 cap the clock",
        )  # fmt: skip


def _xilinx(name: str, family: str, device: str, capacity: Capacity) -> Target:
    synth = f"synth_xilinx -family {family} -noiopad -noclkbuf"
    return Target(name, "AMD", family, device, synth, "-flatten|", capacity, _XILINX, dsp_block="25x18")


# A port's pin. The clocks' pins lead to a global net: J2 of LIFCL-40 in CABGA400 is PCLKT7_2, from which nextpnr has a
# way of its own to the clock's driver; only router1 always finds it. The others are pins of the boards Tang Primer
# 20K and 25K.
_PDC = "ldc_set_location -site {{{pin}}} [get_ports {port}]\n"
_CST = 'IO_LOC "{port}" {pin};\n'


_GOWIN_NOTE = "no delays of DSP blocks and block RAMs, so the clock is an upper limit"


TARGETS: tuple[Target, ...] = (
    # Lattice FPGA-DS-02012, ECP5 and ECP5-5G Family Data Sheet, table 1.1; LUT and FF counts as in Project Trellis.
    *_ecp5("85k", Capacity(dsp=156, lut=83_640, ff=83_640, bram=208)),
    *_ecp5("45k", Capacity(dsp=72, lut=43_848, ff=43_848, bram=108)),
    *_ecp5("25k", Capacity(dsp=28, lut=24_288, ff=24_288, bram=56)),
    # AMD DS190, Zynq-7000 Overview, table 1.
    _xilinx("xc7z020", "xc7", "xc7z020", Capacity(dsp=220, lut=53_200, ff=106_400, bram=280)),
    # AMD DS180, 7 Series FPGAs Overview, tables 4 and 8; LUT = 4 and FF = 8 per slice.
    _xilinx("xc7a200t", "xc7", "xc7a200t", Capacity(dsp=740, lut=134_600, ff=269_200, bram=730)),
    _xilinx("xc7v", "xc7", "xc7vx690t", Capacity(dsp=3_600, lut=433_200, ff=866_400, bram=2_940)),
    # AMD DS890, UltraScale Architecture Overview, Kintex UltraScale+ table.
    _xilinx("xcku", "xcup", "xcku5p", Capacity(dsp=1_824, lut=216_960, ff=433_920, bram=960)),
    # Intel CV-51001, Cyclone V Device Overview, Cyclone V SE table: 41,910 ALMs of two adaptive LUTs, 112 DSP blocks.
    Target(
        "cyclonev", "Intel", "cyclonev", "5CSEA6", "synth_intel_alm -family cyclonev -noiopad -noclkbuf",
        "|-noflatten", Capacity(dsp=224, lut=83_820, ff=166_036, bram=557), _CYCLONEV,
    ),
    # Gowin DS102, GW2A series Data Sheet, table 1-1; nextpnr reports these numbers of sites, and those of GW5A-25.
    Target(
        "gowin", "Gowin", "gw2a", "GW2A-18", "synth_gowin -family gw2a", "|-noflatten",
        Capacity(dsp=48, lut=20_736, ff=15_552, bram=46), _GOWIN, no_pads="-noiopads",
        nextpnr=Nextpnr(
            "himbaechel-gowin", ("--device", "GW2A-LV18PG256C8/I7", "-o", "family=GW2A-18", "-o", f"cst={PINS}"),
            pin=_CST, pins=("H11", "T10", "R8"),
        ),
        note=_GOWIN_NOTE, partial=True,
    ),
    Target(
        "gw5a", "Gowin", "gw5a", "GW5A-25", "synth_gowin -family gw5a -nolutram", "|-noflatten",
        Capacity(dsp=28, lut=23_040, ff=23_040, bram=56), _GOWIN, no_pads="-noiopads", dsp_block="25x18",
        nextpnr=Nextpnr(
            "himbaechel-gowin", ("--device", "GW5A-LV25MG121NC1/I0", "-o", "family=GW5A-25A", "-o", f"cst={PINS}"),
            pin=_CST, pins=("E2", "L5", "L11"),
        ),
        note=f"{_GOWIN_NOTE}; no distributed RAM, whose sites nextpnr lacks", partial=True,
    ),
    # Lattice FPGA-DS-02049, CrossLink-NX Family Data Sheet, table 1.1; LUT and FF counts as in Project Oxide.
    Target(
        "nexus", "Lattice", "nexus", "LIFCL-40", "synth_nexus -family lifcl", "|-noflatten",
        Capacity(dsp=56, lut=32_256, ff=32_256, bram=84), _NEXUS, no_pads="-noiopad",
        nextpnr=Nextpnr(
            "nexus", ("--device", "LIFCL-40-9BG400C", "--pdc", PINS), router="router1", pin=_PDC,
            pins=("J2", "G19", "E17"),
        ),
        speed_grade="9", note="DSP blocks are timed; no limits of the data sheet are checked",
    ),
    # 20,480 CPEs of two halves, as nextpnr reports; 32 block RAMs of 40 kbit.
    Target(
        "gatemate", "Cologne Chip", "gatemate", "CCGM1A1", "synth_gatemate -luttree -nomx8", "|-noflatten",
        Capacity(dsp=0, lut=40_960, ff=40_960, bram=64), _GATEMATE, no_pads="-noiopad -noclkbuf",
        nextpnr=Nextpnr("himbaechel-gatemate", ("--device", "CCGM1A1", "-o", "allow-unconstrained")),
        note="multipliers are made of logic that LUT does not count, without registers inside",
    ),
    # As nextpnr reports; a logic cell has a LUT and a flip-flop.
    Target(
        "ice40-up5k", "Lattice", "ice40", "UP5K", "synth_ice40 -device u -dsp", "|-noflatten",
        Capacity(dsp=8, lut=5_280, ff=5_280, bram=30), _ICE40,
        nextpnr=Nextpnr("ice40", ("--up5k", "--package", "sg48", "--pcf-allow-unconstrained"), "router1"),
        note="a DSP block counts as registered, so paths through it are not timed; it serves tiles of 16 x 16 bits",
        partial=True,
    ),
)  # fmt: skip
"""Every target, the default first."""


def target(name: str = DEFAULT) -> Target:
    """The target of that name. Raises ValueError, with all names, for an unknown name."""
    known = {target.name: target for target in TARGETS}
    if name not in known:
        hint = near(name, known)
        raise ValueError(f"target must be one of {', '.join(known)}, not {shortened(name)}{hint and f'; {hint}'}")
    return known[name]
