/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Modmill authors */
/* RSA of the provider: an engine computes private operations, libcrypto public ones, padding, hashes and new keys.
 *
 * Signatures have the padding of PKCS #1 v1.5 or PSS, decryption OAEP only: that of PKCS #1 v1.5 tells by its errors
 * what is in a message.
 */
#define OPENSSL_SUPPRESS_DEPRECATED /* the functions for padding */
#include "provider.h"

#include <limits.h>

#include <openssl/rsa.h>
#include <openssl/x509.h>

#define D MODMILL_NUMBERS /* besides the numbers that an engine needs */
#define NUMBERS (D + 1)
#define BYTES 512 /* of the longest modulus */

static const char *const names[NUMBERS] = {
    OSSL_PKEY_PARAM_RSA_N,         OSSL_PKEY_PARAM_RSA_E,         OSSL_PKEY_PARAM_RSA_FACTOR1,
    OSSL_PKEY_PARAM_RSA_FACTOR2,   OSSL_PKEY_PARAM_RSA_EXPONENT1, OSSL_PKEY_PARAM_RSA_EXPONENT2,
    OSSL_PKEY_PARAM_RSA_COEFFICIENT1, OSSL_PKEY_PARAM_RSA_D};

/* --------------------------------------------------------------------------------------------------------- keys */

typedef struct {
    provider *of;
    int sealed;               /* its private half is never given away */
    BIGNUM *numbers[NUMBERS]; /* NULL: not there */
    size_t bits;              /* of a key that will be made */
} key;

static void *key_new(void *of)
{
    key *const made = OPENSSL_zalloc(sizeof *made);

    if (made != NULL)
        made->of = of;
    return made;
}

static void key_free(void *freed)
{
    key *const old = freed;
    size_t k;

    for (k = 0; old != NULL && k < NUMBERS; k++)
        BN_clear_free(old->numbers[k]);
    OPENSSL_free(old);
}

/* Whether number k is part of a selection. */
static int selected(size_t k, int selection)
{
    const int public_number = k == MODMILL_N || k == MODMILL_E;

    return (selection & (public_number ? OSSL_KEYMGMT_SELECT_KEYPAIR : OSSL_KEYMGMT_SELECT_PRIVATE_KEY)) != 0;
}

static void *key_dup(const void *from, int selection)
{
    const key *const old = from;
    key *const made = key_new(old->of);
    size_t k;

    if (made != NULL)
        made->sealed = old->sealed;
    for (k = 0; made != NULL && k < NUMBERS; k++)
        if (old->numbers[k] != NULL && selected(k, selection)) {
            made->numbers[k] = BN_dup(old->numbers[k]);
            if (made->numbers[k] == NULL) {
                key_free(made);
                return NULL;
            }
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
    size_t k;

    for (k = 0; asked != NULL && k < NUMBERS; k++)
        if (asked->numbers[k] == NULL && k != D && selected(k, selection))
            return 0;
    return asked != NULL;
}

static int key_match(const void *one, const void *other, int selection)
{
    const key *const a = one, *const b = other;

    if ((selection & OSSL_KEYMGMT_SELECT_KEYPAIR) == 0)
        return 1;
    return a->numbers[MODMILL_N] != NULL && b->numbers[MODMILL_N] != NULL && a->numbers[MODMILL_E] != NULL &&
           b->numbers[MODMILL_E] != NULL && BN_cmp(a->numbers[MODMILL_N], b->numbers[MODMILL_N]) == 0 &&
           BN_cmp(a->numbers[MODMILL_E], b->numbers[MODMILL_E]) == 0;
}

static int key_import(void *into, int selection, const OSSL_PARAM params[])
{
    key *const to = into;
    size_t k;

    for (k = 0; k < NUMBERS; k++) {
        const OSSL_PARAM *const given = OSSL_PARAM_locate_const(params, names[k]);

        if (given == NULL || !selected(k, selection))
            continue;
        if (to->numbers[k] == NULL)
            to->numbers[k] = selected(k, OSSL_KEYMGMT_SELECT_PUBLIC_KEY) ? BN_new() : BN_secure_new();
        if (to->numbers[k] == NULL || !OSSL_PARAM_get_BN(given, &to->numbers[k]))
            return 0;
    }
    if (to->numbers[MODMILL_N] == NULL || to->numbers[MODMILL_E] == NULL || !BN_is_odd(to->numbers[MODMILL_N]) ||
        BN_num_bytes(to->numbers[MODMILL_N]) > BYTES) {
        modmill_say(to->of, PROV_R_INVALID_KEY, "an RSA key has an odd modulus of at most %d bits", 8 * BYTES);
        return 0;
    }
    if (to->numbers[D] != NULL && (!key_has(to, OSSL_KEYMGMT_SELECT_KEYPAIR) ||
                                   OSSL_PARAM_locate_const(params, OSSL_PKEY_PARAM_RSA_FACTOR3) != NULL)) {
        modmill_say(to->of, PROV_R_INVALID_KEY, "a private RSA key needs its two primes, for the CRT");
        return 0;
    }
    return 1;
}

static const OSSL_PARAM *key_types(int selection)
{
    static const OSSL_PARAM types[] = {
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_N, NULL, 0), OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_E, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_D, NULL, 0), OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_FACTOR1, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_FACTOR2, NULL, 0), OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_EXPONENT1, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_EXPONENT2, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_COEFFICIENT1, NULL, 0), OSSL_PARAM_END};

    (void)selection;
    return types;
}

