/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Modmill authors */
/* Each operation connects to its device, which it owns until the end, and makes one call of the generated driver. */
#include "engines.h"

#include <openssl/crypto.h>
#include <openssl/prov_ssl.h>
#include <openssl/rand.h>
#include <string.h>

#ifdef WITH_x25519
#include "x25519_calls.h"
#endif
#ifdef WITH_ed25519
#include "ed25519_calls.h"
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
#ifdef WITH_rsa1024
#include "rsa1024_calls.h"
#endif
#ifdef WITH_rsa2048
#include "rsa2048_calls.h"
#endif
#ifdef WITH_rsa4096
#include "rsa4096_calls.h"
#endif

#define MOST_DEVICES 8

struct modmill_engines {
    const char *keys[MOST_DEVICES];
    char *paths[MOST_DEVICES];
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

    for (k = 0; engines != NULL && k < MOST_DEVICES; k++)
        OPENSSL_free(engines->paths[k]);
    OPENSSL_free(engines);
}

void modmill_set_path(modmill_engines *engines, const char *key, const char *path)
{
    size_t k;

    for (k = 0; k < MOST_DEVICES; k++)
        if (engines->keys[k] == NULL) {
            engines->keys[k] = key;
            engines->paths[k] = OPENSSL_strdup(path);
            return;
        }
}

const char *modmill_reason(modmill_error error)
{
    static const char *const reasons[] = {
        "no error", "its socket is not named in the configuration", "nobody serves at its socket", "no answer",
        "another device is at its socket", "the device refused the job",
        "a wrong result or signature, or numbers out of range"};

    return reasons[error];
}

/* Connect to a device. */
static modmill_error joined(const modmill_engines *engines, const char *key, modmill_socket *link)
{
    const char *path = NULL;
    size_t k;

    for (k = 0; k < MOST_DEVICES && engines->keys[k] != NULL; k++)
        if (strcmp(engines->keys[k], key) == 0)
            path = engines->paths[k];
    link->fd = -1;
    if (path == NULL)
        return MODMILL_NOT_CONFIGURED;
    return modmill_connect(link, path) == 0 ? MODMILL_OK : MODMILL_NOT_CONNECTED;
}

/* An error of a driver: causes of the device are below its own, those of the calls above them. */
#define MEANING(TOP, error)                                                                                            \
    ((error) == TOP##_OK                 ? MODMILL_OK                                                                  \
     : (error) == TOP##_ERROR_TIMEOUT    ? MODMILL_NO_ANSWER                                                           \
     : (error) == TOP##_ERROR_DEVICE     ? MODMILL_ANOTHER_DEVICE                                                      \
     : (error) < TOP##_ERROR_TIMEOUT     ? MODMILL_REFUSED                                                             \
                                         : MODMILL_WRONG)

