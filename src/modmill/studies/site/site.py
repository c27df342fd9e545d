# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The site: race, engines, designs, papers, errata, scaling and methods, generated from rows, schedules, formulas, the
papers' sections and docs/. No page has a copy of a number.

Whole engines have their own races beside ``Site._race`` (studies.site.machine_pages); papers are entries of
studies.papers.reproduce; a new design needs only a family (report.families). No template depends on a design.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from modmill.contract import UnsupportedError
from modmill.cores.digests import Digests, key
from modmill.cores.folder import write_folder
from modmill.cores.multiplier.build import build
from modmill.design import Design, DesignInstance
from modmill.designs import DESIGNS
from modmill.designs import design as find_design
from modmill.flow import tools
from modmill.flow.targets import TARGETS
from modmill.numbers.moduli import parse_modulus
from modmill.report import diagram, drawing, errata, pages
from modmill.report.engine_rows import MeasuredEngine, is_engine, measured_engines, work_of
from modmill.report.families import FAMILIES, family
from modmill.report.measured import Measured, by_device, core_numbers
from modmill.report.proof_rows import proofs_by_digest, proved
from modmill.report.reproduction import Section
from modmill.report.rows import Row, Store
from modmill.report.traces import traced
from modmill.studies.papers.bench import modulus_value
from modmill.studies.papers.errata import ERRATA
from modmill.studies.papers.reproduce import PAPERS, reproduce, require_papers
from modmill.studies.race.measured_cores import Contender, contenders, modulus_name, shell
from modmill.studies.search.estimate import HELD
from modmill.studies.site import machine_pages as engine_pages
from modmill.studies.site import scaling
from modmill.studies.site.documentation import documentation
from modmill.studies.site.machines import repeat
from modmill.studies.site.predicted import TARGET, Predicted, predicted
from modmill.studies.site.race_page import FIRST, race_works, works_of
from modmill.version import __version__

COLUMNS = (
    ("latency", "latency, cycles"), ("interval", "interval"), ("dsp", "DSP"), ("lut", "LUT"), ("ff", "FF"),
    ("bram", "BRAM"), ("mhz", "MHz"), ("us", "µs a product"), ("rate", "products/s"), ("per_dsp", "/s/DSP"),
    ("per_lut", "/s/LUT"),
)  # fmt: skip
SHAPES = {"circle": "●", "diamond": "◆", "square": "■", "triangle-up": "▲", "star": "★"}
SHOWN_FOR = ("secp256k1", "P-256", "2^17-145")
"""Moduli for a design's page; the page uses the first one that the design serves."""

_SPECIAL = "$2^k - 189$"
_ORDINARY = r"a modulus of $k$ bits without a special form, $\lfloor 2^k / \sqrt{2} \rfloor$ made odd"
"""Moduli for the curves of cost against width, as Markdown."""

BEFORE = ("Formula", "Ranges", "Formulas")
MACHINE = ("Machine", "Slot machine", "Loaded modulus", "Loading a modulus")
SCHEDULE = ("Schedule", "Cycles")
AFTER = ("What differs from the paper", "What differs from the papers", "Deviations from the papers")
"""Parts of a page of docs/designs that the site's page includes. Other parts have measured numbers, which the site
takes from rows."""


Progress = Callable[[str], None]


def documents() -> Path:
    """The folder docs of the checkout, or of the installed package."""
    package = Path(__file__).resolve().parents[2]
    checkout = package.parents[1]
    return checkout / "docs" if (checkout / "pyproject.toml").exists() else package / "docs"


def write(
    folder: Path,
    papers: Sequence[str] = (),
    *,
    measure: bool = False,
    emit: bool = False,
    record: Path | None = None,
    progress: Progress | None = None,
    left_out: Callable[[str], None] | None = None,
) -> list[str]:
    """Write the site (by default with the pages of all papers) and return the names of its files.

    ``measure``: measure missing rows of the papers' tables (minutes). ``emit``: emit every core again and show only
    rows of that RTL (minutes). ``left_out`` is called with each core that has only rows of other RTL. The folder of an
    earlier site is replaced, whole or not at all. Raises UnsupportedError for an unknown paper and for a folder with
    other contents.
    """
    require_papers(papers)
    require_replaceable(folder)
    site = Site(tuple(papers) or tuple(PAPERS), measure, emit, record, progress)
    texts = site.texts()
    if left_out:
        for text in site.left_out:
            left_out(text)
    write_folder(folder, texts)
    return sorted(texts)


