# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""kbe and hbe with bases=loaded: one proof for all choices of bases, and products with any of them loaded."""

import random
from dataclasses import replace
from itertools import product

import pytest
from bench import first_difference, run_loads
from typer.testing import CliRunner

from marks import long
from modmill.cli.commands import app
from modmill.contract import UnsupportedError
from modmill.cores.built import Message
from modmill.cores.ecc.machine import ecc
from modmill.cores.ecc.samples import sample
from modmill.cores.multiplier.build import build
from modmill.cores.multiplier.verify import Report, verify
from modmill.cores.pair_check import Stream, exhaust
from modmill.cores.rsa.check import messages
from modmill.cores.rsa.machine import engine
from modmill.designs import design
from modmill.flow.words import WordSimulator
from modmill.numbers.curves.affine import Weierstrass
from modmill.numbers.rns.base_pairs import BasePair, sufficiency
from modmill.numbers.rns.choice_of_moduli import choose_moduli
from modmill.numbers.rns.cox import Cox, EitherCox
from modmill.numbers.rns.residues import Base
from modmill.studies.attack import keys, leakage

P61 = 2**61 - 1
LOADED = {"loadable": True, "bases": "loaded"}


def channels(w, n):
    """Pairs of moduli, the smaller one first."""
    moduli = choose_moduli(w, 2 * n, even=False).moduli
    return list(zip(moduli[n:], moduli[:n], strict=True))


@pytest.mark.parametrize(("w", "n", "c"), [(6, 4, 1), (8, 6, 1), (8, 4, 2), (8, 6, 3), (7, 4, 4)])
def test_the_bounds_of_all_choices_are_those_of_the_worst(w, n, c):
    """E is attained; no choice has a larger sum of the largest X_r / A_r, or a smaller product."""
    pairs = channels(w, n)
    bases = [Base(w, chosen) for chosen in product(*pairs)]
    for t in (1, 3, w, c * w):
        worst = EitherCox(Base(w, tuple(p[0] for p in pairs)), t, c, True, tuple(p[1] for p in pairs))
        coxes = [Cox(base, t, c) for base in bases]
        assert worst.error == max(cox.error for cox in coxes)
        assert worst.most == max(cox.most for cox in coxes) and min(base.M for base in bases) == worst.base.M
        if worst.limit():
            assert worst.limit() <= min(cox.limit(worst.offset) for cox in coxes)
    with pytest.raises(ValueError, match="smaller modulus"):
        EitherCox(bases[-1], w, c, True, bases[0].moduli)


