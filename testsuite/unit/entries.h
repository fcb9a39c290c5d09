/* entries.h: the entries of a chain table that are of some parts, by number. */
#pragma once

#include "ring/table.h"

__attribute__((unused)) static int entries(const struct tccl_table *table, unsigned parts)
{
    int n = 0;
    for (const struct tccl_result *own = NULL; (own = tccl_table_next(table, own, parts));)
        n++;
    return n;
}

__attribute__((unused)) static struct tccl_result *entry(const struct tccl_table *table,
                                                         unsigned parts, int i)
{
    struct tccl_result *own = NULL;
    do
        own = tccl_table_next(table, own, parts);
    while (i-- > 0);
    return own;
}
