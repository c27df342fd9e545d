# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What is signed and sent in these tests."""

MESSAGE = b"signed by hardware\n"
