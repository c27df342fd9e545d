# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Cores and engines behind a bus: registers with fronts for AXI4-Lite, Wishbone, APB and AHB-Lite, packets for
AXI4-Stream.

`device` says what stands behind the registers and which messages it takes; `registers` is the one description of the
registers. From the two come the RTL (`accesses` decodes, `jobs` runs a message, `script` sends messages that zeroise
and test, `slots` keep keys, `operands` connects a multiplier and `dealer` several machines, `crossing` leads to another
clock, which `clocks` checks, `adapters` speak the buses, `stream` takes packets instead of accesses, `front` puts them
together) and the `files` of a front, with a driver in C and, above it, `calls` for curves, `power_calls` for powers and
RSA, and `product_calls` for a multiplier. `simulate` drives a front in simulation, `serve` makes it a device at a
socket, `uio` reaches a real one under Linux, and `uart` one behind the serial line of a board.
"""
