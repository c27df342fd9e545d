# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Expressions of Verilog-2001: read, width and sign by the rules of IEEE 1364-2001 section 4.4, print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

_TOKEN = re.compile(
    r"\s*(\d*'s?[bodh][\da-fA-FxzXZ?]+|\d+|\$?[A-Za-z_]\w*|<<<|>>>|<<|>>|<=|>=|===|!==|==|!=|&&|\|\||~\^|.)"
)
_LEVELS = ("||", "&&", "|", "^ ~^", "&", "== != === !==", "< <= > >=", "<< >> <<< >>>", "+ -", "* / %")
_LEVEL = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators.split()}
COMPARISONS = frozenset(["==", "!=", "===", "!==", "<", "<=", ">", ">=", "&&", "||"])
SHIFTS = frozenset(["<<", ">>", "<<<", ">>>"])
_BITWISE = frozenset("&|^")


@dataclass(frozen=True, slots=True)
class Expr:
    """An expression.

    kind: name, number, part (`x[7:0]`, `x[3]`), element (`table[address]`), joined, repeated, unary, binary, choice,
    signed, call.
    text: the name, number or operator; of `repeated` the count.
    """

    kind: str
    text: str
    parts: tuple[Expr, ...] = ()

    def __str__(self) -> str:
        """Verilog, with the parentheses that a reader needs."""
        match self.kind:
            case "part" | "element":
                return f"{self.text}[{':'.join(map(str, self.parts))}]"
            case "joined":
                return _joined(self.parts)
            case "repeated":
                return f"{{{self.text}{{{', '.join(str(_sized(part)) for part in self.parts)}}}}}"
            case "unary":
                return self.text + _inside(self.parts[0], "unary", "binary", "choice")
            case "binary":
                left, right = (_operand(self.text, part, first=k == 0) for k, part in enumerate(self.parts))
                return f"{left} {self.text} {right}"
            case "choice":
                condition, yes, no = self.parts
                return f"{_inside(condition, 'binary', 'choice')} ? {_inside(yes, 'choice')} : {no}"
            case "signed" | "call":
                return f"{self.text}({', '.join(map(str, self.parts))})"
        return self.text

    def names(self) -> Iterator[str]:
        """Every net, memory and function in the expression, with repeats."""
        if self.kind in ("name", "part", "element", "call"):
            yield self.text
        for part in self.parts:
            yield from part.names()

    def signed(self) -> bool:
        """Whether a sign in it matters to the operands beside it: `$signed`, or a number without width."""
        match self.kind:
            case "signed":
                return True
            case "number":
                return "'" not in self.text
            case "unary":
                return self.text in "~-" and self.parts[0].signed()
            case "binary":
                return self.text not in COMPARISONS and any(part.signed() for part in self.parts)
            case "choice":
                return any(part.signed() for part in self.parts[1:])
        return False

    def extended_by_zeros(self) -> bool:
        """Whether a wider context gives it the same value with zeros before it."""
        match self.kind:
            case "number" | "signed":
                return not self.signed()
            case "unary":
                return self.text not in "~-"
            case "binary":
                bitwise = self.text in _BITWISE and all(part.extended_by_zeros() for part in self.parts)
                return self.text in COMPARISONS or bitwise
            case "choice":
                return all(part.extended_by_zeros() for part in self.parts[1:])
        return True


def width(e: Expr, nets: Mapping[str, int], words: Mapping[str, int]) -> int:
    """Verilog's own width of an expression in bits. ``nets``: those of nets; ``words``: those of words of memories."""
    match e.kind:
        case "name" | "call":
            return nets[e.text]
        case "number":
            return int(e.text.split("'")[0]) if "'" in e.text else 32
        case "element":
            return words.get(e.text, 1)
        case "part" if e.text not in words:
            return number(e.parts[0]) - number(e.parts[-1]) + 1
        case "part":
            return words[e.text]
        case "joined":
            return sum(width(part, nets, words) for part in e.parts)
        case "repeated":
            return int(e.text) * sum(width(part, nets, words) for part in e.parts)
        case "unary":
            return width(e.parts[0], nets, words) if e.text in "~-" else 1
        case "binary" if e.text in COMPARISONS:
            return 1
        case "binary" if e.text not in SHIFTS:
            return max(width(part, nets, words) for part in e.parts)
        case "choice":
            return max(width(part, nets, words) for part in e.parts[1:])
    return width(e.parts[0], nets, words)