static int key_export(void *from, int selection, OSSL_CALLBACK *give, void *argument)
{
    const key *const old = from;
    OSSL_PARAM params[NUMBERS + 1], *next = params;
    unsigned char *native;
    size_t k;
    int done;

    if (old->sealed && (selection & OSSL_KEYMGMT_SELECT_PRIVATE_KEY) != 0)
        return modmill_refused(old->of);
    native = OPENSSL_secure_zalloc(NUMBERS * BYTES);
    done = native != NULL;
    for (k = 0; done && k < NUMBERS; k++)
        if (old->numbers[k] != NULL && selected(k, selection)) {
            const int size = BN_num_bytes(old->numbers[k]) + (BN_is_zero(old->numbers[k]) ? 1 : 0);

            done = size <= BYTES && BN_bn2nativepad(old->numbers[k], native + k * BYTES, size) > 0;
            *next++ = OSSL_PARAM_construct_BN(names[k], native + k * BYTES, (size_t)size);
        }
    *next = OSSL_PARAM_construct_end();
    done = done && give(params, argument);
    OPENSSL_secure_clear_free(native, NUMBERS * BYTES);
    return done;
}

static int key_get_params(void *of, OSSL_PARAM params[])
{
    const key *const asked = of;
    const BIGNUM *const n = asked->numbers[MODMILL_N];
    OSSL_PARAM *found;
    size_t k;

    if (n == NULL)
        return 0;
    for (k = 0; k < NUMBERS; k++) {
        found = OSSL_PARAM_locate(params, names[k]);
        if (found != NULL && ((asked->sealed && k != MODMILL_N && k != MODMILL_E) || asked->numbers[k] == NULL ||
                              !OSSL_PARAM_set_BN(found, asked->numbers[k])))
            return 0;
    }
    found = OSSL_PARAM_locate(params, OSSL_PKEY_PARAM_DEFAULT_DIGEST);
    return (found == NULL || OSSL_PARAM_set_utf8_string(found, "SHA256")) &&
           modmill_set_int(params, OSSL_PKEY_PARAM_BITS, BN_num_bits(n)) &&
           modmill_set_int(params, OSSL_PKEY_PARAM_SECURITY_BITS, BN_security_bits(BN_num_bits(n), -1)) &&
           modmill_set_int(params, OSSL_PKEY_PARAM_MAX_SIZE, BN_num_bytes(n));
}

static const OSSL_PARAM *key_gettable(void *of)
{
    static const OSSL_PARAM known[] = {
        OSSL_PARAM_int(OSSL_PKEY_PARAM_BITS, NULL), OSSL_PARAM_int(OSSL_PKEY_PARAM_SECURITY_BITS, NULL),
        OSSL_PARAM_int(OSSL_PKEY_PARAM_MAX_SIZE, NULL), OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_DEFAULT_DIGEST, NULL, 0),
        OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_N, NULL, 0), OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_E, NULL, 0), OSSL_PARAM_END};

    (void)of;
    return known;
}