MARK = "modmill-site.json"
"""The file that marks a folder as a site."""


def require_replaceable(folder: Path) -> None:
    """Raise UnsupportedError unless the folder is missing, empty, or has only a site."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UnsupportedError(f"{folder} exists and is not a folder")
    entries = {entry.name for entry in folder.iterdir()} if folder.exists() else set()
    if not entries:
        return
    try:
        known = set(json.loads((folder / MARK).read_text(encoding="utf-8"))["files"])
    except (OSError, ValueError, KeyError, TypeError):
        raise UnsupportedError(f"{folder} exists and is not a site; choose another folder with -o") from None
    if entries - known - {MARK}:
        raise UnsupportedError(
            f"{folder} holds {sorted(entries - known)[0]}, which is not part of it; choose another folder"
        )


_Measured = TypeVar("_Measured", Contender, MeasuredEngine)


def _today(made: Contender) -> str:
    """The digest of the RTL that is emitted now for a multiplier, known or emitted (seconds)."""
    about = made.about
    core = build(about["design"], about["modulus"], about["io"], **about["parameters"])
    return Digests().of(key(core), lambda: core.digest)


@dataclass
class Site:
    """All pages, as texts. Arguments as in `write`; ``left_out``: the cores that have only rows of other RTL."""

    papers: Sequence[str]
    measure: bool = False
    emit: bool = False
    record: Path | None = None
    progress: Progress | None = None
    left_out: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._store = Store(tools.cache_dir() / "rows.jsonl")

    def _say(self, job: str) -> None:
        if self.progress:
            self.progress(job)

    def texts(self) -> dict[str, str]:
        """Name and text of every file."""
        out: dict[str, str] = {}
        for name, made in (
            ("papers", self._paper_pages), ("race", self._race), ("engines", self._engine_pages),
            ("designs", self._design_pages),
            ("errata", self._errata), ("scaling", self._scaling), ("method", self._method),
        ):  # fmt: skip
            self._say(name)
            out.update(made())
        out |= {name: pages.asset(name) for name in pages.ASSETS}
        out["plotly.min.js"] = pages.plotly()
        self._say("documentation")
        out |= {f"docs/{name}": text for name, text in documentation(documents()).items()}
        entries = sorted({name.split("/")[0] for name in [*out, MARK]})
        out[MARK] = json.dumps({"modmill": __version__, "command": self._command, "files": entries}) + "\n"
        return out

    @property
    def _command(self) -> str:
        named = "" if tuple(self.papers) == tuple(PAPERS) else " ".join(["", *self.papers])
        return f"modmill reproduce{named}{' --measure' * self.measure}{' --emit' * self.emit} -o site"

    def _page(self, template: str, name: str, **values: Any) -> tuple[str, str]:
        return name, pages.page(template, name, version=__version__, made_by=self._command, **values)

    @cached_property
    def contenders(self) -> list[Contender]:
        """The cores of the race; with ``emit`` only those whose RTL is still emitted."""

        def today(row: Row) -> str:
            about = row.about
            return build(about["design"], about["modulus"], about["io"], **about["parameters"]).digest

        return self._of_today(contenders(self._store.rows, today), today)

    @cached_property
    def engines(self) -> list[MeasuredEngine]:
        """The engines that have rows; with ``emit`` only those whose RTL is still emitted."""
        found = measured_engines(self._store.rows, engine_pages.digest_today)
        return self._of_today(found, engine_pages.digest_today)

    def _of_today(self, found: list[_Measured], today: Callable[[Row], str]) -> list[_Measured]:
        """With ``emit`` those whose RTL is still emitted; the others are added to ``left_out``."""
        if not self.emit:
            return found
        kept = []
        for made in found:
            if today(made.synth) == made.digest:
                kept.append(made)
            else:
                self.left_out.append(f"{made.label} for {made.target}")
        return kept

    @cached_property
    def _predictions(self) -> tuple[list[scaling.Prediction], list[str]]:
        return scaling.predictions()

    @cached_property
    def sections(self) -> dict[str, Sequence[Section]]:
        """The sections of each paper."""
        found = {}
        for name in self.papers:
            self._say(f"paper {name}")
            found[name] = reproduce(
                name, measure=self.measure, record=self.record, progress=self._say, recorded=not self.emit
            )
        return found

    def _proved(self, found: Sequence[Measured]) -> Mapping[str, tuple[str, str]]:
        """What is proved of cores or engines, and by what, by the digest of the RTL. Nothing of a multiplier whose RTL
        is not what is emitted now; of engines all pages show the same rows, which ``emit`` compares."""
        rows = proofs_by_digest(self._store.rows)
        kept = {}
        for made in found:
            names = proved(rows.get(made.digest))
            if names and (not isinstance(made, Contender) or _today(made) == made.digest):
                row = rows[made.digest]
                kept[made.digest] = ", ".join(names), f"{row.tool}, {row.about['date'][:10]}"
        return kept

    def _race(self) -> Iterable[tuple[str, str]]:
        found = sorted(self.contenders, key=lambda c: not c.routes)
        seen = {c.target for c in found}
        moduli = [p for name in FIRST if any((p := parse_modulus(name).value) == c.modulus for c in found)]
        yield self._page(
            "race", "index.html", contenders=found, predicted=[*predicted(self._store.rows, moduli)], held=HELD,
            predicted_for=TARGET, designs=len({c.design.name for c in found}),
            moduli=race_works(found), works_of=works_of, targets=[t for t in TARGETS if t.name in seen],
            columns=(*COLUMNS, ("share", "% of the limit")), shapes=SHAPES, plain=plain, proved=self._proved(found),
            names={c.modulus: modulus_name(c.modulus) for c in found}, shell=shell,
        )  # fmt: skip

    def _engine_pages(self) -> Iterable[tuple[str, str]]:
        for kind in engine_pages.PAGES:
            values = {**kind.values(self.engines), "proved": self._proved(self.engines)}
            yield self._page("engines", kind.file, shapes=SHAPES, plain=plain, **values)

    def _design_pages(self) -> Iterable[tuple[str, str]]:
        groups = [(f.title, f.key, [d for d in DESIGNS if d.page in f.pages and d.operands == 2]) for f in FAMILIES]
        blocks = [d for d in DESIGNS if family(d.page) is None]
        yield self._page("designs", "designs.html", groups=[*groups, ("Blocks", "blocks", blocks)])
        for design in DESIGNS:
            yield self._design(design)

    def _design(self, design: Design) -> tuple[str, str]:
        fitted, name = _fit(design)
        plan, many = fitted.schedule, repeat(design, fitted)
        parts = _parts(documents() / "designs" / f"{design.page}.md")
        found, _ = self._predictions
        special = (kind := family(design.page)) is not None and kind.special
        values = {
            group: [(title, parts[title]) for title in titles if title in parts]
            for group, titles in (("before", BEFORE), ("machine", MACHINE), ("schedule", SCHEDULE), ("after", AFTER))
        }
        own = [c for c in self.contenders if c.design == design]
        return self._page(
            "design", f"design-{design.name}.html", d=design, modulus=name, plan=plan,
            chart=drawing.cycle_chart(plan, f"Cycle chart of {design.name}: units down, cycles across"),
            blocks=diagram.blocks(plan, f"Block diagram of {design.name}: units and what flows between them", many),
            many=many,
            facts=fitted.facts(), curves=scaling.curves(design, found),
            curve_of=_SPECIAL if special else _ORDINARY,
            command=f"modmill build {design.name} --modulus {shell(name)} --io native",
            measured_rows=own or self._blocks_measured(design), columns=COLUMNS,
            engines=[e for e in self.engines if e.design == design], anchor=engine_pages.anchor,
            papers=[(p.key, p.title) for p in PAPERS.values() if p.key in self.papers and design.name in p.designs],
            **values,
        )  # fmt: skip

    def _blocks_measured(self, design: Design) -> list[dict[str, Any]]:
        """Rows of a building block, which is in no race."""
        rows = [r for r in self._store.rows if r.about.get("design") == design.name and "engine" not in r.about]
        return [_block(*found) for found in by_device(rows, lambda row: row.digest)]

    def _paper_pages(self) -> Iterable[tuple[str, str]]:
        described = []
        for paper in PAPERS.values():
            if paper.key not in self.papers:
                continue
            found = self.sections[paper.key]
            lines = [line for section in found for line in section.lines]
            shown = {
                **vars(paper), "sections": found, "lines": len(lines), "errata": len(ERRATA[paper.key].items),
                "differing": sum(line.differs and line.printed is not None for line in lines),
            }  # fmt: skip
            charts = {
                k: drawing.cycle_chart(s.schedule, f"{s.title}: units down, cycles across")
                for k, s in enumerate(found, 1)
                if s.schedule
            }
            described.append(shown)
            yield self._page("paper", f"paper-{paper.key}.html", p=shown, charts=charts)
        yield self._page("papers", "papers.html", papers=described)

    def _errata(self) -> Iterable[tuple[str, str]]:
        total = sum(len(e.items) for e in ERRATA.values())
        verdicts = {item.verdict.value: item.verdict.value for e in ERRATA.values() for item in e.items}
        names = [(e.key, e.title) for e in ERRATA.values()]
        yield self._page(
            "errata", "errata.html", papers=ERRATA.values(), total=total, commands=errata.commands,
            names=names, verdicts=sorted(verdicts.items()),
        )  # fmt: skip

    def _scaling(self) -> Iterable[tuple[str, str]]:
        found, refused = self._predictions
        lines = scaling.duel(self.contenders)
        yield self._page(
            "scaling", "scaling.html", widths=scaling.WIDTHS, answers=scaling.answers(lines), duel=lines,
            predicted_duel=scaling.predicted_duel(found), plots=scaling.plots(found, self.contenders), refused=refused,
            shares=scaling.shares(self.contenders), clock=scaling.CLOCK / 1e6,
        )  # fmt: skip

    def _method(self) -> Iterable[tuple[str, str]]:
        rows = self._store.rows
        kinds = {
            "check": "check: simulation against the contract",
            "synth": "synth: resources",
            "route": "route: clock after place and route",
            "mutate": "mutate: faults planted in the netlist",
            "depth": "depth: levels of lookup tables",
            "faults": "faults: faults while an engine runs, in its netlist",
            "leakage": "leakage: t-test of toggle traces, in the netlist",
            "bus": "bus: cycles over a simulated bus, resources of its front",
            "bitstream": "bitstream: clock and resources of an engine on a board",
            "proof": "proof: for all operands, on the netlist",
        }
        by_tool: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in rows:
            by_tool[row.kind, row.tool].append(row)
        used = [
            {"kind": kinds[kind], "tool": tool, "rows": len(some),
             "targets": ", ".join(sorted({r.target for r in some if r.target}))}
            for (kind, tool), some in sorted(by_tool.items())
        ]  # fmt: skip
        matching = (
            "Every core was emitted again for this site, and only rows of the very RTL are shown."
            + (f" Left out, since their rows are of other RTL: {', '.join(self.left_out)}." if self.left_out else "")
            if self.emit
            else "Rows were found by what they are about (design, modulus, parameters). With `--emit` every core is "
            "emitted again, and only rows of the very RTL are shown."
        )
        yield self._page(
            "method", "method.html", rows=rows, tools=used, targets=TARGETS, spread=_spread(rows), matching=matching
        )
        yield self._page(
            "rows", "rows.html", rows=[_row(row) for row in rows], kinds=sorted(kinds.items()),
            devices=[(name, name) for name in sorted({row.target for row in rows if row.target})],
        )  # fmt: skip


def plain(c: Contender | MeasuredEngine | Predicted) -> dict[str, float | int | None]:
    """The numbers of a core or an engine for the page's script; the row of the table shows the same numbers."""
    return {
        name: None if value is None else int(value) if isinstance(value, int) else round(float(value), 6)
        for name, value in c.numbers.items()
    }


