/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Modmill authors */
/* An OpenSSL 3 provider on Modmill's coprocessors for curves, and engines for RSA (rsa.c).
 *
 * Key exchange X25519 and ECDH, and signatures ECDSA and Ed25519, run on devices that `modmill serve` simulates;
 * engines.c connects to them. Nothing falls back: without its device an operation fails. Hashes and random numbers are libcrypto's.
 *
 * In openssl.cnf, the provider's section names the socket of each device:
 *
 *     [modmill]
 *     module = /path/to/modmill.so
 *     activate = 1
 *     x25519 = /path/to/x25519/device.sock
 *     p256 = /path/to/p256/device.sock
 */
#include "provider.h"

#include <openssl/ecdsa.h>
#include <openssl/prov_ssl.h>
#include <stdarg.h>

#define NUMBER MODMILL_MOST_BYTES
#define POINT (2 * NUMBER + 1)
#define UNCOMPRESSED 4

/* ------------------------------------------------------------------------------------------------------- errors */

static OSSL_FUNC_core_new_error_fn *core_new_error;
static OSSL_FUNC_core_set_error_debug_fn *core_set_debug;
static OSSL_FUNC_core_vset_error_fn *core_vset_error;

void modmill_say(const provider *of, uint32_t reason, const char *form, ...)
{
    va_list arguments;

    va_start(arguments, form);
    core_new_error(of->handle);
    core_set_debug(of->handle, "modmill", 0, "modmill");
    core_vset_error(of->handle, reason, form, arguments);
    va_end(arguments);
}

int modmill_told(const provider *of, const char *what, modmill_error error)
{
    if (error == MODMILL_OK)
        return 1;
    modmill_say(of, ERR_R_OPERATION_FAIL, "device for %s: %s", what, modmill_reason(error));
    return 0;
}

static int told(const provider *of, const modmill_curve *curve, modmill_error error)
{
    return modmill_told(of, curve->name, error);
}

int modmill_set_int(OSSL_PARAM params[], const char *name, int value)
{
    OSSL_PARAM *const asked = OSSL_PARAM_locate(params, name);

    return asked == NULL || OSSL_PARAM_set_int(asked, value);
}

EVP_MD *modmill_hash(const provider *of, const char *name)
{
    EVP_MD *const found = EVP_MD_fetch(NULL, name, "provider!=modmill");

    if (found == NULL)
        modmill_say(of, PROV_R_INVALID_DIGEST, "no hash %s", name);
    return found;
}

void *modmill_taken(const void *reference, size_t size)
{
    void **const from = (void **)(uintptr_t)reference;
    void *const found = size == sizeof found ? *from : NULL;

    if (found != NULL)
        *from = NULL; /* it is the caller's now */
    return found;
}

int modmill_refused(const provider *of)
{
    modmill_say(of, PROV_R_NOT_A_PRIVATE_KEY, "a key of the store does not give its private half away");
    return 0;
}

/* --------------------------------------------------------------------------------------------------------- keys */

typedef struct {
    provider *of;
    const modmill_curve *curve; /* NULL: not known yet */
    int sealed; /* its private half is never given away */
    int has_public, has_private;
    unsigned char public_key[POINT]; /* as TLS sends it */
    unsigned char private_key[NUMBER]; /* X25519, Ed25519: as in the RFC; else most significant byte first */
} key;

static size_t public_size(const modmill_curve *curve)
{
    return curve->raw ? curve->bytes : 2 * curve->bytes + 1;
}

static key *key_new(provider *of, const modmill_curve *curve)
{
    key *const made = OPENSSL_zalloc(sizeof *made);

    if (made != NULL) {
        made->of = of;
        made->curve = curve;
    }
    return made;
}

static void *ec_new(void *of)
{
    return key_new(of, NULL);
}

static void *x25519_new(void *of)
{
    return key_new(of, modmill_find("X25519"));
}

static void *ed25519_new(void *of)
{
    return key_new(of, modmill_find("ED25519"));
}

static void key_free(void *freed)
{
    OPENSSL_clear_free(freed, sizeof(key));
}

static void *key_dup(const void *from, int selection)
{
    const key *const old = from;
    key *const made = key_new(old->of, old->curve);

    if (made == NULL)
        return NULL;
    made->sealed = old->sealed;
    if ((selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY) != 0 && old->has_public) {
        memcpy(made->public_key, old->public_key, sizeof made->public_key);
        made->has_public = 1;
    }
    if ((selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) != 0 && old->has_private) {
        memcpy(made->private_key, old->private_key, sizeof made->private_key);
        made->has_private = 1;
    }
    return made;
}

/* Take a key of the store, whose private half is never given away. */
static void *key_load(const void *reference, size_t size)
{
    key *const found = modmill_taken(reference, size);

    if (found != NULL)
        found->sealed = 1;
    return found;
}

static int key_has(const void *of, int selection)
{
    const key *const asked = of;

    if (asked == NULL)
        return 0;
    if ((selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY) != 0 && !asked->has_public && !asked->has_private)
        return 0;
    if ((selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) != 0 && !asked->has_private)
        return 0;
    return asked->curve != NULL || (selection & OSSL_KEYMGMT_SELECT_DOMAIN_PARAMETERS) == 0;
}