static int gen_set_params(void *into, const OSSL_PARAM params[])
{
    const OSSL_PARAM *const bits = params ? OSSL_PARAM_locate_const(params, OSSL_PKEY_PARAM_RSA_BITS) : NULL;

    return bits == NULL || OSSL_PARAM_get_size_t(bits, &((key *)into)->bits);
}

static void *gen_init(void *of, int selection, const OSSL_PARAM params[])
{
    key *const made = key_new(of);

    (void)selection;
    if (made == NULL)
        return NULL;
    made->bits = 2048;
    if (gen_set_params(made, params))
        return made;
    key_free(made);
    return NULL;
}

static const OSSL_PARAM *gen_settable(void *into, void *of)
{
    static const OSSL_PARAM known[] = {OSSL_PARAM_size_t(OSSL_PKEY_PARAM_RSA_BITS, NULL), OSSL_PARAM_END};

    (void)into;
    (void)of;
    return known;
}

/* A new key from another provider, since primes are no work for the engine. */
static void *gen(void *from, OSSL_CALLBACK *progress, void *argument)
{
    const key *const old = from;
    EVP_PKEY *const found = EVP_PKEY_Q_keygen(NULL, "provider!=modmill", "RSA", old->bits);
    key *const made = key_new(old->of);
    size_t k;
    int right = found != NULL && made != NULL;

    (void)progress;
    (void)argument;
    for (k = 0; right && k < NUMBERS; k++)
        right = EVP_PKEY_get_bn_param(found, names[k], &made->numbers[k]);
    EVP_PKEY_free(found);
    if (right)
        return made;
    key_free(made);
    return NULL;
}

static const char *operation_name(int operation)
{
    (void)operation;
    return "RSA";
}

const OSSL_DISPATCH modmill_rsa_keys[] = {
    FUNCTION(OSSL_FUNC_KEYMGMT_NEW, key_new), FUNCTION(OSSL_FUNC_KEYMGMT_FREE, key_free),
    FUNCTION(OSSL_FUNC_KEYMGMT_HAS, key_has), FUNCTION(OSSL_FUNC_KEYMGMT_MATCH, key_match),
    FUNCTION(OSSL_FUNC_KEYMGMT_DUP, key_dup),
    FUNCTION(OSSL_FUNC_KEYMGMT_LOAD, key_load), FUNCTION(OSSL_FUNC_KEYMGMT_IMPORT, key_import),
    FUNCTION(OSSL_FUNC_KEYMGMT_EXPORT, key_export), FUNCTION(OSSL_FUNC_KEYMGMT_IMPORT_TYPES, key_types),
    FUNCTION(OSSL_FUNC_KEYMGMT_EXPORT_TYPES, key_types), FUNCTION(OSSL_FUNC_KEYMGMT_GET_PARAMS, key_get_params),
    FUNCTION(OSSL_FUNC_KEYMGMT_GETTABLE_PARAMS, key_gettable), FUNCTION(OSSL_FUNC_KEYMGMT_GEN_INIT, gen_init),
    FUNCTION(OSSL_FUNC_KEYMGMT_GEN_SET_PARAMS, gen_set_params),
    FUNCTION(OSSL_FUNC_KEYMGMT_GEN_SETTABLE_PARAMS, gen_settable), FUNCTION(OSSL_FUNC_KEYMGMT_GEN, gen),
    FUNCTION(OSSL_FUNC_KEYMGMT_GEN_CLEANUP, key_free),
    FUNCTION(OSSL_FUNC_KEYMGMT_QUERY_OPERATION_NAME, operation_name), {0, NULL}};

/* --------------------------------------------------------------------------------------------------- operations */

static int size_of(const key *own)
{
    return BN_num_bytes(own->numbers[MODMILL_N]);
}

