# SPDX-License-Identifier: Apache-2.0
# Copyright The Modmill authors
"""Elliptic curves in use, by name, with object identifier and source.

The primes are those of `numbers.moduli`. Every curve here passes `Curve.validate`; a test runs it on all of them.
"""

from difflib import get_close_matches
from typing import NamedTuple

from modmill.numbers.curves.affine import Curve, Edwards, Montgomery, Weierstrass
from modmill.numbers.moduli import key_of, parse_modulus
from modmill.numbers.shown import shortened


class _Row(NamedTuple):
    """A Weierstrass curve with cofactor 1; numbers: a b x y n, where (x, y) is the base point and n its order."""

    name: str
    prime: str
    oid: str
    aliases: tuple[str, ...]
    numbers: str


# fmt: off
_WEIERSTRASS = (
    _Row("P-192", "P-192", "1.2.840.10045.3.1.1", ("secp192r1", "prime192v1"),
        "-3 0x64210519e59c80e70fa7e9ab72243049feb8deecc146b9b1 "
        "0x188da80eb03090f67cbf20eb43a18800f4ff0afd82ff1012 "
        "0x7192b95ffc8da78631011ed6b24cdd573f977a11e794811 "
        "0xffffffffffffffffffffffff99def836146bc9b1b4d22831"),
    _Row("P-224", "P-224", "1.3.132.0.33", ("secp224r1",),
        "-3 0xb4050a850c04b3abf54132565044b0b7d7bfd8ba270b39432355ffb4 "
        "0xb70e0cbd6bb4bf7f321390b94a03c1d356c21122343280d6115c1d21 "
        "0xbd376388b5f723fb4c22dfe6cd4375a05a07476444d5819985007e34 "
        "0xffffffffffffffffffffffffffff16a2e0b8f03e13dd29455c5c2a3d"),
    _Row("P-256", "P-256", "1.2.840.10045.3.1.7", ("secp256r1", "prime256v1"),
        "-3 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b "
        "0x6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296 "
        "0x4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5 "
        "0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"),
    _Row("P-384", "P-384", "1.3.132.0.34", ("secp384r1",),
        "-3 "
        "0xb3312fa7e23ee7e4988e056be3f82d19181d9c6efe8141120314088f5013875ac656398d8a2ed19d2a85c8edd3ec2aef "
        "0xaa87ca22be8b05378eb1c71ef320ad746e1d3b628ba79b9859f741e082542a385502f25dbf55296c3a545e3872760ab7 "
        "0x3617de4a96262c6f5d9e98bf9292dc29f8f41dbd289a147ce9da3113b5f0b8c00a60b1ce1d7e819d7a431d7c90ea0e5f "
        "0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973"),
    _Row("P-521", "P-521", "1.3.132.0.35", ("secp521r1",),
        "-3 0x51953eb9618e1c9a1f929a21a0b68540eea2da725b99b315f3b8b489918ef109e"
        "156193951ec7e937b1652c0bd3bb1bf073573df883d2c34f1ef451fd46b503f00 "
        "0xc6858e06b70404e9cd9e3ecb662395b4429c648139053fb521f828af606b4d3db"
        "aa14b5e77efe75928fe1dc127a2ffa8de3348b3c1856a429bf97e7e31c2e5bd66 "
        "0x11839296a789a3bc0045c8a5fb42c7d1bd998f54449579b446817afbd17273e66"
        "2c97ee72995ef42640c550b9013fad0761353c7086a272c24088be94769fd16650 "
        "0x1ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
        "fa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409"),
    _Row("secp160k1", "secp160k1", "1.3.132.0.9", (),
        "0 7 0x3b4c382ce37aa192a4019e763036f4f5dd4d7ebb 0x938cf935318fdced6bc28286531733c3f03c4fee "
        "0x100000000000000000001b8fa16dfab9aca16b6b3"),
    _Row("secp160r1", "secp160r1", "1.3.132.0.8", (),
        "-3 0x1c97befc54bd7a8b65acf89f81d4d4adc565fa45 0x4a96b5688ef573284664698968c38bb913cbfc82 "
        "0x23a628553168947d59dcc912042351377ac5fb32 0x100000000000000000001f4c8f927aed3ca752257"),
    _Row("secp160r2", "secp160k1", "1.3.132.0.30", (),
        "-3 0xb4e134d3fb59eb8bab57274904664d5af50388ba 0x52dcb034293a117e1f4ff11b30f7199d3144ce6d "
        "0xfeaffef2e331f296e071fa0df9982cfea7d43f2e 0x100000000000000000000351ee786a818f3a1a16b"),
    _Row("secp192k1", "secp192k1", "1.3.132.0.31", (),
        "0 3 0xdb4ff10ec057e9ae26b07d0280b7f4341da5d1b1eae06c7d "
        "0x9b2f2f6d9c5628a7844163d015be86344082aa88d95e2f9d "
        "0xfffffffffffffffffffffffe26f2fc170f69466a74defd8d"),
    _Row("secp224k1", "secp224k1", "1.3.132.0.32", (),
        "0 5 0xa1455b334df099df30fc28a169a467e9e47075a90f7e650eb6b7a45c "
        "0x7e089fed7fba344282cafbd6f7e319f7c0b0bd59e2ca4bdb556d61a5 "
        "0x10000000000000000000000000001dce8d2ec6184caf0a971769fb1f7"),
    _Row("secp256k1", "secp256k1", "1.3.132.0.10", ("P-256K",),
        "0 7 0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798 "
        "0x483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8 "
        "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"),
    _Row("brainpoolP160r1", "brainpoolP160r1", "1.3.36.3.3.2.8.1.1.1", (),
        "0x340e7be2a280eb74e2be61bada745d97e8f7c300 0x1e589a8595423412134faa2dbdec95c8d8675e58 "
        "0xbed5af16ea3f6a4f62938c4631eb5af7bdbcdbc3 0x1667cb477a1a8ec338f94741669c976316da6321 "
        "0xe95e4a5f737059dc60df5991d45029409e60fc09"),
    _Row("brainpoolP160t1", "brainpoolP160r1", "1.3.36.3.3.2.8.1.1.2", (),
        "-3 0x7a556b6dae535b7b51ed2c4d7daa7a0b5c55f380 0xb199b13b9b34efc1397e64baeb05acc265ff2378 "
        "0xadd6718b7c7c1961f0991b842443772152c9e0ad 0xe95e4a5f737059dc60df5991d45029409e60fc09"),
    _Row("brainpoolP192r1", "brainpoolP192r1", "1.3.36.3.3.2.8.1.1.3", (),
        "0x6a91174076b1e0e19c39c031fe8685c1cae040e5c69a28ef "
        "0x469a28ef7c28cca3dc721d044f4496bcca7ef4146fbf25c9 "
        "0xc0a0647eaab6a48753b033c56cb0f0900a2f5c4853375fd6 "
        "0x14b690866abd5bb88b5f4828c1490002e6773fa2fa299b8f "
        "0xc302f41d932a36cda7a3462f9e9e916b5be8f1029ac4acc1"),
    _Row("brainpoolP192t1", "brainpoolP192r1", "1.3.36.3.3.2.8.1.1.4", (),
        "-3 0x13d56ffaec78681e68f9deb43b35bec2fb68542e27897b79 "
        "0x3ae9e58c82f63c30282e1fe7bbf43fa72c446af6f4618129 "
        "0x97e2c5667c2223a902ab5ca449d0084b7e5b3de7ccc01c9 "
        "0xc302f41d932a36cda7a3462f9e9e916b5be8f1029ac4acc1"),
    _Row("brainpoolP224r1", "brainpoolP224r1", "1.3.36.3.3.2.8.1.1.5", (),
        "0x68a5e62ca9ce6c1c299803a6c1530b514e182ad8b0042a59cad29f43 "
        "0x2580f63ccfe44138870713b1a92369e33e2135d266dbb372386c400b "
        "0xd9029ad2c7e5cf4340823b2a87dc68c9e4ce3174c1e6efdee12c07d "
        "0x58aa56f772c0726f24c6b89e4ecdac24354b9e99caa3f6d3761402cd "
        "0xd7c134aa264366862a18302575d0fb98d116bc4b6ddebca3a5a7939f"),
    _Row("brainpoolP224t1", "brainpoolP224r1", "1.3.36.3.3.2.8.1.1.6", (),
        "-3 0x4b337d934104cd7bef271bf60ced1ed20da14c08b3bb64f18a60888d "
        "0x6ab1e344ce25ff3896424e7ffe14762ecb49f8928ac0c76029b4d580 "
        "0x374e9f5143e568cd23f3f4d7c0d4b1e41c8cc0d1c6abd5f1a46db4c "
        "0xd7c134aa264366862a18302575d0fb98d116bc4b6ddebca3a5a7939f"),
    _Row("brainpoolP256r1", "brainpoolP256r1", "1.3.36.3.3.2.8.1.1.7", (),
        "0x7d5a0975fc2c3057eef67530417affe7fb8055c126dc5c6ce94a4b44f330b5d9 "
        "0x26dc5c6ce94a4b44f330b5d9bbd77cbf958416295cf7e1ce6bccdc18ff8c07b6 "
        "0x8bd2aeb9cb7e57cb2c4b482ffc81b7afb9de27e1e3bd23c23a4453bd9ace3262 "
        "0x547ef835c3dac4fd97f8461a14611dc9c27745132ded8e545c1d54c72f046997 "
        "0xa9fb57dba1eea9bc3e660a909d838d718c397aa3b561a6f7901e0e82974856a7"),
    _Row("brainpoolP256t1", "brainpoolP256r1", "1.3.36.3.3.2.8.1.1.8", (),
        "-3 0x662c61c430d84ea4fe66a7733d0b76b7bf93ebc4af2f49256ae58101fee92b04 "
        "0xa3e8eb3cc1cfe7b7732213b23a656149afa142c47aafbc2b79a191562e1305f4 "
        "0x2d996c823439c56d7f7b22e14644417e69bcb6de39d027001dabe8f35b25c9be "
        "0xa9fb57dba1eea9bc3e660a909d838d718c397aa3b561a6f7901e0e82974856a7"),
    _Row("brainpoolP320r1", "brainpoolP320r1", "1.3.36.3.3.2.8.1.1.9", (),
        "0x3ee30b568fbab0f883ccebd46d3f3bb8a2a73513f5eb79da66190eb085ffa9f492f375a97d860eb4 "
        "0x520883949dfdbc42d3ad198640688a6fe13f41349554b49acc31dccd884539816f5eb4ac8fb1f1a6 "
        "0x43bd7e9afb53d8b85289bcc48ee5bfe6f20137d10a087eb6e7871e2a10a599c710af8d0d39e20611 "
        "0x14fdd05545ec1cc8ab4093247f77275e0743ffed117182eaa9c77877aaac6ac7d35245d1692e8ee1 "
        "0xd35e472036bc4fb7e13c785ed201e065f98fcfa5b68f12a32d482ec7ee8658e98691555b44c59311"),
    _Row("brainpoolP320t1", "brainpoolP320r1", "1.3.36.3.3.2.8.1.1.10", (),
        "-3 0xa7f561e038eb1ed560b3d147db782013064c19f27ed27c6780aaf77fb8a547ceb5b4fef422340353 "
        "0x925be9fb01afc6fb4d3e7d4990010f813408ab106c4f09cb7ee07868cc136fff3357f624a21bed52 "
        "0x63ba3a7a27483ebf6671dbef7abb30ebee084e58a0b077ad42a5a0989d1ee71b1b9bc0455fb0d2c3 "
        "0xd35e472036bc4fb7e13c785ed201e065f98fcfa5b68f12a32d482ec7ee8658e98691555b44c59311"),
    _Row("brainpoolP384r1", "brainpoolP384r1", "1.3.36.3.3.2.8.1.1.11", (),
        "0x7bc382c63d8c150c3c72080ace05afa0c2bea28e4fb22787139165efba91f90f8aa5814a503ad4eb04a8c7dd22ce2826 "
        "0x4a8c7dd22ce28268b39b55416f0447c2fb77de107dcd2a62e880ea53eeb62d57cb4390295dbc9943ab78696fa504c11 "
        "0x1d1c64f068cf45ffa2a63a81b7c13f6b8847a3e77ef14fe3db7fcafe0cbd10e8e826e03436d646aaef87b2e247d4af1e "
        "0x8abe1d7520f9c2a45cb1eb8e95cfd55262b70b29feec5864e19c054ff99129280e4646217791811142820341263c5315 "
        "0x8cb91e82a3386d280f5d6f7e50e641df152f7109ed5456b31f166e6cac0425a7cf3ab6af6b7fc3103b883202e9046565"),
    _Row("brainpoolP384t1", "brainpoolP384r1", "1.3.36.3.3.2.8.1.1.12", (),
        "-3 "
        "0x7f519eada7bda81bd826dba647910f8c4b9346ed8ccdc64e4b1abd11756dce1d2074aa263b88805ced70355a33b471ee "
        "0x18de98b02db9a306f2afcd7235f72a819b80ab12ebd653172476fecd462aabffc4ff191b946a5f54d8d0aa2f418808cc "
        "0x25ab056962d30651a114afd2755ad336747f93475b7a1fca3b88f2b6a208ccfe469408584dc2b2912675bf5b9e582928 "
        "0x8cb91e82a3386d280f5d6f7e50e641df152f7109ed5456b31f166e6cac0425a7cf3ab6af6b7fc3103b883202e9046565"),
    _Row("brainpoolP512r1", "brainpoolP512r1", "1.3.36.3.3.2.8.1.1.13", (),
        "0x7830a3318b603b89e2327145ac234cc594cbdd8d3df91610a83441caea9863bc"
        "2ded5d5aa8253aa10a2ef1c98b9ac8b57f1117a72bf2c7b9e7c1ac4d77fc94ca "
        "0x3df91610a83441caea9863bc2ded5d5aa8253aa10a2ef1c98b9ac8b57f1117a7"
        "2bf2c7b9e7c1ac4d77fc94cadc083e67984050b75ebae5dd2809bd638016f723 "
        "0x81aee4bdd82ed9645a21322e9c4c6a9385ed9f70b5d916c1b43b62eef4d0098e"
        "ff3b1f78e2d0d48d50d1687b93b97d5f7c6d5047406a5e688b352209bcb9f822 "
        "0x7dde385d566332ecc0eabfa9cf7822fdf209f70024a57b1aa000c55b881f8111"
        "b2dcde494a5f485e5bca4bd88a2763aed1ca2b2fa8f0540678cd1e0f3ad80892 "
        "0xaadd9db8dbe9c48b3fd4e6ae33c9fc07cb308db3b3c9d20ed6639cca70330870"
        "553e5c414ca92619418661197fac10471db1d381085ddaddb58796829ca90069"),
    _Row("brainpoolP512t1", "brainpoolP512r1", "1.3.36.3.3.2.8.1.1.14", (),
        "-3 0x7cbbbcf9441cfab76e1890e46884eae321f70c0bcb4981527897504bec3e36a6"
        "2bcdfa2304976540f6450085f2dae145c22553b465763689180ea2571867423e "
        "0x640ece5c12788717b9c1ba06cbc2a6feba85842458c56dde9db1758d39c0313d"
        "82ba51735cdb3ea499aa77a7d6943a64f7a3f25fe26f06b51baa2696fa9035da "
        "0x5b534bd595f5af0fa2c892376c84ace1bb4e3019b71634c01131159cae03cee9"
        "d9932184beef216bd71df2dadf86a627306ecff96dbb8bace198b61e00f8b332 "
        "0xaadd9db8dbe9c48b3fd4e6ae33c9fc07cb308db3b3c9d20ed6639cca70330870"
        "553e5c414ca92619418661197fac10471db1d381085ddaddb58796829ca90069"),
    _Row("SM2", "SM2", "1.2.156.10197.1.301", ("sm2p256v1", "curveSM2"),
        "-3 0x28e9fa9e9d9f5e344d5a9e4bcf6509a7f39789f515ab8f92ddbcbd414d940e93 "
        "0x32c4ae2c1f1981195f9904466a39c9948fe30bbff2660be1715a4589334c74c7 "
        "0xbc3736a2f4f6779c59bdcee36b692153d0a9877cc62a474002df32e52139f0a0 "
        "0xfffffffeffffffffffffffffffffffff7203df6b21c6052b53bbf40939d54123"),
    _Row("FRP256v1", "FRP256v1", "1.2.250.1.223.101.256.1", ("ANSSI-FRP256v1",),
        "-3 0xee353fca5428a9300d4aba754a44c00fdfec0c9ae4b1a1803075ed967b7bb73f "
        "0xb6b3d4c356c139eb31183d4749d423958c27d2dcaf98b70164c97a2dd98f5cff "
        "0x6142e0f7c8b204911f9271f0f3ecef8c2701c307e8e4c9e183115a1554062cfb "
        "0xf1fd178c0b3ad58f10126de8ce42435b53dc67e140d2bf941ffdd459c6d655e1"),
)
# fmt: on