static int key_match(const void *one, const void *other, int selection)
{
    const key *const a = one, *const b = other;

    if (a->curve != b->curve)
        return 0;
    if ((selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY) != 0 && a->has_public && b->has_public)
        return memcmp(a->public_key, b->public_key, public_size(a->curve)) == 0;
    if ((selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) != 0 && a->has_private && b->has_private)
        return CRYPTO_memcmp(a->private_key, b->private_key, a->curve->bytes) == 0;
    return (selection & OSSL_KEYMGMT_SELECT_KEYPAIR) == 0;
}

static int take_public(key *to, const unsigned char *bytes, size_t size)
{
    if (to->curve == NULL || size != public_size(to->curve) || (!to->curve->raw && bytes[0] != UNCOMPRESSED)) {
        modmill_say(to->of, PROV_R_INVALID_KEY, "a public key must be %s",
            to->curve == NULL ? "of a known curve" : to->curve->raw ? "of its curve's size" : "an uncompressed point");
        return 0;
    }
    memcpy(to->public_key, bytes, size);
    to->has_public = 1;
    return 1;
}

/* Whether there is a public key, which the device makes of the private one if need be. */
static int make_public(key *of)
{
    if (of->has_public || !of->has_private)
        return of->has_public;
    of->has_public = told(of->of, of->curve, of->curve->public_key(of->of->engines, of->public_key, of->private_key));
    if (of->has_public && !of->curve->raw)
        of->public_key[0] = UNCOMPRESSED;
    return of->has_public;
}

static int find_group(key *to, const OSSL_PARAM params[])
{
    const OSSL_PARAM *const group = OSSL_PARAM_locate_const(params, OSSL_PKEY_PARAM_GROUP_NAME);
    const char *name;

    if (group == NULL)
        return to->curve != NULL;
    if (!OSSL_PARAM_get_utf8_string_ptr(group, &name))
        return 0;
    to->curve = modmill_find(name);
    if (to->curve == NULL)
        modmill_say(to->of, PROV_R_INVALID_CURVE, "no engine is built in for the curve %s", name);
    return to->curve != NULL;
}

static int key_import(void *into, int selection, const OSSL_PARAM params[])
{
    key *const to = into;
    const OSSL_PARAM *const private_key = OSSL_PARAM_locate_const(params, OSSL_PKEY_PARAM_PRIV_KEY);
    const OSSL_PARAM *const public_key = OSSL_PARAM_locate_const(params, OSSL_PKEY_PARAM_PUB_KEY);

    if (!find_group(to, params))
        return 0;
    if ((selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) != 0 && private_key != NULL) {
        if (to->curve->raw) {
            if (private_key->data_size != to->curve->bytes)
                return 0;
            memcpy(to->private_key, private_key->data, to->curve->bytes);
        } else {
            BIGNUM *number = BN_secure_new();
            const int right = number != NULL && OSSL_PARAM_get_BN(private_key, &number) &&
                              BN_bn2binpad(number, to->private_key, (int)to->curve->bytes) > 0;

            BN_clear_free(number);
            if (!right)
                return 0;
        }
        to->has_private = 1;
    }
    if ((selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY) == 0)
        return 1;
    if (public_key != NULL)
        return take_public(to, public_key->data, public_key->data_size);
    return 1; /* without a device: the public key is made when it is needed */
}

static const OSSL_PARAM *key_types(int selection)
{
    static const OSSL_PARAM types[] = {
        OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_PRIV_KEY, NULL, 0), OSSL_PARAM_END};

    (void)selection;
    return types;
}

static const OSSL_PARAM *raw_types(int selection)
{
    static const OSSL_PARAM types[] = {
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PRIV_KEY, NULL, 0), OSSL_PARAM_END};

    (void)selection;
    return types;
}

static int key_export(void *from, int selection, OSSL_CALLBACK *give, void *argument)
{
    key *const old = from;
    unsigned char native[NUMBER];
    OSSL_PARAM params[4], *next = params;
    int done;

    if (old->curve == NULL)
        return 0;
    if (old->sealed && (selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) != 0)
        return modmill_refused(old->of);
    if (!old->curve->raw)
        *next++ = OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)old->curve->name, 0);
    if ((selection & OSSL_KEYMGMT_SELECT_PUBLIC_KEY) != 0 && make_public(old))
        *next++ = OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, old->public_key, public_size(old->curve));
    if ((selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) != 0 && old->has_private) {
        if (old->curve->raw) {
            *next++ = OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PRIV_KEY, old->private_key, old->curve->bytes);
        } else {
            BIGNUM *const number = BN_bin2bn(old->private_key, (int)old->curve->bytes, NULL);
            const int right = number != NULL && BN_bn2nativepad(number, native, (int)old->curve->bytes) > 0;

            BN_clear_free(number);
            if (!right)
                return 0;
            *next++ = OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_PRIV_KEY, native, old->curve->bytes);
        }
    }
    *next = OSSL_PARAM_construct_end();
    done = give(params, argument);
    OPENSSL_cleanse(native, sizeof native);
    return done;
}

/* Bytes of the longest secret or signature. */
static size_t most_size(const modmill_curve *curve)
{
    return curve->sign_message != NULL ? 2 * curve->bytes : curve->raw ? curve->bytes : 2 * curve->bytes + 8;
}