def number(e: Expr) -> int:
    """The value of a number."""
    _, base, digits = re.split("'s?([hdb])", e.text) if "'" in e.text else ("", "d", e.text)
    return int(digits, {"h": 16, "d": 10, "b": 2}[base])


def _inside(part: Expr, *kinds: str) -> str:
    return f"({part})" if part.kind in kinds else str(part)


def _operand(operator: str, part: Expr, *, first: bool) -> str:
    if part.kind == "binary":
        return str(part) if part.text == operator and first else f"({part})"
    return f"({part})" if part.kind == "choice" or (part.kind == "unary" and part.text not in "~!-") else str(part)


def _sized(e: Expr) -> Expr:
    """The expression with the width of each number, which a concatenation needs; one without has 32 bits."""
    (last,) = e.parts if e.kind == "unary" else (e,)
    if last.kind == "number" and "'" not in last.text and e.text in ("-", last.text):
        value = int(last.text)
        return Expr("number", f"32'd{(1 << 32) - value if e.text == '-' else value}")
    return e if e.kind in ("part", "element") else Expr(e.kind, e.text, tuple(map(_sized, e.parts)))


def _joined(parts: tuple[Expr, ...]) -> str:
    groups = [(text, len(list(same))) for text, same in groupby(str(_sized(part)) for part in parts)]
    texts = [f"{{{n}{{{text}}}}}" if n > 2 else ", ".join([text] * n) for text, n in groups]
    return texts[0] if len(groups) == 1 and groups[0][1] > 2 else f"{{{', '.join(texts)}}}"


def parsed(text: str) -> Expr:
    """The expression of a Verilog text; ValueError if something follows it."""
    tokens = [*_TOKEN.findall(text.strip()), ""]
    expression, end = _choice(tokens, 0)
    if tokens[end]:
        raise ValueError(f"{tokens[end]} follows the expression in {text[:80]}")
    return expression


def _choice(tokens: list[str], at: int) -> tuple[Expr, int]:
    condition, at = _operation(tokens, at, 0)
    if tokens[at] != "?":
        return condition, at
    yes, at = _choice(tokens, at + 1)
    no, at = _choice(tokens, at + 1)
    return Expr("choice", "?", (condition, yes, no)), at


def _operation(tokens: list[str], at: int, level: int) -> tuple[Expr, int]:
    left, at = _unary(tokens, at)
    while _LEVEL.get(tokens[at], -1) >= level:
        operator = tokens[at]
        right, at = _operation(tokens, at + 1, _LEVEL[operator] + 1)
        left = Expr("binary", operator, (left, right))
    return left, at


def _unary(tokens: list[str], at: int) -> tuple[Expr, int]:
    token, after = tokens[at], tokens[at + 1]
    if token in ("~", "!", "-", "&", "|", "^"):
        inner, at = _unary(tokens, at + 1)
        return Expr("unary", token, (inner,)), at
    if token == "(":
        inner, at = _choice(tokens, at + 1)
        return inner, at + 1
    if token == "{" and tokens[at + 2] == "{":
        parts, at = _list(tokens, at + 3, "}")
        return Expr("repeated", after, parts), at + 1
    if token == "{":
        parts, at = _list(tokens, at + 1, "}")
        return Expr("joined", "{", parts), at
    if "0" <= token[0] <= "9":
        return Expr("number", token), at + 1
    if after == "(":
        parts, at = _list(tokens, at + 2, ")")
        return Expr("signed" if token == "$signed" else "call", token, parts), at
    if after == "[":
        index, at = _choice(tokens, at + 2)
        if tokens[at] == ":":
            return Expr("part", token, (index, Expr("number", tokens[at + 1]))), at + 3
        return Expr("part" if index.kind == "number" else "element", token, (index,)), at + 1
    return Expr("name", token), at + 1


def _list(tokens: list[str], at: int, end: str) -> tuple[tuple[Expr, ...], int]:
    parts = []
    while True:
        part, at = _choice(tokens, at)
        parts.append(part)
        if tokens[at] == end:
            return tuple(parts), at + 1
        at += 1
