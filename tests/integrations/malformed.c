/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Modmill authors */
/* malformed CONFIGURATION KEY COUNT SEED: gives the provider COUNT malformed inputs; each must be refused. Afterwards it
 * must still be right. Prints how many of each kind were refused; status 1 if one was accepted. */
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OURS "provider=modmill"

static OSSL_LIB_CTX *library;
static EVP_PKEY *rsa, *curve_key, *edwards;
static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16) % below;
}

static void fill(unsigned char *bytes, size_t size)
{
    while (size-- != 0)
        *bytes++ = (unsigned char)draw(256);
}

/* A size that is not the right one. */
static size_t other_size(size_t right, size_t most)
{
    size_t size;

    do
        size = draw((uint32_t)most + 1);
    while (size == right);
    return size;
}

static EVP_PKEY *made(const char *type, int selection, OSSL_PARAM *params)
{
    EVP_PKEY_CTX *const context = EVP_PKEY_CTX_new_from_name(library, type, OURS);
    EVP_PKEY *key = NULL;

    if (context == NULL || EVP_PKEY_fromdata_init(context) <= 0 ||
        EVP_PKEY_fromdata(context, &key, selection, params) <= 0)
        key = NULL;
    EVP_PKEY_CTX_free(context);
    return key;
}

static EVP_PKEY *with_public(const char *type, const char *group, unsigned char *bytes, size_t size)
{
    OSSL_PARAM params[3], *next = params;

    if (group != NULL)
        *next++ = OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)group, 0);
    *next++ = OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, bytes, size);
    *next = OSSL_PARAM_construct_end();
    return made(type, EVP_PKEY_PUBLIC_KEY, params);
}

static int verifies(EVP_PKEY *key, const unsigned char *signature, size_t size)
{
    static const unsigned char digest[32] = {1};
    EVP_PKEY_CTX *const context = EVP_PKEY_CTX_new_from_pkey(library, key, OURS);
    const int done = context != NULL && EVP_PKEY_verify_init(context) > 0 &&
                     EVP_PKEY_verify(context, signature, size, digest, sizeof digest) == 1;

    EVP_PKEY_CTX_free(context);
    return done;
}

static int verifies_message(EVP_PKEY *key, const unsigned char *signature, size_t size)
{
    static const unsigned char message[5] = "abcd";
    EVP_MD_CTX *const context = EVP_MD_CTX_new();
    const int done = EVP_DigestVerifyInit_ex(context, NULL, NULL, library, OURS, key, NULL) > 0 &&
                     EVP_DigestVerify(context, signature, size, message, sizeof message) == 1;

    EVP_MD_CTX_free(context);
    return done;
}

static int derives(EVP_PKEY *own, EVP_PKEY *peer)
{
    EVP_PKEY_CTX *const context = EVP_PKEY_CTX_new_from_pkey(library, own, OURS);
    unsigned char secret[64];
    size_t size = sizeof secret;
    const int done = context != NULL && EVP_PKEY_derive_init(context) > 0 &&
                     EVP_PKEY_derive_set_peer(context, peer) > 0 && EVP_PKEY_derive(context, secret, &size) > 0;

    EVP_PKEY_CTX_free(context);
    return done;
}

static int signs(EVP_PKEY *key)
{
    static const unsigned char digest[32] = {1};
    EVP_PKEY_CTX *const context = EVP_PKEY_CTX_new_from_pkey(library, key, OURS);
    unsigned char signature[1024];
    size_t size = sizeof signature;
    const int done = context != NULL && EVP_PKEY_sign_init(context) > 0 &&
                     EVP_PKEY_sign(context, signature, &size, digest, sizeof digest) > 0;

    EVP_PKEY_CTX_free(context);
    return done;
}

/* A raw key of another size. */
static int raw_size(void)
{
    unsigned char bytes[80];
    const char *const type = draw(2) ? "X25519" : "ED25519";
    const size_t size = other_size(32, sizeof bytes);
    OSSL_PARAM params[2] = {OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PRIV_KEY, bytes, size),
        OSSL_PARAM_construct_end()};
    EVP_PKEY *key;

    fill(bytes, sizeof bytes);
    key = draw(2) ? with_public(type, NULL, bytes, size) : made(type, EVP_PKEY_KEYPAIR, params);
    EVP_PKEY_free(key);
    return key != NULL;
}

