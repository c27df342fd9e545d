# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The papers' tables and figures, one file for each paper: printed, predicted and measured values."""
