# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Every theorem, lemma, algorithm, table, figure, headline and stated future work of the papers, with the command that
shows it. docs/papers.md is written from this table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from modmill.studies.papers.reproduce import PAPERS

WHOLE = "whole"


@dataclass(frozen=True)
class Entry:
    """One item of a paper. ``kind``: algorithm, lemma, theorem, table, figure, headline or future work. ``name``: its
    number, or the place of a headline. ``command``: what shows it. ``section``: the start of a section's title, for
    ``modmill reproduce``. ``state``: WHOLE, or what is missing."""

    kind: str
    name: str
    what: str
    command: str
    section: str = ""
    state: str = WHOLE

    @property
    def quick(self) -> bool:
        """Whether the command takes seconds and writes nothing. `reproduce` is tested by its sections."""
        return self.command.split()[1] in ("explain", "errata", "bases", "parameters", "survey")


_SOR, _HBE, _RSA, _MULTI = (f"modmill reproduce {key}" for key in PAPERS)
_MODULUS_64 = "-m 2^64-59"


def _explain(design: str, modulus: str = "-m secp256k1", settings: str = "") -> str:
    return f"modmill explain {design} {modulus}{' ' * bool(settings)}{settings}"


ENTRIES: dict[str, tuple[Entry, ...]] = {
    "sor": (
        Entry("algorithm", "1", "alpha from the top bits of gamma_i", _explain("sor-1m-p")),
        Entry("algorithm", "2", "the multiplication, with kappa", _explain("sor-1m-p")),
        Entry("table", "1", "eight 66-bit moduli", _SOR, "Table 1"),
        Entry("table", "2", "condition (22) for ten primes", _SOR, "Table 2"),
        Entry("table", "3", "RNS multiplier and adder", _SOR, "Table 3",
              "net delays and clocks only as printed: the vendor's tool is needed"),
        Entry("table", "4", "three machines on five devices", _SOR, "Table 4",
              "measured: resources and logic delays by Yosys, clocks routed on ECP5"),
        Entry("table", "5", "comparison with [18], [20], [27]", _SOR, "Table 5"),
        Entry("headline", "Table 5", "sQ-RNS and dQ-RNS, [27]", _explain("sq-rns")),
        Entry("table", "A1", "notation", _explain("sor-1m-n")),
        Entry("figure", "1", "SOR_1M_N", _explain("sor-1m-n")),
        Entry("figure", "2", "table of -alpha M mod p", _explain("sor-1m-n")),
        Entry("figure", "3", "kappa and -kappa p", _explain("sor-1m-n")),
        Entry("figure", "4", "SOR_1M_P", _explain("sor-1m-p")),
        Entry("figure", "5", "SOR_2M", _explain("sor-2m")),
        Entry("figure", "6", "latency and throughput", _SOR, "Figure 6"),
        Entry("figure", "A1", "data flow of SOR_1M_N", _SOR, "Figure A1"),
        Entry("figure", "A2", "data flow of SOR_1M_P", _SOR, "Figure A2"),
        Entry("figure", "A3", "data flow of SOR_2M", _SOR, "Figure A3"),
        Entry("headline", "abstract", '"the precise value of X mod p"', "modmill errata sor 1"),
        Entry("headline", "Section 3.1", "T = 72 and 71, q = 8, Delta = 1/16 by programs",
              "modmill parameters sor -m secp256k1"),
        Entry("headline", "Section 3.1", "the same values in print", _SOR, "Sections 2.2 and 3.1"),
        Entry("headline", "Section 3.1", "kappa in one word for standard primes", _SOR, "Section 3.1"),
        Entry("headline", "Section 3.1", "the original method cannot multiply twice", "modmill errata sor 5"),
        Entry("headline", "Section 4", "theoretically 12 cycles with N multipliers", _SOR, "Section 4: cycles"),
        Entry("headline", "Figures 1, 4", "the pipeline register: 4279 against 3758", _SOR, "Figures 1 and 4"),
        Entry("headline", "Section 4.1", "36, 41.1, 14.9, 27.6 % less latency", _SOR, "Section 4.1"),
        Entry("future work", "Section 5", "variants for an area efficient hardware", _SOR, "Section 5"),
    ),
    "hbe": (
        Entry("algorithm", "1", "Kawamura's base extension", _explain("kbe-extension")),
        Entry("algorithm", "2", "hierarchical base extension", _explain("hbe-extension")),
        Entry("algorithm", "3", "RNS Montgomery reduction", _explain("hbe-reduction")),
        Entry("headline", "Section IV-B", "delta of Algorithm 3", _HBE, "Algorithm 3"),
        Entry("table", "I", "CMR and CMM", _HBE, "Table I:", "slices only as printed"),
        Entry("table", "II", "costs of three multiplications", _HBE, "Table II:"),
        Entry("table", "III", "base extensions", _HBE, "Table III: base",
              "slices only as printed"),
        Entry("figure", "1", "cox-rower", _explain("kbe")),
        Entry("figure", "2", "costs of a base extension", _HBE, "Figure 2"),
        Entry("figure", "3", "cox-rower for HBE", _explain("hbe")),
        Entry("figure", "4", "costs of a multiplication", _HBE, "Figure 4"),
        Entry("figure", "5", "costs of HPR, d = 2", _HBE, "Figure 5"),
        Entry("figure", "6", "costs of HPR, d = 4", _HBE, "Figure 6"),
        Entry("headline", "Section IV-B", "no additional constraint for bases", "modmill errata hbe 1"),
        Entry("headline", "Section IV-C", "up to 35 % less cost", _HBE, "Claims about the figures"),
        Entry("headline", "Section VI", "31 % fewer DSP blocks, 19 % less time", _HBE, "Table III's claim"),
        Entry("headline", "Section VI", "the same by the printed cells", _HBE, "Table III and Section VI"),
        Entry("headline", "Section IV-C", "r = CMM / CMR as the only parameter", _HBE, "Section IV-C: the cost model"),
        Entry("headline", "Section II", "the methods compared", "modmill survey -m secp256k1"),
        Entry("headline", "Section VI", "number of moduli", _HBE, "Section VI"),
        Entry("future work", "Section VII", "crypto-processors for ECC with HBE",
              "modmill ecc build --curve P-256 --multiplier hbe -o DIR"),
        Entry("future work", "Section VII", "c = 3 and 4", _HBE, "Table III's form"),
        Entry("future work", "Section VII", "well suited moduli",
              "modmill bases -m P-256 -w 17 -c 2 --objective reduction"),
        Entry("headline", "Section VII", "what such moduli gain in kbe and hbe", _HBE, "Section VII"),
        Entry("headline", "slides", "18 % less time, no impact on periods", "modmill errata hbe-slides 17"),
    ),
    "rsa64k": (
        Entry("lemma", "1", "addition", _RSA, "Lemmas and"),
        Entry("lemma", "2", "product with one digit", _RSA, "Lemmas and"),
        Entry("lemma", "3", "product with one digit, and sum", _RSA, "Lemmas and"),
        Entry("lemma", "4", "product", "modmill errata rsa64k 5"),
        Entry("lemma", "5", "number of multiplications of a power", _RSA, "Lemmas and"),
        Entry("lemma", "6", "one step with multipliers", _explain("radix64k-mul", _MODULUS_64)),
        Entry("lemma", "7", "one step with one table", _explain("radix64k-table", _MODULUS_64, "--set r=8")),
        Entry("lemma", "8", "one step with half tables", _explain("radix64k-ram", _MODULUS_64)),
        Entry("theorem", "9", "multiplication with multipliers", _explain("radix64k-mul", _MODULUS_64)),
        Entry("theorem", "10", "multiplication with half tables", _explain("radix64k-ram", _MODULUS_64)),
        Entry("theorem", "11", "cycles of a power", _RSA, "Our circuit on radix64k-mul"),
        Entry("headline", "Section 4", "the circuit for powers", "modmill rsa build --circuit -m 2^64-59 -o DIR"),
        Entry("headline", "Section 1", "other works, and the comparisons", _RSA, "Section 1"),
        Entry("figure", "1", "circuit of Lemma 6", _explain("radix64k-mul", _MODULUS_64)),
        Entry("figure", "2", "circuit of Lemma 7", _explain("radix64k-table", _MODULUS_64, "--set r=8")),
        Entry("figure", "3", "circuit of Lemma 8", _explain("radix64k-ram", _MODULUS_64)),
        Entry("table", "1", "powers by multipliers", _RSA, "Table 1", "slices only as printed"),
        Entry("table", "2", "powers by multipliers and block RAMs", _RSA, "Table 2", "slices only as printed"),
        Entry("headline", "abstract", "1024 bits in 2.521 ms, 1.892 ms expected", _RSA, "Abstract"),
        Entry("headline", "Section 1", "E = 2^16 + 1 in 1430 cycles, 0.027 ms", "modmill errata rsa64k 15"),
        Entry("headline", "Section 1", "more than 10 times faster", "modmill errata rsa64k 19"),
        Entry("headline", "Section 6", "no overflow by adding -M", "modmill errata rsa64k 1"),
        Entry("headline", "Section 7", "speedup of 2.86", _RSA, "Abstract"),
    ),
    "multistep": (
        Entry("algorithm", "1", "Montgomery multiplication", "modmill errata multistep 7"),
        Entry("algorithm", "2", "one bit in each step", _explain("multistep", settings="--set s=1")),
        Entry("algorithm", "3", "s bits in each step", _explain("multistep")),
        Entry("figure", "1", "four layers of an ECC processor", _MULTI, "Figure 1"),
        Entry("figure", "2", "the multiplier", _explain("multistep")),
        Entry("figure", "3", "one step in carry-save", _explain("multistep")),
        Entry("figure", "4", "RTL view", "modmill build multistep -m P-256 -o DIR"),
        Entry("table", "1", "comparison", _MULTI, "Table 1"),
        Entry("headline", "Section 4", "the clock, and what the device explains", _MULTI, "Section 4: the clock"),
        Entry("headline", "abstract", "16 clocks", "modmill errata multistep 2"),
        Entry("headline", "abstract", "0.2 us, decreasing 42 %", "modmill errata multistep 3"),
        Entry("headline", "abstract", "scalar multiplication in about 0.76 ms", _MULTI, "Abstract"),
        Entry("headline", "Section 4", "17161 ALUTs, no DSP block, 76.8 MHz", _MULTI, "Section 4"),
        Entry("future work", "Section 5", "an entire ECC structure",
              "modmill ecc build --curve P-256 --multiplier multistep -o DIR"),
    ),
}  # fmt: skip

HEAD = """# What is in the papers, and the command that shows it

Every theorem, lemma, algorithm, table, figure, headline and stated future work. Commands with `DIR` write a folder;
`./mill reproduce` prints the named section. "Whole": all that is printed is shown, with what we predict and measure.
This page is written by `./mill readme` from `src/modmill/studies/papers/items.py`; tests run the quick commands.
Printed statements that do not hold are in the [errata](errata.md).
"""


def markdown() -> str:
    """docs/papers.md."""
    return "\n".join([HEAD, *(line for key in ENTRIES for line in _table(key))])


def _table(key: str) -> Iterator[str]:
    paper = PAPERS[key]
    yield f"## {paper.authors}: {paper.title}. {paper.venue}\n"
    yield "| item | what | command | section | state |\n|---|---|---|---|---|"
    for e in ENTRIES[key]:
        name = f"{e.kind} {e.name}" if e.kind in ("algorithm", "lemma", "theorem", "table", "figure") else e.name
        label = name if name != e.name else f"{e.kind}, {name}"
        command = e.command.replace("modmill", "./mill", 1)
        yield f"| {label} | {e.what} | `{command}` | {e.section.rstrip(':')} | {e.state} |"
    yield ""
