# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Output for readers: data sheets, cycle charts, tables, pages, and the store of measured rows from which they are
made."""