/* A point of P-256 that is none: another size, another first byte, not on the curve, a coordinate of p or more. */
static int point(void)
{
    unsigned char bytes[80];
    const size_t size = draw(2) ? 65 : other_size(65, sizeof bytes);
    EVP_PKEY *key;
    int accepted;

    fill(bytes, sizeof bytes);
    bytes[0] = draw(4) ? 4 : (unsigned char)draw(256);
    if (draw(4) == 0)
        memset(bytes + 1 + 32 * draw(2), draw(2) ? 0xff : 0, 32);
    key = with_public("EC", "P-256", bytes, size);
    accepted = key != NULL && (size != 65 || derives(curve_key, key) || verifies(key, bytes + 1, 64));
    EVP_PKEY_free(key);
    return accepted;
}

/* Another key gets this as its public half, as a TLS handshake does. */
static int encoded(void)
{
    unsigned char bytes[80];
    const size_t size = draw(2) ? 65 : other_size(65, sizeof bytes);
    EVP_PKEY *const key = EVP_PKEY_new();
    int accepted;

    fill(bytes, sizeof bytes);
    bytes[0] = 4;
    accepted = EVP_PKEY_copy_parameters(key, curve_key) > 0 &&
               EVP_PKEY_set1_encoded_public_key(key, bytes, size) > 0 && derives(curve_key, key);
    EVP_PKEY_free(key);
    return accepted;
}

/* A curve that is not built in. */
static int group(void)
{
    static const char *const names[] = {"P-521", "sm2p256v1", "", "P-256\n", "p-2566", "1.2.3", "%s%n", "X25519"};
    unsigned char bytes[65] = {4}, name[40];
    size_t k;
    EVP_PKEY *key;

    fill(name, sizeof name);
    for (k = 0; k < sizeof name; k++)
        name[k] += name[k] == 0;
    name[draw(sizeof name)] = 0;
    key = with_public("EC", draw(2) ? names[draw(8)] : (char *)name, bytes, sizeof bytes);
    EVP_PKEY_free(key);
    return key != NULL;
}

/* A private number of P-256 that is 0, the order or more, or too long. */
static int scalar(void)
{
    static const unsigned char order[32] = {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51};
    unsigned char bytes[64];
    const uint32_t kind = draw(4);
    size_t size = 32, k;
    EVP_PKEY *key;
    OSSL_PARAM params[3];
    int accepted;

    memset(bytes, kind == 0 ? 0 : 0xff, sizeof bytes);
    for (k = 0; kind == 1 && k < 32; k++) /* native numbers have their lowest byte first */
        bytes[k] = order[31 - k];
    if (kind == 2) {
        size = 33 + draw(31);
        fill(bytes, size);
        bytes[size - 1] |= 1;
    }
    params[0] = OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0);
    params[1] = OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_PRIV_KEY, bytes, size);
    params[2] = OSSL_PARAM_construct_end();
    key = made("EC", EVP_PKEY_KEYPAIR, params);
    accepted = key != NULL && (signs(key) || derives(key, curve_key));
    EVP_PKEY_free(key);
    return accepted;
}

/* A signature of ECDSA that is no DER, or has numbers out of range. */
static int der(void)
{
    unsigned char text[90] = {0x30, 6, 2, 1, 0, 2, 1, 1}; /* r = 0, s = 1 */
    size_t size = 8;

    switch (draw(6)) {
    case 0:
        size = draw(sizeof text);
        fill(text, size);
        text[0] = draw(2) ? 0x30 : text[0];
        break;
    case 1:
        text[draw(8)] ^= (unsigned char)(1u << draw(8));
        if (text[4] != 0 && text[4] < 0x80)
            text[4] = 0;
        break;
    case 2: /* s of 32 bytes, and more than the order */
        memcpy(text, "\x30\x26\2\1\1\2\x21\0", 8);
        memset(text + 8, 0xff, 32);
        size = 40;
        break;
    case 3: /* a negative r */
        text[4] = (unsigned char)(0x80 | draw(128));
        break;
    case 4: /* lengths beyond the end */
        text[1] = (unsigned char)draw(256);
        text[3] = (unsigned char)(2 + draw(254));
        break;
    default:
        size = draw(8);
    }
    return verifies(curve_key, text, size);
}

/* A signature of Ed25519 of another size, or with S of the order or more. */
static int edwards_signature(void)
{
    unsigned char text[100];
    const size_t size = draw(2) ? 64 : other_size(64, sizeof text);

    fill(text, sizeof text);
    if (size == 64)
        memset(text + 32 + 16 * draw(2), 0xff, 16);
    text[63] |= 0x20;
    return verifies_message(edwards, text, size);
}

