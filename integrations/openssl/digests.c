/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Modmill authors */
/* Signatures of a message that the provider hashes, above the signatures of digests of ECDSA and RSA. */
#include "provider.h"

int modmill_set_hash(modmill_signing *now, const char *name)
{
    EVP_MD_free(now->hash);
    now->hash = modmill_hash(now->of, name);
    return now->hash != NULL;
}

static int digest_init(modmill_signing *now, const char *name, const OSSL_PARAM params[])
{
    if (!modmill_set_hash(now, name != NULL && name[0] != '\0' ? name : "SHA256") || !now->kind->set_params(now, params))
        return 0;
    EVP_MD_CTX_free(now->hashing);
    now->hashing = EVP_MD_CTX_new();
    return now->hashing != NULL && EVP_DigestInit_ex2(now->hashing, now->hash, NULL);
}

int modmill_digest_sign_init(void *of, const char *name, void *own, const OSSL_PARAM params[])
{
    return ((modmill_signing *)of)->kind->sign_init(of, own, NULL) && digest_init(of, name, params);
}

int modmill_digest_verify_init(void *of, const char *name, void *own, const OSSL_PARAM params[])
{
    return ((modmill_signing *)of)->kind->verify_init(of, own, NULL) && digest_init(of, name, params);
}

int modmill_digest_update(void *of, const unsigned char *data, size_t size)
{
    return EVP_DigestUpdate(((modmill_signing *)of)->hashing, data, size);
}

int modmill_digest_sign_final(void *of, unsigned char *signature, size_t *size, size_t room)
{
    modmill_signing *const now = of;
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int length = 0;

    if (signature == NULL)
        return now->kind->sign(of, NULL, size, 0, NULL, 0);
    return EVP_DigestFinal_ex(now->hashing, digest, &length) &&
           now->kind->sign(of, signature, size, room, digest, length);
}

int modmill_digest_verify_final(void *of, const unsigned char *signature, size_t size)
{
    modmill_signing *const now = of;
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int length = 0;

    return EVP_DigestFinal_ex(now->hashing, digest, &length) &&
           now->kind->verify(of, signature, size, digest, length);
}
