/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Modmill authors */
/* What firmware has in the SoC of sim.py: a console, interrupts, the end. MAIN.c defines LITEX_MAIN before it includes
 * this file, and has int main(void). Addresses and numbers of interrupts are LiteX's: TOP_BASE, TOP_INTERRUPT. */
#ifndef MODMILL_LITEX_H
#define MODMILL_LITEX_H

#include <stddef.h>
#include <stdint.h>

#include "csr.h"
#include "mem.h"
#include "soc.h"

int main(void);
void litex_end(int status);
void litex_interrupt(void);
void *memcpy(void *to, const void *from, size_t size); /* compilers call these two, and there is no library */
void *memset(void *to, int byte, size_t size);

/* Interrupts that were taken; each one is masked until litex_enable. */
extern volatile uint32_t litex_taken;

static inline void litex_print(const char *text)
{
    for (; *text != 0; text++) {
        while (*(volatile uint32_t *)CSR_UART_TXFULL_ADDR != 0u)
            ;
        *(volatile uint32_t *)CSR_UART_RXTX_ADDR = (uint8_t)*text;
    }
}

/* Take an interrupt once. */
static inline void litex_enable(uint32_t number)
{
    __asm__ volatile("csrw 0xbc0, %0" : : "r"(UINT32_C(1) << number)); /* VexRiscv's mask of interrupts */
    __asm__ volatile("csrs mie, %0" : : "r"(0x800u));
    __asm__ volatile("csrs mstatus, %0" : : "r"(0x8u));
}

#ifdef LITEX_MAIN
volatile uint32_t litex_taken;

void litex_interrupt(void)
{
    __asm__ volatile("csrw 0xbc0, zero");
    litex_taken++;
}

void *memcpy(void *to, const void *from, size_t size)
{
    volatile uint8_t *const bytes = to;
    size_t k;

    for (k = 0; k < size; k++)
        bytes[k] = ((const uint8_t *)from)[k];
    return to;
}

void *memset(void *to, int byte, size_t size)
{
    volatile uint8_t *const bytes = to;
    size_t k;

    for (k = 0; k < size; k++)
        bytes[k] = (uint8_t)byte;
    return to;
}

void litex_end(int status)
{
    *(volatile uint32_t *)CSR_END_STATUS_ADDR = (uint32_t)status;
}
#endif

#endif
