# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The handshake: no operand reaches it, and products stay apart under all pauses and resets.

`constant_time` (operands and handshake of a core); `delays`, `slots`, `result_way`, `monitors`, `hours` and `control`
(one result for each pair, in order); `gates` and `lockstep` (the same in two runs of an engine).
"""