static int key_get_params(void *of, OSSL_PARAM params[])
{
    key *const asked = of;
    const modmill_curve *const curve = asked->curve;
    OSSL_PARAM *found;

    if (curve == NULL)
        return 0;
    if (!modmill_set_int(params, OSSL_PKEY_PARAM_BITS, curve->bits) ||
        !modmill_set_int(params, OSSL_PKEY_PARAM_SECURITY_BITS, (int)(4 * curve->bytes)) ||
        !modmill_set_int(params, OSSL_PKEY_PARAM_MAX_SIZE, (int)most_size(curve)))
        return 0;
    found = OSSL_PARAM_locate(params, OSSL_PKEY_PARAM_MANDATORY_DIGEST); /* a message is signed, not its digest */
    if (found != NULL && curve->sign_message != NULL && !OSSL_PARAM_set_utf8_string(found, ""))
        return 0;
    found = OSSL_PARAM_locate(params, OSSL_PKEY_PARAM_GROUP_NAME);
    if (found != NULL && !OSSL_PARAM_set_utf8_string(found, curve->name))
        return 0;
    found = OSSL_PARAM_locate(params, OSSL_PKEY_PARAM_DEFAULT_DIGEST);
    if (found != NULL && !curve->raw && !OSSL_PARAM_set_utf8_string(found, "SHA256"))
        return 0;
    found = OSSL_PARAM_locate(params, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY);
    if (found == NULL)
        found = OSSL_PARAM_locate(params, OSSL_PKEY_PARAM_PUB_KEY);
    return found == NULL || !make_public(asked) ||
           OSSL_PARAM_set_octet_string(found, asked->public_key, public_size(curve));
}

static const OSSL_PARAM *key_gettable(void *of)
{
    static const OSSL_PARAM known[] = {
        OSSL_PARAM_int(OSSL_PKEY_PARAM_BITS, NULL), OSSL_PARAM_int(OSSL_PKEY_PARAM_SECURITY_BITS, NULL),
        OSSL_PARAM_int(OSSL_PKEY_PARAM_MAX_SIZE, NULL), OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_DEFAULT_DIGEST, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_MANDATORY_DIGEST, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, NULL, 0), OSSL_PARAM_END};

    (void)of;
    return known;
}

static int key_set_params(void *of, const OSSL_PARAM params[])
{
    const OSSL_PARAM *const given = OSSL_PARAM_locate_const(params, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY);

    return given == NULL || take_public(of, given->data, given->data_size);
}

static const OSSL_PARAM *key_settable(void *of)
{
    static const OSSL_PARAM known[] = {
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, NULL, 0), OSSL_PARAM_END};

    (void)of;
    return known;
}

static void *gen_init(key *made, const OSSL_PARAM params[])
{
    if (made != NULL && params != NULL && OSSL_PARAM_locate_const(params, OSSL_PKEY_PARAM_GROUP_NAME) != NULL &&
        !find_group(made, params)) {
        key_free(made);
        return NULL;
    }
    return made;
}

static void *ec_gen_init(void *of, int selection, const OSSL_PARAM params[])
{
    (void)selection;
    return gen_init(ec_new(of), params);
}

static void *x25519_gen_init(void *of, int selection, const OSSL_PARAM params[])
{
    (void)selection;
    (void)params;
    return x25519_new(of);
}

static void *ed25519_gen_init(void *of, int selection, const OSSL_PARAM params[])
{
    (void)selection;
    (void)params;
    return ed25519_new(of);
}

static int gen_set_template(void *into, void *from)
{
    ((key *)into)->curve = ((key *)from)->curve;
    return 1;
}

static int gen_set_params(void *into, const OSSL_PARAM params[])
{
    key *const to = into;

    return params == NULL || OSSL_PARAM_locate_const(params, OSSL_PKEY_PARAM_GROUP_NAME) == NULL ||
           (to->curve != NULL && to->curve->raw) || find_group(to, params);
}

static const OSSL_PARAM *gen_settable(void *into, void *of)
{
    (void)into;
    (void)of;
    return key_types(0);
}

/* A random number below the order, which is not 0; any bytes for a raw key. */
static int random_scalar(const modmill_curve *curve, unsigned char *bytes)
{
    for (;;) {
        if (RAND_priv_bytes(bytes, (int)curve->bytes) <= 0)
            return 0;
        if (curve->raw || curve->check_scalar(bytes) == 0)
            return 1;
    }
}

static void *gen(void *from, OSSL_CALLBACK *progress, void *argument)
{
    key *const old = from;
    key *made;

    (void)progress;
    (void)argument;
    if (old->curve == NULL) {
        modmill_say(old->of, PROV_R_NO_PARAMETERS_SET, "name a curve");
        return NULL;
    }
    made = key_new(old->of, old->curve);
    if (made != NULL && random_scalar(made->curve, made->private_key)) {
        made->has_private = 1;
        if (make_public(made))
            return made;
    }
    key_free(made);
    return NULL;
}

static const char *ec_operation(int operation)
{
    return operation == OSSL_OP_KEYEXCH ? "ECDH" : operation == OSSL_OP_SIGNATURE ? "ECDSA" : NULL;
}

