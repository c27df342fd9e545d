# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""A small system on a chip around cores behind their buses: a RISC-V processor, memory, a console, firmware in C.

`system` writes the Verilog, `firmware` compiles C for the processor, `simulate` runs both. `demo` is a system with
three engines. `fusesoc` describes a system with its firmware for FuseSoC. `files` holds the templates and the firmware.

Without a processor: `boards` are boards with a serial line, `bitstream` puts an engine behind that line and makes the
bitstream, `serial` simulates the board with a host.
"""