def _block(check: Row | None, synth: Row, routes: Sequence[Row]) -> dict[str, Any]:
    """The rows of a building block on one device, as a line of the table of cores."""
    about = synth.about
    defaults = {s.name: s.default for s in find_design(about["design"]).settings}
    unusual = (f"{k}={v}" for k, v in about.get("parameters", {}).items() if defaults.get(k) not in (v, 0))
    return {
        "label": " ".join([about["design"], *unusual]),
        "modulus_words": _modulus(about["modulus"]),
        "target": synth.target,
        "numbers": core_numbers(check, synth, routes),
    }


def _fit(design: Design) -> tuple[DesignInstance, str]:
    """The design for the first modulus of SHOWN_FOR that it serves, and the modulus's name."""
    *names, last = SHOWN_FOR
    for name in names if design.page != "channel" else ():
        try:
            return design.fit(parse_modulus(name).value), name
        except UnsupportedError:
            continue
    return design.fit(parse_modulus(last).value), last


def _parts(page: Path) -> dict[str, str]:
    """The parts of a page of docs/designs by their titles. Links to other pages of docs become plain text."""
    import re

    text = re.sub(r"\[([^\[\]]*)\]\((?!https?:)[^)\s]*\)", r"\1", page.read_text(encoding="utf-8"))
    _, *parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return {title: body.strip() for title, body in zip(parts[::2], parts[1::2], strict=True)}


