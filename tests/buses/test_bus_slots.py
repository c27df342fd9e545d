# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Key slots: the front against independent masters and a key manager, engines, calls in C and Python; faults."""

import ctypes
import random
import re
import threading
from dataclasses import replace

import pytest
import stub_engine as stub
from calls_bench import Powers, number, simulated, words
from test_bus_files import READERS, described
from test_bus_fronts import failures

from modmill.buses.adapters import find_bus
from modmill.buses.device import KEY_WORDS
from modmill.buses.files import descriptions
from modmill.buses.front import whole
from modmill.buses.registers import NUMBERS
from modmill.buses.serve import Server, SocketBus
from modmill.buses.simulate import BusDriver, BusFault, BusSimulator
from modmill.contract import UnsupportedError
from modmill.cores.behind_bus import bus_faults
from modmill.cores.driven import DrivenPointEngine, DrivenPowers
from modmill.cores.ecc.check import check_ecc
from modmill.cores.ecc.machine import ecc
from modmill.cores.rsa.circuit import circuit_engine
from modmill.cores.rsa.machine import engine
from modmill.numbers.curves.affine import Weierstrass
from modmill.numbers.primes import is_prime

SLOTS = 4
FRONTS = {
    "own": ("apb", 1, True, 0), "shared": ("axi4-lite", 1, False, 0), "three": ("wishbone", 3, True, 0),
    "slower": ("ahb-lite", 1, True, 16180), "faster": ("axi4-lite", 3, False, 6180),
}  # fmt: skip
"""Fronts of the stub: bus, machines, whether each slot has its own setup, the period of a separate clock."""
LONG = ("three", "shared", "slower", "faster")


@pytest.fixture(scope="module")
def fronts():
    """Verilog of each front, made once."""
    made = {}

    def text(name):
        if name not in made:
            bus, machines, own, period = FRONTS[name]
            device = replace(stub.keyed(stub.several(machines), SLOTS, own), separate=bool(period))
            made[name] = whole(device, find_bus(bus), stub.several_verilog(machines))
        return made[name]

    return text


def failed(name, text, folder, only=""):
    """Number of tests of `slots_bench` that fail on a front."""
    bus, machines, own, period = FRONTS[name]
    more = {**({"OWN": "1"} if own else {}), **({"SEPARATE": str(period)} if period else {})}
    return failures(bus, text, folder, only, machines=machines, module="slots_bench", SLOTS=str(SLOTS), **more)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.long) if n in LONG else n for n in FRONTS])
def test_slots_of_every_front(name, fronts, tmp_path):
    assert failed(name, fronts(name), tmp_path) == 0, (tmp_path / "run.log").read_text()[-6000:]


def test_a_front_with_slots_does_all_else_as_before(fronts, tmp_path):
    found = failures("apb", fronts("own"), tmp_path, SLOTS=str(SLOTS), OWN="1")
    assert found == 0, (tmp_path / "run.log").read_text()[-6000:]


