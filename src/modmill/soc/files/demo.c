/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Modmill authors */
/* X25519, ECDSA on P-256 and RSA with the CRT, each by polling and by interrupt; one line for each on the console:
 * name, mode, cycles, interrupts, result. */
#include "board.h"
#include "data.h"
#include "p256_calls.h"
#include "rsa_calls.h"
#include "x25519_calls.h"

static x25519_engine x25519;
static p256_engine p256;
static rsa_engine rsa;
static rsa_rsa_key key;
static uint8_t result[RSA_RSA_BYTES];

static int shared_secret(void)
{
    return x25519_x25519(&x25519, result, x25519_scalar, x25519_u);
}

static int signature(void)
{
    return p256_ecdsa_sign(&p256, result, result + 32, p256_hash, sizeof p256_hash, p256_d, p256_k);
}

static int private_operation(void)
{
    return rsa_rsa_private(&rsa, &key, result, rsa_message, rsa_random);
}

static void run(const char *name, int (*call)(void), unsigned device, size_t size)
{
    for (board_sleeps = 0; board_sleeps < 2; board_sleeps++) {
        const uint32_t interrupts = board_interrupts[device], start = board_cycles();
        const int error = call();
        const uint32_t cycles = board_cycles() - start;

        board_print(name);
        board_print(board_sleeps ? " interrupt " : " polling ");
        board_decimal(cycles);
        board_print(" ");
        board_decimal(board_interrupts[device] - interrupts);
        board_print(" ");
        if (error != 0) {
            board_print("error ");
            board_decimal((uint32_t)error);
        } else {
            board_hex(result, size);
        }
        board_print("\n");
    }
    board_sleeps = 0;
}

int main(void)
{
    const rsa_rsa_numbers numbers = {
        {rsa_n, sizeof rsa_n},     {rsa_e, sizeof rsa_e},     {rsa_p, sizeof rsa_p},
        {rsa_q, sizeof rsa_q},     {rsa_d_p, sizeof rsa_d_p}, {rsa_d_q, sizeof rsa_d_q},
        {rsa_q_inverse, sizeof rsa_q_inverse},
    };
    int error = x25519_engine_open(&x25519, (volatile uint32_t *)X25519_BASE);

    if (error == 0)
        error = p256_engine_open(&p256, (volatile uint32_t *)P256_BASE);
    if (error == 0)
        error = rsa_engine_open(&rsa, (volatile uint32_t *)RSA_BASE);
    if (error == 0)
        error = rsa_rsa_private_key(&key, &numbers);
    if (error != 0)
        return error;
    run("x25519", shared_secret, X25519_DEVICE, 32);
    run("p256", signature, P256_DEVICE, 64);
    run("rsa", private_operation, RSA_DEVICE, sizeof rsa_n);
    return 0;
}