/* out = in^d mod n by the smallest engine that is long enough. */
static int private_operation(const key *own, unsigned char *out, const unsigned char *in)
{
    const modmill_rsa *engine = modmill_rsas;
    const int bits = BN_num_bits(own->numbers[MODMILL_P]), others = BN_num_bits(own->numbers[MODMILL_Q]);
    modmill_number numbers[MODMILL_NUMBERS];
    unsigned char *const bytes = OPENSSL_secure_zalloc(MODMILL_NUMBERS * BYTES);
    size_t k;
    int done = bytes != NULL;

    while (engine->key != NULL && engine->prime_bits < (size_t)(bits > others ? bits : others))
        engine++;
    if (engine->key == NULL) {
        modmill_say(own->of, PROV_R_INVALID_KEY_LENGTH, "no engine for primes of %d bits is built in", bits);
        done = 0;
    }
    for (k = 0; done && k < MODMILL_NUMBERS; k++) {
        const int size = BN_num_bytes(own->numbers[k]);

        done = size <= BYTES && BN_bn2binpad(own->numbers[k], bytes + k * BYTES, size) >= 0;
        numbers[k].bytes = bytes + k * BYTES;
        numbers[k].size = (size_t)size;
    }
    done = done && modmill_told(own->of, "RSA", engine->private_operation(own->of->engines, numbers, out, in));
    OPENSSL_secure_clear_free(bytes, MODMILL_NUMBERS * BYTES);
    return done;
}

/* out = in^e mod n; 0 if in is not below n. */
static int public_operation(const key *own, unsigned char *out, const unsigned char *in)
{
    const int size = size_of(own);
    BN_CTX *const context = BN_CTX_new();
    BIGNUM *const number = BN_bin2bn(in, size, NULL);
    const int done = context != NULL && number != NULL && BN_cmp(number, own->numbers[MODMILL_N]) < 0 &&
                     BN_mod_exp(number, number, own->numbers[MODMILL_E], own->numbers[MODMILL_N], context) &&
                     BN_bn2binpad(number, out, size) > 0;

    BN_free(number);
    BN_CTX_free(context);
    return done;
}

/* The key as libcrypto's functions for padding want it: its modulus. */
static RSA *with_modulus(const key *own)
{
    RSA *const made = RSA_new();
    BIGNUM *const n = BN_dup(own->numbers[MODMILL_N]), *const e = BN_dup(own->numbers[MODMILL_E]);

    if (made != NULL && n != NULL && e != NULL && RSA_set0_key(made, n, e, NULL))
        return made;
    RSA_free(made);
    BN_free(n);
    BN_free(e);
    return NULL;
}

/* A word or a number of a parameter: its place among the words, or the number. */
static int chosen(const OSSL_PARAM *given, const char *const words[], const int values[], int *value)
{
    const char *text;
    char *end;
    long number;
    size_t k;

    if (given->data_type != OSSL_PARAM_UTF8_STRING)
        return OSSL_PARAM_get_int(given, value);
    if (!OSSL_PARAM_get_utf8_string_ptr(given, &text))
        return 0;
    for (k = 0; words[k] != NULL; k++)
        if (strcmp(words[k], text) == 0) {
            *value = values[k];
            return 1;
        }
    number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || number < INT_MIN || number > INT_MAX)
        return 0;
    *value = (int)number;
    return 1;
}

typedef struct {
    modmill_signing base;
    key *own; /* a copy */
    int padding, salt;
    EVP_MD *mask; /* NULL: the mask has the hash */
    unsigned char *label;
    size_t label_size;
} worker;

static void *worker_new(void *of)
{
    worker *const made = OPENSSL_zalloc(sizeof *made);

    if (made != NULL) {
        made->base.of = of;
        made->padding = RSA_PKCS1_PADDING;
        made->salt = RSA_PSS_SALTLEN_AUTO;
    }
    return made;
}

static void worker_free(void *freed)
{
    worker *const old = freed;

    if (old == NULL)
        return;
    key_free(old->own);
    EVP_MD_free(old->base.hash);
    EVP_MD_free(old->mask);
    EVP_MD_CTX_free(old->base.hashing);
    OPENSSL_free(old->label);
    OPENSSL_free(old);
}

