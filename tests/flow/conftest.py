# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Makes `cores` importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
