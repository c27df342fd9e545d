# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The tools behind a core; one file for each tool.

In reading order: `tools` (paths and versions), `yowasp` (their stack), `targets` (devices), `emit` (netlist),
`readable` (the Verilog that is delivered), `modules`, `tiles`, `adders` and `memories` (what is read and replaced in
it), `lint`; `library`, `simulate`, `words` and `four_state` (simulation of cores and engines); `synthesise`, `depth`,
`liberty` and `asic` (cells of a library), `floorplan`, `backends`, `route`, `nexus`, `himbaechel` and `vivado`
(resources and clock).
"""
