# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The site: pages of races, engines, designs, papers and errata, from rows and formulas.

`site` (all pages), `race_page` (works of the race), `machines` (rowers and channels), `machine_pages` (engines),
`predicted` (cores without rows), `scaling` (cost against width), `documentation` (docs/).
"""
