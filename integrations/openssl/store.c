/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Modmill authors */
/* Keys by reference: the URI modmill:key=FILE is the private key in a PEM file. The provider reads it, and no function
 * of OpenSSL gets its private half from the provider again.
 */
#include "provider.h"

#include <openssl/pem.h>

static const char SCHEME[] = "modmill:key=";

typedef struct {
    provider *of;
    char *path;
    int done;
} store;

typedef struct {
    OSSL_PASSPHRASE_CALLBACK *ask;
    void *argument;
} asked;

static void *store_open(void *of, const char *uri)
{
    store *made;

    if (strncmp(uri, SCHEME, sizeof SCHEME - 1) != 0) {
        modmill_say(of, PROV_R_INVALID_KEY, "a key is named by %sFILE, not by %s", SCHEME, uri);
        return NULL;
    }
    made = OPENSSL_zalloc(sizeof *made);
    if (made != NULL) {
        made->of = of;
        made->path = OPENSSL_strdup(uri + sizeof SCHEME - 1);
    }
    return made;
}

static int store_close(void *closed)
{
    store *const old = closed;

    OPENSSL_free(old->path);
    OPENSSL_free(old);
    return 1;
}

static int store_end(void *of)
{
    return ((store *)of)->done;
}

static int store_set_params(void *of, const OSSL_PARAM params[])
{
    (void)of;
    (void)params;
    return 1;
}

static int passphrase(char *to, int size, int writes, void *of)
{
    const asked *const from = of;
    size_t length = 0;

    (void)writes;
    return size > 0 && from->ask != NULL && from->ask(to, (size_t)size, &length, NULL, from->argument) ? (int)length : -1;
}

static void (*function(const OSSL_DISPATCH *table, int id))(void)
{
    while (table->function_id != 0 && table->function_id != id)
        table++;
    return table->function;
}

/* Give a key of libcrypto on as one of ours. */
static int give_key(const store *from, const EVP_PKEY *read, OSSL_CALLBACK *give, void *argument)
{
    const char *const type = EVP_PKEY_get0_type_name(read);
    const OSSL_DISPATCH *const table = type != NULL ? modmill_keys(type) : NULL;
    int what = OSSL_OBJECT_PKEY, done = 0;
    OSSL_PARAM *numbers = NULL;
    void *made = NULL;

    if (table == NULL) {
        modmill_say(from->of, PROV_R_INVALID_KEY, "no engine is built in for a key of type %s", type ? type : "unknown");
        return 0;
    }
    if (EVP_PKEY_todata(read, EVP_PKEY_KEYPAIR, &numbers))
        made = ((OSSL_FUNC_keymgmt_new_fn *)function(table, OSSL_FUNC_KEYMGMT_NEW))(from->of);
    if (made != NULL && ((OSSL_FUNC_keymgmt_import_fn *)function(table, OSSL_FUNC_KEYMGMT_IMPORT))(
                            made, EVP_PKEY_KEYPAIR, numbers)) {
        const OSSL_PARAM object[] = {
            OSSL_PARAM_int(OSSL_OBJECT_PARAM_TYPE, &what),
            OSSL_PARAM_utf8_string(OSSL_OBJECT_PARAM_DATA_TYPE, (char *)(uintptr_t)type, strlen(type)),
            OSSL_PARAM_octet_string(OSSL_OBJECT_PARAM_REFERENCE, &made, sizeof made), OSSL_PARAM_END};

        done = give(object, argument); /* the key's function for loading clears `made` */
    }
    OSSL_PARAM_free(numbers);
    if (made != NULL)
        ((OSSL_FUNC_keymgmt_free_fn *)function(table, OSSL_FUNC_KEYMGMT_FREE))(made);
    return done;
}

static int store_load(void *of, OSSL_CALLBACK *give, void *argument, OSSL_PASSPHRASE_CALLBACK *ask, void *ask_argument)
{
    store *const now = of;
    asked from = {ask, ask_argument};
    BIO *const file = now->path != NULL ? BIO_new_file(now->path, "r") : NULL;
    EVP_PKEY *read = NULL;
    int done;

    now->done = 1;
    if (file != NULL)
        read = PEM_read_bio_PrivateKey_ex(file, NULL, passphrase, &from, NULL, "provider!=modmill");
    BIO_free(file);
    if (read == NULL) {
        modmill_say(now->of, PROV_R_INVALID_KEY, "%s holds no private key in PEM, or cannot be read", now->path);
        return 0;
    }
    done = give_key(now, read, give, argument);
    EVP_PKEY_free(read);
    return done;
}

const OSSL_DISPATCH modmill_stores[] = {
    FUNCTION(OSSL_FUNC_STORE_OPEN, store_open), FUNCTION(OSSL_FUNC_STORE_LOAD, store_load),
    FUNCTION(OSSL_FUNC_STORE_EOF, store_end), FUNCTION(OSSL_FUNC_STORE_CLOSE, store_close),
    FUNCTION(OSSL_FUNC_STORE_SET_CTX_PARAMS, store_set_params), {0, NULL}};
