/* transfer.c: one copy with a kind, a source and a destination, and sets of them. */
#include "machine/transfer.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The position of the first member that is not below the transfer. */
static int find_place(const struct tccl_set *set, tccl_transfer transfer)
{
    int place = 0;
    while (place < set->count && set->transfers[place] < transfer)
        place++;
    return place;
}

int tccl_set_add_again(struct tccl_set *set, tccl_transfer transfer)
{
    int place = find_place(set, transfer);
    if (set->count >= TCCL_MAX_SET)
        return -1;
    memmove(set->transfers + place + 1, set->transfers + place,
            (size_t)(set->count - place) * sizeof(set->transfers[0]));
    set->transfers[place] = transfer;
    set->count++;
    return 0;
}

int tccl_set_add(struct tccl_set *set, tccl_transfer transfer)
{
    return tccl_set_has(set, transfer) ? 1 : tccl_set_add_again(set, transfer);
}

struct tccl_set tccl_set_sorted(const tccl_transfer *transfers, int count)
{
    struct tccl_set set = {.count = 0};
    for (int i = 0; i < count; i++)
        tccl_set_add(&set, transfers[i]);
    return set;
}

bool tccl_set_repeats(const struct tccl_set *set)
{
    for (int i = 1; i < set->count; i++)
        if (set->transfers[i] == set->transfers[i - 1])
            return true;
    return false;
}

bool tccl_set_has(const struct tccl_set *set, tccl_transfer transfer)
{
    int place = find_place(set, transfer);
    return place < set->count && set->transfers[place] == transfer;
}

static int compare(const void *a, const void *b)
{
    tccl_transfer x = *(const tccl_transfer *)a, y = *(const tccl_transfer *)b;
    return (x > y) - (x < y);
}

void tccl_transfers_sort(tccl_transfer *transfers, int count)
{
    qsort(transfers, (size_t)count, sizeof(*transfers), compare);
}

bool tccl_transfers_contain(const tccl_transfer *all, int count, const tccl_transfer *part,
                            int wanted)
{
    int at = 0;
    for (int i = 0; i < wanted; i++) {
        while (at < count && all[at] < part[i])
            at++;
        if (at == count || all[at++] != part[i])
            return false;
    }
    return true;
}

bool tccl_set_contains(const struct tccl_set *set, const struct tccl_set *subset)
{
    return tccl_transfers_contain(set->transfers, set->count, subset->transfers, subset->count);
}

static uint32_t gpu_bit(struct tccl_device device)
{
    return device.kind == TCCL_GPU ? UINT32_C(1) << device.index : 0;
}

uint32_t tccl_set_gpus(const struct tccl_set *set)
{
    uint32_t gpus = 0;
    for (int i = 0; i < set->count; i++)
        gpus |= gpu_bit(tccl_transfer_initiator(set->transfers[i])) |
                gpu_bit(tccl_transfer_target(set->transfers[i]));
    return gpus;
}

bool tccl_set_equal(const struct tccl_set *a, const struct tccl_set *b)
{
    return a->count == b->count &&
           memcmp(a->transfers, b->transfers, a->count * sizeof(a->transfers[0])) == 0;
}

_Static_assert(TCCL_MAX_GPUS == TCCL_MAX_MEMORIES && TCCL_MAX_GPUS == TCCL_MAX_NICS,
               "one width for all images");

struct tccl_exchange tccl_exchange_none(void)
{
    struct tccl_exchange none;
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        for (int kind = TCCL_GPU; kind <= TCCL_NIC; kind++)
            none.image[kind][i] = (uint8_t)i;
    return none;
}

uint32_t tccl_exchange_gpus(const struct tccl_exchange *move, uint32_t gpus)
{
    uint32_t images = 0;
    for (; gpus; gpus &= gpus - 1)
        images |= UINT32_C(1) << move->image[TCCL_GPU][__builtin_ctz(gpus)];
    return images;
}

struct tccl_exchange tccl_exchange_then(const struct tccl_exchange *first,
                                        const struct tccl_exchange *then)
{
    struct tccl_exchange both;
    for (int kind = TCCL_GPU; kind <= TCCL_NIC; kind++)
        for (int i = 0; i < TCCL_MAX_GPUS; i++)
            both.image[kind][i] = then->image[kind][first->image[kind][i]];
    return both;
}

bool tccl_exchange_in_order(const struct tccl_exchange *move, uint32_t gpus)
{
    int before = -1;
    for (; gpus; gpus &= gpus - 1) {
        int image = move->image[TCCL_GPU][__builtin_ctz(gpus)];
        if (image <= before)
            return false;
        before = image;
    }
    return true;
}

