/* texts.c: a hash table of interned texts, open addressing, all bytes in one buffer. */
#include "records/texts.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { FIRST = 64 };

void *tccl_room_for(void *array, int count, int *room, size_t size)
{
    if (count < *room)
        return array;
    if (*room > INT_MAX / 2)
        return NULL;
    int more = *room ? 2 * *room : FIRST;
    void *moved = reallocarray(array, (size_t)more, size);
    if (moved)
        *room = more;
    return moved;
}

static size_t slot_of(const struct tccl_texts *texts, uint64_t hash)
{
    return (size_t)hash & (texts->n_slots - 1);
}

/* Doubles the slots, so that they are at most half full. Returns 0 or -1. */
static int more_slots(struct tccl_texts *texts)
{
    size_t n_slots = texts->n_slots ? 2 * texts->n_slots : 2 * FIRST;
    int *slots = calloc(n_slots, sizeof(*slots));
    if (!slots)
        return -1;
    free(texts->slots);
    texts->slots = slots;
    texts->n_slots = n_slots;
    for (int i = 0; i < texts->count; i++) {
        size_t slot = slot_of(texts, texts->entries[i].hash);
        while (slots[slot])
            slot = (slot + 1) & (n_slots - 1);
        slots[slot] = i + 1;
    }
    return 0;
}

static int keep_bytes(struct tccl_texts *texts, const char *text, size_t size)
{
    if (texts->used + size + 1 > texts->bytes_room) {
        size_t room = 2 * texts->bytes_room + size + 4096;
        char *bytes = realloc(texts->bytes, room);
        if (!bytes)
            return -1;
        texts->bytes = bytes;
        texts->bytes_room = room;
    }
    memcpy(texts->bytes + texts->used, text, size);
    texts->bytes[texts->used + size] = '\0';
    texts->used += size + 1;
    return 0;
}

static int add(struct tccl_texts *texts, const char *text, size_t size, uint64_t tag, uint64_t hash)
{
    size_t at = texts->used;
    struct tccl_text *entries =
        tccl_room_for(texts->entries, texts->count, &texts->room, sizeof(*entries));
    if (!entries)
        return -1;
    texts->entries = entries;
    if (keep_bytes(texts, text, size) != 0)
        return -1;
    size_t slot = slot_of(texts, hash);
    while (texts->slots[slot])
        slot = (slot + 1) & (texts->n_slots - 1);
    texts->slots[slot] = texts->count + 1;
    entries[texts->count] = (struct tccl_text){hash, tag, at, size};
    return texts->count++;
}

int tccl_texts_number(struct tccl_texts *texts, const char *text, size_t size, uint64_t tag)
{
    uint64_t hash = tccl_hash64(text, size) ^ tag * 0x9e3779b97f4a7c15;
    if ((size_t)texts->count * 2 >= texts->n_slots && more_slots(texts) != 0)
        return -1;
    for (size_t slot = slot_of(texts, hash); texts->slots[slot];
         slot = (slot + 1) & (texts->n_slots - 1)) {
        const struct tccl_text *entry = &texts->entries[texts->slots[slot] - 1];
        if (entry->hash == hash && entry->tag == tag && entry->size == size &&
            memcmp(texts->bytes + entry->at, text, size) == 0)
            return texts->slots[slot] - 1;
    }
    return add(texts, text, size, tag, hash);
}

const char *tccl_texts_get(const struct tccl_texts *texts, int number)
{
    return texts->bytes + texts->entries[number].at;
}

void tccl_texts_clear(struct tccl_texts *texts)
{
    free(texts->entries);
    free(texts->slots);
    free(texts->bytes);
    *texts = (struct tccl_texts){0};
}
