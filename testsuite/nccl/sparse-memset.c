/* sparse-memset.c: part of programs on the rig. NCCL clears large tables of which it fills little:
 * 0.9 GB in each rank for a graph file (from 2.29.7 on), 90 MB for a topology of eight GPUs. Here
 * their pages are given back, which makes them zero, too, but takes neither memory nor time.
 * TCCL_RIG_TABLES=whole: as everywhere. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((uintptr_t)4096)
#define LARGE ((size_t)1 << 18)

static void *(*libc)(void *, int, size_t);
static bool whole;

__attribute__((constructor)) static void find_libc(void)
{
    const char *tables = getenv("TCCL_RIG_TABLES");
    whole = tables && strcmp(tables, "whole") == 0;
    *(void **)&libc = dlsym(RTLD_NEXT, "memset");
}

static void *fill(void *start, int value, size_t size)
{
    volatile unsigned char *at = start;
    if (libc)
        return libc(start, value, size);
    while (size-- > 0)
        *at++ = (unsigned char)value;
    return start;
}

/* Memory that is shared, or a file's, would keep what it has: a mark shows that. */
static bool give_back(uintptr_t first, uintptr_t last)
{
    volatile char *mark = (volatile char *)first;
    *mark = 1;
    return madvise((void *)first, last - first, MADV_DONTNEED) == 0 && *mark == 0;
}

void *memset(void *start, int value, size_t size)
{
    uintptr_t from = (uintptr_t)start, to = from + size;
    uintptr_t first = (from + PAGE - 1) & ~(PAGE - 1), last = to & ~(PAGE - 1);
    if (size < LARGE || value != 0 || whole || !libc || !give_back(first, last))
        return fill(start, value, size);
    fill(start, 0, first - from);
    fill((void *)last, 0, to - last);
    return start;
}
