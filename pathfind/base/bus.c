/* bus.c: PCI bus ids as numbers. Of libc only. */
#include "base/bus.h"

#include <stddef.h>
#include <string.h>

#include "base/append.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Reads 1 … most hexadecimal digits up to the character end. */
static const char *read_part(const char *at, int most, char end, uint64_t *value)
{
    int n = 0;
    *value = 0;
    for (; hex_digit(at[n]) >= 0; n++) {
        if (n >= most)
            return NULL;
        *value = *value << 4 | (uint64_t)hex_digit(at[n]);
    }
    return n > 0 && at[n] == end ? at + n + (end != '\0') : NULL;
}

int tccl_bus_parse(const char *text, tccl_bus *bus)
{
    uint64_t domain = 0, number, device, function;
    const char *first = strchr(text, ':'), *at = text;
    if (!first)
        return -1;
    if (strchr(first + 1, ':') && !(at = read_part(at, 8, ':', &domain)))
        return -1;
    if (!(at = read_part(at, 2, ':', &number)) || !(at = read_part(at, 2, '.', &device)) ||
        !(at = read_part(at, 1, '\0', &function)) || device > 31 || function > 7)
        return -1;
    *bus = domain << 16 | number << 8 | device << 3 | function;
    return 0;
}

void tccl_bus_format(tccl_bus bus, char text[static TCCL_BUS_TEXT])
{
    struct tccl_append to = {.text = text, .size = TCCL_BUS_TEXT};
    tccl_append_number(&to, bus >> 16 & UINT32_MAX, 4, 16);
    tccl_append(&to, ":");
    tccl_append_number(&to, bus >> 8 & 0xff, 2, 16);
    tccl_append(&to, ":");
    tccl_append_number(&to, bus >> 3 & 31, 2, 16);
    tccl_append(&to, ".");
    tccl_append_number(&to, bus & 7, 1, 16);
}