#define KEYS                                                                                                           \
    FUNCTION(OSSL_FUNC_KEYMGMT_FREE, key_free), FUNCTION(OSSL_FUNC_KEYMGMT_HAS, key_has),                              \
        FUNCTION(OSSL_FUNC_KEYMGMT_MATCH, key_match), FUNCTION(OSSL_FUNC_KEYMGMT_DUP, key_dup),                        \
        FUNCTION(OSSL_FUNC_KEYMGMT_LOAD, key_load),                                                                    \
        FUNCTION(OSSL_FUNC_KEYMGMT_IMPORT, key_import), FUNCTION(OSSL_FUNC_KEYMGMT_EXPORT, key_export),                \
        FUNCTION(OSSL_FUNC_KEYMGMT_GET_PARAMS, key_get_params),                                                        \
        FUNCTION(OSSL_FUNC_KEYMGMT_GETTABLE_PARAMS, key_gettable),                                                     \
        FUNCTION(OSSL_FUNC_KEYMGMT_SET_PARAMS, key_set_params),                                                        \
        FUNCTION(OSSL_FUNC_KEYMGMT_SETTABLE_PARAMS, key_settable),                                                     \
        FUNCTION(OSSL_FUNC_KEYMGMT_GEN_SET_TEMPLATE, gen_set_template),                                                \
        FUNCTION(OSSL_FUNC_KEYMGMT_GEN_SET_PARAMS, gen_set_params),                                                    \
        FUNCTION(OSSL_FUNC_KEYMGMT_GEN_SETTABLE_PARAMS, gen_settable), FUNCTION(OSSL_FUNC_KEYMGMT_GEN, gen),           \
        FUNCTION(OSSL_FUNC_KEYMGMT_GEN_CLEANUP, key_free), {0, NULL}

static const OSSL_DISPATCH ec_keys[] = {
    FUNCTION(OSSL_FUNC_KEYMGMT_NEW, ec_new), FUNCTION(OSSL_FUNC_KEYMGMT_GEN_INIT, ec_gen_init),
    FUNCTION(OSSL_FUNC_KEYMGMT_IMPORT_TYPES, key_types), FUNCTION(OSSL_FUNC_KEYMGMT_EXPORT_TYPES, key_types),
    FUNCTION(OSSL_FUNC_KEYMGMT_QUERY_OPERATION_NAME, ec_operation), KEYS};
static const OSSL_DISPATCH x25519_keys[] = {
    FUNCTION(OSSL_FUNC_KEYMGMT_NEW, x25519_new), FUNCTION(OSSL_FUNC_KEYMGMT_GEN_INIT, x25519_gen_init),
    FUNCTION(OSSL_FUNC_KEYMGMT_IMPORT_TYPES, raw_types), FUNCTION(OSSL_FUNC_KEYMGMT_EXPORT_TYPES, raw_types), KEYS};
static const OSSL_DISPATCH ed25519_keys[] = {
    FUNCTION(OSSL_FUNC_KEYMGMT_NEW, ed25519_new), FUNCTION(OSSL_FUNC_KEYMGMT_GEN_INIT, ed25519_gen_init),
    FUNCTION(OSSL_FUNC_KEYMGMT_IMPORT_TYPES, raw_types), FUNCTION(OSSL_FUNC_KEYMGMT_EXPORT_TYPES, raw_types), KEYS};

/* ------------------------------------------------------------------------------------------------- key exchange */

typedef struct {
    provider *of;
    key *own, *peer; /* copies */
} exchange;

static void *exchange_new(void *of)
{
    exchange *const made = OPENSSL_zalloc(sizeof *made);

    if (made != NULL)
        made->of = of;
    return made;
}

static void exchange_free(void *freed)
{
    exchange *const old = freed;

    if (old == NULL)
        return;
    key_free(old->own);
    key_free(old->peer);
    OPENSSL_free(old);
}

static void *exchange_dup(void *from)
{
    const exchange *const old = from;
    exchange *const made = exchange_new(old->of);

    if (made == NULL)
        return NULL;
    made->own = old->own != NULL ? key_dup(old->own, OSSL_KEYMGMT_SELECT_ALL) : NULL;
    made->peer = old->peer != NULL ? key_dup(old->peer, OSSL_KEYMGMT_SELECT_ALL) : NULL;
    return made;
}

static int exchange_init(void *of, void *own, const OSSL_PARAM params[])
{
    exchange *const now = of;

    (void)params;
    key_free(now->own);
    now->own = key_dup(own, OSSL_KEYMGMT_SELECT_ALL);
    return now->own != NULL && now->own->has_private;
}

static int exchange_set_peer(void *of, void *peer)
{
    exchange *const now = of;

    key_free(now->peer);
    now->peer = key_dup(peer, OSSL_KEYMGMT_SELECT_PUBLIC_KEY);
    return now->peer != NULL && now->peer->has_public && now->own != NULL && now->peer->curve == now->own->curve;
}

static int exchange_derive(void *of, unsigned char *secret, size_t *size, size_t room)
{
    exchange *const now = of;
    const modmill_curve *curve;
    const unsigned char *peer;

    if (now->own == NULL || now->peer == NULL)
        return 0;
    curve = now->own->curve;
    *size = curve->bytes;
    if (secret == NULL)
        return 1;
    if (room < curve->bytes) {
        modmill_say(now->of, PROV_R_OUTPUT_BUFFER_TOO_SMALL, "a secret of %s has %zu bytes", curve->name, curve->bytes);
        return 0;
    }
    peer = now->peer->public_key + !curve->raw;
    return told(now->of, curve, curve->exchange(now->of->engines, secret, now->own->private_key, peer));
}