struct tccl_device tccl_exchange_device(const struct tccl_exchange *exchange,
                                        struct tccl_device device)
{
    return (struct tccl_device){device.kind, exchange->image[device.kind][device.index]};
}

tccl_transfer tccl_exchange_transfer(const struct tccl_exchange *exchange, tccl_transfer transfer)
{
    return tccl_transfer_make(tccl_exchange_device(exchange, tccl_transfer_initiator(transfer)),
                              tccl_transfer_reads(transfer),
                              tccl_exchange_device(exchange, tccl_transfer_target(transfer)));
}

void tccl_exchange_set(const struct tccl_exchange *exchange, const struct tccl_set *set,
                       struct tccl_set *image)
{
    image->count = 0;
    for (int i = 0; i < set->count; i++)
        tccl_set_add(image, tccl_exchange_transfer(exchange, set->transfers[i]));
}

/* Reads "g12" and moves *text behind it. Returns 0, or -1. */
static int parse_device(const char **text, struct tccl_device *device)
{
    static const char kinds[] = "gmn"; /* in the order of enum tccl_device_kind */
    const char *at = *text;
    const char *kind = *at ? strchr(kinds, *at) : NULL;
    int index = 0, digits = 0;
    if (!kind)
        return -1;
    for (at++; isdigit((unsigned char)*at) && digits < 3; at++, digits++)
        index = index * 10 + (*at - '0');
    if (digits == 0 || index > 15)
        return -1;
    *device = (struct tccl_device){.kind = (uint8_t)(kind - kinds), .index = (uint8_t)index};
    *text = at;
    return 0;
}

static bool is_gap(char character)
{
    return character == ',' || isspace((unsigned char)character);
}

/* Reads one member and moves *text behind it. Returns 0, or -1. */
static int parse_transfer(const char **text, tccl_transfer *transfer)
{
    const char *at = *text;
    struct tccl_device initiator, target;
    if (parse_device(&at, &initiator) != 0 || (*at != '>' && *at != '<'))
        return -1;
    bool reads = *at++ == '<';
    if (parse_device(&at, &target) != 0 || (*at && !is_gap(*at)))
        return -1;
    *transfer = tccl_transfer_make(initiator, reads, target);
    if (!tccl_transfer_valid(*transfer))
        return -1;
    *text = at;
    return 0;
}

static int parse_set(const char *text, bool repeats, struct tccl_set *set, struct tccl_error *err)
{
    const char *at = text;
    set->count = 0;
    for (;;) {
        while (is_gap(*at))
            at++;
        if (!*at)
            return 0;
        const char *member = at;
        int length = (int)strcspn(member, ", \t\r\n");
        tccl_transfer transfer;
        if (parse_transfer(&at, &transfer) != 0)
            return tccl_fail(err, "\"%.*s\" is no transfer; write g0>g1, g1<g0, g0>m2, n0<m1",
                             length > 40 ? 40 : length, member);
        int added = repeats ? tccl_set_add_again(set, transfer) : tccl_set_add(set, transfer);
        if (added > 0)
            return tccl_fail(err, "\"%.*s\" is there twice", length, member);
        if (added < 0)
            return tccl_fail(err, "more than %d transfers", TCCL_MAX_SET);
    }
}

int tccl_set_parse(const char *text, struct tccl_set *set, struct tccl_error *err)
{
    return parse_set(text, false, set, err);
}

int tccl_set_parse_repeats(const char *text, struct tccl_set *set, struct tccl_error *err)
{
    return parse_set(text, true, set, err);
}

void tccl_transfer_format(tccl_transfer transfer, char text[static 12])
{
    static const char kinds[] = "gmn?";
    struct tccl_device initiator = tccl_transfer_initiator(transfer);
    struct tccl_device target = tccl_transfer_target(transfer);
    snprintf(text, 12, "%c%d%c%c%d", kinds[initiator.kind & 3], initiator.index,
             tccl_transfer_reads(transfer) ? '<' : '>', kinds[target.kind & 3], target.index);
}

void tccl_set_format(const struct tccl_set *set, char text[static TCCL_SET_TEXT])
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < set->count; i++) {
        char member[12];
        tccl_transfer_format(set->transfers[i], member);
        length +=
            (size_t)snprintf(text + length, TCCL_SET_TEXT - length, "%s%s", i ? " " : "", member);
    }
}