/* An RSA key whose numbers do not belong together, are even, too long or missing. */
static int rsa_key(void)
{
    static const char *const names[] = {OSSL_PKEY_PARAM_RSA_N, OSSL_PKEY_PARAM_RSA_E, OSSL_PKEY_PARAM_RSA_FACTOR1,
        OSSL_PKEY_PARAM_RSA_FACTOR2, OSSL_PKEY_PARAM_RSA_COEFFICIENT1};
    unsigned char bytes[1200];
    OSSL_PARAM *params = NULL, *changed;
    EVP_PKEY *key;
    int accepted;

    if (EVP_PKEY_todata(rsa, EVP_PKEY_KEYPAIR, &params) <= 0)
        return 1;
    changed = OSSL_PARAM_locate(params, names[draw(5)]);
    fill(bytes, sizeof bytes);
    switch (draw(5)) {
    case 0: /* a bit is wrong: the lowest of the number is in its first or last byte */
        memcpy(bytes, changed->data, changed->data_size);
        bytes[draw((uint32_t)changed->data_size)] ^= (unsigned char)(1u << draw(8));
        if (strcmp(changed->key, OSSL_PKEY_PARAM_RSA_E) == 0)
            memset(bytes, 2, changed->data_size);
        *changed = OSSL_PARAM_construct_BN(changed->key, bytes, changed->data_size);
        break;
    case 1:
        *changed = OSSL_PARAM_construct_BN(changed->key, bytes, sizeof bytes - draw(500));
        break;
    case 2:
        memset(bytes, 0, sizeof bytes);
        *changed = OSSL_PARAM_construct_BN(changed->key, bytes, 1 + draw(200));
        break;
    case 3:
        changed->key = "nothing";
        break;
    default:
        changed->data_type = OSSL_PARAM_UTF8_STRING;
    }
    key = made("RSA", EVP_PKEY_KEYPAIR, params);
    accepted = key != NULL && signs(key);
    EVP_PKEY_free(key);
    OSSL_PARAM_free(params);
    return accepted;
}

/* A signature or ciphertext of another size, or of the modulus or more, or one that is random. */
static int rsa_text(void)
{
    EVP_PKEY_CTX *const context = EVP_PKEY_CTX_new_from_pkey(library, rsa, OURS);
    unsigned char text[300], out[300];
    size_t size = draw(2) ? 128 : other_size(128, sizeof text), room = sizeof out;
    int accepted;

    fill(text, sizeof text);
    if (draw(2)) {
        accepted = verifies(rsa, text, size);
    } else {
        memset(text, 0xff, 64);
        accepted = EVP_PKEY_decrypt_init(context) > 0 &&
                   EVP_PKEY_CTX_ctrl_str(context, "rsa_padding_mode", "oaep") > 0 &&
                   EVP_PKEY_decrypt(context, out, &room, text, size) > 0;
    }
    EVP_PKEY_CTX_free(context);
    return accepted;
}

/* Options that nothing has, for a context of each kind. */
static int options(void)
{
    static const char *const names[] = {"pad-mode", "saltlen", "digest", "mgf1-digest", "properties"};
    static const char *const values[] = {"none", "x931", "sslv23", "", "-7", "MD5-SHA9", "999999999999999999999", "%n"};
    EVP_PKEY_CTX *const context = EVP_PKEY_CTX_new_from_pkey(library, rsa, OURS);
    OSSL_PARAM params[2];
    int number = -10 - (int)draw(1000), accepted;

    params[0] = draw(2) ? OSSL_PARAM_construct_utf8_string(names[draw(4)], (char *)values[draw(8)], 0)
                        : OSSL_PARAM_construct_int(names[draw(4)], &number);
    params[1] = OSSL_PARAM_construct_end();
    accepted = EVP_PKEY_sign_init(context) > 0 && EVP_PKEY_CTX_set_params(context, params) > 0;
    EVP_PKEY_CTX_free(context);
    return accepted;
}

