# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Fully parallel multiplication for the shortest latency of one product.

In reading order: `network` (operations on words, which model and machine share), `sums` (carry-save trees and sums),
`shape` (product and reduction for one modulus), `pipeline` (registers), `design`.
"""
