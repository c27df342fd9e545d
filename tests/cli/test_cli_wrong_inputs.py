# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Wrong inputs: each gives one line on stderr that names what would be accepted, status 2, and leaves no file."""

import pytest
from command import refused

WRONG = {
    # commands and options
    "bild wide": "no command 'bild'; the nearest is build",
    "rsa rac": "rsa has no command 'rac'; the nearest is race",
    "ecc run x22519 key": "the nearest is x25519",
    "parameters rns": "there are sor",
    "build wide -m P-256 --modulo 3": "the nearest is --modulus",
    "ecc race P-256 --design wide": "ecc race has no option --design; it has --curve, --operation, --multiplier",
    "race P-256 --operation multiply": "race has no option --operation",
    "check core --four-stat": "the nearest is --four-state",
    "-q designs -v": "--quiet and --verbose exclude each other",
    # numbers of arguments
    "build": "build needs DESIGN, for example: modmill build wide -m P-256",
    "build wide": "build needs --modulus or -m, for example: modmill build wide -m P-256",
    "build wide -m": "-m needs a value",
    "race": "race needs one MODULUS, for example: modmill race secp256k1",
    "race P-256 -m P-384": "race needs one MODULUS, for example: modmill race secp256k1",
    "ecc race": "ecc race needs one CURVE, for example: modmill ecc race P-256",
    "race P-256 --json rows.json": "--json prints to stdout: --json > FILE",
    "errata sor 3 4": "errata takes no argument '4' here, for example: modmill errata",
    "designs solinas wide": "designs takes no argument 'wide' here",
    "ecc program P-256": "ecc program needs --multiplier, for example: modmill ecc program P-256 --multiplier",
    # types and ranges
    "bases -m P-256 -w wide": "--width takes a whole number from 2 to 256, not 'wide'",
    "survey -m P-256 -w 99": "--width takes a whole number from 12 to 34, not '99'",
    "race P-256 --seeds 0": "--seeds takes a whole number from 1 to 100, not '0'",
    "mutate core --proof-seconds fast": "--proof-seconds takes a number from 1 on, not 'fast'",
    "errata sor one": "[N] takes a whole number, not 'one'",
    "view --port 70000": "--port takes a whole number from 0 to 65,535, not '70000'",
    "rsa build --bits 512": "RSA moduli have 1024 to 4096 bits, not 512",
    "errata sor 99": "have items 1 to ",
    # names
    "build wyde -m P-256": "no design is called 'wyde'; the nearest are wide",
    "designs wyde": "no design is called 'wyde'; the nearest are wide",
    "explore --design wyde": "no design is called 'wyde'; the nearest are wide",
    "ecc build --curve P-256 --multiplier wyde": "no design is called 'wyde'; the nearest are wide",
    "mutate --subject wyde": "the nearest is wide",
    "build wide -m P-265": "no modulus is named 'P-265'; the nearest names are P-256",
    "race secp256": "the nearest names are P-256, secp256k1",
    "ecc curve P-265": "no curve is named 'P-265'; the nearest names are P-256",
    "ecc vectors --curve X25518": "no curve is named 'X25518'; the nearest names are Curve25519",
    "race 97 --target ecp5-58k": "target must be one of ecp5-85k, ecp5-85k-7, ",
    "build wide -m P-256 --set level=2": "no parameter 'level'; the nearest is levels; it takes levels, multipliers",
    "build wide -m P-256 --set levels": "KEY=VALUE",
    "build wide -m P-256 --set levels=99": "levels takes a whole number from 0 to 9, not 99",
    "build wide -m P-256 --set dsp=9x9": "dsp takes one of ",
    "build wide -m P-256 --io octal": "io must be one of ",
    "build wide -m P-256 --top module": "must not be a keyword of Verilog",
    "build wide -m P-256 --bus apb --bus-clock slow": "modmill: --bus-clock: 'slow' is not one of 'same', 'separate'",
    "ecc build --curve X25519 --key-slots 2": "key slots are in the front of an engine behind a bus; give --bus too",
    "ecc build --curve X25519 --bus axi-stream --key-slots 2": "filled through registers; axi-stream has packets",
    "rsa build --key-slots 17": "--key-slots takes a whole number from 0 to 16, not '17'",
    "reproduce zor": "there are sor, hbe, rsa64k, multistep",
    "errata zor": "there are sor, hbe, rsa64k, multistep",
    "bases -m P-256 -w 17 --objective least": "--objective takes nearest or reduction",
    "rsa build --method windows": "the method must be one of window, ladder",
    "ecc race P-256 --operation multiple": "the operation must be scalar-multiplication or one of multiply",
    "rsa vectors --engine fpga": "one of model, exact, rtl",
    "race P-256 --route --router router3": "router must be one of router1, router2",
    # values
    "build wide -m 98": "must be odd",
    "build wide -m 0xgg": "0xgg",
    "build pseudo-mersenne -m P-256": "c must be narrower",
    "ecc curve P-256=": "P-256=",
    # files and folders
    "check nowhere": "nowhere is not a folder; a folder that build, rsa build or ecc build wrote is needed",
    "check empty": "one of contract.json, engine.json, ecc.json is needed",
    "rsa check nowhere": "nowhere is not a folder; a folder that build, rsa build or ecc build wrote is needed",
    "load engine -m 97": "modmill rsa setup engine -m MODULUS is for it",
    "depth engine": "depth takes a folder with a multiplier, and engine holds an RSA engine",
    "view empty": "modmill reproduce -o empty writes one",
    "build wide -m 97 -o text": "text is not a folder; name a new folder with -o",
    "build wide -m 97 -o full": "name a new or empty folder with -o",
    "race 97 --record nowhere/rows.jsonl": "nowhere/rows.jsonl cannot be written: nowhere is not a folder",
    "race 97 --record empty": "empty is a folder; name a file in it",
    "rsa run key.pem --sign text -o nowhere/s": "nowhere is not a folder",
    "rsa run key.pem --sign text": "key.pem: No such file",
    "rsa run text --sign text": "cannot be read as an RSA key",
    # combinations
    "rsa run text": "give exactly one of --decrypt, --encrypt, --sign and --verify",
    "rsa run text --verify text": "--verify and --signature must be given together",
    "check core --short": "--full and --short are only for an RSA engine; core holds a multiplier",
    "check engine --vectors 9": "--vectors is only for a multiplier; engine holds an RSA engine",
    "mutate": "mutate takes either a folder DIR or --subject NAME",
    "mutate core --subject rsa": "mutate takes either a folder DIR or --subject NAME",
    "reproduce sor -o site --json": "--json prints the tables, -o writes a site; omit one of them",
    "race 97 --route --target xc7v": "xc7v cannot be placed and routed here",
    "rsa build --circuit --window 3": "omit --window",
    "rsa build --bits 1024 --multiplier sor-2m": "sor-2m has its modulus built in",
    "ecc build --curve X25519 --operation multiply": "has no operation 'multiply'",
    "ecc build --curve BN254": "embedding degree",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wrong")
    for name, file in (("core", "contract.json"), ("engine", "engine.json"), ("full", "thesis.tex"), ("empty", None)):
        (folder / name).mkdir()
        if file:
            (folder / name / file).write_text("{}")
    (folder / "text").write_text("no key\n")
    return folder


@pytest.mark.parametrize("line", WRONG)
def test_one_line_names_what_is_accepted(place, line):
    before = sorted(place.rglob("*"))
    said = refused(*line.split(), cwd=place)
    assert WRONG[line] in said, said
    assert len(said) < 400 and sorted(place.rglob("*")) == before


def test_there_are_enough():
    assert len(WRONG) >= 40
