# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Carry chains in netlists for Nexus as nextpnr accepts them.

nextpnr-nexus refuses a CCU2 whose carry-in is a constant, and Yosys connects the carry-in of the first cell of every
chain to VLO (YosysHQ/yosys issue 4081). That cell makes its carry-out from the pin A1 alone: its upper function is 0
where B1 = C1 = D1 = 1, so that it does not pass on a carry. `free_carries` checks this and disconnects the pin.
"""

from collections.abc import Mapping

from modmill.flow.tools import ToolError

_HIGH, _LOW = "VHI", "VLO"


def free_carries(netlist: Mapping[str, dict], top: str) -> int:
    """Disconnect constant carry-ins that no output depends on; return their number.

    Raises ToolError for a cell whose outputs depend on its constant carry-in.
    """
    cells = netlist["modules"][top]["cells"]
    outputs = {bit: cell["type"] for cell in cells.values() for bit in _bits(cell, "output")}
    read = {bit for cell in cells.values() for bit in _bits(cell, "input")}
    read |= {bit for port in netlist["modules"][top]["ports"].values() for bit in port["bits"]}
    freed = 0
    for name, cell in cells.items():
        pins = cell["connections"]
        if cell["type"] != "CCU2" or not pins.get("CIN"):
            continue
        bit = pins["CIN"][0]
        if bit not in ("0", "1", "x") and outputs.get(bit) not in (_HIGH, _LOW):
            continue
        high = [pins[pin][0] == "1" or outputs.get(pins[pin][0]) == _HIGH for pin in ("B1", "C1", "D1")]
        stops = int(cell["parameters"]["INIT1"], 16) >> 14 & 3 == 0  # the entries with B1 = C1 = D1 = 1
        if not (all(high) and stops) or any(bit in read for pin in ("S0", "S1") for bit in pins.get(pin, [])):
            raise ToolError(f"nextpnr-nexus accepts no constant carry-in, and outputs of {name} depend on it")
        pins["CIN"] = []
        freed += 1
    return freed


def _bits(cell: Mapping[str, dict], way: str) -> list[int | str]:
    return [bit for pin, bits in cell["connections"].items() if cell["port_directions"][pin] == way for bit in bits]
