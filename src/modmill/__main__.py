# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""``python -m modmill``."""

from modmill.cli import main

if __name__ == "__main__":
    main()
