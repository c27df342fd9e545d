# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The devices for synthesis: their capacities and the weights of their cells.

Capacities come from the data sheets named beside them. nextpnr confirms DSP, LUT, FF and BRAM of both ECP5 devices (it
reports the sites). The other capacities were entered from memory of the data sheets' tables and are not confirmed.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from modmill.numbers.shown import near, shortened

DEFAULT = "ecp5-85k"


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
class Target:
    """One device of one family.

    `dsp_block` is the size of its multipliers, as the designs' setting `dsp` calls it. `dsp_cap_mhz` and `bram_cap_mhz`
    are documented limits of the blocks that place and route does not check; None where not known.
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
    routable: bool = False
    speed_grade: str = ""
    dsp_cap_mhz: float | None = None
    bram_cap_mhz: float | None = None

    def synth_command(self, top: str, *, hierarchy: bool) -> str:
        """The Yosys command; with `hierarchy` modules are optimised one by one instead of being flattened first."""
        flatten, keep = self.synth_flatten.split("|")
        return f"{self.synth} {keep if hierarchy else flatten} -top {top}".replace("  ", " ")


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
    {"MULT9X9": 1, "MULT18X18": 1, "MULT36X36": 4},
    {**{f"LUT{k}": 1 for k in range(1, 5)}, "ALU": 1, "RAM16S4": 4, "RAM16SDP4": 4, "RAM16SDP2": 2, "RAM16SDP1": 1},
    {f"DFF{kind}": 1 for kind in (
        "", "E", "S", "SE", "R", "RE", "P", "PE", "C", "CE",
        "N", "NE", "NS", "NSE", "NR", "NRE", "NP", "NPE", "NC", "NCE",
    )},
    {"SP": 1, "SPX9": 1, "SDPB": 1, "SDPX9B": 1, "DPB": 1, "DPX9B": 1, "pROM": 1, "pROMX9": 1},
)  # fmt: skip


def _ecp5(name: str, device: str, capacity: Capacity) -> Target:
    return Target(
        name, "Lattice", "ecp5", device, "synth_ecp5", "|-noflatten", capacity, _ECP5,
        routable=True, speed_grade="6",
        # From memory of the data sheet for a fully registered 18 x 18 multiplier; from the device database for DP16KD
        # ("How to be fast on ECP5" in the toolchain notes).
        dsp_cap_mhz=175.0, bram_cap_mhz=212.0,
    )  # fmt: skip


def _xilinx(name: str, family: str, device: str, capacity: Capacity) -> Target:
    synth = f"synth_xilinx -family {family} -noiopad -noclkbuf"
    return Target(name, "AMD", family, device, synth, "-flatten|", capacity, _XILINX, dsp_block="25x18")


TARGETS: tuple[Target, ...] = (
    # Lattice FPGA-DS-02012, ECP5 and ECP5-5G Family Data Sheet, table 1.1; LUT and FF counts as in Project Trellis.
    _ecp5("ecp5-85k", "LFE5U-85F", Capacity(dsp=156, lut=83_640, ff=83_640, bram=208)),
    _ecp5("ecp5-25k", "LFE5U-25F", Capacity(dsp=28, lut=24_288, ff=24_288, bram=56)),
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
    # Gowin DS102, GW2A series Data Sheet, table 1-1.
    Target(
        "gowin", "Gowin", "gw2a", "GW2A-18", "synth_gowin -family gw2a -noiopads", "|-noflatten",
        Capacity(dsp=48, lut=20_736, ff=15_552, bram=46), _GOWIN,
    ),
    # Lattice FPGA-DS-02049, CrossLink-NX Family Data Sheet, table 1.1; LUT and FF counts as in Project Oxide.
    Target(
        "nexus", "Lattice", "nexus", "LIFCL-40", "synth_nexus -family lifcl -noiopad", "|-noflatten",
        Capacity(dsp=56, lut=32_256, ff=32_256, bram=84), _NEXUS,
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
