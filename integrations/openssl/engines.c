/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Modmill authors */
/* Each operation connects to its device, which it owns until the end, and makes one call of the generated driver. */
#include "engines.h"

#include <openssl/crypto.h>
#include <openssl/prov_ssl.h>
#include <string.h>

#ifdef WITH_x25519
#include "x25519_calls.h"
#endif
#ifdef WITH_p256
#include "p256_calls.h"
#endif
#ifdef WITH_p384
#include "p384_calls.h"
#endif
#ifdef WITH_secp256k1
#include "secp256k1_calls.h"
#endif

#define MOST_CURVES 8

struct modmill_engines {
    char *paths[MOST_CURVES];
};

const modmill_curve *modmill_find(const char *name)
{
    const modmill_curve *curve;
    size_t k;

    for (curve = modmill_curves; curve->name != NULL; curve++) {
        if (OPENSSL_strcasecmp(curve->name, name) == 0)
            return curve;
        for (k = 0; k < 3 && curve->aliases[k] != NULL; k++)
            if (OPENSSL_strcasecmp(curve->aliases[k], name) == 0)
                return curve;
    }
    return NULL;
}

modmill_engines *modmill_engines_new(void)
{
    return OPENSSL_zalloc(sizeof(modmill_engines));
}

void modmill_engines_free(modmill_engines *engines)
{
    size_t k;

    for (k = 0; engines != NULL && k < MOST_CURVES; k++)
        OPENSSL_free(engines->paths[k]);
    OPENSSL_free(engines);
}

void modmill_set_path(modmill_engines *engines, const modmill_curve *curve, const char *path)
{
    char **const kept = engines->paths + (curve - modmill_curves);

    OPENSSL_free(*kept);
    *kept = OPENSSL_strdup(path);
}

const char *modmill_reason(int error)
{
    switch (error) {
    case MODMILL_NOT_CONFIGURED: return "its socket is not named in the configuration";
    case MODMILL_NOT_CONNECTED: return "nobody serves at its socket";
    case 256: return "no answer";
    case 257: return "another device is at its socket";
    default: return error < 256 ? "the device refused the job" : "a wrong result, or numbers out of range";
    }
}

/* Connect to the device of a curve. */
static int joined(const modmill_engines *engines, const char *name, modmill_socket *link)
{
    const char *const path = engines->paths[modmill_find(name) - modmill_curves];

    link->fd = -1;
    if (path == NULL)
        return MODMILL_NOT_CONFIGURED;
    return modmill_connect(link, path) == 0 ? 0 : MODMILL_NOT_CONNECTED;
}

/* A function of the table: connect, open the device, make the call. */
#define CALL(top, link, call)                                                                                          \
    modmill_socket link;                                                                                               \
    top##_engine engine;                                                                                               \
    int error = joined(engines, #top, &link);                                                                          \
                                                                                                                       \
    if (error == 0)                                                                                                    \
        error = top##_engine_open(&engine, modmill_base(&link));                                                       \
    if (error == 0)                                                                                                    \
        error = (call);                                                                                                \
    top##_wipe(&engine, sizeof engine);                                                                                \
    modmill_close(&link);                                                                                              \
    return error

#define SIGNING(top)                                                                                                   \
    static int top##_key(const modmill_engines *engines, unsigned char *point, const unsigned char *scalar)            \
    {                                                                                                                  \
        CALL(top, link, top##_public(&engine, point + 1, scalar));                                                     \
    }                                                                                                                  \
    static int top##_exchange(const modmill_engines *engines, unsigned char *secret, const unsigned char *scalar,      \
                              const unsigned char *point)                                                              \
    {                                                                                                                  \
        CALL(top, link, top##_ecdh(&engine, secret, scalar, point));                                                   \
    }                                                                                                                  \
    static int top##_sign(const modmill_engines *engines, unsigned char *r, unsigned char *s,                          \
                          const unsigned char *digest, size_t length, const unsigned char *scalar,                     \
                          const unsigned char *nonce)                                                                  \
    {                                                                                                                  \
        CALL(top, link, top##_ecdsa_sign(&engine, r, s, digest, length, scalar, nonce));                               \
    }                                                                                                                  \
    static int top##_verify(const modmill_engines *engines, const unsigned char *r, const unsigned char *s,            \
                            const unsigned char *digest, size_t length, const unsigned char *point)                    \
    {                                                                                                                  \
        CALL(top, link, top##_ecdsa_verify(&engine, r, s, digest, length, point));                                     \
    }

#ifdef WITH_x25519
static int x25519_exchange(const modmill_engines *engines, unsigned char *secret, const unsigned char *scalar,
                           const unsigned char *point)
{
    CALL(x25519, link, x25519_x25519(&engine, secret, scalar, point));
}

static int x25519_key(const modmill_engines *engines, unsigned char *point, const unsigned char *scalar)
{
    static const unsigned char base[32] = {9};

    return x25519_exchange(engines, point, scalar, base);
}
#endif
#ifdef WITH_p256
SIGNING(p256)
static const unsigned char p256_n[32] = {
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51};
#endif
#ifdef WITH_p384
SIGNING(p384)
static const unsigned char p384_n[48] = {
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xc7, 0x63, 0x4d, 0x81, 0xf4, 0x37, 0x2d, 0xdf,
    0x58, 0x1a, 0x0d, 0xb2, 0x48, 0xb0, 0xa7, 0x7a, 0xec, 0xec, 0x19, 0x6a, 0xcc, 0xc5, 0x29, 0x73};
#endif
#ifdef WITH_secp256k1
SIGNING(secp256k1)
static const unsigned char secp256k1_n[32] = {
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
    0xba, 0xae, 0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41};
#endif

const modmill_curve modmill_curves[] = {
#ifdef WITH_x25519
    {"X25519", {"x25519", NULL, NULL}, "x25519", {"x25519", NULL}, 0x001d, 0, 253, 32, 1, x25519_key, x25519_exchange, NULL,
     NULL, NULL},
#endif
#ifdef WITH_p256
    {"prime256v1", {"P-256", "secp256r1", "p256"}, "p256", {"secp256r1", "P-256"}, 0x0017, 0, 256, 32, 0, p256_key, p256_exchange,
     p256_sign, p256_verify, p256_n},
#endif
#ifdef WITH_p384
    {"secp384r1", {"P-384", "p384", NULL}, "p384", {"secp384r1", "P-384"}, 0x0018, 0, 384, 48, 0, p384_key, p384_exchange,
     p384_sign, p384_verify, p384_n},
#endif
#ifdef WITH_secp256k1
    {"secp256k1", {NULL, NULL, NULL}, "secp256k1", {"secp256k1", NULL}, 0x0016, TLS1_2_VERSION, 256, 32, 0, secp256k1_key,
     secp256k1_exchange, secp256k1_sign, secp256k1_verify, secp256k1_n},
#endif
    {.name = NULL}};