FAULTS = [
    (
        r"value_key_slots = \{[^}]*\}",
        "value_key_slots = slots_filled[1] ? key_word0[31:0] : slots_filled",
        "never_read",
    ),
    (r"\(matches_ & own_setup\)", "own_setup", "wrong_uses"),
    (r"\(matches_ & own_setup\)", "matches_", "wrong_uses"),
    (r"(own_setup <= own_loaded) & \(loaded_slot == chosen_slot\)", r"\1", "wrong_uses"),
    (r"resets \| sweeps \| \(fill_begins & \(slot == loaded_slot\)\)", "resets | sweeps", "wrong_uses"),
    (r"\(sweeps \| fill_acts\) & ~rst", "fill_acts & ~rst", "zeroises_slots"),
    (r"~send_off & \(slot == used_slot\)", "1'h0", "locked"),
    (r"slot_locked <= rst \? 1'h0 : [^;]*;", "slot_locked <= 0;", "locked"),
    (r"bad_count <= [^;]*;", "bad_count <= 0;", "wrong_keys"),
    (r"bad_repeat <= [^;]*;", "bad_repeat <= 0;", "wrong_keys"),
]
MORE = [
    (r"no_such_slot <= rst \? 1'h0 : [^;]*;", "no_such_slot <= 0;", "wrong_keys"),
    (r"(slots_filled_choice\w*) = fill_begins \? 1'h0 :", r"\1 =", "wrong_keys"),
    (r"(slots_(?:filled|locked)_net\[\d\] = rst \? 1'h0 :) sweeps \? 1'h0 :", r"\1", "zeroises_slots"),
    (r"(drops <= rst \? 1'h0 :) sweeps \? \(\([^?]*\? 1'h1 : drops_choice_2\) : drops_choice_2", r"\1 drops_choice_2",
     "zeroises_slots"),
    (r"by_side & \(at_end \^ at_last\)", "1'h0", "packets"),
    (r"fill_words & by_side", "1'h0", "packets"),
    (r"(uses <= rst \? 1'h0 : sweeps \? 1'h0 :) resets \? 1'h0 :", r"\1", "ends"),
    (r"key_ready = !pause & ~shut", "key_ready = !pause", "zeroises_slots"),
    (r"(slots_filled_net\[0\] =) rst \? 1'h0 :", r"\1", "ends"),
    (r"send_(\w+)_to_off = send_\1 \? \(open \?", r"send_\1_to_off = send_\1 ? (1 ?", "ends"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("right", "wrong", "bench"), [*FAULTS, *(pytest.param(*fault, marks=pytest.mark.long) for fault in MORE)]
)
def test_a_planted_fault_is_caught(right, wrong, bench, fronts, tmp_path):
    text, count = re.subn(right, wrong, fronts("own"))
    assert count, f"nothing to change: {right}"
    assert failed("own", text, tmp_path, bench) == 1


def test_six_files_say_the_same_of_key_slots(tmp_path):
    device = stub.keyed(stub.DEVICE, SLOTS, own=False)
    texts = descriptions(device, find_bus("apb"))
    assert dict(described(texts, tmp_path, device)) == dict.fromkeys(READERS, True)
    assert not any(same for _, same in described(texts, tmp_path))
    assert f"define STUB_ERROR_SLOT {NUMBERS['SLOT']} " in texts["stub.h"]


SMALL = {
    "loaded": lambda rnd, **more: engine("mcivor", 0, 64, bits=rnd.randint(2, 40), threads=rnd.randint(1, 3),
                                         cores=rnd.randint(1, 2), **more),
    "built in": lambda rnd, **more: engine("mcivor", 2**61 - 1, bits=rnd.randint(2, 40), method="ladder",
                                           threads=rnd.randint(1, 3), **more),
    "circuit": lambda rnd, **more: circuit_engine("radix64k-ram", 0, 64, bits=rnd.randint(17, 80), **more),
    "residues": lambda rnd, **more: engine("kbe", 2**61 - 1, bits=30, threads=rnd.randint(1, 2), **more),
}  # fmt: skip


@pytest.mark.parametrize("kind", [*map(str, SMALL)])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)])
def test_engines_of_any_setting_pass_the_check(kind, seed):
    """The check of a folder fills and uses every slot, and zeroises."""
    rnd = random.Random(f"{kind} {seed}")
    bus = rnd.choice(("axi4-lite", "wishbone", "apb", "ahb-lite"))
    more = {"key_slots": rnd.choice((1, 2, 5, 16)), "bus_clock": rnd.choice(("same", "separate")), "bus": bus,
            "lockstep": rnd.random() < 0.3}  # fmt: skip
    core, way = SMALL[kind](rnd, **more), find_bus(bus)
    assert list(bus_faults(whole(core.device, way, core.verilog), core.device, way, list(core.exchanges()))) == []


