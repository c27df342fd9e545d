# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What people read: data sheets, cycle charts, tables, and the store of measured rows behind them."""