def _made(row: _Row) -> Weierstrass:
    field = parse_modulus(row.prime)
    p = field.value
    a, b, x, y, n = (int(word, 0) for word in row.numbers.split())
    return Weierstrass(p, (x, y), n, 1, row.name, row.oid, field.source, row.aliases, a=a % p, b=b)


_P25519, _P448 = parse_modulus("Ed25519").value, parse_modulus("Ed448").value
_N25519 = parse_modulus("Ed25519-n").value
_N448 = 2**446 - 0x8335DC163BB124B65129C96FDE933D8D723A70AADC873D6D54A7BB0D

CURVE25519 = Montgomery(
    _P25519, (9, 0x20AE19A1B8A086B4E01EDD2C7748D14C923D4D7E6D7C61B229E9C5A27ECED3D9), _N25519, 8,
    "Curve25519", "1.3.101.110", "RFC 7748 (2016), section 4.1", ("X25519",), A=486662,
)  # fmt: skip
CURVE448 = Montgomery(
    _P448,
    (
        5,
        0x7D235D1295F5B1F66C98AB6E58326FCECBAE5D34F55545D060F75DC28DF3F6EDB8027E2346430D211312C4B150677AF76FD7223D457B5B1A,
    ),
    _N448, 4, "Curve448", "1.3.101.111", "RFC 7748 (2016), section 4.2", ("X448",), A=156326,
)  # fmt: skip
ED25519 = Edwards(
    _P25519,
    (0x216936D3CD6E53FEC0A4E231FDD6DC5C692CC7609525A7B2C9562D608F25D51A, 4 * pow(5, -1, _P25519) % _P25519),
    _N25519, 8, "Ed25519", "1.3.101.112", "RFC 8032 (2017), section 5.1", ("edwards25519",),
    a=_P25519 - 1, d=-121665 * pow(121666, -1, _P25519) % _P25519,
)  # fmt: skip
ED448 = Edwards(
    _P448,
    (
        0x4F1970C66BED0DED221D15A622BF36DA9E146570470F1767EA6DE324A3D3A46412AE1AF72AB66511433B80E18B00938E2626A82BC70CC05E,
        0x693F46716EB6BC248876203756C9C7624BEA73736CA3984087789C1E05A0C2D73AD3FF1CE67C39C4FDBD132C4ED7C8AD9808795BF230FA14,
    ),
    _N448, 4, "Ed448", "1.3.101.113", "RFC 8032 (2017), section 5.2", ("edwards448", "Ed448-Goldilocks"),
    a=1, d=_P448 - 39081,
)  # fmt: skip