@pytest.mark.parametrize(
    ("right", "wrong", "what"),
    [
        (r"\(sweeps \| fill_acts\) & ~rst", "fill_acts & ~rst", "zeroising leaves"),
        (r"\(matches_ & own_setup\)", "own_setup", "the key of another command"),
        (r"\(matches_ & own_setup\)", "matches_", "without its own command 0"),
        (r"slot_locked <= rst \? 1'h0 : [^;]*;", "slot_locked <= 0;", "a locked key slot"),
        (r"key_word0\[31:0\] : in_data", "key_word0[31:0] ^ send_key : in_data", "another answer than without"),
        (r"(fill_acts\)) & ~rst;", r"\1;", "another answer than without"),
    ],
)
def test_a_planted_fault_is_caught_by_the_check(right, wrong, what):
    """The last one writes the memory in reset, when registers contain anything: it has the words of command 0."""
    core = engine("mcivor", 0, 64, bits=17, threads=1, bus="apb", key_slots=2)
    if "rst" in right and "rst" not in wrong:
        core = engine("kbe", 2**61 - 1, bits=30, threads=1, bus="apb", key_slots=2)
    way = find_bus("apb")
    text, count = re.subn(right, wrong, whole(core.device, way, core.verilog))
    assert count, f"nothing to change: {right}"
    faults = list(bus_faults(text, core.device, way, list(core.exchanges())))
    assert len(faults) == 1 and what in faults[0]


CURVE = Weierstrass(251, (0, 2), 271, a=1, b=4)


def test_a_folder_with_slots_is_written_and_read(tmp_path):
    core = ecc(CURVE, "wide", threads=1, bus="wishbone", key_slots=3)
    core.write(tmp_path / "made", "modmill ecc build")
    again = type(core).read(tmp_path / "made")
    assert again.key_slots == 3 and again.device == core.device
    record = core.record()
    assert record["bus"]["key_slots"] == 3 and record["options"]["key_slots"] == 3
    assert record["bus"]["key_ports"] == ["key_valid", "key_ready", "key_data", "key_last"]
    assert "3 key slots" in (tmp_path / "made" / "README.md").read_text()
    assert check_ecc(tmp_path / "made").failures == []


SCALAR = "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4"
POINT = "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c"
SECRET = "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"


def test_x25519_of_rfc_7748_with_the_driver_in_c(tmp_path):
    """Section 5.2, through a slot; the same scalar, other points and other scalars without one between."""
    core = ecc("Curve25519", "pseudo-mersenne", threads=2, bus="wishbone", key_slots=2)
    calls = simulated(core, tmp_path)
    scalar, point, secret = map(bytes.fromhex, (SCALAR, POINT, SECRET))
    slot, empty = ctypes.c_uint32(1), ctypes.c_uint32(0)
    out = ctypes.create_string_buffer(32)
    assert calls.call("slot_x25519", slot, scalar) == 0
    assert calls.call("x25519_by_slot", slot, out, point) == 0 and out.raw == secret
    assert calls.bytes("x25519", [32], scalar, point) == (0, secret)
    assert calls.call("x25519_by_slot", slot, out, point) == 0 and out.raw == secret
    us = [9, int.from_bytes(point, "little") % 2**255, 2]
    k = int.from_bytes(scalar, "little") & ~7 & 2**255 - 1 | 1 << 254
    found = words(core.calls.words, *[7] * 3)
    assert calls.call("ladder_by_slot", slot, ctypes.c_size_t(3), found, words(core.calls.words, *us)) == 0
    size = core.calls.words
    wanted = calls.many("ladder", [((k,), {"u": u}) for u in us])
    assert wanted == (0, [(number(found[n : n + size]),) for n in range(0, 3 * size, size)])
    assert calls.call("x25519_by_slot", empty, out, point) == NUMBERS["SLOT"] and not any(out.raw)
    assert calls.call("x25519_by_slot", ctypes.c_uint32(2), out, point) == NUMBERS["SLOT"]
    assert calls.call("slot_ladder", ctypes.c_uint32(2), words(size, 5)) == NUMBERS["SLOT"]
    assert calls.bytes("x25519", [32], scalar, point) == (0, secret)
    assert calls.call("zeroise") == 0
    assert calls.call("x25519_by_slot", slot, out, point) == NUMBERS["SLOT"]