/* The body of a function of the table: connect, open the device, make the call. */
#define CALL(top, TOP, call)                                                                                           \
    modmill_socket link;                                                                                               \
    top##_engine engine;                                                                                               \
    modmill_error found = joined(engines, #top, &link);                                                                \
                                                                                                                       \
    if (found == MODMILL_OK) {                                                                                         \
        int error = top##_engine_open(&engine, modmill_base(&link));                                                   \
                                                                                                                       \
        if (error == TOP##_OK)                                                                                         \
            error = (call);                                                                                            \
        found = MEANING(TOP, error);                                                                                   \
        top##_wipe(&engine, sizeof engine);                                                                            \
        modmill_close(&link);                                                                                          \
    }                                                                                                                  \
    return found

#define SIGNING(top, TOP)                                                                                              \
    static modmill_error top##_key(const modmill_engines *engines, unsigned char *point, const unsigned char *scalar)  \
    {                                                                                                                  \
        CALL(top, TOP, top##_public(&engine, point + 1, scalar));                                                      \
    }                                                                                                                  \
    static modmill_error top##_exchange(const modmill_engines *engines, unsigned char *secret,                         \
                                        const unsigned char *scalar, const unsigned char *point)                       \
    {                                                                                                                  \
        CALL(top, TOP, top##_ecdh(&engine, secret, scalar, point));                                                    \
    }                                                                                                                  \
    static modmill_error top##_sign(const modmill_engines *engines, unsigned char *r, unsigned char *s,                \
                                    const unsigned char *digest, size_t length, const unsigned char *scalar,           \
                                    const unsigned char *nonce)                                                        \
    {                                                                                                                  \
        CALL(top, TOP, top##_ecdsa_sign(&engine, r, s, digest, length, scalar, nonce));                                \
    }                                                                                                                  \
    static modmill_error top##_verify(const modmill_engines *engines, const unsigned char *r, const unsigned char *s,  \
                                      const unsigned char *digest, size_t length, const unsigned char *point)          \
    {                                                                                                                  \
        CALL(top, TOP, top##_ecdsa_verify(&engine, r, s, digest, length, point));                                      \
    }

#define NUMBER(k) {numbers[k].bytes, numbers[k].size}
#define POWERS(top, TOP)                                                                                               \
    static modmill_error top##_call(const modmill_engines *engines, const top##_rsa_key *key, unsigned char *out,      \
                                    const unsigned char *in, const unsigned char *random)                              \
    {                                                                                                                  \
        CALL(top, TOP, top##_rsa_private(&engine, key, out, in, random));                                              \
    }                                                                                                                  \
    static modmill_error top##_private(const modmill_engines *engines, const modmill_number *numbers,                  \
                                       unsigned char *out, const unsigned char *in)                                    \
    {                                                                                                                  \
        const top##_rsa_numbers given = {                                                                              \
            NUMBER(MODMILL_N),   NUMBER(MODMILL_E),   NUMBER(MODMILL_P),        NUMBER(MODMILL_Q),                     \
            NUMBER(MODMILL_D_P), NUMBER(MODMILL_D_Q), NUMBER(MODMILL_Q_INVERSE)};                                      \
        unsigned char random[TOP##_RSA_RANDOM];                                                                        \
        top##_rsa_key key;                                                                                             \
        modmill_error found = MODMILL_WRONG;                                                                           \
                                                                                                                       \
        memset(out, 0, numbers[MODMILL_N].size);                                                                       \
        if (RAND_priv_bytes(random, sizeof random) > 0 && top##_rsa_private_key(&key, &given) == TOP##_OK &&           \
            key.bytes == numbers[MODMILL_N].size)                                                                      \
            found = top##_call(engines, &key, out, in, random);                                                        \
        top##_wipe(random, sizeof random);                                                                             \
        top##_wipe(&key, sizeof key);                                                                                  \
        return found;                                                                                                  \
    }

#ifdef WITH_x25519
static modmill_error x25519_exchange(const modmill_engines *engines, unsigned char *secret, const unsigned char *scalar,
                                     const unsigned char *point)
{
    CALL(x25519, X25519, x25519_x25519(&engine, secret, scalar, point));
}

static modmill_error x25519_key(const modmill_engines *engines, unsigned char *point, const unsigned char *scalar)
{
    static const unsigned char base[X25519_BYTES] = {9};

    return x25519_exchange(engines, point, scalar, base);
}
#endif
#ifdef WITH_ed25519
static modmill_error ed25519_key(const modmill_engines *engines, unsigned char *public_key, const unsigned char *seed)
{
    CALL(ed25519, ED25519, ed25519_ed25519_public(&engine, public_key, seed));
}

static modmill_error ed25519_sign(const modmill_engines *engines, unsigned char *signature,
                                  const unsigned char *message, size_t length, const unsigned char *seed)
{
    CALL(ed25519, ED25519, ed25519_ed25519_sign(&engine, signature, message, length, seed));
}

static modmill_error ed25519_verify(const modmill_engines *engines, const unsigned char *signature,
                                    const unsigned char *message, size_t length, const unsigned char *public_key)
{
    CALL(ed25519, ED25519, ed25519_ed25519_verify(&engine, signature, message, length, public_key));
}
#endif
#ifdef WITH_p256
SIGNING(p256, P256)
#endif
#ifdef WITH_p384
SIGNING(p384, P384)
#endif
#ifdef WITH_secp256k1
SIGNING(secp256k1, SECP256K1)
#endif
#ifdef WITH_rsa1024
POWERS(rsa1024, RSA1024)
#endif
#ifdef WITH_rsa2048
POWERS(rsa2048, RSA2048)
#endif
#ifdef WITH_rsa4096
POWERS(rsa4096, RSA4096)
#endif

const modmill_curve modmill_curves[] = {
#ifdef WITH_x25519
    {"X25519", {"x25519", NULL, NULL}, "x25519", {"x25519", NULL}, 0x001d, 0, 253, 32, 1, x25519_key,
     x25519_exchange, NULL, NULL, NULL, NULL, NULL},
#endif
#ifdef WITH_ed25519
    {"ED25519", {"ed25519", NULL, NULL}, "ed25519", {NULL, NULL}, 0, 0, 256, 32, 1, ed25519_key, NULL, NULL, NULL, NULL,
     ed25519_sign, ed25519_verify},
#endif
#ifdef WITH_p256
    {"prime256v1", {"P-256", "secp256r1", "p256"}, "p256", {"secp256r1", "P-256"}, 0x0017, 0, 256, 32, 0, p256_key,
     p256_exchange, p256_sign, p256_verify, p256_check_scalar, NULL, NULL},
#endif
#ifdef WITH_p384
    {"secp384r1", {"P-384", "p384", NULL}, "p384", {"secp384r1", "P-384"}, 0x0018, 0, 384, 48, 0, p384_key,
     p384_exchange, p384_sign, p384_verify, p384_check_scalar, NULL, NULL},
#endif
#ifdef WITH_secp256k1
    {"secp256k1", {NULL, NULL, NULL}, "secp256k1", {"secp256k1", NULL}, 0x0016, TLS1_2_VERSION, 256, 32, 0,
     secp256k1_key, secp256k1_exchange, secp256k1_sign, secp256k1_verify, secp256k1_check_scalar, NULL, NULL},
#endif
    {.name = NULL}};

const modmill_rsa modmill_rsas[] = {
#ifdef WITH_rsa1024
    {"rsa1024", RSA1024_MODULUS_BITS, rsa1024_private},
#endif
#ifdef WITH_rsa2048
    {"rsa2048", RSA2048_MODULUS_BITS, rsa2048_private},
#endif
#ifdef WITH_rsa4096
    {"rsa4096", RSA4096_MODULUS_BITS, rsa4096_private},
#endif
    {.key = NULL}};
