# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Digests that are looked up, not emitted: for which sources they count, and whether the shipped ones are right."""

import ast
import json
import random
import shutil

import pytest

from modmill import parts
from modmill.cores import digests
from modmill.cores.digests import MULTIPLIER, NAME, Digests, fingerprint, key, read
from modmill.cores.multiplier.build import Core, build
from modmill.flow import tools
from modmill.report.rows import shipped_folder
from modmill.studies.race.cores import race
from modmill.studies.race.known import described, emitted
from test_house import PACKAGE, imported

SHIPPED = shipped_folder() / NAME
STALE = "sources of multipliers have changed: write results/digests.json anew with `./mill digests`"


def outside(sources, package=PACKAGE):
    """Yield the imports of these sources that are no sources themselves."""
    files = {f for name in sources for f in ((package / name).rglob("*.py") if "." not in name else [package / name])}
    for file in files:
        if file.suffix != ".py":
            continue
        here = ["modmill", *file.relative_to(package).parts[:-1]]
        for _, name in imported(ast.parse(file.read_text(encoding="utf-8")), here):
            parts = name.split(".")
            if parts[0] != "modmill":
                continue
            places = [package.joinpath(*parts[1:end]) for end in (len(parts), len(parts) - 1) if end > 1]
            found = [p for place in places for p in (place.with_suffix(".py"), place / "__init__.py") if p.is_file()]
            if found[0] not in files:
                yield f"{file.name} imports {name}"


def test_the_fingerprint_covers_all_that_a_multiplier_imports():
    assert list(outside(MULTIPLIER)) == []
    assert "emit.py imports modmill.flow.tiles" in list(outside([n for n in MULTIPLIER if n != "flow/tiles.py"]))


def test_the_fingerprint_depends_on_each_source_and_on_the_tools(tmp_path, monkeypatch):
    copy = tmp_path / "modmill"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(digests, "__file__", str(copy / "cores" / "digests.py"))
    fingerprint.cache_clear()
    found = {fingerprint()}
    for name in ("contract.py", "placements.json", "numbers/rns.py", "designs/sor/ring.py", "flow/emit.py"):
        with (copy / name).open("a") as file:
            file.write("\n")
        fingerprint.cache_clear()
        found.add(fingerprint())
    (copy / "cli" / "commands.py").unlink()
    fingerprint.cache_clear()
    assert len(found) == 6 and fingerprint() in found
    monkeypatch.setattr(digests.tools, "version", lambda tool: "0")
    fingerprint.cache_clear()
    assert fingerprint() not in found
    fingerprint.cache_clear()


def test_the_shipped_table_is_of_these_sources_and_has_every_described_core():
    assert read(SHIPPED, fingerprint()), STALE
    assert read(SHIPPED, fingerprint()).keys() == described().keys(), STALE


def test_shipped_digests_are_those_of_the_emitted_rtl():
    """Three small cores of the table, others in every state of the table."""
    cores = {name: core for name, core in described().items() if core.fitted.size <= 16}
    table = read(SHIPPED, fingerprint())
    sample = random.Random(fingerprint()).sample(sorted(cores), 3)
    assert {name: cores[name].digest for name in sample} == {name: table.get(name) for name in sample}, STALE


@pytest.mark.long
def test_all_shipped_digests_are_those_of_the_emitted_rtl():
    assert emitted(described()) == read(SHIPPED, fingerprint()), STALE


def test_a_digest_is_emitted_once_for_the_same_sources(cache, monkeypatch):
    asked = []
    for _ in range(2):
        assert Digests(shipped=False).of("a core", lambda: asked.append(1) or "sha256:1") == "sha256:1"
    assert asked == [1]
    other = Digests(digests.EVERYTHING, shipped=False)
    assert other.of("an engine", lambda: "sha256:2") == "sha256:2"
    assert Digests(shipped=False).of("a core", lambda: pytest.fail("emitted again")) == "sha256:1"
    monkeypatch.setattr(digests, "fingerprint", lambda *_: "of changed sources")
    assert Digests(shipped=False).of("a core", lambda: "sha256:3") == "sha256:3"
    kept = json.loads((cache / "cache" / NAME).read_text())
    assert kept == {"of changed sources": {"a core": "sha256:3"}}  # what nobody can use any more is gone


@pytest.mark.parametrize("text", ["", "{", "[]", '{"x": 1}'])
def test_a_damaged_file_is_as_none(cache, text):
    (cache / "cache" / NAME).write_text(text)
    assert Digests(shipped=False).of("a core", lambda: "sha256:1") == "sha256:1"
    assert Digests(shipped=False).of("a core", lambda: "") == "sha256:1"


def test_the_key_names_all_on_which_the_rtl_depends():
    cores = [build("sor-1m-p", "97"), build("sor-1m-p", "97", "native"), build("sor-2m", "97"), build("sor-1m-p", "89"),
             build("sor-1m-p", "97", n=16)]  # fmt: skip
    assert len({key(core) for core in cores}) == 5
    with pytest.raises(ValueError, match="top"):
        key(build("sor-1m-p", "97", top="mine"))


def test_a_recorded_race_emits_nothing_and_verify_finds_a_wrong_digest(cache, monkeypatch):
    one = build("channel-reduce", "secp256k1", "native")
    (s,) = race("secp256k1", ["channel-reduce"])
    assert s.digest == one.digest and s.numbers == "recorded"
    (s,) = race("secp256k1", ["channel-reduce"], verify=True)
    assert s.digest == one.digest and s.numbers == "recorded"
    with monkeypatch.context() as patch:
        patch.setattr(Core, "_netlist", property(lambda self: pytest.fail("a core is emitted")))
        (s,) = race("secp256k1", ["channel-reduce"])
        assert s.numbers == "recorded"
    monkeypatch.setattr(Core, "_netlist", property(lambda self: "module core; endmodule"))
    (s,) = race("secp256k1", ["channel-reduce"], verify=True)
    assert s.state == "failed" and s.note.startswith("the emitted RTL has digest sha256:")
    (s,) = race("secp256k1", ["channel-reduce"], vectors=10_000)  # more than recorded, so it is emitted
    assert s.state == "failed" and "digests.json says" in s.note


def test_the_race_of_the_readme_is_recorded_and_needs_no_other_part(cache, monkeypatch):
    """Nothing is emitted, simulated or installed for the table of `./mill race secp256k1`."""
    monkeypatch.setattr(Core, "_netlist", property(lambda self: pytest.fail(f"{self.name} is emitted: {STALE}")))
    for place in (tools, parts):
        monkeypatch.setattr(place, "need", lambda part: pytest.fail(f"{part} is needed"))
    found = race("secp256k1")
    assert {s.state for s in found} == {"ready", "does not fit", "does not apply"}
    assert {s.numbers for s in found if s.state == "ready"} == {"recorded"}
    assert all(s.check and s.check[1] == "recorded" for s in found if s.state != "does not apply")
