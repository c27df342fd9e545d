/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Modmill authors */
/* Console, cycles and interrupts of the system, and what a compiler expects of a C library. */
#include "board.h"

#define CONSOLE ((volatile uint32_t *)BOARD_CONSOLE)
#define END (CONSOLE + 1)
#define FAULTS 6u          /* an illegal instruction, a misaligned access */
#define LONGEST_SLEEP 4096 /* cycles, after which a driver reads STATUS although no interrupt came */

int board_sleeps;
volatile uint32_t board_interrupts[BOARD_DEVICES];

static volatile uint32_t woken;
static const uint32_t bases[BOARD_DEVICES] = BOARD_BASES;

static volatile uint32_t *enable(unsigned device)
{
    return (volatile uint32_t *)(bases[device] + BOARD_IRQ_ENABLE);
}

/* Instructions of PicoRV32. */
static uint32_t mask_interrupts(uint32_t mask)
{
    uint32_t old;

    __asm__ volatile(".insn r 0x0b, 0, 0x03, %0, %1, x0" : "=r"(old) : "r"(mask) : "memory");
    return old;
}

static void wait_for_interrupt(void)
{
    uint32_t pending;

    __asm__ volatile(".insn r 0x0b, 0, 0x04, %0, x0, x0" : "=r"(pending) : : "memory");
}

static void set_timer(uint32_t cycles)
{
    uint32_t old;

    __asm__ volatile(".insn r 0x0b, 0, 0x05, %0, %1, x0" : "=r"(old) : "r"(cycles) : "memory");
}

void interrupt(uint32_t pending);

void interrupt(uint32_t pending)
{
    unsigned k;

    if ((pending & FAULTS) != 0u)
        board_end(3);
    for (k = 0; k < BOARD_DEVICES; k++)
        if ((pending >> (BOARD_FIRST_INTERRUPT + k) & 1u) != 0u) {
            *enable(k) = 0u; /* the device holds its interrupt until the event is cleared */
            board_interrupts[k]++;
        }
    woken = 1u;
}

/* The device's interrupt stays enabled until it comes, also while STATUS is read between two sleeps. */
void board_wait(unsigned device)
{
    if (!board_sleeps)
        return;
    (void)mask_interrupts(~0u);
    woken = 0u;
    *enable(device) = 3u;
    set_timer(LONGEST_SLEEP);
    while (woken == 0u) { /* interrupts are taken only between the masks, so none comes between test and sleep */
        wait_for_interrupt();
        (void)mask_interrupts(0u);
        (void)mask_interrupts(~0u);
    }
    set_timer(0u);
    (void)mask_interrupts(0u);
}

uint32_t board_cycles(void)
{
    uint32_t cycles;

    __asm__ volatile("rdcycle %0" : "=r"(cycles));
    return cycles;
}

void board_print(const char *text)
{
    while (*text != '\0')
        *CONSOLE = (uint32_t)(unsigned char)*text++;
}

void board_hex(const uint8_t *bytes, size_t size)
{
    size_t k;

    for (k = 0; k < 2u * size; k++)
        *CONSOLE = (uint32_t)"0123456789abcdef"[k % 2u != 0u ? bytes[k / 2u] & 15u : bytes[k / 2u] >> 4];
}

void board_decimal(uint32_t number)
{
    char digits[11];
    size_t at = sizeof digits - 1u;

    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10u);
        number /= 10u;
    } while (number != 0u);
    board_print(digits + at);
}

void board_end(int status)
{
    *END = (uint32_t)status;
    for (;;)
        ;
}

void *memcpy(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
int memcmp(const void *one, const void *other, size_t size);

void *memcpy(void *to, const void *from, size_t size)
{
    uint8_t *t = to;
    const uint8_t *f = from;

    while (size-- != 0u)
        *t++ = *f++;
    return to;
}

void *memset(void *to, int byte, size_t size)
{
    uint8_t *t = to;

    while (size-- != 0u)
        *t++ = (uint8_t)byte;
    return to;
}

int memcmp(const void *one, const void *other, size_t size)
{
    const uint8_t *a = one, *b = other;

    for (; size != 0u; size--, a++, b++)
        if (*a != *b)
            return *a < *b ? -1 : 1;
    return 0;
}
