# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Values that are hashed and cached cannot be changed."""

import pkgutil
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from inspect import getmembers, isclass

from modmill import numbers


def changeable(module):
    """The public dataclasses of a module that can be changed."""
    found = getmembers(module, lambda item: isclass(item) and is_dataclass(item) and item.__module__ == module.__name__)
    return [name for name, item in found if not (item.__dataclass_params__.frozen or name.startswith("_"))]


def test_every_value_is_frozen():
    modules = [import_module(m.name) for m in pkgutil.walk_packages(numbers.__path__, "modmill.numbers.")]
    assert sum(is_dataclass(item) for module in modules for _, item in getmembers(module, isclass)) > 40
    assert {module.__name__: names for module in modules if (names := changeable(module))} == {}


def test_one_that_is_not_is_found(monkeypatch):
    @dataclass
    class Planted:
        p: int

    monkeypatch.setattr(Planted, "__module__", numbers.__name__)
    monkeypatch.setattr(numbers, "Planted", Planted, raising=False)
    assert changeable(numbers) == ["Planted"]