def test_powers_with_the_driver_in_c(tmp_path):
    """The exponent and its modulus in a slot, others in another one and in messages."""
    core = engine("montgomery-array", 0, 96, bits=110, threads=3, cores=2, bus="wishbone", key_slots=2)
    calls, rnd = simulated(core, tmp_path, Powers), random.Random(3)
    size, keys = core.calls.words, []
    for slot, p in enumerate(((1 << 96) - 17, (1 << 95) + 1)):
        error, modulus = calls.modulus(p)
        exponent = rnd.getrandbits(110 if slot else 60) | 1
        bits = ctypes.c_size_t(exponent.bit_length())
        exponents = words(core.calls.exponent_words, exponent)
        assert error == 0
        assert calls.call("slot_power", ctypes.c_uint32(slot), ctypes.byref(modulus), exponents, bits) == 0
        keys.append((p, modulus, exponent))
    for slot in (0, 1, 1, 0):
        p, modulus, exponent = keys[slot]
        bases = [rnd.randrange(p) for _ in range(7)]
        found, count = words(size, *[7] * 7), ctypes.c_size_t(7)
        given = ctypes.c_uint32(slot), ctypes.byref(modulus), count, found, words(size, *bases)
        assert calls.call("modexp_by_slot", *given) == 0
        powers = [pow(base, exponent, p) for base in bases]
        assert [number(found[k : k + size]) for k in range(0, 7 * size, size)] == powers
        assert calls.powers(modulus, [(bases[0], 77)], 10) == (0, [pow(bases[0], 77, p)])
        assert calls.powers(modulus, [(bases[0], 0)]) == (0, [pow(bases[0], 65537, p)])
    long = ctypes.c_size_t(111), ctypes.c_size_t(3)
    for bits in long:
        given = ctypes.c_uint32(0), ctypes.byref(keys[0][1]), words(core.calls.exponent_words, 9), bits
        assert calls.call("slot_power", *given) != 0


def test_calls_in_python():
    """Powers on several machines, multiples of a point; a job that is refused leaves the other keys in use."""
    core = engine("mcivor", 0, 64, bits=40, threads=3, cores=2, bus="apb", key_slots=3)
    way, rnd = find_bus("apb"), random.Random(4)
    text = whole(core.device, way, core.verilog)
    device = DrivenPowers(core, driver=BusDriver(core.device, BusSimulator(text, core.device, way)))
    keys = {1: ((1 << 61) - 1, 12345, 14), 2: ((1 << 63) + 29, 999, 40)}
    for slot, key in keys.items():
        device.fill(slot, *key)
    for slot, (p, exponent, _) in keys.items():
        bases = [rnd.randrange(p) for _ in range(7)]
        assert device.by_slot(slot, p, bases) == [pow(base, exponent, p) for base in bases]
        assert device.secret(p, [(base, 777) for base in bases], 20) == [pow(base, 777, p) for base in bases]
    with pytest.raises(BusFault, match="SLOT"):
        device.by_slot(0, keys[1][0], [5])
    assert device.by_slot(1, keys[1][0], [5]) == [pow(5, 12345, keys[1][0])]
    without = replace(core, key_slots=0)
    device = DrivenPowers(without, driver=BusDriver(without.device, None))
    with pytest.raises(UnsupportedError, match="build it with --key-slots"):
        device._session._keys  # noqa: B018


def test_multiples_of_points_in_python():
    core = ecc(CURVE, "wide", threads=2, bus="apb", key_slots=2)
    way = find_bus("apb")
    text = whole(core.device, way, core.verilog)
    device = DrivenPointEngine(core, driver=BusDriver(core.device, BusSimulator(text, core.device, way)))
    device.fill(1, "multiply", 77)
    points = [CURVE.multiply(k, CURVE.base) for k in (1, 5, 1)]
    found = device.by_slot(1, "multiply", [{"x": x, "y": y} for x, y in points])
    assert found == [CURVE.multiply(77, point) for point in points] and found[0] == found[2] != found[1]


