# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""The OpenSSL provider, as docs/openssl.md shows it: TLS and signatures on simulated cores; a stopped, a wrong core."""

import contextlib
import fcntl
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from marks import long
from modmill.buses.registers import register_map
from modmill.buses.serve import Server
from modmill.buses.simulate import BusSimulator
from modmill.studies.bus import Subject

ROOT = Path(__file__).parents[2]
HEADER = Path("/usr/include/openssl/core_dispatch.h")
MISSING = [name for name in ("openssl", "make", "cc") if not shutil.which(name)] + ["libssl-dev"] * (
    not HEADER.exists()
)
NAMES = ("x25519", "ed25519", "p256")
RSA = "rsa1024"
"""A core for keys of 1,024 bits, too short for use, because its simulation is eight times faster than for 2,048."""
PREFER = ("-propquery", "?provider=modmill")
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")


@pytest.fixture(scope="module")
def mill(tmp_path_factory):
    """The command `mill` of the docs, with this Python."""
    script = tmp_path_factory.mktemp("mill") / "mill"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT}/src exec {sys.executable} -m modmill "$@"\n')
    script.chmod(0o755)
    return script


def make(folder, mill, *targets, source=ROOT / "integrations" / "openssl", **variables):
    """Run the Makefile of the provider with this folder for what it makes."""
    given = {"MILL": mill, "BUILD": folder, "CORES": " ".join((*NAMES, RSA)), **variables}
    command = ["make", "-C", source, *(f"{name}={value}" for name, value in given.items()), *targets]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def cores(tmp_path_factory, mill):
    """A folder with four cores, built once whatever the number of workers."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "shared-openssl"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make(shared, mill, *(shared / name / f"{name}_calls.c" for name in (*NAMES, RSA)))
    return shared


@pytest.fixture(scope="module")
def build(tmp_path_factory, mill, cores):
    """The provider, its configuration and four cores."""
    folder = tmp_path_factory.mktemp("openssl") / "build"
    shutil.copytree(cores, folder)
    make(folder, mill)
    return folder


class Wrong(BusSimulator):
    """A device of which one bit of every word of an answer is wrong."""

    def read(self, address):
        word, refused = super().read(address)
        return word ^ (address == 0x34), refused


@pytest.fixture(scope="module")
def subjects(build):
    return {name: Subject.read(build / name) for name in (*NAMES, RSA)}


@contextlib.contextmanager
def served(subject, folder, kind=BusSimulator):
    """A device in a thread of this process. The thread has ended before the model is freed."""
    server = Server(subject.device, kind(subject.verilog, subject.device, subject.bus), folder / "device.sock", idle=60)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield server
    server.close()
    thread.join()


@pytest.fixture
def devices(build, subjects):
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(served(subject, build / name)) for name, subject in subjects.items()}


class OpenSsl:
    """The command in a folder: ``plain`` without the provider, ``core`` with it."""

    def __init__(self, folder, build):
        self.folder, self._build = folder, build
        self.configuration = str(build / "openssl.cnf")

    def __call__(self, *arguments, stdin=None, text=True, **environment):
        kept = {k: v for k, v in os.environ.items() if k != "OPENSSL_CONF"}
        command = ["openssl", *arguments]
        more = {"capture_output": True, "text": text, "timeout": 120, "stdin": stdin}
        return subprocess.run(command, cwd=self.folder, env=kept | environment, **more)

    def plain(self, *arguments):
        done = self(*arguments)
        assert done.returncode == 0, done.stderr
        return done

    def core(self, *arguments):
        first, *others = arguments
        return self(first, *PREFER, *others, OPENSSL_CONF=self.configuration)

    def done(self, *arguments):
        done = self.core(*arguments)
        assert done.returncode == 0, done.stderr
        return done

    def rsa(self, bits=1024):
        """An RSA key `key` with its public half `public`, and a message."""
        self.done("genpkey", "-algorithm", "RSA", "-pkeyopt", f"rsa_keygen_bits:{bits}", "-out", "key")
        self.plain("pkey", "-in", "key", "-pubout", "-out", "public")
        (self.folder / "message").write_text("message")

    def key(self, *algorithm):
        """A key on P-256, or another one, with its public key, and a message."""
        self.plain("genpkey", "-algorithm", *(algorithm or ("EC", "-pkeyopt", "group:P-256")), "-out", "key")
        self.plain("pkey", "-in", "key", "-pubout", "-out", "public")
        (self.folder / "message").write_text("message")


@pytest.fixture
def openssl(tmp_path, build):
    return OpenSsl(tmp_path, build)


def jobs(server):
    return server._bus.read(register_map(server.device)["JOBS"].offset)[0]


def commands(page, kind="sh"):
    """The shell blocks of a page of docs/ of one kind."""
    text = (ROOT / "docs" / page).read_text()
    return "".join(re.findall(rf"^```{kind}\n(.*?)^```", text, re.DOTALL | re.MULTILINE))


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def run_page(text, changes, folder, seconds, status=0):
    """The output of commands in a folder, with changes that must apply; what they start ends with them."""
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "page.sh").write_text("set -em\ntrap 'kill $(jobs -p) || :; wait' EXIT\n" + text)
    done = subprocess.run(["bash", "page.sh"], cwd=folder, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == status, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_the_page_from_the_first_command_to_the_last(build, mill, tmp_path):
    """The shell blocks of docs/openssl.md, with this folder and port in place of those of the page."""
    ready = "".join(f"until [ -S {build}/{name}/device.sock ]; do sleep 0.2; done\n" for name in NAMES)
    shutil.copy(ROOT / "README.md", tmp_path)
    shown = run_page(commands("openssl.md"), {
        "make -C integrations/openssl\n": "", "$PWD/integrations/openssl/build": str(build),
        "integrations/openssl/build": str(build), "./mill": str(mill), "44330": free_port(),
        "export OPENSSL_CONF": ready + "export OPENSSL_CONF",
    }, tmp_path, 400)  # fmt: skip
    for wanted in (
        "Verified OK", "Server Temp Key: X25519", "TLSv1.3", "Verify return code: 0 (ok)", "HTTP/1.0 200 ok"
    ):  # fmt: skip
        assert wanted in shown, shown[-3000:]


@pytest.mark.long
@pytest.mark.parametrize("whole", [False, True])
def test_the_tutorial(whole, build, mill, tmp_path):
    """The shell blocks of docs/tutorial.md show what the page shows. Not whole: without the two long commands, and the
    core of P-256 is there already."""
    page = (ROOT / "docs" / "tutorial.md").read_text()
    (program,) = re.findall(r"^```c\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "secret.c").write_text(program)
    changes = {"make -C ": f"make -C {ROOT}/", 'BUILD="': f'MILL={mill} BUILD="', "44330": free_port()}
    if not whole:
        shutil.copytree(build / "p256", tmp_path / "tls" / "p256", ignore=shutil.ignore_patterns("device.sock"))
        changes |= {"./mill check tls/x25519\n": "", "./mill bitstream tls/x25519 --board ulx3s-85f -o tls/board\n": ""}
    shown = run_page(commands("tutorial.md"), changes | {"./mill": str(mill)}, tmp_path, 3_000 if whole else 400)
    for text in re.findall(r"^```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        assert text in shown, shown[-3000:]
    assert (tmp_path / "tls" / "board" / "board.bit").exists() == whole


def test_exchange(openssl, devices):
    assert openssl.core("genpkey", "-algorithm", "X25519", "-out", "a").returncode == 0
    openssl.plain("genpkey", "-algorithm", "X25519", "-out", "b")
    for name in "ab":
        openssl.plain("pkey", "-in", name, "-pubout", "-out", f"{name}.public")
    before = jobs(devices["x25519"])
    done = openssl.core("pkeyutl", "-derive", "-inkey", "a", "-peerkey", "b.public", "-out", "one")
    assert done.returncode == 0, done.stderr
    assert jobs(devices["x25519"]) == before + 1
    openssl.plain("pkeyutl", "-derive", "-inkey", "b", "-peerkey", "a.public", "-out", "other")
    assert (openssl.folder / "one").read_bytes() == (openssl.folder / "other").read_bytes() != b""


def test_signatures(openssl, devices):
    openssl.key()
    before = jobs(devices["p256"])
    done = openssl.core("dgst", "-sha384", "-sign", "key", "-out", "signature", "message")
    assert done.returncode != 0 or jobs(devices["p256"]) > before + 2
    assert done.returncode == 0, done.stderr
    verify = "dgst", "-sha384", "-verify", "public", "-signature", "signature"
    openssl.plain(*verify, "message")
    assert openssl.core(*verify, "message").returncode == 0
    (openssl.folder / "message").write_text("another")
    assert openssl.core(*verify, "message").returncode == 1


def test_ed25519(openssl, devices):
    """A key of the device, signatures of both kinds of key, and a certificate."""
    assert openssl.core("genpkey", "-algorithm", "ED25519", "-out", "own").returncode == 0
    openssl.key("ED25519")
    for name, before in (("key", jobs(devices["ed25519"])), ("own", jobs(devices["ed25519"]))):
        openssl.plain("pkey", "-in", name, "-pubout", "-out", "public")
        sign = "pkeyutl", "-sign", "-rawin", "-inkey", name, "-in", "message", "-out"
        done = openssl.core(*sign, "signature")
        assert done.returncode == 0, done.stderr
        assert jobs(devices["ed25519"]) >= before + 3
        openssl.plain(*sign, "other")
        assert (openssl.folder / "signature").read_bytes() == (openssl.folder / "other").read_bytes()
        verify = "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", "public", "-sigfile", "signature", "-in"
        assert openssl.core(*verify, "message").returncode == 0
        assert openssl.core(*verify, "public").returncode == 1
    request = "req", "-x509", "-new", "-key", "own", "-subj", "/CN=localhost", "-days", "3", "-out", "certificate"
    done = openssl.core(*request)
    assert done.returncode == 0, done.stderr
    assert "OK" in openssl.plain("verify", "-CAfile", "certificate", "certificate").stdout


@pytest.mark.long
@pytest.mark.parametrize(("name", "group"), [("p384", "P-384"), ("secp256k1", "secp256k1")])
def test_a_curve_that_make_does_not_build_by_itself(name, group, mill, tmp_path):
    """A key, a signature and a shared secret of the core; each is compared with OpenSSL alone."""
    make(tmp_path, mill, CORES=name)
    openssl, subject = OpenSsl(tmp_path, tmp_path), Subject.read(tmp_path / name)
    with served(subject, tmp_path / name) as device:
        openssl.key("EC", "-pkeyopt", f"group:{group}")
        openssl.done("genpkey", "-algorithm", "EC", "-pkeyopt", f"group:{group}", "-out", "own")
        openssl.plain("pkey", "-in", "own", "-pubout", "-out", "own.public")
        assert jobs(device) == 1
        openssl.done("dgst", "-sha384", "-sign", "own", "-out", "signature", "message")
        assert jobs(device) == 6  # the point and s, then for the check the public point, u1 and u2, and their point
        verify = "dgst", "-sha384", "-verify", "own.public", "-signature", "signature"
        openssl.plain(*verify, "message")
        openssl.done(*verify, "message")
        assert openssl.core(*verify, "key").returncode == 1
        before = jobs(device)
        openssl.done("pkeyutl", "-derive", "-inkey", "own", "-peerkey", "public", "-out", "one")
        assert jobs(device) == before + 1
        openssl.plain("pkeyutl", "-derive", "-inkey", "key", "-peerkey", "own.public", "-out", "other")
        assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes() != b""


PSS = "-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:digest"
OAEP = "-pkeyopt", "rsa_padding_mode:oaep", "-pkeyopt", "rsa_oaep_md:sha256"


@pytest.mark.parametrize("padding", [(), PSS])
def test_rsa_signatures(openssl, devices, padding):
    """Signed by the core, two jobs for each prime's two powers at once; verified with the provider and without."""
    openssl.rsa()
    before = jobs(devices[RSA])
    openssl.done("dgst", "-sha384", *padding, "-sign", "key", "-out", "signature", "message")
    assert jobs(devices[RSA]) == before + 2
    verify = "dgst", "-sha384", *padding, "-verify", "public", "-signature", "signature"
    openssl.plain(*verify, "message")
    openssl.done(*verify, "message")
    assert openssl.core(*verify, "key").returncode == 1
    (openssl.folder / "signature").write_bytes(bytes(128))
    assert openssl.core(*verify, "message").returncode == 1
    assert jobs(devices[RSA]) == before + 2