_BN, _BLS = parse_modulus("BN254-p"), parse_modulus("BLS12-381-p")
PAIRING_CURVES: tuple[Curve, ...] = (
    Weierstrass(
        _BN.value, (1, 2), parse_modulus("BN254-r").value, 1, "BN254", "", _BN.source, ("alt_bn128", "BN128"),
        arithmetic=True, b=3,
    ),
    Weierstrass(
        _BLS.value,
        (
            0x17F1D3A73197D7942695638C4FA9AC0FC3688C4F9774B905A14E3A3F171BAC586C55E83FF97A1AEFFB3AF00ADB22C6BB,
            0x08B3F481E3AAA0F1A09E30ED741D8AE4FCF5E095D5D00AF600DB18CB2C04B3EDD03CC744A2888AE40CAA232946C5E7E1,
        ),
        parse_modulus("BLS12-381-r").value, 0x396C8C005555E1568C00AAAB0000AAAB, "BLS12-381-G1", "", _BLS.source,
        ("BLS12-381",), arithmetic=True, b=4,
    ),
)  # fmt: skip
"""Curves for pairings, the group over the prime field: for arithmetic only."""

CURVES: tuple[Curve, ...] = (*map(_made, _WEIERSTRASS), CURVE25519, CURVE448, ED25519, ED448)
"""Every named curve."""


