/* texts.c: a hash table of interned texts, open addressing, all bytes in one buffer. A text stands
 * behind its numbers, and a slot says where: far apart in memory, each look costs a wait. */
#include "records/summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"

enum { FIRST = 64, PLACE_BITS = 48 };
#define PLACE (((size_t)1 << PLACE_BITS) - 1)

/* What stands before a text in bytes, whose end is aligned for it. */
struct head {
    uint64_t hash, tag;
    size_t size;
    int number;
};

static const struct head *head_at(const struct tccl_texts *texts, size_t at)
{
    return (const struct head *)(const void *)(texts->bytes + at);
}

static void fill_slot(struct tccl_texts *texts, uint64_t hash, size_t at)
{
    size_t slot = hash & (texts->n_slots - 1);
    while (texts->slots[slot])
        slot = (slot + 1) & (texts->n_slots - 1);
    texts->slots[slot] = (hash & ~PLACE) | (at + 1);
}

/* Doubles the slots, so that they are at most half full. Returns 0 or -1. */
static int more_slots(struct tccl_texts *texts)
{
    size_t n_slots = texts->n_slots ? 2 * texts->n_slots : 2 * FIRST;
    size_t *slots = calloc(n_slots, sizeof(*slots));
    if (!slots)
        return -1;
    free(texts->slots);
    texts->slots = slots;
    texts->n_slots = n_slots;
    for (int i = 0; i < texts->count; i++)
        fill_slot(texts, head_at(texts, texts->entries[i])->hash, texts->entries[i]);
    return 0;
}

static int add(struct tccl_texts *texts, const char *text, const struct head *head)
{
    size_t at = texts->used, size = sizeof(*head) + head->size + 1;
    if (TCCL_GROW(texts->entries, texts->count, texts->room) != 0)
        return -1;
    size = (size + _Alignof(struct head) - 1) & ~(_Alignof(struct head) - 1);
    if (at + size > texts->bytes_room) {
        size_t room = 2 * texts->bytes_room + size + 4096;
        char *bytes = realloc(texts->bytes, room);
        if (!bytes || room > PLACE)
            return -1;
        texts->bytes = bytes;
        texts->bytes_room = room;
    }
    memcpy(texts->bytes + at, head, sizeof(*head));
    memcpy(texts->bytes + at + sizeof(*head), text, head->size);
    texts->bytes[at + sizeof(*head) + head->size] = '\0';
    texts->used += size;
    fill_slot(texts, head->hash, at);
    texts->entries[texts->count] = at;
    return texts->count++;
}

int tccl_texts_number(struct tccl_texts *texts, const char *text, size_t size, uint64_t tag)
{
    struct head new = {tccl_hash64(text, size) ^ tag * 0x9e3779b97f4a7c15, tag, size, texts->count};
    if ((size_t)texts->count * 2 >= texts->n_slots && more_slots(texts) != 0)
        return -1;
    for (size_t slot = new.hash &(texts->n_slots - 1); texts->slots[slot];
         slot = (slot + 1) & (texts->n_slots - 1)) {
        if ((texts->slots[slot] ^ new.hash) & ~PLACE)
            continue;
        const struct head *head = head_at(texts, (texts->slots[slot] & PLACE) - 1);
        if (head->tag == tag && head->size == size && memcmp(head + 1, text, size) == 0)
            return head->number;
    }
    return add(texts, text, &new);
}

const char *tccl_texts_get(const struct tccl_texts *texts, int number)
{
    return (const char *)(head_at(texts, texts->entries[number]) + 1);
}

void tccl_texts_clear(struct tccl_texts *texts)
{
    free(texts->entries);
    free(texts->slots);
    free(texts->bytes);
    *texts = (struct tccl_texts){0};
}
