# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command line: names, options and output of the commands; the work is done in the other folders.

In reading order: `commands` (`modmill` and its commands for multipliers), `options` and `output` (shared), `bases` and
`parameters` (of RNS designs), `rsa`, `ecc` and `ecc_build`, `vectors` (published vectors), `explore`, `mutate`, `depth`
(levels of lookup tables), `site` (the papers, in the terminal or as pages).
"""

from modmill.cli.commands import app, main

__all__ = ["app", "main"]
