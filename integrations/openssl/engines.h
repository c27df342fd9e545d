/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Modmill authors */
/* The engines that the provider uses, in bytes: numbers are as the standards write them, points are x, then y. */
#ifndef MODMILL_ENGINES_H
#define MODMILL_ENGINES_H

#include <stddef.h>

#define MODMILL_MOST_BYTES 48u

typedef enum {
    MODMILL_OK,
    MODMILL_NOT_CONFIGURED,
    MODMILL_NOT_CONNECTED,
    MODMILL_NO_ANSWER,
    MODMILL_ANOTHER_DEVICE,
    MODMILL_REFUSED,
    MODMILL_WRONG
} modmill_error;

typedef struct modmill_engines modmill_engines;

typedef struct {
    const char *name;       /* OpenSSL's name of the group */
    const char *aliases[3]; /* its other names */
    const char *key;        /* name of the device in openssl.cnf */
    const char *tls_names[2];
    unsigned int tls_group;
    int tls_most; /* the last version of TLS that has it; 0: all */
    int bits;     /* of the order; the bytes of an order and of a coordinate are as many */
    size_t bytes; /* of a number */
    int raw; /* keys are byte strings, as in RFC 7748 and RFC 8032 */

    /* After an error the results are 0. The point of `public_key` begins after one byte, but for a raw key. */
    modmill_error (*public_key)(const modmill_engines *engines, unsigned char *point, const unsigned char *scalar);
    modmill_error (*exchange)(const modmill_engines *engines, unsigned char *secret, const unsigned char *scalar,
                    const unsigned char *point);
    modmill_error (*sign)(const modmill_engines *engines, unsigned char *r, unsigned char *s, const unsigned char *digest,
                size_t length, const unsigned char *scalar, const unsigned char *nonce);
    modmill_error (*verify)(const modmill_engines *engines, const unsigned char *r, const unsigned char *s,
                  const unsigned char *digest, size_t length, const unsigned char *point);
    int (*check_scalar)(const unsigned char *scalar); /* 0 if it is in [1, n); NULL for a raw key: all are right */
    modmill_error (*sign_message)(const modmill_engines *engines, unsigned char *signature,
                                  const unsigned char *message, size_t length, const unsigned char *seed);
    modmill_error (*verify_message)(const modmill_engines *engines, const unsigned char *signature,
                                    const unsigned char *message, size_t length, const unsigned char *public_key);
} modmill_curve;

extern const modmill_curve modmill_curves[]; /* ends with a curve without a name */

/* The numbers of a private RSA key, the most significant byte first. */
enum { MODMILL_N, MODMILL_E, MODMILL_P, MODMILL_Q, MODMILL_D_P, MODMILL_D_Q, MODMILL_Q_INVERSE, MODMILL_NUMBERS };

typedef struct {
    const unsigned char *bytes;
    size_t size;
} modmill_number;

typedef struct {
    const char *key;   /* name of the device in openssl.cnf */
    size_t prime_bits; /* of the longest prime */

    /* out = in^d mod n, both as long as n. After an error it is 0. */
    modmill_error (*private_operation)(const modmill_engines *engines, const modmill_number numbers[MODMILL_NUMBERS],
                                       unsigned char *out, const unsigned char *in);
} modmill_rsa;

extern const modmill_rsa modmill_rsas[]; /* the smaller ones first; ends with one without a key */

const modmill_curve *modmill_find(const char *name);
modmill_engines *modmill_engines_new(void);
void modmill_engines_free(modmill_engines *engines);
void modmill_set_path(modmill_engines *engines, const char *key, const char *path); /* key of a device */
const char *modmill_reason(modmill_error error);

#endif