def test_rsa_decryption(openssl, devices):
    """OAEP in both directions; the padding of PKCS #1 v1.5 is refused."""
    openssl.rsa()
    sealing = "pkeyutl", "-encrypt", "-pubin", "-inkey", "public", *OAEP, "-in", "message", "-out"
    opening = "pkeyutl", "-decrypt", "-inkey", "key", *OAEP, "-out", "found", "-in"
    openssl.plain(*sealing, "one")
    openssl.done(*sealing, "other")
    openssl.done(*opening, "one")
    assert (openssl.folder / "found").read_text() == "message"
    openssl.plain(*opening, "other")
    assert (openssl.folder / "found").read_text() == "message"
    before = jobs(devices[RSA])
    done = openssl.core("pkeyutl", "-decrypt", "-inkey", "key", "-in", "one")
    assert done.returncode == 1 and "decryption has the padding oaep only" in done.stderr and done.stdout == ""
    assert jobs(devices[RSA]) == before
    text = (openssl.folder / "one").read_bytes()
    (openssl.folder / "one").write_bytes(text[:-1] + bytes([text[-1] ^ 1]))
    assert openssl.core(*opening, "one").returncode == 1


def test_a_key_that_is_too_long_is_refused(openssl, devices):
    openssl.rsa(2048)
    done = openssl.core("dgst", "-sha256", "-sign", "key", "-out", "signature", "message")
    assert done.returncode != 0 and "no engine for primes of 1024 bits is built in" in done.stderr


