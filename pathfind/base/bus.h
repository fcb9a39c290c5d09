/* bus.h: PCI bus ids as numbers. Of libc only: the runtime shim has this too. */
#pragma once

#include <stdint.h>

/* A PCI address: domain << 16 | bus << 8 | device << 3 | function. Sorts as buses do. */
typedef uint64_t tccl_bus;

enum { TCCL_BUS_TEXT = 20 };

/* Reads "0000:41:00.0", "00000000:41:00.0" (CUDA, NVML) or "41:00.0", any case. Returns 0, or -1.
 */
int tccl_bus_parse(const char *text, tccl_bus *bus);
/* Writes "0000:41:00.0". */
void tccl_bus_format(tccl_bus bus, char text[static TCCL_BUS_TEXT]);
