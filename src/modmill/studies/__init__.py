# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Studies of cores and engines: races, papers, published vectors, random exploration, planted faults, and the site."""
