# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Cores with several settings changed at once, proposed by Optuna from predicted figures.

NSGA-II (K. Deb, A. Pratap, S. Agarwal, T. Meyarivan: A fast and elitist multiobjective genetic algorithm: NSGA-II. IEEE
Transactions on Evolutionary Computation, 2002) changes designs and settings so that the predicted front moves; limits
are its constraints. Nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from modmill.contract import UnsupportedError
from modmill.design import Design
from modmill.flow.targets import Target
from modmill.parts import need
from modmill.studies.search.candidates import Candidate, start_and_values, unsolved
from modmill.studies.search.front import OBJECTIVES
from modmill.studies.search.knowledge import Figures, Knowledge
from modmill.studies.search.recommend import overrun

if TYPE_CHECKING:
    from optuna import Trial

SEED = 1
"""Of the random choices: the same rows give the same proposals."""
_REFUSED = 1e6
"""Violation of the limits by settings that a design refuses."""


def proposed(
    knowledge: Knowledge,
    p: int,
    designs: Sequence[Design],
    objectives: Sequence[str],
    limits: Mapping[str, float],
    trials: int,
    *,
    loaded: bool = False,
) -> list[Candidate]:
    """The cores within the limits among ``trials`` proposals, each once; the first ones are the designs' defaults."""
    need("search")
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = _Space(knowledge, p, designs, objectives, limits, loaded)
    study = optuna.create_study(
        directions=["minimize"] * len(objectives), sampler=optuna.samplers.NSGAIISampler(seed=SEED)
    )
    for design in designs:
        study.enqueue_trial({"design": design.name}, skip_if_exists=True)
    with unsolved():
        study.optimize(space.numbers, n_trials=trials)
    return [f.core for f in space.found.values() if overrun(f, limits) <= 1]


class _Space:
    """The objective of a trial: the good ends of the predicted figures, because those decide what is measured."""

    def __init__(
        self, knowledge: Knowledge, p: int, designs: Sequence[Design], objectives: Sequence[str],
        limits: Mapping[str, float], loaded: bool,
    ) -> None:  # fmt: skip
        self._knowledge, self._p, self._objectives, self._limits = knowledge, p, objectives, limits
        self._designs = {design.name: design for design in designs}
        self._choices = {d.name: _choices(d, p, knowledge.target, loaded) for d in designs}
        self.found: dict[tuple[Any, ...], Figures] = {}

    def numbers(self, trial: Trial) -> tuple[float, ...]:
        name = trial.suggest_categorical("design", [*self._designs])
        start, choices = self._choices[name]
        chosen = {setting: trial.suggest_categorical(f"{name} {setting}", each) for setting, each in choices.items()}
        given = {**start, **{setting: value for setting, value in chosen.items() if value != choices[setting][0]}}
        try:
            core = Candidate.of(self._designs[name], self._p, given)
        except UnsupportedError:
            trial.set_constraint("limits", _REFUSED)
            return (_REFUSED,) * len(self._objectives)
        if core.key not in self.found:
            self.found[core.key] = self._knowledge.of(core)
        figures = self.found[core.key]
        trial.set_constraint("limits", overrun(figures, self._limits) - 1)
        return tuple(OBJECTIVES[objective](figures, "good") for objective in self._objectives)


def _choices(design: Design, p: int, target: Target, loaded: bool) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The settings of all cores, and the values of each other setting, the default first."""
    start, values = start_and_values(design, p, target, loaded)
    defaults = {s.name: s.default for s in design.settings}
    return start, {name: [defaults[name], *found] for name, found in values.items() if found}