static void *worker_dup(void *from)
{
    const worker *const old = from;
    worker *const made = worker_new(old->base.of);
    int right = made != NULL;

    if (!right)
        return NULL;
    made->base.kind = old->base.kind;
    made->padding = old->padding;
    made->salt = old->salt;
    if (old->own != NULL)
        right = (made->own = key_dup(old->own, OSSL_KEYMGMT_SELECT_ALL)) != NULL;
    if (old->base.hash != NULL && EVP_MD_up_ref(old->base.hash))
        made->base.hash = old->base.hash;
    if (old->mask != NULL && EVP_MD_up_ref(old->mask))
        made->mask = old->mask;
    if (old->base.hashing != NULL)
        right = right && (made->base.hashing = EVP_MD_CTX_new()) != NULL && EVP_MD_CTX_copy_ex(made->base.hashing, old->base.hashing);
    if (old->label != NULL) {
        right = right && (made->label = OPENSSL_memdup(old->label, old->label_size)) != NULL;
        made->label_size = old->label_size;
    }
    if (right)
        return made;
    worker_free(made);
    return NULL;
}

/* Take a hash from a parameter, if it is there; an unknown one changes nothing. */
static int take_hash(const provider *of, EVP_MD **hash, const OSSL_PARAM params[], const char *name)
{
    const OSSL_PARAM *const given = OSSL_PARAM_locate_const(params, name);
    const char *text;
    EVP_MD *found;

    if (given == NULL)
        return 1;
    found = OSSL_PARAM_get_utf8_string_ptr(given, &text) ? modmill_hash(of, text) : NULL;
    if (found == NULL)
        return 0;
    EVP_MD_free(*hash);
    *hash = found;
    return 1;
}

static int take_padding(worker *now, const OSSL_PARAM params[])
{
    static const char *const words[] = {OSSL_PKEY_RSA_PAD_MODE_PKCSV15, OSSL_PKEY_RSA_PAD_MODE_PSS,
                                        OSSL_PKEY_RSA_PAD_MODE_OAEP, OSSL_PKEY_RSA_PAD_MODE_NONE, NULL};
    static const int values[] = {RSA_PKCS1_PADDING, RSA_PKCS1_PSS_PADDING, RSA_PKCS1_OAEP_PADDING, RSA_NO_PADDING};
    const OSSL_PARAM *const given = OSSL_PARAM_locate_const(params, OSSL_PKEY_PARAM_PAD_MODE);

    return given == NULL || chosen(given, words, values, &now->padding);
}

static int worker_init(worker *now, const key *own)
{
    if (own != NULL) {
        key_free(now->own);
        now->own = key_dup(own, OSSL_KEYMGMT_SELECT_ALL);
    }
    return now->own != NULL && now->own->numbers[MODMILL_N] != NULL && now->own->numbers[MODMILL_E] != NULL;
}

static const EVP_MD *mask_of(const worker *now)
{
    return now->mask != NULL ? now->mask : now->base.hash;
}

/* ---------------------------------------------------------------------------------------------------- signatures */

static int signer_set_params(void *of, const OSSL_PARAM params[])
{
    static const char *const words[] = {OSSL_PKEY_RSA_PSS_SALT_LEN_DIGEST, OSSL_PKEY_RSA_PSS_SALT_LEN_MAX,
                                        OSSL_PKEY_RSA_PSS_SALT_LEN_AUTO, NULL};
    static const int values[] = {RSA_PSS_SALTLEN_DIGEST, RSA_PSS_SALTLEN_MAX, RSA_PSS_SALTLEN_AUTO};
    worker *const now = of;
    const int padding = now->padding;
    const OSSL_PARAM *salt;
    int length = now->salt;

    if (params == NULL)
        return 1;
    if (!take_padding(now, params))
        return 0;
    if (now->padding != RSA_PKCS1_PADDING && now->padding != RSA_PKCS1_PSS_PADDING) {
        now->padding = padding;
        modmill_say(now->base.of, PROV_R_ILLEGAL_OR_UNSUPPORTED_PADDING_MODE, "signatures have the padding pkcs1 or pss");
        return 0;
    }
    salt = OSSL_PARAM_locate_const(params, OSSL_SIGNATURE_PARAM_PSS_SALTLEN);
    if (salt != NULL && (!chosen(salt, words, values, &length) || length < RSA_PSS_SALTLEN_MAX)) {
        modmill_say(now->base.of, PROV_R_INVALID_SALT_LENGTH, "a salt has a length of 0 or more, digest, max or auto");
        return 0;
    }
    now->salt = length;
    return take_hash(now->base.of, &now->base.hash, params, OSSL_SIGNATURE_PARAM_DIGEST) &&
           take_hash(now->base.of, &now->mask, params, OSSL_SIGNATURE_PARAM_MGF1_DIGEST);
}

