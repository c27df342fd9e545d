/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Modmill authors */
/* What the files of the provider share. */
#ifndef MODMILL_PROVIDER_H
#define MODMILL_PROVIDER_H

#include "engines.h"

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/core_object.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/proverr.h>
#include <openssl/rand.h>
#include <string.h>

#define OPERATIONS (OSSL_OP_STORE + 1) /* the numbers of the operations here are below it */
#define MOST_OFFERS 8

typedef struct {
    const OSSL_CORE_HANDLE *handle;
    modmill_engines *engines;
    OSSL_ALGORITHM found[OPERATIONS][MOST_OFFERS]; /* by operation; the last one has no name */
} provider;

#define FUNCTION(id, name) {id, (void (*)(void))(name)}

/* Put an error in OpenSSL's queue. */
void modmill_say(const provider *of, uint32_t reason, const char *form, ...);

/* 1, or 0 after telling what failed of the device for something. */
int modmill_told(const provider *of, const char *what, modmill_error error);

/* Set a parameter, if it is asked for. */
int modmill_set_int(OSSL_PARAM params[], const char *name, int value);

/* A hash of another provider; NULL after an error. */
EVP_MD *modmill_hash(const provider *of, const char *name);

/* Signatures of a kind of key. */
typedef struct {
    int (*sign_init)(void *of, void *own, const OSSL_PARAM params[]);
    int (*verify_init)(void *of, void *own, const OSSL_PARAM params[]);
    int (*sign)(void *of, unsigned char *signature, size_t *size, size_t room, const unsigned char *digest, size_t length);
    int (*verify)(void *of, const unsigned char *signature, size_t size, const unsigned char *digest, size_t length);
    int (*set_params)(void *of, const OSSL_PARAM params[]);
} modmill_signatures;

/* What the context of a signature begins with. */
typedef struct {
    provider *of;
    EVP_MD *hash; /* NULL: the digest is given */
    EVP_MD_CTX *hashing;
    const modmill_signatures *kind; /* NULL: no signatures of digests */
} modmill_signing;

/* Take the hash with a name, or leave none. */
int modmill_set_hash(modmill_signing *now, const char *name);

/* Signatures of a message that is hashed here, for every kind of key; the default hash is SHA-256. */
int modmill_digest_sign_init(void *of, const char *name, void *own, const OSSL_PARAM params[]);
int modmill_digest_verify_init(void *of, const char *name, void *own, const OSSL_PARAM params[]);
int modmill_digest_update(void *of, const unsigned char *data, size_t size);
int modmill_digest_sign_final(void *of, unsigned char *signature, size_t *size, size_t room);
int modmill_digest_verify_final(void *of, const unsigned char *signature, size_t size);

#define MODMILL_DIGEST_SIGNATURES                                                    \
    FUNCTION(OSSL_FUNC_SIGNATURE_DIGEST_SIGN_INIT, modmill_digest_sign_init),        \
        FUNCTION(OSSL_FUNC_SIGNATURE_DIGEST_SIGN_UPDATE, modmill_digest_update),     \
        FUNCTION(OSSL_FUNC_SIGNATURE_DIGEST_SIGN_FINAL, modmill_digest_sign_final),  \
        FUNCTION(OSSL_FUNC_SIGNATURE_DIGEST_VERIFY_INIT, modmill_digest_verify_init),\
        FUNCTION(OSSL_FUNC_SIGNATURE_DIGEST_VERIFY_UPDATE, modmill_digest_update),   \
        FUNCTION(OSSL_FUNC_SIGNATURE_DIGEST_VERIFY_FINAL, modmill_digest_verify_final)

/* The key behind a reference of the store, which has it no longer; NULL: it has none. */
void *modmill_taken(const void *reference, size_t size);

/* 0, after telling that a key does not give its private half away. */
int modmill_refused(const provider *of);

/* Functions for keys of a type, as OpenSSL names it; NULL: no engine is built in. */
const OSSL_DISPATCH *modmill_keys(const char *type);

extern const OSSL_DISPATCH modmill_stores[];
extern const OSSL_DISPATCH modmill_rsa_keys[], modmill_rsa_signatures[], modmill_rsa_ciphers[];

#endif
