# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The way of a result to port o_r, backwards from the port: which words have it, and in which cycles.

A word is a register, a memory, or a gate that changes data. Each has a flag: whether it is what the marked pair left
in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from modmill.proofs.handshake.monitors import Monitored, OpenError, alone
from modmill.proofs.handshake.slots import COPIES, Slot, numbered
from modmill.proofs.miter import memory_ports
from modmill.proofs.netlist import REGISTERS, Bit, Cell, Netlist, behind

_MOST_FLAGS = 400
"""Most registers and words with a flag."""
_MOST_BITS = 30_000
"""Most bits of data through which a result is followed."""


@dataclass(frozen=True)
class _Ring:
    """A memory that is written in turn and read in turn. ``places``: bits of an address, the lowest first, that come
    from the counter of the written words, and when reading from that of the read ones. ``level``: difference of the two
    counters. ``next``: the counter of the read ones counts."""

    places: tuple[int, ...]
    level: list[Bit]
    next: Bit


class Results:
    """The way of a result to port o_r, backwards through ``levels`` registers with an enable, or memories. Gates that
    change data end it too, unless it goes ``through`` them. Where memories have slots, only pairs whose slot has the
    number ``slot`` count; ``slots`` is the number of slots, else 1.

    ``stored``: for each register, memory, gate or port with data at the other end the cycles after the acceptance in
    which it takes a result that is alone. Raises OpenError if its way does not depend on control alone."""

    def __init__(self, net: Monitored, marked: Collection[Bit], levels: int, *, through: bool, slot: int = 0) -> None:
        self._net, self._marked, self._levels, self._through = net, marked, levels, through
        self._ports = net.module["ports"]
        self.stored: dict[str, set[int]] = {}
        self._drivers = Netlist({**net.module}).drivers
        self._controls: dict[Bit, set[int]] = {}
        self._flags: dict[tuple[Bit, int], Bit] = {}
        self._held: dict[tuple[str, int], list[Bit]] = {}
        self._rings: dict[str, _Ring | None] = {}
        self._slot, self._places = Slot(net, slot), dict[str, list[int]]()
        self._written: dict[str, dict[int, int]] = {}
        self.slots = 1
        self._follow()
        if any(len(values) > 1 for values in self._controls.values()):
            raise OpenError("a gate behind registers with an enable does different things to results")
        self._aligned()
        if not self.stored:
            raise OpenError("nothing takes a result that is alone")
        self._split()
        self._mark()

    def made(self) -> Iterator[str]:
        """In words: what took the results, and when."""
        for name, ages in self.stored.items():
            cell = self._net.cells.get(name)
            what = name if cell is None or cell["type"] == "$mem_v2" else ".".join(filter(None, self._net.source(name)))
            when = f"{min(ages)}" if len(ages) == 1 else f"{min(ages)} to {max(ages)}"
            yield f"{what.removesuffix('[0]')} in cycle {when}"

    # ---- cells

    def _driver(self, bit: Bit) -> tuple[str, str, int] | None:
        """The cell behind a net; None for a port with data."""
        return self._drivers.get(bit)

    def _control(self, name: str, cell: Cell, port: str) -> list[Bit]:
        bits: list[Bit] = cell["connections"][port]
        if not self._marked_of(bits):
            return bits
        raise OpenError(f"{port} of {'.'.join(filter(None, self._net.source(name)))} depends on data")

    def _marked_of(self, bits: Sequence[Bit]) -> list[Bit]:
        return [b for b in dict.fromkeys(bits) if b in self._marked]

    def _copies(self, cell: Cell) -> bool:
        return cell["type"] in COPIES and not self._marked_of(cell["connections"]["S"])

    def _below(self, cell: Cell, level: int) -> int:
        """The level in front of a register or memory."""
        return level - (cell["type"] == "$mem_v2" or "EN" in cell["connections"])

    def _inputs(self, name: str, cell: Cell, port: str, k: int) -> list[Bit]:
        """Inputs with data on which an output bit of a gate depends; none if it ends the way."""
        if cell["type"] == "$mem_v2":
            raise OpenError(f"memory {name} has a register in a read port")
        if not self._passes(cell):
            return []
        return self._marked_of([cell["connections"][p][j] for p, j in behind(cell, port, k)])

    def _steers(self, cell: Cell, port: str, k: int) -> list[Bit]:
        """Inputs of control on which an output bit of a gate depends that changes data."""
        if self._copies(cell):
            return []
        bits = [cell["connections"][p][j] for p, j in behind(cell, port, k)]
        return [b for b in dict.fromkeys(bits) if isinstance(b, int) and b not in self._marked]

    def _passes(self, cell: Cell) -> bool:
        return self._through or self._copies(cell) or cell["type"] == "$pos"

    def _writes(self, name: str, cell: Cell) -> list[tuple[list[Bit], list[Bit], Bit]]:
        """Address, data and enable of each write port of a memory."""
        for port in ("RD_ADDR", "WR_ADDR", "WR_EN"):
            self._control(name, cell, port)
        if "1" in cell["parameters"]["RD_CLK_ENABLE"] or "1" in cell["parameters"]["OFFSET"]:
            raise OpenError(f"memory {name} has a register in a read port, or its addresses do not begin with 0")
        found = list(memory_ports(cell, cell["connections"], "WR_ADDR", "WR_DATA", "WR_EN"))
        enables = [set(map(self._select, enable)) for _, _, enable in found]
        if any(len(bits) != 1 for bits in enables):
            raise OpenError(f"memory {name} writes parts of its words")
        return [(a, d, enable.pop()) for (a, d, _), enable in zip(found, enables, strict=True)]

    def _select(self, bit: Bit) -> Bit:
        """A net with the same value: the select of a choice of 0 and 1."""
        while (driver := self._driver(bit)) is not None and self._net.cells[driver[0]]["type"] == "$mux":
            pins = self._net.cells[driver[0]]["connections"]
            if (pins["A"][driver[2]], pins["B"][driver[2]]) != ("0", "1"):
                break
            (bit,) = pins["S"]
        return bit

    def _address(self, cell: Cell, k: int) -> list[Bit]:
        """The address of the read port with this bit."""
        ((address, _),) = [
            (a, d) for at, (a, d) in enumerate(memory_ports(cell, cell["connections"], "RD_ADDR", "RD_DATA"))
            if at == k // int(cell["parameters"]["WIDTH"], 2)
        ]  # fmt: skip
        return address

    # ---- a result that is alone

    def _reached(self) -> set[Bit]:
        """Nets of control on which the way depends, and those of the handshake."""
        net = self._net
        found: set[Bit] = {net.reset}
        todo = [(b, self._levels) for b in self._marked_of(self._ports["o_r"]["bits"])]
        seen = set(todo)
        while todo:
            bit, level = todo.pop()
            if (driver := self._driver(bit)) is None:
                continue
            name, port, k = driver
            cell = net.cells[name]
            pins = cell["connections"]
            if cell["type"] in REGISTERS or (cell["type"] == "$mem_v2" and self._writes(name, cell)):
                level = self._below(cell, level)
                for p in ("EN", "SRST", "RD_ADDR", "WR_ADDR", "WR_EN"):
                    found.update(self._control(name, cell, p) if p in pins else ())
                if cell["type"] == "$mem_v2":
                    found.update(enable for _, _, enable in self._writes(name, cell))
                more = self._marked_of(pins.get("D", pins.get("WR_DATA", []))) if level else []
            elif self._copies(cell):
                found.update(pins["S"])
                more = self._inputs(name, cell, port, k)
            else:
                more = self._inputs(name, cell, port, k)
                found.update(self._steers(cell, port, k))
            new = [(b, level) for b in more if (b, level) not in seen]
            seen.update(new)
            todo += new
            if len(seen) > _MOST_BITS:
                raise OpenError(f"a result comes from more than {_MOST_BITS:,} bits")
        return {b for b in found if isinstance(b, int)}

    def _follow(self) -> None:
        """Find ``stored``."""
        nets = self._reached()
        for waits in (0, 2):
            self._trace(*alone(self._net, nets, waits))

    def _split(self) -> None:
        """Mark only pairs for which a word has the number when they are accepted. The word is one from which addresses
        of a memory are handed on, and has the number of the slot of a pair that is alone; of several it is the one that
        changed last. If pairs have other slots than this word says, the proof fails."""
        found: list[tuple[int, tuple[Bit, ...]]] = []
        for name, taken in self._written.items():
            cell = self._net.cells[name]
            if places := self._numbers(name, cell):
                (address, *_), *_ = self._writes(name, cell)
                words = list(self._slot.before([address[k] for k in places]))
                values, accepted, _ = alone(self._net, {b for word in words for b in word if isinstance(b, int)}, 0)
                number = sum((taken[min(taken)] >> place & 1) << k for k, place in enumerate(places))
                for word in words:
                    of = [[values[c][b] if isinstance(b, int) else int(b) for b in word] for c in range(accepted + 1)]
                    if of[-1] == [number >> k & 1 for k in range(len(word))]:
                        found.append((max((c for c in range(accepted) if of[c] != of[-1]), default=-1), word))
                break
        if not found:
            self._places, self.slots = {name: [] for name in self._net.cells}, 1
        else:
            self._net.only = self._slot.has(max(found)[1])

    def _trace(self, values: Sequence[Mapping[Bit, int | None]], accepted: int, valid: int) -> None:
        """Add what one run shows: in cycle ``valid`` the result is at the port."""
        todo = [(b, self._levels, valid) for b in self._marked_of(self._ports["o_r"]["bits"])]
        seen = set(todo)

        def value(bits: Sequence[Bit], cycle: int) -> int:
            found = [values[cycle][b] if isinstance(b, int) else {"0": 0, "1": 1}.get(b) for b in bits]
            if None in found:
                raise OpenError("the control of a result that is alone is not known")
            return sum((bit or 0) << k for k, bit in enumerate(found))

        def stored(name: str, bits: Sequence[Bit], level: int, cycle: int) -> None:
            if level == 0:
                self.stored.setdefault(name, set()).add(cycle - accepted)
                return
            new = [each for b in self._marked_of(bits) if (each := (b, level, cycle)) not in seen]
            seen.update(new)
            todo.extend(new)

        while todo:
            bit, level, cycle = todo.pop()
            if (driver := self._driver(bit)) is None:
                name = next(n for n, port in self._ports.items() if bit in port["bits"])
                self.stored.setdefault(name, set()).add(cycle - accepted)
                continue
            name, port, k = driver
            cell = self._net.cells[name]
            pins = cell["connections"]
            if cell["type"] in REGISTERS:
                self._last_stored(cell, level, cycle, value, lambda *found, n=name: stored(n, *found))
            elif cell["type"] == "$mem_v2":
                writes, at = self._writes(name, cell), value(self._address(cell, k), cycle)
                for before in range(cycle - 1, -1, -1):
                    hits = [d for a, d, e in writes if value([e], before) and value(a, before) == at]
                    if hits:
                        self._written.setdefault(name, {})[before - accepted] = at
                        stored(name, hits[-1], self._below(cell, level), before)
                        break
            elif self._copies(cell):
                width = len(pins["Y"])
                selects = value(pins["S"], cycle)
                if selects == 0:
                    chosen = [pins["A"][k]]
                elif cell["type"] == "$mux":
                    chosen = [pins["B"][k]]
                else:
                    chosen = [pins["B"][k + j * width] for j in range(len(pins["S"])) if selects >> j & 1]
                self._add(todo, seen, chosen, level, cycle)
            elif self._passes(cell):
                for steer in self._steers(cell, port, k):
                    self._controls.setdefault(steer, set()).add(value([steer], cycle))
                self._add(todo, seen, self._inputs(name, cell, port, k), level, cycle)
            else:
                self.stored.setdefault(name, set()).add(cycle - accepted)
            if len(seen) > _MOST_BITS:
                raise OpenError(f"a result comes from more than {_MOST_BITS:,} bits")

    def _aligned(self) -> None:
        """Raise OpenError if a bit of a result, or of an input of a gate on its way, may come from several bits of a
        word, as behind a shift register."""
        checked = set[tuple[Bit, int]]()
        starts = [(b, self._levels) for b in self._marked_of(self._ports["o_r"]["bits"])]
        while starts:
            start = starts.pop()
            if start in checked:
                continue
            checked.add(start)
            if len(checked) > _MOST_BITS:
                raise OpenError(f"a result comes from more than {_MOST_BITS:,} bits")
            ends: dict[str, int] = {}
            todo, seen = [start], {start}
            while todo:
                bit, level = todo.pop()
                if (driver := self._driver(bit)) is None:
                    continue
                name, port, k = driver
                cell = self._net.cells[name]
                pins = cell["connections"]
                below = level
                if cell["type"] in REGISTERS or cell["type"] == "$mem_v2":
                    below = self._below(cell, level)
                    k %= int(cell["parameters"]["WIDTH"], 2)
                    if ends.setdefault(f"{name} {below}", k) != k:
                        raise OpenError(f"bits of {'.'.join(filter(None, self._net.source(name)))} change their place")
                    sources = [pins["D"]] if "D" in pins else [data for _, data, _ in self._writes(name, cell)]
                    more = [source[k] for source in sources] if below else []
                elif self._copies(cell):
                    width = len(pins["Y"])
                    more = [pins["A"][k], *pins["B"][k::width]]
                else:
                    starts += [(b, level) for b in self._inputs(name, cell, port, k)]
                    more = []
                new = [(b, below) for b in self._marked_of(more) if (b, below) not in seen]
                seen.update(new)
                todo += new

    def _add(self, todo: list[_Place], seen: set[_Place], bits: Sequence[Bit], level: int, cycle: int) -> None:
        new = [each for b in self._marked_of(bits) if (each := (b, level, cycle)) not in seen]
        seen.update(new)
        todo += new

    def _last_stored(
        self, cell: Cell, level: int, cycle: int, value: Callable[[Sequence[Bit], int], int],
        stored: Callable[[Sequence[Bit], int, int], None],
    ) -> None:  # fmt: skip
        """The last cycle before in which a register takes a word."""
        pins, parameters = cell["connections"], cell["parameters"]
        for before in range(cycle - 1, -1, -1):
            on = {p: value(pins[p], before) == int(parameters[f"{p}_POLARITY"], 2) for p in ("EN", "SRST") if p in pins}
            if on.get("SRST") and (on.get("EN", True) or cell["type"] != "$sdffce"):
                return
            if on.get("EN", True):
                stored(pins["D"], self._below(cell, level), before)
                return

    # ---- the flags

    def _mark(self) -> None:
        """Mark one pair, any. ``_due``: its result is the next."""
        net = self._net
        end = 2 + max(a for ages in self.stored.values() for a in ages)
        self._start, self._due = net.mark.start, net.mark.due
        self._age = net.marked_age(end)

    def _at(self, name: str) -> Bit:
        """Whether it is a cycle in which a register, memory or port has what becomes the marked result."""
        net = self._net
        return net.one_of(
            self._start if age == 0 else net.all_of([net.equal(self._age, age), net.inverse(self._start)])
            for age in sorted(self.stored.get(name, ()))
        )

    def wrong(self) -> Bit:
        """Whether the marked pair's turn is at the port, and something else is there."""
        net = self._net
        flags = net.all_of(self._flag(b, self._levels) for b in self._marked_of(self._ports["o_r"]["bits"]))
        return net.all_of([self._due, net.o_valid, net.inverse(flags)])

    def _flag(self, bit: Bit, level: int) -> Bit:
        if bit not in self._marked:
            return "1"
        if (bit, level) not in self._flags:
            self._flags[bit, level] = self._made_flag(bit, level)
        return self._flags[bit, level]

    def _made_flag(self, bit: Bit, level: int) -> Bit:
        if (driver := self._driver(bit)) is None:
            return self._at(next(n for n, port in self._ports.items() if bit in port["bits"]))
        name, port, k = driver
        cell = self._net.cells[name]
        pins = cell["connections"]
        if cell["type"] in REGISTERS:
            return self._register(name, cell, level)
        if cell["type"] == "$mem_v2":
            words = self._memory(name, cell, level)
            here, address = self._in_slot(
                name, cell, self._of_ring(name, cell, self._address(cell, k), [*"0" * _MOST_FLAGS])
            )
            for select in address:
                pairs = zip(words[::2], [*words[1::2], *words[-1:]], strict=False)
                words = [self._net.choice(select, low, high) for low, high in pairs]
            return self._net.all_of([words[0], here])
        if not self._passes(cell):
            return self._at(name)
        if not self._copies(cell):
            return self._net.all_of([
                *(self._flag(b, level) for b in self._inputs(name, cell, port, k)),
                *(b if self._controls.get(b) == {1} else self._net.inverse(b) for b in self._steers(cell, port, k)),
            ])  # fmt: skip
        found = self._flag(pins["A"][k], level)
        for j, select in enumerate(pins["S"]):
            found = self._net.choice(select, found, self._flag(pins["B"][k + j * len(pins["Y"])], level))
        return found

    def _new(self, name: str, level: int, bits: Sequence[Bit]) -> Bit:
        """The flag of what a register or memory takes."""
        return self._at(name) if level == 0 else self._net.all_of(self._flag(b, level) for b in self._marked_of(bits))

    def _register(self, name: str, cell: Cell, level: int) -> Bit:
        net, pins, parameters = self._net, cell["connections"], cell["parameters"]
        if (name, level) not in self._held:
            (flag,) = self._held[name, level] = net.fresh(1)
            new = self._new(name, self._below(cell, level), pins["D"])
            on = {
                p: pins[p][0] if int(parameters[f"{p}_POLARITY"], 2) else net.inverse(pins[p][0])
                for p in ("EN", "SRST") if p in pins
            }  # fmt: skip
            if cell["type"] == "$sdffce":
                new = net.all_of([new, net.inverse(on["SRST"])])
            new = net.choice(on.get("EN", "1"), flag, new)
            if "SRST" in on and cell["type"] != "$sdffce":
                new = net.all_of([new, net.inverse(on["SRST"])])
            net.cleared([net.all_of([new, net.mark.lasts])], [flag])
        return self._held[name, level][0]

    def _memory(self, name: str, cell: Cell, level: int) -> list[Bit]:
        net, size = self._net, 1 << (int(cell["parameters"]["ABITS"], 2) - len(self._numbers(name, cell)))
        if (name, level) not in self._held:
            if size > _MOST_FLAGS:
                raise OpenError(f"memory {name} has {size} words, more than {_MOST_FLAGS}")
            flags = self._held[name, level] = net.fresh(size)
            new, ring = list(flags), self._ring(name, cell)
            for address, data, enable in self._writes(name, cell):
                flag = self._new(name, self._below(cell, level), data)
                where = address
                if ring:
                    where = self._of_ring(name, cell, self._while_enabled(address, enable), ring.level)
                inside, where = self._in_slot(name, cell, where)
                for word in range(size):
                    here = net.all_of([enable, inside, net.equal(where, word)])
                    new[word] = net.choice(here, new[word], flag)
            if ring:
                new = [net.choice(ring.next, new[word], new[_next_word(word, ring.places)]) for word in range(size)]
            for word in range(size):
                net.cleared([net.all_of([new[word], net.mark.lasts])], [flags[word]])
        return self._held[name, level]

    def _numbers(self, name: str, cell: Cell) -> list[int]:
        """Places of the bits of a memory's addresses that are the number of a slot."""
        if name not in self._places:
            writes = [self._while_enabled(address, enable) for address, _, enable in self._writes(name, cell)]
            reads = [address for address, _ in memory_ports(cell, cell["connections"], "RD_ADDR", "RD_DATA")]
            given = Netlist({**self._net.module})
            found = set[int]().union(*(numbered(given, address) for address in (*writes, *reads)))
            every = len(found) == int(cell["parameters"]["ABITS"], 2)
            self._places[name] = [] if every or self._ring(name, cell) else sorted(found)
            self.slots = max(self.slots, 1 << len(self._places[name]))
        return self._places[name]

    def _in_slot(self, name: str, cell: Cell, address: Sequence[Bit]) -> tuple[Bit, list[Bit]]:
        """Whether an address is in the slot, and its other bits."""
        places = self._numbers(name, cell)
        others = [bit for k, bit in enumerate(address) if k not in places]
        return self._slot.has([address[k] for k in places]) if places else "1", others

    def _while_enabled(self, address: list[Bit], enable: Bit) -> list[Bit]:
        """An address without the choice that gives x while ``enable`` is 0."""
        found = list(address)
        for k, bit in enumerate(address):
            name, _, at = self._drivers.get(bit, ("", "", 0))
            cell = self._net.cells.get(name, {"type": ""})
            if cell["type"] == "$mux" and cell["connections"]["S"] == [enable] and cell["connections"]["A"][at] == "x":
                found[k] = cell["connections"]["B"][at]
        return found

    def _of_ring(self, name: str, cell: Cell, address: list[Bit], number: Sequence[Bit]) -> list[Bit]:
        """An address with a number in place of the counter, if the memory is a ring."""
        ring = self._ring(name, cell)
        places = ring.places if ring else ()
        return [number[places.index(k)] if k in places else bit for k, bit in enumerate(address)]

    def _ring(self, name: str, cell: Cell) -> _Ring | None:
        """The counters of a memory; None if it has none. So its flags are counted from the word that is read, and the
        search does not see where in the memory that is."""
        if name not in self._rings:
            writes = [self._while_enabled(address, enable) for address, _, enable in self._writes(name, cell)]
            reads = [address for address, _ in memory_ports(cell, cell["connections"], "RD_ADDR", "RD_DATA")]
            self._rings[name] = self._found_ring(writes, reads)
        return self._rings[name]

    def _found_ring(self, writes: list[list[Bit]], reads: list[list[Bit]]) -> _Ring | None:
        net = self._net
        if not writes or not reads:
            return None
        counters = dict(found for bit in (*writes[0], *reads[0]) if (found := self._counter(bit)))
        for put, got in product(counters, repeat=2):
            places = tuple(writes[0].index(bit) for bit in put if bit in writes[0])
            ends = (put, writes), (got, reads)
            if put == got or any([a[k] for k in places] != [*word] for word, all_ in ends for a in all_):
                continue
            level = net.fresh(len(put))
            more = net.add("$add", width=len(put), A=level, B=[counters[put]])
            net.cleared(net.add("$sub", width=len(put), A=more, B=[counters[got]]), level)
            return _Ring(places, level, counters[got])
        return None

    def _counter(self, bit: Bit) -> tuple[tuple[Bit, ...], Bit] | None:
        """The register that has this bit, if it counts from the reset on: its bits, and when it counts."""
        name = self._drivers[bit][0] if bit in self._drivers else ""
        cell = self._net.cells.get(name, {"type": ""})
        if cell["type"] not in ("$sdff", "$sdffe"):
            return None
        pins, parameters = cell["connections"], cell["parameters"]
        reset = pins["SRST"], int(parameters["SRST_POLARITY"], 2), {*parameters["SRST_VALUE"]}
        sums = [self._drivers.get(b, ("", "", -1)) for b in pins["D"]]
        sum_ = self._net.cells.get(sums[0][0], {"type": ""})
        if reset != ([self._net.reset], 1, {"0"}) or sum_["type"] != "$add" or int(sum_["parameters"]["A_SIGNED"], 2):
            return None
        size = len(sums)
        terms = [(sum_["connections"][p] + ["0"] * size)[:size] for p in "AB"]
        one = ["1", *"0" * (size - 1)]
        if sums != [(sums[0][0], "Y", k) for k in range(size)] or terms not in ([pins["Q"], one], [one, pins["Q"]]):
            return None
        enable = pins["EN"][0] if "EN" in pins else "1"
        return tuple(pins["Q"]), enable if int(parameters.get("EN_POLARITY", "1"), 2) else self._net.inverse(enable)


def _next_word(word: int, places: Sequence[int]) -> int:
    """The address of the next word of a ring."""
    number = 1 + sum((word >> place & 1) << k for k, place in enumerate(places))
    rest = word & ~sum(1 << place for place in places)
    return rest | sum((number >> k & 1) << place for k, place in enumerate(places))


_Place = tuple[Bit, int, int]
