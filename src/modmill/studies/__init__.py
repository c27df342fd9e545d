# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""What is done with cores: build one, check one, explain one, race them all for one modulus."""