static int sign_init(void *of, void *own, const OSSL_PARAM params[])
{
    return worker_init(of, own) && key_has(((worker *)of)->own, OSSL_KEYMGMT_SELECT_KEYPAIR) &&
           signer_set_params(of, params);
}

static int verify_init(void *of, void *own, const OSSL_PARAM params[])
{
    return worker_init(of, own) && signer_set_params(of, params);
}

/* A digest with the name of its hash, in DER; the size, 0 after an error. */
static int named_digest(const EVP_MD *hash, const unsigned char *digest, size_t length, unsigned char **der)
{
    X509_SIG *const made = X509_SIG_new();
    X509_ALGOR *algorithm;
    ASN1_OCTET_STRING *text;
    int size = 0;

    *der = NULL;
    if (made != NULL) {
        X509_SIG_getm(made, &algorithm, &text);
        if (X509_ALGOR_set0(algorithm, OBJ_nid2obj(EVP_MD_get_type(hash)), V_ASN1_NULL, NULL) &&
            ASN1_OCTET_STRING_set(text, digest, (int)length))
            size = i2d_X509_SIG(made, der);
    }
    X509_SIG_free(made);
    return size > 0 ? size : 0;
}

/* The digest with its padding, as long as the modulus. */
static int padded(const worker *now, RSA *modulus, unsigned char *block, const unsigned char *digest, size_t length)
{
    const int size = size_of(now->own);
    unsigned char *der;
    int done;

    if (now->base.hash != NULL && length != (size_t)EVP_MD_get_size(now->base.hash))
        return 0;
    if (now->padding == RSA_PKCS1_PSS_PADDING)
        return now->base.hash != NULL &&
               RSA_padding_add_PKCS1_PSS_mgf1(modulus, block, digest, now->base.hash, mask_of(now), now->salt);
    if (now->base.hash == NULL)
        return RSA_padding_add_PKCS1_type_1(block, size, digest, (int)length);
    done = named_digest(now->base.hash, digest, length, &der);
    done = done > 0 && RSA_padding_add_PKCS1_type_1(block, size, der, done);
    OPENSSL_free(der);
    return done;
}

static int sign(void *of, unsigned char *signature, size_t *size, size_t room, const unsigned char *digest, size_t length)
{
    worker *const now = of;
    unsigned char block[BYTES];
    RSA *modulus;
    int done;

    *size = (size_t)size_of(now->own);
    if (signature == NULL)
        return 1;
    if (room < *size)
        return 0;
    modulus = with_modulus(now->own);
    done = modulus != NULL && padded(now, modulus, block, digest, length) && private_operation(now->own, signature, block);
    RSA_free(modulus);
    return done;
}

static int verify(void *of, const unsigned char *signature, size_t size, const unsigned char *digest, size_t length)
{
    worker *const now = of;
    unsigned char found[BYTES], block[BYTES];
    RSA *const modulus = with_modulus(now->own);
    int right = modulus != NULL && size == (size_t)size_of(now->own) && public_operation(now->own, found, signature);

    if (right && now->padding == RSA_PKCS1_PSS_PADDING)
        right = now->base.hash != NULL && length == (size_t)EVP_MD_get_size(now->base.hash) &&
                RSA_verify_PKCS1_PSS_mgf1(modulus, digest, now->base.hash, mask_of(now), found, now->salt);
    else
        right = right && padded(now, modulus, block, digest, length) && memcmp(found, block, size) == 0;
    RSA_free(modulus);
    return right;
}

