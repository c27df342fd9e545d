# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The tools behind a core; one file for each tool.

In reading order: `tools` (paths and versions), `yowasp` (their stack), `targets` (devices), `emit` (netlist),
`readable` (the Verilog that is delivered), `modules`, `tiles`, `adders` and `memories` (what is read and replaced in
it), `lint`; `library`, `simulate`, `words` and `four_state` (simulation of cores and engines); `prove` (proofs for all
operands); `netlist`; `constant_time` (operands and handshake), `monitors`, `delays`, `result_way` and `control` (one
result for each pair, in order), `gates` and `lockstep` (the same in two runs of an engine); `polynomials`, `ranges`,
`integers`, `word_rules`, `full_adders`, `symbolic` and `products` (results proved for all operands, with their
`reasons`), `certificate` (the proof as lines), `recheck`, `cell_rules` and `replay` (their checker, which shares
nothing with the prover); `mutate`, `miter`, `taint`, `states`, `equivalence` and `all_operands` (planted faults);
`synthesise`, `depth`, `liberty` and `asic` (cells of a library), `floorplan`, `backends`, `route`, `nexus`,
`himbaechel` and `vivado` (resources and clock).
"""