static int accept_params(void *of, const OSSL_PARAM params[])
{
    (void)of;
    (void)params;
    return 1;
}

static const OSSL_PARAM *no_params(void *of, void *with)
{
    static const OSSL_PARAM none[] = {OSSL_PARAM_END};

    (void)of;
    (void)with;
    return none;
}

static const OSSL_DISPATCH exchanges[] = {
    FUNCTION(OSSL_FUNC_KEYEXCH_NEWCTX, exchange_new), FUNCTION(OSSL_FUNC_KEYEXCH_FREECTX, exchange_free),
    FUNCTION(OSSL_FUNC_KEYEXCH_DUPCTX, exchange_dup), FUNCTION(OSSL_FUNC_KEYEXCH_INIT, exchange_init),
    FUNCTION(OSSL_FUNC_KEYEXCH_SET_PEER, exchange_set_peer), FUNCTION(OSSL_FUNC_KEYEXCH_DERIVE, exchange_derive),
    FUNCTION(OSSL_FUNC_KEYEXCH_SET_CTX_PARAMS, accept_params),
    FUNCTION(OSSL_FUNC_KEYEXCH_SETTABLE_CTX_PARAMS, no_params), {0, NULL}};

/* ---------------------------------------------------------------------------------------------------- signatures */

typedef struct {
    modmill_signing base;
    key *own; /* a copy */
} signer;

static void *signer_new(void *of, const char *properties)
{
    signer *const made = OPENSSL_zalloc(sizeof *made);

    (void)properties;
    if (made != NULL)
        made->base.of = of;
    return made;
}

static void signer_free(void *freed)
{
    signer *const old = freed;

    if (old == NULL)
        return;
    key_free(old->own);
    EVP_MD_free(old->base.hash);
    EVP_MD_CTX_free(old->base.hashing);
    OPENSSL_free(old);
}

static void *signer_dup(void *from)
{
    const signer *const old = from;
    signer *const made = signer_new(old->base.of, NULL);

    if (made == NULL)
        return NULL;
    made->base.kind = old->base.kind;
    made->own = old->own != NULL ? key_dup(old->own, OSSL_KEYMGMT_SELECT_ALL) : NULL;
    if (old->base.hash != NULL && EVP_MD_up_ref(old->base.hash))
        made->base.hash = old->base.hash;
    if (old->base.hashing != NULL) {
        made->base.hashing = EVP_MD_CTX_new();
        if (made->base.hashing == NULL || !EVP_MD_CTX_copy_ex(made->base.hashing, old->base.hashing)) {
            signer_free(made);
            return NULL;
        }
    }
    return made;
}

static int signer_set_params(void *of, const OSSL_PARAM params[])
{
    const OSSL_PARAM *const digest = params ? OSSL_PARAM_locate_const(params, OSSL_SIGNATURE_PARAM_DIGEST) : NULL;
    const char *name;

    return digest == NULL || (OSSL_PARAM_get_utf8_string_ptr(digest, &name) && modmill_set_hash(of, name));
}

static int signer_init(void *of, void *own, const OSSL_PARAM params[])
{
    signer *const now = of;

    if (own != NULL) {
        key_free(now->own);
        now->own = key_dup(own, OSSL_KEYMGMT_SELECT_ALL);
    }
    return now->own != NULL && now->own->curve != NULL && signer_set_params(now, params);
}

static int sign_init(void *of, void *own, const OSSL_PARAM params[])
{
    return signer_init(of, own, params) && ((signer *)of)->own->has_private;
}

static int verify_init(void *of, void *own, const OSSL_PARAM params[])
{
    return signer_init(of, own, params) && make_public(((signer *)of)->own);
}

/* The signature of a digest, as DER. */
static int sign(void *of, unsigned char *signature, size_t *size, size_t room, const unsigned char *digest, size_t length)
{
    signer *const now = of;
    const modmill_curve *const curve = now->own->curve;
    unsigned char nonce[NUMBER], r[NUMBER], s[NUMBER];
    ECDSA_SIG *pair;
    BIGNUM *br, *bs;
    int count = 0, right;

    *size = most_size(curve);
    if (signature == NULL)
        return 1;
    if (room < *size)
        return 0;
    right = random_scalar(curve, nonce) &&
            told(now->base.of, curve,
                 curve->sign(now->base.of->engines, r, s, digest, length, now->own->private_key, nonce));
    OPENSSL_cleanse(nonce, sizeof nonce);
    if (!right)
        return 0;
    pair = ECDSA_SIG_new();
    br = BN_bin2bn(r, (int)curve->bytes, NULL);
    bs = BN_bin2bn(s, (int)curve->bytes, NULL);
    if (pair != NULL && br != NULL && bs != NULL && ECDSA_SIG_set0(pair, br, bs)) {
        br = bs = NULL;
        count = i2d_ECDSA_SIG(pair, &signature);
    }
    BN_free(br);
    BN_free(bs);
    ECDSA_SIG_free(pair);
    *size = count > 0 ? (size_t)count : 0;
    return count > 0;
}