/* AlgorithmIdentifier of sha256WithRSAEncryption, -384, -512: what X.509 names in a signed certificate. */
static int signer_get_params(void *of, OSSL_PARAM params[])
{
    static const unsigned char with_sha2[] = {0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86,
                                              0xf7, 0x0d, 0x01, 0x01, 0x0b, 0x05, 0x00};
    const worker *const now = of;
    OSSL_PARAM *const algorithm = OSSL_PARAM_locate(params, OSSL_SIGNATURE_PARAM_ALGORITHM_ID);
    unsigned char shown[sizeof with_sha2];

    if (algorithm == NULL)
        return 1;
    if (now->base.hash == NULL || now->padding != RSA_PKCS1_PADDING)
        return 0;
    memcpy(shown, with_sha2, sizeof shown);
    if (EVP_MD_is_a(now->base.hash, "SHA384"))
        shown[12] = 0x0c;
    else if (EVP_MD_is_a(now->base.hash, "SHA512"))
        shown[12] = 0x0d;
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
    static const OSSL_PARAM known[] = {
        OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_DIGEST, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_PAD_MODE, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_PSS_SALTLEN, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_SIGNATURE_PARAM_MGF1_DIGEST, NULL, 0), OSSL_PARAM_END};

    (void)of;
    (void)with;
    return known;
}

static const modmill_signatures kind = {sign_init, verify_init, sign, verify, signer_set_params};

static void *signer_new(void *of, const char *properties)
{
    worker *const made = worker_new(of);

    (void)properties;
    if (made != NULL)
        made->base.kind = &kind;
    return made;
}

const OSSL_DISPATCH modmill_rsa_signatures[] = {
    FUNCTION(OSSL_FUNC_SIGNATURE_NEWCTX, signer_new), FUNCTION(OSSL_FUNC_SIGNATURE_FREECTX, worker_free),
    FUNCTION(OSSL_FUNC_SIGNATURE_DUPCTX, worker_dup), FUNCTION(OSSL_FUNC_SIGNATURE_SIGN_INIT, sign_init),
    FUNCTION(OSSL_FUNC_SIGNATURE_SIGN, sign), FUNCTION(OSSL_FUNC_SIGNATURE_VERIFY_INIT, verify_init),
    FUNCTION(OSSL_FUNC_SIGNATURE_VERIFY, verify), MODMILL_DIGEST_SIGNATURES,
    FUNCTION(OSSL_FUNC_SIGNATURE_GET_CTX_PARAMS, signer_get_params),
    FUNCTION(OSSL_FUNC_SIGNATURE_GETTABLE_CTX_PARAMS, signer_gettable),
    FUNCTION(OSSL_FUNC_SIGNATURE_SET_CTX_PARAMS, signer_set_params),
    FUNCTION(OSSL_FUNC_SIGNATURE_SETTABLE_CTX_PARAMS, signer_settable), {0, NULL}};

/* ------------------------------------------------------------------------------------------------------- ciphers */

static int cipher_set_params(void *of, const OSSL_PARAM params[])
{
    worker *const now = of;
    const OSSL_PARAM *label;

    if (params == NULL)
        return 1;
    if (!take_padding(now, params) || !take_hash(now->base.of, &now->base.hash, params, OSSL_ASYM_CIPHER_PARAM_OAEP_DIGEST) ||
        !take_hash(now->base.of, &now->mask, params, OSSL_ASYM_CIPHER_PARAM_MGF1_DIGEST))
        return 0;
    label = OSSL_PARAM_locate_const(params, OSSL_ASYM_CIPHER_PARAM_OAEP_LABEL);
    if (label != NULL) {
        void *text = NULL;

        if (!OSSL_PARAM_get_octet_string(label, &text, 0, &now->label_size))
            return 0;
        OPENSSL_free(now->label);
        now->label = text;
    }
    return 1;
}

/* Refuse a padding that an operation does not have; take SHA-1 for OAEP without a hash, as OpenSSL does. */
static int cipher_ready(worker *now, int decrypts)
{
    if (now->padding == RSA_PKCS1_OAEP_PADDING) {
        if (now->base.hash == NULL)
            now->base.hash = modmill_hash(now->base.of, "SHA1");
        return now->base.hash != NULL;
    }
    if (now->padding == RSA_PKCS1_PADDING && !decrypts)
        return 1;
    modmill_say(now->base.of, PROV_R_ILLEGAL_OR_UNSUPPORTED_PADDING_MODE,
                decrypts ? "decryption has the padding oaep only (rsa_padding_mode:oaep)" :
                           "encryption has the padding oaep or pkcs1");
    return 0;
}

