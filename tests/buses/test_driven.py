# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The calls in Python: protocols on a driver of a stand-in or of a simulated bus, planted faults, device errors."""

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from calls_bench import CORES, PowerStandIn, ProductStandIn, StandIn, flipped
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from small_curves import montgomery, weierstrass
from test_bus_protocols import RFC_7748
from test_power_calls import key, moduli

from marks import long
from modmill.buses.adapters import find_bus
from modmill.buses.files import bus_texts
from modmill.buses.simulate import BusDriver, BusFault, BusSimulator, driver_of
from modmill.contract import Fault, UnsupportedError
from modmill.cores.behind_bus import multiplier_device
from modmill.cores.driven import DrivenMultiplier, DrivenPointEngine, DrivenPowers
from modmill.cores.ecc.machine import EccCore, ecc
from modmill.cores.multiplier.build import build
from modmill.cores.rsa.circuit import circuit_engine
from modmill.cores.rsa.machine import engine
from modmill.designs import DESIGNS
from modmill.engines.ecc import ecdh, ecdsa, eddsa
from modmill.engines.ecc.blinding import Ecc
from modmill.engines.rsa.exponentiation import PUBLIC
from modmill.engines.rsa.rsa import PrivateKey, Rsa
from modmill.numbers.curves.projective import multiple_u

P256 = ecc("P-256", *CORES["p256"][1:2], operations=CORES["p256"][2]["operations"], order=True, threads=2)


class Registers:
    """A stand-in as the bus of a driver."""

    def __init__(self, front):
        self.front = front

    def read(self, address):
        return self.front.read(address), False

    def write(self, address, word):
        self.front.write(address, word)
        return False

    def wait(self, cycles, *, interrupt=False):
        return cycles


def on_stand_in(kind, made, front):
    """An engine whose driver is at a stand-in."""
    return kind(made, driver=BusDriver(front.device, Registers(front)))


def signing(made, front):
    """Multiples of points, and arithmetic modulo the order, at a stand-in."""
    engine = on_stand_in(DrivenPointEngine, made, front)
    return Ecc(engine, order=engine.order)


def on_bus(kind, made, bus):
    """An engine whose driver is at the simulated bus."""
    if isinstance(made, type(build("mcivor", 97))):
        device = multiplier_device(made.fitted, made.contract, made.top, made.digest)
    else:
        device = made.device
    found = find_bus(bus)
    text = bus_texts(device, found, made.verilog)["bus.v"]
    return kind(made, driver=driver_of(device, found, BusSimulator(text, device, found)))


def test_x25519():
    made = ecc("Curve25519", "pseudo-mersenne", threads=3)
    scalar, u, wanted = map(bytes.fromhex, RFC_7748["x25519"])
    engine = on_stand_in(DrivenPointEngine, made, StandIn(made))
    assert ecdh.exchange_u(Ecc(engine), [(scalar, u)] * 4) == [wanted] * 4


def test_the_example_of_the_docs(monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "buses.md").read_text()
    (example,) = re.findall(r"^```python\n((?:(?!```).)*DrivenPointEngine.*?)^```", page, re.DOTALL | re.MULTILINE)
    made = ecc("Curve25519", "pseudo-mersenne", threads=3)
    monkeypatch.setattr("modmill.buses.serve.SocketBus", lambda _: Registers(StandIn(made)))
    monkeypatch.setattr(EccCore, "read", lambda _: made)
    monkeypatch.setattr(EccCore, "device", StandIn(made).device)
    exec(example, found := {})
    scalar, u = (int.from_bytes(found[name], "little") for name in ("scalar", "u"))
    assert int.from_bytes(found["secret"], "little") == multiple_u(made.curve, scalar, u)


def test_ecdh_and_ecdsa():
    """Moduli p and n are loaded in turn; another library verifies."""
    front, (d, other) = StandIn(P256), (random.Random(5).randrange(1, P256.curve.n) for _ in range(2))
    host = signing(P256, front)
    Q, other_Q = host.multiply_base([d, other])
    assert ecdh.exchange(host, [(d, other_Q)]) == ecdh.exchange(host, [(other, Q)])
    front.messages.clear()
    ((r, s),) = ecdsa.sign(host, [(d, b"sample")])
    assert [message[0] for message in front.messages].count(0) == 4  # n for s, p for d G, n for u1 and u2, p
    public = ec.EllipticCurvePublicNumbers(*Q, ec.SECP256R1()).public_key()
    public.verify(utils.encode_dss_signature(r, s), b"sample", ec.ECDSA(hashes.SHA256()))
    assert ecdsa.verify(host, [(Q, b"sample", (r, s)), (Q, b"sampel", (r, s))]) == [True, False]


def test_ed25519():
    curve, design, options = CORES["ed25519"]
    made, seed = ecc(curve, design, **options), bytes(range(32))
    host = signing(made, StandIn(made))
    (signature,), known = eddsa.sign(host, [(seed, b"message")]), Ed25519PrivateKey.from_private_bytes(seed)
    assert signature == known.sign(b"message")
    (public,) = eddsa.public(host, [seed])
    assert eddsa.verify(host, [(public, b"message", signature), (public, b"massage", signature)]) == [True, False]


@pytest.mark.parametrize("operation", ["multiply-base", "multiply-two", "signature"])
def test_a_wrong_signature_is_not_released(operation):
    front = StandIn(P256)
    front.fault = flipped(operation)
    with pytest.raises(Fault):
        ecdsa.sign(signing(P256, front), [(7, b"sample")])