static int verify(void *of, const unsigned char *signature, size_t size, const unsigned char *digest, size_t length)
{
    signer *const now = of;
    const modmill_curve *const curve = now->own->curve;
    const unsigned char *end = signature;
    unsigned char r[NUMBER], s[NUMBER];
    ECDSA_SIG *const pair = d2i_ECDSA_SIG(NULL, &end, (long)size);
    int right = pair != NULL && end == signature + size;

    right = right && BN_bn2binpad(ECDSA_SIG_get0_r(pair), r, (int)curve->bytes) > 0 &&
            BN_bn2binpad(ECDSA_SIG_get0_s(pair), s, (int)curve->bytes) > 0;
    ECDSA_SIG_free(pair);
    return right && told(now->base.of, curve,
                         curve->verify(now->base.of->engines, r, s, digest, length, now->own->public_key + 1));
}

/* Ed25519 signs a message as a whole. */
static int message_init(void *of, const char *name, void *own, const OSSL_PARAM params[])
{
    signer *const now = of;

    (void)params;
    if (name != NULL && name[0] != '\0') {
        modmill_say(now->base.of, PROV_R_INVALID_DIGEST, "Ed25519 takes no hash, not even %s", name);
        return 0;
    }
    return signer_init(now, own, NULL);
}

static int message_sign_init(void *of, const char *name, void *own, const OSSL_PARAM params[])
{
    return message_init(of, name, own, params) && ((signer *)of)->own->has_private;
}

static int message_verify_init(void *of, const char *name, void *own, const OSSL_PARAM params[])
{
    return message_init(of, name, own, params) && make_public(((signer *)of)->own);
}

static int message_sign(void *of, unsigned char *signature, size_t *size, size_t room, const unsigned char *message,
                        size_t length)
{
    signer *const now = of;
    const modmill_curve *const curve = now->own->curve;

    *size = most_size(curve);
    if (signature == NULL)
        return 1;
    return room >= *size &&
           told(now->base.of, curve,
                curve->sign_message(now->base.of->engines, signature, message, length, now->own->private_key));
}

static int message_verify(void *of, const unsigned char *signature, size_t size, const unsigned char *message,
                          size_t length)
{
    signer *const now = of;
    const modmill_curve *const curve = now->own->curve;

    return size == most_size(curve) &&
           told(now->base.of, curve,
                curve->verify_message(now->base.of->engines, signature, message, length, now->own->public_key));
}

/* AlgorithmIdentifier of ecdsa-with-SHA256, -384, -512 and Ed25519: what X.509 names in a signed certificate. */
static int signer_get_params(void *of, OSSL_PARAM params[])
{
    static const unsigned char with_sha2[] = {0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02};
    static const unsigned char ed25519[] = {0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70};
    const signer *const now = of;
    OSSL_PARAM *const algorithm = OSSL_PARAM_locate(params, OSSL_SIGNATURE_PARAM_ALGORITHM_ID);
    unsigned char shown[sizeof with_sha2];

    if (algorithm == NULL)
        return 1;
    if (now->own != NULL && now->own->curve->raw)
        return OSSL_PARAM_set_octet_string(algorithm, ed25519, sizeof ed25519);
    memcpy(shown, with_sha2, sizeof shown);
    if (now->base.hash == NULL)
        return 0;
    if (EVP_MD_is_a(now->base.hash, "SHA384"))
        shown[sizeof shown - 1] = 3;
    else if (EVP_MD_is_a(now->base.hash, "SHA512"))
        shown[sizeof shown - 1] = 4;
    else if (!EVP_MD_is_a(now->base.hash, "SHA256"))
        return 0;
    return OSSL_PARAM_set_octet_string(algorithm, shown, sizeof shown);
}

static const OSSL_PARAM *signer_gettable(void *of, void *with)
{
    static const OSSL_PARAM known[] = {
        OSSL_PARAM_octet_string(OSSL_SIGNATURE_PARAM_ALGORITHM_ID, NULL, 0), OSSL_PARAM_END};

    (void)of;
    (void)with;
    return known;
}

static const OSSL_PARAM *signer_settable(void *of, void *with)
{
    static const OSSL_PARAM known[] = {OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_DIGEST, NULL, 0), OSSL_PARAM_END};

    (void)of;
    (void)with;
    return known;
}

static const modmill_signatures ecdsa = {sign_init, verify_init, sign, verify, signer_set_params};

static void *ecdsa_new(void *of, const char *properties)
{
    signer *const made = signer_new(of, properties);

    if (made != NULL)
        made->base.kind = &ecdsa;
    return made;
}

static const OSSL_DISPATCH signatures[] = {
    FUNCTION(OSSL_FUNC_SIGNATURE_NEWCTX, ecdsa_new), FUNCTION(OSSL_FUNC_SIGNATURE_FREECTX, signer_free),
    FUNCTION(OSSL_FUNC_SIGNATURE_DUPCTX, signer_dup), FUNCTION(OSSL_FUNC_SIGNATURE_SIGN_INIT, sign_init),
    FUNCTION(OSSL_FUNC_SIGNATURE_SIGN, sign), FUNCTION(OSSL_FUNC_SIGNATURE_VERIFY_INIT, verify_init),
    FUNCTION(OSSL_FUNC_SIGNATURE_VERIFY, verify), MODMILL_DIGEST_SIGNATURES,
    FUNCTION(OSSL_FUNC_SIGNATURE_GET_CTX_PARAMS, signer_get_params),
    FUNCTION(OSSL_FUNC_SIGNATURE_GETTABLE_CTX_PARAMS, signer_gettable),
    FUNCTION(OSSL_FUNC_SIGNATURE_SET_CTX_PARAMS, signer_set_params),
    FUNCTION(OSSL_FUNC_SIGNATURE_SETTABLE_CTX_PARAMS, signer_settable), {0, NULL}};

