# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Rename the form `binary` in results/*.jsonl: `montgomery` for a Montgomery multiplier, else `plain`.

Run once from the root of the checkout; the RTL of these forms is unchanged.
"""

import json
from pathlib import Path

MONTGOMERY = {
    "kbe", "hbe", "shenoy-kumaresan", "montgomery-array", "solinas", "radix64k-mul", "radix64k-ram", "radix64k-table",
    "multistep", "tenca-koc", "mcivor", "iddmm", "wide",
}  # fmt: skip

for path in sorted(Path("results").glob("*.jsonl")):
    lines = path.read_text().splitlines()
    for k, line in enumerate(lines):
        row = json.loads(line)
        if row["about"].get("io") == "binary":
            new = "montgomery" if row["about"]["design"] in MONTGOMERY else "plain"
            assert line.count('"io": "binary"') == 1
            lines[k] = line.replace('"io": "binary"', f'"io": "{new}"')
    path.write_text("\n".join(lines) + "\n")