def rsa_key(bits, seed):
    """A key whose primes have these bits."""
    numbers = key(bits, random.Random(seed))
    p, q, e = numbers["p"], numbers["q"], numbers["e"]
    return PrivateKey(p * q, e, pow(e, -1, (p - 1) * (q - 1)), p, q)


def test_rsa_and_powers():
    made, private = engine("montgomery-array", width=512, bits=576, window=3, threads=2), rsa_key(512, 6)
    front = PowerStandIn(made)
    front.moduli = private.p, private.q, *moduli(512, random.Random(2))
    powers = on_stand_in(DrivenPowers, made, front)
    rsa = Rsa(powers, blind_exponent=64)
    assert [pow(y, PUBLIC, private.n) for y in rsa.private(private, [1, 2, private.n - 1])] == [1, 2, private.n - 1]
    for p in front.moduli:
        assert powers.secret(p, [(2, 5), (p - 1, 7)], 3) == [32 % p, p - 1]
        assert powers.powers(p, 1, [(2, PUBLIC)], 17) == [pow(2, PUBLIC, p)]
    with pytest.raises(UnsupportedError, match=r"a base must be in \[0, p\)"):
        powers.secret(private.p, [(private.p, 1)], 3)
    front.fault = flipped("power")
    with pytest.raises(Fault, match="nothing is released"):
        rsa.private(private, [2])


def test_products():
    made, moduli = build("mcivor", "2^61-1", io="native", loadable=True), (2**61 - 1, 2**60 + 33, 3)
    front = ProductStandIn(made)
    front.moduli = moduli
    multiplier = on_stand_in(DrivenMultiplier, made, front)
    for p in moduli:
        pairs = [(0, 1), (p - 1, p - 1), (1, p - 1)]
        assert multiplier.multiply(pairs, p) == [a * b % p for a, b in pairs]
    assert multiplier.multiply([(2, 3)]) == [6]
    with pytest.raises(UnsupportedError, match=r"an operand must be in \[0, p\)"):
        multiplier.multiply([(3, 1)], 3)
    front.words = lambda _: [2**32 - 1] * front.commands[1].answer
    with pytest.raises(BusFault, match="outside its bound"):
        multiplier.multiply([(2, 3)])
    with pytest.raises(UnsupportedError, match="reduces one number"):
        DrivenMultiplier(build("kbe-reduction", "P-256", io="native"), multiplier)


@pytest.mark.parametrize(
    ("design", "bus"),
    [("kbe", "apb"), ("montgomery-array", "axi-stream"), *(long(d.name, "wishbone") for d in DESIGNS)],
)
def test_products_on_the_bus(design, bus):
    """In residues, over packets, with every factor."""
    try:
        made = build(design, "2^61-1", io="native")
        p = made.contract.p
        pairs = [(0, 1), (p - 1, p - 1), (12345, 2**60)]
        assert on_bus(DrivenMultiplier, made, bus).multiply(pairs) == [a * b % p for a, b in pairs]
    except UnsupportedError as error:
        assert bus == "wishbone"
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("design", "bus", "more"),
    [
        ("kbe", "ahb-lite", {}),
        ("mcivor", "wishbone", {"cores": 2}),
        ("mcivor", "axi-stream", {"cores": 2}),
        long("mcivor", "apb", {"bus_clock": "separate"}),
        long("mcivor", "axi4-lite", {"lockstep": True}),
        long("mcivor", "axi4-lite", {"check_result": True}),
    ],
)
def test_multiples_on_the_bus(design, bus, more):
    """In residues, on two machines, over packets; a job that is not full, and more than one."""
    curve = weierstrass(1009, -3)
    made = ecc(curve, design, bits=curve.n.bit_length(), threads=2, bus=bus, **more)
    host = Ecc(on_bus(DrivenPointEngine, made, bus))
    scalars = [1, 2, curve.n - 1, 5, 77]
    assert host.multiply(scalars, [curve.base] * 5) == [curve.multiply(k, curve.base) for k in scalars]


@pytest.mark.parametrize("kind", [engine, circuit_engine])
def test_powers_on_the_bus_and_a_reset_by_another(kind):
    """A reset that the engine does not know of is an error, after which it works again; so is half a message."""
    made = kind("mcivor" if kind is engine else "radix64k-mul", width=64, bits=80, bus="axi4-lite")
    powers, p, pairs = on_bus(DrivenPowers, made, "axi4-lite"), 2**64 - 59, [(3, 2**63 + 1), (5, 6), (7, 0)]
    wanted = [pow(*pair, p) for pair in pairs]
    assert powers.secret(p, pairs, 64) == wanted
    driver = powers.driver
    driver.bus.reset(made.device.power_up)
    with pytest.raises(BusFault, match="SETUP"):
        powers.secret(p, pairs, 64)
    assert powers.secret(p, pairs, 64) == wanted
    driver.write("COMMAND", 1)  # a message of another program, which never gets its other words
    with pytest.raises(BusFault):
        powers.secret(p, pairs, 64)
    assert powers.secret(p, pairs, 64) == wanted


def test_a_ladder_on_the_bus_after_the_job_of_another():
    """The first message aborts what the device does."""
    curve = montgomery(1009)
    made = replace(ecc(curve, "mcivor", threads=1), bus="apb")
    found = on_bus(DrivenPointEngine, made, "apb")
    driver, runs = found.driver, [((k,), {"u": curve.base[0]}) for k in (1, 2, 3)]
    setup = made.setup()
    driver.run(setup[0], setup[1:], 0)
    job = made.job("ladder", runs[:1])
    driver.send(job[0], job[1:])
    wanted = [curve.multiply(k, curve.base)[0] for (k,), _ in runs]
    assert [u for (u,) in found.run("ladder", runs)] == wanted
