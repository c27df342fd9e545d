# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Block diagrams show the units and the reads of a schedule; an arrow joins the boxes of its title and runs through no
other."""

import re
from xml.etree import ElementTree

import pytest

from modmill.designs import DESIGNS, design
from modmill.numbers.moduli import parse_modulus
from modmill.report.diagram import Repeat, blocks, kinds
from modmill.schedule import Schedule, Step
from modmill.studies.site.machines import MACHINES, repeat

SMALL = Schedule(
    (
        Step("a", "mul1", 0, 2),
        Step("b", "mul2", 0, 2),
        Step("c", "sum", 2, 1, ("a", "b")),
        Step("d", "mul1", 3, 2, ("c",)),
    ),
    5,
)


def fitted(name):
    modulus = "2^17-145" if name.startswith("channel") else "P-256" if name.endswith("solinas") else "secp256k1"
    return design(name).fit(parse_modulus(modulus).value)


def numbers(text):
    return [float(x) for x in re.findall(r"-?[\d.]+", text)]


def boxes(root):
    """The corners of each box by its text."""
    found = {}
    for g in (g for g in root.iter("g") if g.get("class") == "box"):
        x, y, wide, tall = (float(g.find("rect").get(name)) for name in ("x", "y", "width", "height"))
        found[g.find("text").text] = x, y, x + wide, y + tall
    return found


def along(path):
    """Points of a path of Bézier curves."""
    x, y, *rest = numbers(path.partition("L")[0])
    for k in range(0, len(rest), 6):
        xs, ys = (x, *rest[k : k + 6 : 2]), (y, *rest[k + 1 : k + 6 : 2])
        for step in range(21):
            t = step / 20
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            yield tuple(sum(w * v for w, v in zip(weights, values, strict=True)) for values in (xs, ys))
        x, y = xs[3], ys[3]


def crossed(root):
    """Arrows that run through a box or touch it or join others than their title says, and boxes that lie on one
    another."""
    found = boxes(root)
    for path in (e for e in root.iter("path") if e.get("class") == "flow" and len(e)):
        a, b = path[0].text.partition(": ")[0].split(" to ")
        points = list(along(path.get("d")))
        for name, (x0, y0, x1, y1) in found.items():
            near = [x0 - 2 < x < x1 + 2 and y0 - 2 < y < y1 + 2 for x, y in points]
            if any(near) and name not in (a, b):
                yield f"{a} to {b} runs through {name}"
            if (name == a and not near[0]) or (name == b and not near[-1]):
                yield f"{a} to {b} does not reach {name}"
    places = list(found.items())
    for k, (name, (x0, y0, x1, y1)) in enumerate(places):
        for other, (u0, v0, u1, v1) in places[:k]:
            if x0 < u1 and u0 < x1 and y0 < v1 and v0 < y1:
                yield f"{name} lies on {other}"


@pytest.mark.parametrize("name", [d.name for d in DESIGNS])
def test_every_design_is_drawn_with_all_that_it_reads(name):
    made = fitted(name)
    schedule, many = made.schedule, repeat(design(name), made)
    drawn = blocks(schedule, name, many)
    root = ElementTree.fromstring(drawn.svg)
    reads = sum(len(s.reads) for s in schedule.steps)
    if many and many.fed:  # what the others put into the ring
        reads += sum(len(s.occupied) for s in schedule.on("ring"))
    titles = [e.text for e in root.iter("title") if not e.text.endswith("as the first")]
    assert sum(n for _, _, n in drawn.flows) == reads == sum(int(numbers(t.rpartition(": ")[2])[0]) for t in titles)
    assert sum(n for _, n in drawn.boxes) == len(schedule.units)
    assert list(crossed(root)) == []
    width, height = float(root.get("width")), float(root.get("height"))
    left, top, *_ = numbers(root.get("viewBox"))
    for x0, y0, x1, y1 in boxes(root).values():
        assert left <= x0 and top <= y0 and x1 <= left + width and y1 <= top + height
    if many:
        last = f"{many.name} {many.count}"
        assert last in boxes(root) and design(name).page in MACHINES
        assert str(many.count) in " ".join(v for _, v in made.facts())


def test_a_planted_arrow_through_a_box_is_caught():
    drawn = str(blocks(SMALL, "small").svg)
    root = ElementTree.fromstring(drawn)
    assert list(crossed(root)) == []
    x0, y0, x1, y1 = boxes(root)["sum"]
    y = (y0 + y1) / 2
    path = f"M0 {y}C{x0} {y} {x1} {y} {x1 + 50} {y}"
    bad = f'<path class="flow" d="{path}"><title>mul1 to mul2: 1</title></path></svg>'
    assert "mul1 to mul2 runs through sum" in list(crossed(ElementTree.fromstring(drawn.replace("</svg>", bad))))
    wrong = drawn.replace("mul2 to sum:", "sum to mul2:")
    assert "sum to mul2 does not reach mul2" in list(crossed(ElementTree.fromstring(wrong)))


def test_blocks_of_a_small_schedule():
    drawn = blocks(SMALL, "small")
    assert drawn.boxes == (("mul", 2), ("sum", 1))
    assert set(drawn.flows) == {("mul", "sum", 2), ("sum", "mul", 1)}
    assert "mul1 to sum: 1 value a product" in drawn.svg and len(re.findall('class="flow"', drawn.svg)) == 3


def test_many_parts_are_rows_on_a_ring():
    drawn = blocks(SMALL, "small", Repeat("rower", 16, frozenset({"mul"}), "ring"))
    root = ElementTree.fromstring(drawn.svg)
    assert {"rower 2", "rower 16", "mul1", "mul2", "sum"} == boxes(root).keys()
    assert "⋮" in drawn.svg and len(re.findall('class="flow join"', drawn.svg)) == 4  # 1, 2, the others, 16, 1
    with pytest.raises(ValueError, match="no unit 'cox'"):
        blocks(SMALL, "small", Repeat("rower", 16, frozenset({"cox"}), "ring"))


def test_a_row_of_parts_shows_each_of_them_and_what_they_share():
    repeat = Repeat("rower", 16, frozenset({"mul"}), "ring", columns=2, shared=frozenset({"sum"}))
    root = ElementTree.fromstring(blocks(SMALL, "small", repeat).svg)
    assert boxes(root).keys() == {"mul1", "mul2", "sum", "rower 2", "rower 3", "rower 4", "rower 15", "rower 16"}
    assert [e.text for e in root.iter("title") if "as the first" in e.text] == ["rower 2 to sum: as the first"]
    frames = [g.find("text").text for g in root.iter("g") if g.get("class") == "part"]
    assert sorted(frames) == ["row 1", "row 2", "row 8", "rower 1"] and list(crossed(root)) == []
    assert repeat.words == "8 rows of 2 rowers, joined by a ring"


def test_kinds_of_units():
    assert kinds(["element 12", "fold1.2", "column 0", "mul1", "k, k M, digits", "7"]) == {
        "element 12": "element", "fold1.2": "fold", "column 0": "column", "mul1": "mul", "7": "7",
        "k, k M, digits": "k, k M, digits",
    }  # fmt: skip
