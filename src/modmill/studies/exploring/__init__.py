# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Parts of `modmill explore`: `moduli` and `space` draw cases, `trial` judges one case, `workers` run trials in
processes that can be stopped, `shrink` reduces a failing case. `modmill.studies.explore` combines them."""