def test_what_cannot_be_is_refused():
    for more, message in (
        ({"key_slots": 2}, "give --bus too"), ({"key_slots": 2, "bus": "axi-stream"}, "axi-stream has packets"),
        ({"key_slots": 17, "bus": "apb"}, "at most 16"), ({"key_slots": -1, "bus": "apb"}, "at most 16"),
    ):  # fmt: skip
        with pytest.raises(UnsupportedError, match=message):
            engine("mcivor", 0, 64, **more)
    core = ecc("P-256", "montgomery-array", operations=("multiply-two",), threads=1, bus="apb", key_slots=1)
    with pytest.raises(UnsupportedError, match="no operation of this engine has a secret"):
        core.device  # noqa: B018
    long = stub.keyed(stub.DEVICE, 16, own=True)
    commands = [replace(c, words=KEY_WORDS) if c.number == 0 else c for c in long.commands]
    with pytest.raises(UnsupportedError, match="16 key slots of 32,768 words do not fit 16,384 words; at most 0 do"):
        replace(long, commands=tuple(commands))


SMOOTH = 2 * 3 * 5 * 7 * 11 * 13 * 17 * 19 * 23 * 29 * 31 * 37 * 59
"""A prime less 1."""


def exponent_by_logarithms(power, base, modulus):
    """The exponent modulo SMOOTH of a power modulo SMOOTH + 1, by Pohlig and Hellman."""
    found, step = 0, 1
    for q in (q for q in range(2, 60) if SMOOTH % q == 0 and all(q % d for d in range(2, q))):
        short, wanted = pow(base, SMOOTH // q, modulus), pow(power, SMOOTH // q, modulus)
        digit = next(k for k in range(q) if pow(short, k, modulus) == wanted)
        while found % q != digit:
            found += step
        step *= q
    return found


def test_a_compromised_host_does_not_get_the_exponent():
    """It loads a modulus of its own in which logarithms are easy. Planted: the key is not bound to command 0."""
    modulus, secret, way = SMOOTH + 1, 0xC0FFEE12345, find_bus("apb")
    assert is_prime(modulus)
    generator = next(
        g for g in range(2, 99) if all(pow(g, SMOOTH // q, modulus) != 1 for q in range(2, 60) if SMOOTH % q == 0)
    )
    core = engine("mcivor", 0, 64, bits=44, threads=1, bus="apb", key_slots=1)
    device, right = core.device, whole(core.device, way, core.verilog)
    own, other = (core.setup(core.at(p))[1:] for p in ((1 << 64) - 59, modulus))

    def attack(text):
        driver = BusDriver(device, BusSimulator(text, device, way))
        _, *words = core.layout.power_job(0, [(generator, secret)], 44)
        key, sent = device.key_message(words, 1)
        driver.ready()
        driver.fill(0, 1, [*own, *key])
        driver.run(0, other, 0)
        driver.use(0)
        driver.ready()
        ((power,),) = core.layout.results(0, driver.run(1, sent, device.commands[1].answer), modulus)
        return exponent_by_logarithms(power, generator, modulus)

    with pytest.raises(BusFault, match="SLOT"):
        attack(right)
    text, count = re.subn(r"\(matches_ & own_setup\)", "matches_", right)
    assert count and attack(text) == secret


def test_slots_through_a_socket(fronts, tmp_path):
    """A client that leaves a slot in use: the next one's messages use none."""
    device, way = stub.keyed(stub.DEVICE, SLOTS, own=True), find_bus("apb")
    server = Server(device, BusSimulator(fronts("own"), device, way), tmp_path / "s", idle=3)
    threading.Thread(target=server.run, daemon=True).start()
    key, sent = device.key_message(list(range(24)), stub.ECHO)
    for _ in range(2):
        bus = SocketBus(server.path)
        driver = BusDriver(device, bus)
        driver.ready()
        driver.run(stub.KEY, [7, 8, 9], 0)
        assert driver.run(stub.ONE, [1], 1) == [25]
        driver.fill(2, stub.ECHO, [1, 2, 3, *key])
        driver.use(2)
        driver.run(stub.KEY, [], 0)
        found = driver.run(stub.ECHO, sent, 24)
        assert found == stub.answer(6, stub.ECHO, device.key_sent(key, sent, stub.ECHO))
        bus.close()