@pytest.mark.skipif(not shutil.which("nginx"), reason="needs nginx")
@pytest.mark.parametrize("served_here", [True, False])
def test_nginx(served_here, request, build, tmp_path):
    """The commands of docs/openssl.md serve a page; without the devices there is no handshake."""
    if served_here:
        before = {name: jobs(server) for name, server in request.getfixturevalue("devices").items()}
    port = free_port()
    configuration = (ROOT / "integrations" / "openssl" / "nginx.conf").read_text()
    assert "44331" in configuration
    (tmp_path / "nginx.conf").write_text(configuration.replace("44331", port))
    (folder := tmp_path / "build").mkdir()
    user = " -g 'user root;'" * (os.geteuid() == 0)
    changes = {
        "integrations/openssl/build": str(folder), "$PWD/prefer.cnf": str(build / "prefer.cnf"), "44331": port,
        "-c nginx.conf": f"-c nginx.conf{user}",
    }  # fmt: skip
    shown = run_page(commands("openssl.md", "bash"), changes, tmp_path, 200, status=0 if served_here else 1)
    assert ("HTTP/1.1 200 OK" in shown and "signed in a core" in shown) == served_here
    assert ("Verify return code: 0 (ok)" in shown and "Server Temp Key: X25519" in shown) == served_here
    if served_here:
        after = {name: jobs(server) for name, server in request.getfixturevalue("devices").items()}
        assert {name for name in after if after[name] > before[name]} == {"x25519", "p256"}