static const OSSL_DISPATCH message_signatures[] = {
    FUNCTION(OSSL_FUNC_SIGNATURE_NEWCTX, signer_new), FUNCTION(OSSL_FUNC_SIGNATURE_FREECTX, signer_free),
    FUNCTION(OSSL_FUNC_SIGNATURE_DUPCTX, signer_dup),
    FUNCTION(OSSL_FUNC_SIGNATURE_DIGEST_SIGN_INIT, message_sign_init),
    FUNCTION(OSSL_FUNC_SIGNATURE_DIGEST_SIGN, message_sign),
    FUNCTION(OSSL_FUNC_SIGNATURE_DIGEST_VERIFY_INIT, message_verify_init),
    FUNCTION(OSSL_FUNC_SIGNATURE_DIGEST_VERIFY, message_verify),
    FUNCTION(OSSL_FUNC_SIGNATURE_GET_CTX_PARAMS, signer_get_params),
    FUNCTION(OSSL_FUNC_SIGNATURE_GETTABLE_CTX_PARAMS, signer_gettable), {0, NULL}};

/* ------------------------------------------------------------------------------------------------------ provider */

static const char PROPERTIES[] = "provider=modmill", RSA_NAME[] = "RSA";

typedef struct {
    int operation;
    const char *curve; /* "": any with ECDSA; "RSA": no curve; NULL: none is needed */
    OSSL_ALGORITHM algorithm;
} offer;

static const offer offers[] = {
    {OSSL_OP_KEYMGMT, "", {"EC:id-ecPublicKey", PROPERTIES, ec_keys, "curves of Modmill's engines"}},
    {OSSL_OP_KEYMGMT, "X25519", {"X25519", PROPERTIES, x25519_keys, "X25519 on Modmill's engine"}},
    {OSSL_OP_KEYMGMT, "ED25519", {"ED25519", PROPERTIES, ed25519_keys, "Ed25519 on Modmill's engine"}},
    {OSSL_OP_KEYEXCH, "", {"ECDH", PROPERTIES, exchanges, "ECDH"}},
    {OSSL_OP_KEYEXCH, "X25519", {"X25519", PROPERTIES, exchanges, "X25519"}},
    {OSSL_OP_SIGNATURE, "", {"ECDSA", PROPERTIES, signatures, "ECDSA"}},
    {OSSL_OP_SIGNATURE, "ED25519", {"ED25519", PROPERTIES, message_signatures, "Ed25519"}},
    {OSSL_OP_KEYMGMT, RSA_NAME, {"RSA:rsaEncryption", PROPERTIES, modmill_rsa_keys, "RSA on Modmill's engine"}},
    {OSSL_OP_SIGNATURE, RSA_NAME, {"RSA:rsaEncryption", PROPERTIES, modmill_rsa_signatures, "RSA"}},
    {OSSL_OP_ASYM_CIPHER, RSA_NAME, {"RSA:rsaEncryption", PROPERTIES, modmill_rsa_ciphers, "RSA"}},
    {OSSL_OP_STORE, NULL, {"modmill", PROPERTIES, modmill_stores, "keys by reference"}}};

#define OFFERS (sizeof offers / sizeof offers[0])

/* Whether an engine for it is built in. */
static int is_built_in(const char *name)
{
    const modmill_curve *curve;

    if (name == NULL)
        return 1;
    if (strcmp(name, RSA_NAME) == 0)
        return modmill_rsas[0].key != NULL;
    if (name[0] != '\0')
        return modmill_find(name) != NULL;
    for (curve = modmill_curves; curve->name != NULL && curve->raw; curve++)
        ;
    return curve->name != NULL;
}

const OSSL_DISPATCH *modmill_keys(const char *type)
{
    const size_t size = strlen(type);
    size_t k;

    for (k = 0; k < OFFERS; k++) {
        const char *const name = offers[k].algorithm.algorithm_names;

        if (offers[k].operation == OSSL_OP_KEYMGMT && OPENSSL_strncasecmp(name, type, size) == 0 &&
            (name[size] == '\0' || name[size] == ':') && is_built_in(offers[k].curve))
            return offers[k].algorithm.implementation;
    }
    return NULL;
}

/* The algorithms of an operation that are built in; OpenSSL takes the others elsewhere. */
static const OSSL_ALGORITHM *query(void *of, int operation, int *no_cache)
{
    OSSL_ALGORITHM *found;
    size_t k, count = 0;

    *no_cache = 0;
    if (operation >= OPERATIONS)
        return NULL;
    found = ((provider *)of)->found[operation];
    for (k = 0; k < OFFERS; k++)
        if (offers[k].operation == operation && is_built_in(offers[k].curve) && count + 1 < MOST_OFFERS)
            found[count++] = offers[k].algorithm;
    return count > 0 ? found : NULL;
}