def test_bases_of_which_one_choice_fails_are_refused():
    """Base A has the larger modulus of each channel and suffices; exchanged with B it does not."""
    pairs, w = channels(12, 6), 12
    home = BasePair(Base(w, tuple(p[1] for p in pairs)), Base(w, tuple(p[0] for p in pairs)))
    exchanged = BasePair(home.b, home.a)

    def largest(holds):
        low, high = 3, home.a.M
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if holds(middle) else (low, middle)
        return low

    def room(pair, p, *, either=False):  # without the condition that p is coprime to the bases
        rows = sufficiency(pair, p, either=either, t=w).inequalities
        return all(row.holds for row in rows if row.name != "coprime to p")

    most, least = (largest(lambda p, pair=pair: room(pair, p)) for pair in (home, exchanged))
    assert least < most - 1
    p = (least + most) // 2
    assert room(home, p) and not room(exchanged, p) and not room(home, p, either=True)
    common = largest(lambda p: room(home, p, either=True))
    assert common <= least and all(room(pair, common) for pair in (home, exchanged))
    assert "do not suffice" in replace(sufficiency(home, p, t=w), either=True).refusal


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("kbe", {"w": 12}), long("hbe", {"w": 12}), long("kbe", {"w": 12, "check": True}),
        long("kbe", {"w": 12, "rowers": 3}), ("hbe", {"columns": 3}),
    ],
)  # fmt: skip
def test_any_choice_is_loaded_into_one_machine(name, settings):
    """Each intermediate is that of the algorithm, in the cycles of the machine with built-in bases; the products agree
    modulo p, and a wrong word is found."""
    f = design(name).fit(P61, **settings, **LOADED)
    plain = design(name).fit(P61, loadable=True, **settings)
    assert f.contract("native").timing == plain.contract("native").timing and f.choices == 1 << f.params.a.n
    last, rnd = f.choices - 1, random.Random(3)
    some = [f.choose(k) for k in (0, last, 1, rnd.randrange(last), 0)]
    assert len({g.factor for g in some}) == 4 and len({g.params.shape for g in some}) == 1
    assert len({g.bounds for g in some}) == len({g.gain for g in some}) == 1
    x, y = (rnd.randrange(P61) for _ in range(2))
    pairs = [(g.representation.encode(x), g.representation.encode(y)) for g in some]
    words = [list(g.load.words) for g in some]
    core = f.component()
    found = run_loads(core, [(w, [pair]) for w, pair in zip(words, pairs, strict=True)])
    for g, pair, ((result, seen, _),) in zip(some, pairs, found, strict=True):
        trace = list(g.trace(*pair))
        assert first_difference(trace, seen) == "" and trace[-1][1] == result
        assert g.representation.decode(result) % P61 == x * y * g.factor % P61
    exchange = [words[1][0] ^ 1, *words[1][1:]]
    constants = [[*words[1][:k], words[1][k] ^ 1, *words[1][k + 1 :]] for k in range(1, len(words[1]))]
    for wrong in (exchange, words[2], *constants[:: max(1, len(constants) // 3)]):
        ((((result, _, _),),)) = run_loads(f.component(), [(wrong, pairs[1:2])])
        assert result != found[1][0][0], "a wrong word is not seen"


@pytest.mark.parametrize(("name", "columns"), [("kbe", 1), ("hbe", 2)])
def test_a_core_with_loaded_bases_passes_its_check(name, columns):
    core, report = build(name, P61, "native", w=12, **LOADED), Report("core")
    others = core.fitted.others()
    assert len({other.choice for other in others}) >= 4 and {other.p for other in others} > {P61}
    verify(core, core.verilog, report, vectors=50)
    assert not report.failures


def test_bases_with_the_exchange_left_out_fail_the_check():
    """Planted: rowers that ignore the bits."""
    core, report = build("kbe", P61, "native", w=12, **LOADED), Report("core")
    wrong = core.verilog.replace("exchanged <= (c_bases & ~rst)", "exchanged <= (c_bases & 1'b0)")
    assert wrong != core.verilog
    verify(core, wrong, report, vectors=50)
    assert report.failures


@pytest.mark.parametrize(
    ("settings", "form", "why"),
    [
        ({"bases": "loaded"}, "native", "bases=loaded needs loadable=true"),
        (LOADED, "plain", "no plain form; take --io native"),
        (LOADED, "montgomery", "no montgomery form; take --io native"),
    ],
)
def test_what_the_bases_cannot_be_loaded_with_is_refused(settings, form, why):
    with pytest.raises(UnsupportedError, match=why):
        build("kbe", P61, form, **settings)


def test_a_choice_beyond_the_last_is_refused():
    f = design("kbe").fit(P61, w=12, **LOADED)
    for choice in (-1, f.choices):
        with pytest.raises(UnsupportedError, match="a choice of bases of this core is below 64"):
            f.choose(choice)
    fixed = design("kbe").fit(P61, loadable=True)
    assert fixed.choose(0) is fixed and fixed.choices == 1
    with pytest.raises(UnsupportedError, match="below 1, not 1"):
        fixed.choose(1)


def test_the_constants_of_a_choice_are_counted():
    facts = dict(design("kbe").fit(P61, w=12, n=8, **LOADED).facts())
    words = 1 + 3 + 2 * 8  # the exchange, three constants, and those of both rings
    assert f"2^8 choices, with the same bounds and cycles, of {words * 8 * 12:,} bits each" in facts["bases"]


@pytest.fixture(scope="module")
def powers():
    return engine("kbe", P61, settings={"w": 12, "n": 8, **LOADED}, window=2, threads=1, bits=8)


@pytest.fixture(scope="module")
def folder(powers, tmp_path_factory):
    """The folder of the engine, and of one with built-in bases."""
    top = tmp_path_factory.mktemp("engines")
    powers.write(top / "loaded", "modmill rsa build")
    plain = engine("kbe", P61, settings={"w": 12, "loadable": True}, window=2, threads=1, bits=8)
    plain.write(top / "fixed", "modmill rsa build")
    return top


def judged(core, messages):
    """The faults that the RTL shows with these messages."""
    report = type("Report", (), {"judged": 0, "cycles": 0})()
    simulator = WordSimulator(core.verilog, core.word, top=core.top, instances=2, power_up=core.power_up)
    return list(exhaust(core, Stream(core, messages), simulator, report))


def test_an_engine_takes_any_bases(powers):
    """SETUP with other bases; the check of an engine sends them. Answers in other bases are told apart."""
    assert len({job.choice for job in messages(powers, full=False).full[0].jobs}) >= 4
    sent = []
    for choice in (0, 255, 1, 0):
        made = powers.choose(choice)
        sent += [made.setting(made.fitted), made.message(P61, 0, 8, [(choice + 3, 77)])]
    assert not judged(powers, sent)
    assert any("is wrong" in line for line in judged(powers, [replace(m, choice=0) for m in sent]))


def test_powers_are_right_with_bases_drawn_for_each_operation(powers):
    cycles = set()
    for choice in (0, 1, 200, powers.fitted.choices - 1):
        made = powers.choose(choice)
        found = made.simulate(made.fitted, 0, [(5, 77), (P61 - 2, 255)])
        assert found.powers == [pow(5, 77, P61), pow(P61 - 2, 255, P61)]
        cycles.add(tuple(found.cycles[1:]))
    assert len(cycles) == 1


def test_setup_prints_the_words_of_drawn_bases(powers, folder):
    def printed(where, *options):
        result = CliRunner().invoke(app, ["rsa", "setup", str(folder / where), "-m", "2^61-1", *options])
        return result.exit_code, result.output.split()

    first, drawn = printed("loaded"), printed("loaded", "--bases", "5")
    choice = random.Random(5).randrange(256)
    made = powers.choose(choice)
    assert choice and drawn == (0, [f"{word:08x}" for word in made.setup(made.fitted)]) != first
    assert printed("loaded", "--bases", "5") == drawn
    assert isinstance(CliRunner().invoke(
        app, ["rsa", "setup", str(folder / "fixed"), "-m", "2^61-1", "--bases", "5"]
    ).exception, UnsupportedError | SystemExit)  # fmt: skip


def test_a_curve_engine_takes_any_bases():
    curve = Weierstrass(251, (0, 2), 271, a=1, b=4)
    core = ecc(curve, "kbe", {"w": 12, "n": 3, **LOADED}, threads=1)
    run = sample(curve, "multiply", core.scalar_bits, 1, 1)
    sent = []
    for choice in (0, 7, 1):
        made = core.choose(choice)
        sent += [Message(made.setup()), made.message("multiply", run)]
    assert not judged(core, sent)


@pytest.mark.long
def test_drawn_bases_hide_a_message_but_not_its_entry_or_the_key(folder, monkeypatch):
    """Of a message that half of the runs have alike, products show nothing any more; with bases that are drawn but
    always the same they do. The digits of the exponent are seen with drawn bases, too."""
    monkeypatch.setattr(leakage._Kept, "load", lambda *_: (0, []))
    monkeypatch.setattr(leakage._Kept, "save", lambda *_: None)

    def leaks(**options):
        subject = keys.read(folder / "loaded", exponent_bits=4, random_bases=True, **options)
        report = leakage.run(subject, 200)
        return max(len(curve.leaks) for curve in report.curves if curve.order == 1)

    assert leaks()
    hidden = leaks(message=True)
    monkeypatch.setattr(keys.rsa.EngineCore, "choose", lambda self, _choice: self)
    assert leaks(message=True) > 200 > 20 > hidden
    with pytest.raises(UnsupportedError, match="the bases of kbe in this engine are built in: --random-bases needs"):
        keys.read(folder / "fixed", random_bases=True)