STORED = {
    "EC": ("-algorithm", "EC", "-pkeyopt", "group:P-256"),
    "ED25519": ("-algorithm", "ED25519"),
    "RSA": ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"),
}
REFERENCE = "modmill:key=key"
DEVICES = {"EC": "p256", "ED25519": "ed25519", "RSA": RSA}


@pytest.mark.parametrize(
    ("kind", "key", "group", "shown"),
    [
        ("EC", REFERENCE, "P-256", "ECDSA"), ("ED25519", "key", "X25519", "ed25519"),
        ("RSA", REFERENCE, "X25519", "RSA-PSS"), long("EC", "key", "X25519", "ECDSA"),
        long("ED25519", REFERENCE, "P-256", "ed25519"), long("RSA", "key", "P-256", "RSA-PSS"),
    ],
)  # fmt: skip
def test_tls(kind, key, group, shown, openssl, devices):
    """The certificate is signed by its key in the core, and so is the handshake, with the key shares of both sides in a
    core. A handshake without the provider at the client is on the page."""
    openssl.plain("genpkey", *STORED[kind], "-out", "key")
    openssl.done("req", "-x509", "-new", "-key", key, "-subj", "/CN=localhost", "-days", "3", "-out", "certificate")
    before = {name: jobs(server) for name, server in devices.items()}
    port, least = free_port(), ("-groups", group, "-cipher", "DEFAULT:@SECLEVEL=0")
    server = ["openssl", "s_server", "-accept", port, "-cert", "certificate", "-key", key, *least, "-naccept", "1"]
    environment = os.environ | {"OPENSSL_CONF": openssl.configuration}
    more = {"cwd": openssl.folder, "env": environment, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([*server, *PREFER], **more) as running:
        try:
            while b"ACCEPT" not in running.stdout.readline():
                assert running.poll() is None
            done = openssl.core(
                "s_client", "-connect", f"127.0.0.1:{port}", "-CAfile", "certificate", "-tls1_3", *least
            )
        finally:
            running.kill()
    assert "Verify return code: 0 (ok)" in done.stdout and f"Peer signature type: {shown}" in done.stdout, done.stdout
    added = {name: jobs(server) - before[name] for name, server in devices.items()}
    share, signer = {"X25519": "x25519", "P-256": "p256"}[group], DEVICES[kind]
    assert {name for name, count in added.items() if count} == {share, signer}
    assert added[share] >= 4 and (kind != "RSA" or added[signer] == 2)


def gives_away(openssl):
    """Whether the private half of the key can be written, in any of some forms."""
    forms = [(), ("-traditional",), ("-text", "-noout"), ("-outform", "DER")]
    found = [
        openssl(*("pkey", *PREFER, "-in", REFERENCE, *form), text=False, OPENSSL_CONF=openssl.configuration)
        for form in forms
    ]
    return any(done.returncode == 0 or re.search(b"PRIVATE|priv:|Exponent:", done.stdout) for done in found)


@pytest.mark.parametrize("kind", STORED)
def test_a_key_by_reference(kind, openssl, devices):
    """It signs in the core, a certificate too, and only its public half can be written."""
    openssl.plain("genpkey", *STORED[kind], "-aes256", "-pass", "pass:word", "-out", "key")
    password = "-passin", "pass:word"
    openssl.plain("pkey", *password, "-in", "key", "-pubout", "-out", "public")
    (openssl.folder / "message").write_text("message")
    device = devices[DEVICES[kind]]
    before = jobs(device)
    sign = "pkeyutl", "-sign", "-rawin", *password, "-inkey", REFERENCE, "-in", "message", "-out", "signature"
    openssl.done(*sign, *(() if kind == "ED25519" else ("-digest", "sha256")))
    assert jobs(device) >= before + 2
    verify = "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", "public", "-sigfile", "signature", "-in", "message"
    openssl.plain(*verify, *(() if kind == "ED25519" else ("-digest", "sha256")))
    openssl.done("pkey", *password, "-in", REFERENCE, "-pubout", "-out", "again")
    assert (openssl.folder / "again").read_text() == (openssl.folder / "public").read_text()
    request = "req", "-x509", "-new", *password, "-key", REFERENCE, "-subj", "/CN=localhost", "-out", "certificate"
    openssl.done(*request)
    assert "OK" in openssl.plain("verify", "-CAfile", "certificate", "certificate").stdout


@pytest.mark.parametrize("kind", STORED)
def test_a_key_by_reference_keeps_its_private_half(kind, openssl, devices):
    openssl.plain("genpkey", *STORED[kind], "-out", "key")
    assert not gives_away(openssl)
    before = {name: jobs(server) for name, server in devices.items()}
    openssl.plain("genpkey", *STORED["EC"], "-out", "peer")
    openssl.plain("pkey", "-in", "peer", "-pubout", "-out", "peer.public")
    done = openssl.core("pkeyutl", "-derive", "-inkey", REFERENCE, "-peerkey", "peer.public", "-out", "secret")
    assert (done.returncode == 0) == (kind == "EC"), done.stderr
    assert jobs(devices["p256"]) == before["p256"] + (kind == "EC")


def test_wrong_references_are_refused(openssl, devices):
    (openssl.folder / "text").write_text("no key")
    openssl.plain("genpkey", "-algorithm", "EC", "-pkeyopt", "group:P-384", "-out", "other")
    openssl.plain("genpkey", "-algorithm", "X448", "-out", "x448")
    for uri, reason in (
        ("modmill:text", "a key is named by modmill:key=FILE"), ("modmill:key=none", "none holds no private key"),
        ("modmill:key=text", "text holds no private key"), ("modmill:key=", "holds no private key"),
        ("modmill:key=other", "no engine is built in for the curve secp384r1"),
        ("modmill:key=x448", "no engine is built in for a key of type X448"),
    ):  # fmt: skip
        done = openssl.core("dgst", "-sha256", "-sign", uri, "-out", "made", "text")
        assert done.returncode != 0 and reason in done.stderr, done.stderr


def test_a_planted_leak_of_a_key_by_reference_is_found(openssl, cores, mill, devices, tmp_path):
    source, folder = tmp_path / "source", tmp_path / "planted"
    shutil.copytree(ROOT / "integrations" / "openssl", source, ignore=shutil.ignore_patterns("build"))
    text = (source / "provider.c").read_text()
    assert "if (old->sealed &&" in text
    (source / "provider.c").write_text(text.replace("if (old->sealed &&", "if (0 &&"))
    shutil.copytree(cores, folder)
    make(folder, mill, source=source)
    openssl.plain("genpkey", *STORED["EC"], "-out", "key")
    openssl.configuration = str(folder / "openssl.cnf")
    assert gives_away(openssl)


def test_what_is_not_built_in_is_left_to_others(openssl, devices):
    """OpenSSL itself makes keys of X448 and Ed448 with the same properties."""
    for algorithm in ("X448", "ED448"):
        assert openssl.core("genpkey", "-algorithm", algorithm, "-out", "other").returncode == 0


@pytest.mark.skipif(not shutil.which("valgrind"), reason="needs valgrind")
def test_valgrind_finds_nothing(openssl, devices):
    """No wrong access and no lost memory in an operation of each kind; an access beyond a block is found."""
    openssl.rsa()
    (openssl.folder / "key").rename(openssl.folder / "rsa")
    openssl.plain("pkeyutl", "-encrypt", "-pubin", "-inkey", "public", *OAEP, "-in", "message", "-out", "sealed")
    openssl.key("ED25519")
    (openssl.folder / "key").rename(openssl.folder / "edwards")
    openssl.key()
    environment = os.environ | {"OPENSSL_CONF": str(openssl._build / "openssl.cnf")}
    checked = ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full", "--errors-for-leak-kinds=definite"]
    for first, *others in (
        ("dgst", "-sha256", *PSS, "-sign", "rsa", "message"), ("dgst", "-sha256", "-sign", "key", "message"),
        ("pkeyutl", "-decrypt", "-inkey", "rsa", *OAEP, "-in", "sealed"),
        ("pkeyutl", "-derive", "-inkey", "modmill:key=key", "-peerkey", "public"),
        ("pkeyutl", "-sign", "-rawin", "-inkey", "edwards", "-in", "message"),
    ):  # fmt: skip
        command = [*checked, "openssl", first, *PREFER, *others]
        done = subprocess.run(command, cwd=openssl.folder, env=environment, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr
    (openssl.folder / "beyond.c").write_text(
        "#include <stdlib.h>\nint main(void) { char *x = malloc(3); return x[3]; }\n"
    )
    subprocess.run(["cc", "-g", "beyond.c", "-o", "beyond"], cwd=openssl.folder, check=True, capture_output=True)
    assert subprocess.run([*checked, "./beyond"], cwd=openssl.folder, capture_output=True).returncode == 99


def test_a_stopped_device_and_a_wrong_one(openssl, build, subjects):
    """Nothing is released: neither a secret nor a signature without a device, nor of a wrong one."""
    openssl.key("ED25519")
    message = "pkeyutl", "-sign", "-rawin", "-inkey", "edwards", "-in", "message", "-out", "made"
    (openssl.folder / "key").rename(openssl.folder / "edwards")
    openssl.rsa()
    (openssl.folder / "key").rename(openssl.folder / "rsa")
    openssl.plain("pkeyutl", "-encrypt", "-pubin", "-inkey", "public", *OAEP, "-in", "message", "-out", "sealed")
    openssl.key()
    padded = "dgst", "-sha256", *PSS, "-sign", "rsa", "-out", "made", "message"
    opened = "pkeyutl", "-decrypt", "-inkey", "rsa", *OAEP, "-in", "sealed", "-out", "made"
    sign = "dgst", "-sha256", "-sign", "key", "-out", "made", "message"
    derive = "pkeyutl", "-derive", "-inkey", "key", "-peerkey", "public", "-out", "made"

    def refused(reason):
        for command in (sign, derive, message, padded, opened):
            done = openssl.core(*command)
            assert done.returncode != 0 and reason in done.stderr, done.stderr
            made = openssl.folder / "made"
            assert not made.exists() or made.read_bytes() == b""

    refused("nobody serves at its socket")
    with contextlib.ExitStack() as stack:
        for name in ("p256", "ed25519", RSA):
            stack.enter_context(served(subjects[name], build / name, Wrong))
        refused("a wrong result")


def test_malformed_inputs(openssl, devices):
    """Broken signatures and unknown curves are refused, and the device still works."""
    openssl.key()
    openssl.plain("dgst", "-sha256", "-sign", "key", "-out", "good", "message")
    good = (openssl.folder / "good").read_bytes()
    zeros = b"\x30\x06\x02\x01\x00\x02\x01\x00"
    for text in (
        b"",
        good[:-1],
        good[:1] + b"\x80" + good[2:],
        zeros,
        bytes(72),
        good[:10] + bytes([good[10] ^ 1]) + good[11:],
    ):
        (openssl.folder / "bad").write_bytes(text)
        done = openssl.core("dgst", "-sha256", "-verify", "public", "-signature", "bad", "message")
        assert done.returncode == 1, text
    done = openssl.core("dgst", "-sha256", "-verify", "public", "-signature", "good", "message")
    assert done.returncode == 0, done.stderr
    for group in ("P-521", "brainpoolP256r1"):
        done = openssl.core("genpkey", "-algorithm", "EC", "-pkeyopt", f"group:{group}")
        assert done.returncode != 0 and done.stdout == ""


MANY = 10_000
"""Malformed inputs of one run; most are refused in microseconds."""
SANITIZED = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined"


def sanitized_provider(source, build, mill, folder):
    """The provider of a folder of sources, and the program malformed, with sanitizers of addresses, leaks and undefined
    behaviour; ``build`` has the cores."""
    (folder / "nothing.c").write_text("int main(void) { return 0; }\n")
    compiled = ["cc", *SANITIZED.split(), folder / "nothing.c", "-o", folder / "nothing"]
    if subprocess.run(compiled, capture_output=True).returncode or subprocess.run([folder / "nothing"]).returncode:
        pytest.skip("programs with sanitizers do not run here")
    for name in (*NAMES, RSA):
        shutil.copytree(build / name, folder / name, ignore=shutil.ignore_patterns("device.sock"))
    make(folder, mill, source=source, CFLAGS=SANITIZED)
    strict = ("-std=c99", "-Wall", "-Wextra", "-Werror")
    program = Path(__file__).with_name("malformed.c")
    subprocess.run(["cc", *strict, *SANITIZED.split(), program, "-lcrypto", "-o", folder / "malformed"], check=True)
    return folder


def run_malformed(openssl, folder, count, seed, **environment):
    openssl.rsa()
    (openssl.folder / "key").rename(openssl.folder / "rsa")
    openssl.key("ED25519")
    (openssl.folder / "key").rename(openssl.folder / "edwards")
    openssl.key()
    command = [folder / "malformed", folder / "openssl.cnf", "rsa", "key", "edwards", str(count), str(seed)]
    return subprocess.run(
        command, cwd=openssl.folder, env=os.environ | environment, capture_output=True, text=True, timeout=600
    )


def test_ten_thousand_malformed_inputs(openssl, build, mill, subjects, tmp_path):
    """All are refused, no sanitizer finds anything, and the device is right afterwards."""
    (sanitized := tmp_path / "sanitized").mkdir()
    sanitized_provider(ROOT / "integrations" / "openssl", build, mill, sanitized)
    with contextlib.ExitStack() as stack:
        for name, subject in subjects.items():
            stack.enter_context(served(subject, sanitized / name))
        done = run_malformed(openssl, sanitized, MANY, 1)
    counts = [int(count) for count in re.findall(r": (\d+) refused", done.stdout)]
    assert (done.returncode, sum(counts), len(counts)) == (0, MANY, 11), done.stdout[-2000:] + done.stderr[-4000:]
    assert min(counts) > MANY // 20 and done.stdout.endswith("still right\n")


COPY = "memcpy(to->public_key, bytes, size"
FAULTS = {
    "a size that is not checked": ("size != public_size(to->curve) ||", "", "accepted: raw keys"),
    "bytes behind the end": (COPY, f"{COPY} + 4000", "AddressSanitizer"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_by_malformed_inputs(fault, openssl, build, mill, tmp_path):
    old, new, shown = FAULTS[fault]
    source, folder = tmp_path / "source", tmp_path / "planted"
    shutil.copytree(ROOT / "integrations" / "openssl", source, ignore=shutil.ignore_patterns("build"))
    text = (source / "provider.c").read_text()
    assert old in text
    (source / "provider.c").write_text(text.replace(old, new))
    folder.mkdir()
    done = run_malformed(openssl, sanitized_provider(source, build, mill, folder), 2_000, 1)
    assert done.returncode == 1 and shown in done.stdout + done.stderr