/* Tell TLS about a group under one of its names. */
static int give_group(const modmill_curve *curve, const char *name, OSSL_CALLBACK *give, void *argument)
{
    const char *const algorithm = curve->raw ? curve->name : "EC";
    unsigned int id = curve->tls_group, strength = (unsigned int)(4 * curve->bytes);
    int least = TLS1_2_VERSION, most = curve->tls_most, none = -1;
    const OSSL_PARAM group[] = {
        OSSL_PARAM_utf8_string(OSSL_CAPABILITY_TLS_GROUP_NAME, (char *)name, strlen(name) + 1),
        OSSL_PARAM_utf8_string(OSSL_CAPABILITY_TLS_GROUP_NAME_INTERNAL, (char *)curve->name, strlen(curve->name) + 1),
        OSSL_PARAM_utf8_string(OSSL_CAPABILITY_TLS_GROUP_ALG, (char *)algorithm, strlen(algorithm) + 1),
        OSSL_PARAM_uint(OSSL_CAPABILITY_TLS_GROUP_ID, &id),
        OSSL_PARAM_uint(OSSL_CAPABILITY_TLS_GROUP_SECURITY_BITS, &strength),
        OSSL_PARAM_int(OSSL_CAPABILITY_TLS_GROUP_MIN_TLS, &least),
        OSSL_PARAM_int(OSSL_CAPABILITY_TLS_GROUP_MAX_TLS, &most),
        OSSL_PARAM_int(OSSL_CAPABILITY_TLS_GROUP_MIN_DTLS, &none),
        OSSL_PARAM_int(OSSL_CAPABILITY_TLS_GROUP_MAX_DTLS, &none), OSSL_PARAM_END};

    return give(group, argument);
}

/* The groups of TLS that the engines have. */
static int capabilities(void *of, const char *what, OSSL_CALLBACK *give, void *argument)
{
    const modmill_curve *curve;
    size_t k;

    (void)of;
    if (strcmp(what, "TLS-GROUP") != 0)
        return 1;
    for (curve = modmill_curves; curve->name != NULL; curve++)
        for (k = 0; k < 2 && curve->tls_names[k] != NULL; k++)
            if (!give_group(curve, curve->tls_names[k], give, argument))
                return 0;
    return 1;
}

static void teardown(void *of)
{
    modmill_engines_free(((provider *)of)->engines);
    OPENSSL_free(of);
}

static const OSSL_PARAM *gettable(void *of)
{
    static const OSSL_PARAM known[] = {
        OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_NAME, NULL, 0), OSSL_PARAM_int(OSSL_PROV_PARAM_STATUS, NULL), OSSL_PARAM_END};

    (void)of;
    return known;
}

static int get_params(void *of, OSSL_PARAM params[])
{
    OSSL_PARAM *const name = OSSL_PARAM_locate(params, OSSL_PROV_PARAM_NAME);

    (void)of;
    return (name == NULL || OSSL_PARAM_set_utf8_ptr(name, "Modmill")) && modmill_set_int(params, OSSL_PROV_PARAM_STATUS, 1);
}

static const OSSL_DISPATCH functions[] = {
    FUNCTION(OSSL_FUNC_PROVIDER_TEARDOWN, teardown), FUNCTION(OSSL_FUNC_PROVIDER_QUERY_OPERATION, query),
    FUNCTION(OSSL_FUNC_PROVIDER_GET_CAPABILITIES, capabilities), FUNCTION(OSSL_FUNC_PROVIDER_GETTABLE_PARAMS, gettable),
    FUNCTION(OSSL_FUNC_PROVIDER_GET_PARAMS, get_params), {0, NULL}};

/* Take the path of a device's socket from the configuration. */
static void find_path(provider *of, OSSL_FUNC_core_get_params_fn *core_get_params, const char *key)
{
    char *path = NULL;
    OSSL_PARAM asked[] = {OSSL_PARAM_utf8_ptr(key, &path, 0), OSSL_PARAM_END};

    if (core_get_params(of->handle, asked) && path != NULL)
        modmill_set_path(of->engines, key, path);
}

__attribute__((visibility("default")))
int OSSL_provider_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out, void **of)
{
    OSSL_FUNC_core_get_params_fn *core_get_params = NULL;
    const modmill_curve *curve;
    const modmill_rsa *engine;
    provider *made;

    for (; in->function_id != 0; in++) {
        switch (in->function_id) {
        case OSSL_FUNC_CORE_GET_PARAMS: core_get_params = OSSL_FUNC_core_get_params(in); break;
        case OSSL_FUNC_CORE_NEW_ERROR: core_new_error = OSSL_FUNC_core_new_error(in); break;
        case OSSL_FUNC_CORE_SET_ERROR_DEBUG: core_set_debug = OSSL_FUNC_core_set_error_debug(in); break;
        case OSSL_FUNC_CORE_VSET_ERROR: core_vset_error = OSSL_FUNC_core_vset_error(in); break;
        default: break;
        }
    }
    if (core_get_params == NULL || core_new_error == NULL || core_set_debug == NULL || core_vset_error == NULL)
        return 0;
    made = OPENSSL_zalloc(sizeof *made);
    if (made == NULL)
        return 0;
    made->handle = handle;
    made->engines = modmill_engines_new();
    for (curve = modmill_curves; made->engines != NULL && curve->name != NULL; curve++)
        find_path(made, core_get_params, curve->key);
    for (engine = modmill_rsas; made->engines != NULL && engine->key != NULL; engine++)
        find_path(made, core_get_params, engine->key);
    if (made->engines == NULL) {
        OPENSSL_free(made);
        return 0;
    }
    *out = functions;
    *of = made;
    return 1;
}
