/* texts.h: interned texts, numbered from 0 in order of appearance, all in one allocation. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct tccl_texts {
    size_t *entries; /* where in bytes each begins */
    int count, room;
    size_t *slots; /* the same + 1, below bits of its hash, 0: empty; n_slots is a power of two */
    size_t n_slots;
    char *bytes;
    size_t used, bytes_room;
};

/* The number of a text of that size under a tag; a new text gets the next number. -1 if out of
 * memory. All zeros is an empty set; tccl_texts_clear frees. */
int tccl_texts_number(struct tccl_texts *texts, const char *text, size_t size, uint64_t tag);
/* A text by its number, terminated by NUL; valid until the next one is added. */
const char *tccl_texts_get(const struct tccl_texts *texts, int number);
void tccl_texts_clear(struct tccl_texts *texts);

/* Makes room for one more element of size bytes in an array of count. Returns the array, which may
 * have moved, or NULL if out of memory: the old one is then still valid. */
void *tccl_room_for(void *array, int count, int *room, size_t size);
