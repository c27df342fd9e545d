# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Verilog as Yosys prints it -> Verilog as an engineer writes it; the netlist stays the same.

Yosys prints a net and an assignment for each operator, and numbers the nets. In reading order:

`expressions`  expressions of Verilog: read, width and sign, print
`module`       a module as statements: text and expressions
`cases`        a selection by comparisons of one value with constants becomes a case, whose items do not overlap
`putting`      an operator whose result is used once becomes a part of the expression that uses it, where the widths and
               signs of Verilog's rules give the same value; second names that nothing reads are left out
`naming`       the other numbered nets get the name of what they are for: x_sum is a sum in the expression of x
`printing`     ports in the header, nets of one width together, the registers of a clock in one block

Values under a condition stay `? :` and do not become `if`, so that a four-state simulation shows an x in a condition.
Yosys may count a few lookup tables more or fewer for this text than for its own, as the order of names guides it.
"""

from modmill.flow.readable.cases import find_cases
from modmill.flow.readable.module import MODULE, Module, is_printed
from modmill.flow.readable.naming import name_connections, name_nets
from modmill.flow.readable.printing import printed
from modmill.flow.readable.putting import put_together

__all__ = ["readable"]


def readable(verilog: str) -> str:
    """The same modules, readable; modules that Yosys did not print, and text between modules, are kept."""
    modules = {found["name"]: Module(found) for found in MODULE.finditer(verilog) if is_printed(found)}
    ways = {name: module.ways for name, module in modules.items()}
    for module in modules.values():
        find_cases(module)
        put_together(module)
        name_connections(module, ways)
        name_nets(module)
    return MODULE.sub(lambda found: printed(modules[found["name"]]) if found["name"] in modules else found[0], verilog)
