# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What is made, written and checked as a folder of files: `multiplier`, `ecc` and `rsa` cores.

`pair_check` checks a machine with two streams of words, `engine_files` what lies in its folder.
"""