_BY_KEY = {key_of(name): curve for curve in CURVES for name in (curve.name, *curve.aliases)}
_PAIRING_BY_KEY = {key_of(name): curve for curve in PAIRING_CURVES for name in (curve.name, *curve.aliases)}
_BY_OID = {curve.oid: curve for curve in CURVES}


def find_curve(name: str, *, pairing: bool = False) -> Curve:
    """The curve of a name or alias; case, spaces, hyphens and underscores are ignored.

    X25519 and X448 are the Montgomery curves, Ed25519 and Ed448 the Edwards ones. Raises ValueError, with the nearest
    names, for an unknown name, and for a curve of `PAIRING_CURVES` unless ``pairing``.
    """
    key = key_of(name)
    if key in _PAIRING_BY_KEY:
        found = _PAIRING_BY_KEY[key]
        if pairing:
            return found
        raise ValueError(f"{found.name} is for pairings: {found.unsuited()}; --allow-pairing builds arithmetic on it")
    if key in _BY_KEY:
        return _BY_KEY[key]
    near = dict.fromkeys(_BY_KEY[k].name for k in get_close_matches(key, _BY_KEY, n=4, cutoff=0.5))
    known = ", ".join(near or (curve.name for curve in CURVES))
    raise ValueError(f"no curve is named {shortened(name)}; {'the nearest' if near else 'the'} names are {known}")


def curve_of_oid(oid: str) -> Curve:
    """The curve of an object identifier, given as dotted numbers. Raises ValueError if no named curve has it."""
    if oid not in _BY_OID:
        raise ValueError(f"no named curve has the object identifier {oid[:60]}")
    return _BY_OID[oid]


def same_curve(curve: Curve) -> Curve:
    """The named curve with the same parameters, or else the curve itself."""

    def numbers(c: Curve) -> tuple[object, ...]:
        return type(c), c.p, *c.coefficients().values(), c.base, c.n, c.h

    return next((known for known in (*CURVES, *PAIRING_CURVES) if numbers(known) == numbers(curve)), curve)
