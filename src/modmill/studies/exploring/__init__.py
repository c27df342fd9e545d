# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Parts of `modmill explore`: `moduli` and `space` draw cases, `trial` judges one, `workers` run trials in processes
that can be stopped, `shrink` makes a failing case small. `modmill.studies.explore` puts them together."""
