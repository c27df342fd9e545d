# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The command line: names, options and output of the commands; the work is done in the other folders.

In reading order: `statuses`, `commands` (all commands, and those for multipliers), `command` (how a command is added),
`progress`, `options`, `output` and `complete` (shared), `usage` (refusals), `lists` (names of everything), `check`,
`prove`, `bases` and `parameters` (of RNS designs), `rsa`, `ecc` and `ecc_build`, `vectors` (published vectors),
`certify` (request files of ACVP, new keys), `explore`, `sweep` (many cores, and their store), `recommend` (the best for
a budget), `search` (the front, with few measurements), `mutate`, `attack` (faults in an engine), `depth` (levels of
lookup tables), `asic` (cells of a library), `bus` and `serve` (fronts), `soc`, `bitstream`, `site` (the papers, in the
terminal or as pages), `upkeep` (of this repository).
"""

import signal
import sys
import warnings
from types import FrameType

from modmill.version import __version__


def main() -> None:
    """Run the command; turn every refusal into one line and a status. SIGTERM acts as Ctrl-C, also for running
    tools."""
    if sys.argv[1:] == ["--version"]:  # answered before other imports, so that it is fast
        print(f"modmill {__version__}")
        sys.exit(0)
    warnings.filterwarnings("ignore", ".* created but never used")  # Amaranth's, of what a refusal leaves half done
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        from modmill.cli.statuses import status

        sys.exit(status())
    except KeyboardInterrupt:
        from modmill.cli.progress import interrupted

        print(f"modmill: {interrupted()}", file=sys.stderr)
        sys.exit(130)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt. Warnings about what is left half done, as Amaranth's of unused components, are off."""
    warnings.simplefilter("ignore")
    signal.default_int_handler(number, frame)
