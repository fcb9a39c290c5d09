/* grow.h: arrays that grow. */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

/* Doubles an array (of count elements, with room for so many) when it is full: an int counts them.
 * Returns 0, or -1 without memory. */
static inline int tccl_grow(void **array, size_t count, size_t *room, size_t element)
{
    if (count < *room)
        return 0;
    if (*room > INT_MAX / 2)
        return -1;
    const size_t wanted = *room ? *room * 2 : 64;
    void *larger = reallocarray(*array, wanted, element);
    if (!larger)
        return -1;
    *array = larger;
    *room = wanted;
    return 0;
}
#define TCCL_GROW(array, count, room) tccl_grow((void **)&(array), count, &(room), sizeof(*(array)))
