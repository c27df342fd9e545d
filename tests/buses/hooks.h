/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses of the driver go to functions of the test, which has the simulated bus. */
#include <stdint.h>

extern uint32_t (*bus_read)(uint32_t offset);
extern void (*bus_write)(uint32_t offset, uint32_t word);
#define STUB_READ32(device, offset) ((void)(device), bus_read(offset))
#define STUB_WRITE32(device, offset, word) ((void)(device), bus_write((offset), (word)))