static int encrypt_init(void *of, void *own, const OSSL_PARAM params[])
{
    return worker_init(of, own) && cipher_set_params(of, params);
}

static int decrypt_init(void *of, void *own, const OSSL_PARAM params[])
{
    return encrypt_init(of, own, params) && key_has(((worker *)of)->own, OSSL_KEYMGMT_SELECT_KEYPAIR);
}

static int encrypt(void *of, unsigned char *out, size_t *size, size_t room, const unsigned char *message, size_t length)
{
    worker *const now = of;
    const int block = size_of(now->own);
    unsigned char text[BYTES];
    int done;

    *size = (size_t)block;
    if (out == NULL)
        return 1;
    if (room < *size || length > BYTES || !cipher_ready(now, 0))
        return 0;
    if (now->padding == RSA_PKCS1_OAEP_PADDING)
        done = RSA_padding_add_PKCS1_OAEP_mgf1(text, block, message, (int)length, now->label, (int)now->label_size,
                                               now->base.hash, mask_of(now));
    else
        done = RSA_padding_add_PKCS1_type_2(text, block, message, (int)length);
    done = done > 0 && public_operation(now->own, out, text);
    OPENSSL_cleanse(text, sizeof text);
    return done;
}

static int decrypt(void *of, unsigned char *out, size_t *size, size_t room, const unsigned char *text, size_t length)
{
    worker *const now = of;
    const int block = size_of(now->own);
    unsigned char opened[BYTES], message[BYTES];
    int found = -1;

    *size = (size_t)block;
    if (out == NULL)
        return 1;
    if (length != (size_t)block || !cipher_ready(now, 1))
        return 0;
    if (private_operation(now->own, opened, text))
        found = RSA_padding_check_PKCS1_OAEP_mgf1(message, block, opened, block, block, now->label,
                                                  (int)now->label_size, now->base.hash, mask_of(now));
    OPENSSL_cleanse(opened, sizeof opened);
    if (found >= 0 && (size_t)found <= room) {
        memcpy(out, message, (size_t)found);
        *size = (size_t)found;
    } else
        found = -1;
    OPENSSL_cleanse(message, sizeof message);
    return found >= 0;
}

static const OSSL_PARAM *cipher_settable(void *of, void *with)
{
    static const OSSL_PARAM known[] = {
        OSSL_PARAM_utf8_string(OSSL_ASYM_CIPHER_PARAM_PAD_MODE, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_ASYM_CIPHER_PARAM_OAEP_DIGEST, NULL, 0),
        OSSL_PARAM_utf8_string(OSSL_ASYM_CIPHER_PARAM_MGF1_DIGEST, NULL, 0),
        OSSL_PARAM_octet_string(OSSL_ASYM_CIPHER_PARAM_OAEP_LABEL, NULL, 0), OSSL_PARAM_END};

    (void)of;
    (void)with;
    return known;
}

const OSSL_DISPATCH modmill_rsa_ciphers[] = {
    FUNCTION(OSSL_FUNC_ASYM_CIPHER_NEWCTX, worker_new), FUNCTION(OSSL_FUNC_ASYM_CIPHER_FREECTX, worker_free),
    FUNCTION(OSSL_FUNC_ASYM_CIPHER_DUPCTX, worker_dup), FUNCTION(OSSL_FUNC_ASYM_CIPHER_ENCRYPT_INIT, encrypt_init),
    FUNCTION(OSSL_FUNC_ASYM_CIPHER_ENCRYPT, encrypt), FUNCTION(OSSL_FUNC_ASYM_CIPHER_DECRYPT_INIT, decrypt_init),
    FUNCTION(OSSL_FUNC_ASYM_CIPHER_DECRYPT, decrypt), FUNCTION(OSSL_FUNC_ASYM_CIPHER_SET_CTX_PARAMS, cipher_set_params),
    FUNCTION(OSSL_FUNC_ASYM_CIPHER_SETTABLE_CTX_PARAMS, cipher_settable), {0, NULL}};