/* A buffer that is too short for what comes. */
static int room(void)
{
    EVP_PKEY_CTX *const context = EVP_PKEY_CTX_new_from_pkey(library, draw(2) ? rsa : curve_key, OURS);
    static const unsigned char digest[32] = {1};
    unsigned char out[64];
    size_t size = draw(sizeof out);
    const int accepted =
        EVP_PKEY_sign_init(context) > 0 && EVP_PKEY_sign(context, out, &size, digest, sizeof digest) > 0;

    EVP_PKEY_CTX_free(context);
    return accepted;
}

static const struct {
    const char *name;
    int (*try)(void);
} kinds[] = {{"raw keys", raw_size}, {"points", point}, {"encoded points", encoded}, {"groups", group},
    {"scalars", scalar}, {"ECDSA signatures", der}, {"Ed25519 signatures", edwards_signature}, {"RSA keys", rsa_key},
    {"RSA texts", rsa_text}, {"options", options}, {"buffers", room}};

#define KINDS (sizeof kinds / sizeof *kinds)

/* X25519 of RFC 7748, Section 5.2, on the device. */
static int still_right(void)
{
    static unsigned char scalar_bytes[32] = {0xa5, 0x46, 0xe3, 0x6b, 0xf0, 0x52, 0x7c, 0x9d, 0x3b, 0x16, 0x15, 0x4b,
        0x82, 0x46, 0x5e, 0xdd, 0x62, 0x14, 0x4c, 0x0a, 0xc1, 0xfc, 0x5a, 0x18, 0x50, 0x6a, 0x22, 0x44, 0xba, 0x44,
        0x9a, 0xc4};
    static unsigned char u[32] = {0xe6, 0xdb, 0x68, 0x67, 0x58, 0x30, 0x30, 0xdb, 0x35, 0x94, 0xc1, 0xa4, 0x24, 0xb1,
        0x5f, 0x7c, 0x72, 0x66, 0x24, 0xec, 0x26, 0xb3, 0x35, 0x3b, 0x10, 0xa9, 0x03, 0xa6, 0xd0, 0xab, 0x1c, 0x4c};
    static const unsigned char wanted[4] = {0xc3, 0xda, 0x55, 0x37};
    OSSL_PARAM params[2] = {OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PRIV_KEY, scalar_bytes, 32),
        OSSL_PARAM_construct_end()};
    EVP_PKEY *const own = made("X25519", EVP_PKEY_KEYPAIR, params), *const peer = with_public("X25519", NULL, u, 32);
    EVP_PKEY_CTX *const context = EVP_PKEY_CTX_new_from_pkey(library, own, OURS);
    unsigned char secret[32] = {0};
    size_t size = sizeof secret;
    const int right = EVP_PKEY_derive_init(context) > 0 && EVP_PKEY_derive_set_peer(context, peer) > 0 &&
                      EVP_PKEY_derive(context, secret, &size) > 0 && memcmp(secret, wanted, sizeof wanted) == 0;

    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(own);
    EVP_PKEY_free(peer);
    return right;
}

static EVP_PKEY *read_key(const char *name)
{
    FILE *const file = fopen(name, "r");
    EVP_PKEY *const key = file == NULL ? NULL : PEM_read_PrivateKey_ex(file, NULL, NULL, NULL, library, NULL);

    if (file != NULL)
        fclose(file);
    return key;
}

int main(int count, char **arguments)
{
    unsigned refused[KINDS] = {0}, k, accepted = 0;
    int number;

    if (count != 7)
        return 2;
    library = OSSL_LIB_CTX_new();
    if (OSSL_LIB_CTX_load_config(library, arguments[1]) <= 0)
        return 2;
    rsa = read_key(arguments[2]);
    curve_key = read_key(arguments[3]);
    edwards = read_key(arguments[4]);
    if (rsa == NULL || curve_key == NULL || edwards == NULL)
        return 2;
    state = strtoull(arguments[6], NULL, 10) * 0x9e3779b97f4a7c15u + 1u;
    for (number = atoi(arguments[5]); number != 0; number--) {
        k = draw(KINDS);
        if (kinds[k].try()) {
            printf("accepted: %s\n", kinds[k].name);
            accepted++;
        } else {
            refused[k]++;
        }
        ERR_clear_error();
    }
    for (k = 0; k < KINDS; k++)
        printf("%s: %u refused\n", kinds[k].name, refused[k]);
    printf(still_right() ? "still right\n" : "no longer right\n");
    EVP_PKEY_free(rsa);
    EVP_PKEY_free(curve_key);
    EVP_PKEY_free(edwards);
    OSSL_LIB_CTX_free(library);
    return accepted != 0;
}