def _subject(about: Mapping[str, Any]) -> str:
    """The subject of a row in a word: an engine, a design, a building block, what is on a board or behind a bus, or a
    study."""
    if board := about.get("board"):
        return f"{about['name']} on {board}"
    if bus := about.get("bus"):
        return f"{about['name']} behind {bus}"
    return str(next(about[key] for key in ("engine", "design", "block", "study") if about.get(key)))


def _modulus(text: object) -> str:
    """The name of a row's modulus; empty for an engine with a loaded modulus."""
    value = modulus_value(text)
    return modulus_name(value) if value else ""


def _row(row: Row) -> Mapping[str, Any]:
    about = {**row.about, **row.about.get("proof_of", {})}
    words = [_subject(about)]
    if is_engine(row):
        words += [work_of(about).title, f"{about['threads']} interleaved on {about['cores']}"]
    else:
        words.append(str(about.get("curve") or _modulus(about.get("modulus"))))
    if about.get("parameters"):
        words.append(", ".join(f"{k} = {pages.setting(v)}" for k, v in about["parameters"].items()))
    words.append(str(about.get("date", ""))[:10])
    hidden = ("cells", "utilisation", "profile")
    numbers = [(k, pages.shown(v)) for k, v in row.values.items() if k not in hidden and v not in (None, [], {}, "")]
    return {"row": row, "about": " · ".join(filter(None, words)), "numbers": numbers}


def _spread(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Clocks of each core over its seeds, the widest spread first."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.kind == "route":
            groups[row.digest, row.target].append(row)
    out = []
    for (_, target), some in groups.items():
        clocks = [traced(row.values["mhz"], *some) for row in some]
        low, high = min(clocks), max(clocks)
        if len(some) > 1:
            out.append({
                "core": _subject(some[0].about), "modulus": _modulus(some[0].about.get("modulus")), "target": target,
                "seeds": len(some), "least": low, "median": traced(median(clocks), *some), "most": high,
                "spread": 100 * (high / low - 1),
                "capped": all(row.values.get("cap_mhz") == row.values["mhz"] for row in some),
            })  # fmt: skip
    return sorted(out, key=lambda s: -float(s["spread"]))


def kept(progress: Progress | None = None) -> Path:
    """The folder of a newly written site in the cache folder."""
    folder = tools.cache_dir() / "site"
    if folder.exists():
        shutil.rmtree(folder)
    with tempfile.TemporaryDirectory(dir=tools.cache_dir()) as beside:
        write(Path(beside) / "site", progress=progress)
        shutil.move(Path(beside) / "site", folder)
    return folder
