/* ring-data.c: what goes into collectives and must come out. An element depends on nothing but its
 * rank and its place, so each rank knows what all others send. */
#include "ring-data.h"

#include <math.h>
#include <string.h>

enum { FEW = 1 << 18, STRIDE = 101 };

static bool all_ranks(enum ring_kind kind)
{
    return kind == RING_ALL_GATHER || kind == RING_ALL_TO_ALL;
}

size_t ring_data_sent(const struct ring_collective *collective, int ranks)
{
    bool all = collective->kind == RING_REDUCE_SCATTER || collective->kind == RING_ALL_TO_ALL;
    return ring_collective_count(collective, ranks) * (size_t)(all ? ranks : 1);
}

size_t ring_data_received(const struct ring_collective *collective, int rank, int ranks)
{
    if (collective->kind == RING_REDUCE && rank != ring_collective_root(collective, ranks))
        return 0;
    return ring_collective_count(collective, ranks) *
           (size_t)(all_ranks(collective->kind) ? ranks : 1);
}

/* ---- elements ---- */

/* Any 64 bits for an integer. For a float a multiple of its last digit from -1 to 1, or from 0.5 to
 * 1.5 where they are multiplied: so many bits as it can hold. */
static uint64_t random_bits(int rank, size_t index)
{
    uint64_t x = ((uint64_t)rank << 48 ^ index) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static double sent_float(const struct ring_collective *collective, int rank, size_t index)
{
    int shift = 64 - collective->type->digits;
    double value =
        ldexp((double)((int64_t)random_bits(rank, index) >> shift), 1 - collective->type->digits);
    return collective->op == ncclProd ? 1 + value / 2 : value;
}

static uint64_t sent_integer(const struct ring_type *type, int rank, size_t index)
{
    uint64_t bits = random_bits(rank, index);
    return type->size == 8 ? bits : bits & ((UINT64_C(1) << 8 * type->size) - 1);
}

/* A float's bits, of a value that it can hold and that is no denormal number. */
static uint64_t encode(const struct ring_type *type, double value)
{
    float single = (float)value;
    uint64_t bits = 0;
    uint32_t all;
    int exponent;
    if (type->type == ncclFloat64) {
        memcpy(&bits, &value, 8);
        return bits;
    }
    memcpy(&all, &single, 4);
    if (type->type == ncclFloat32)
        return all;
    if (type->type == RING_BFLOAT16)
        return all >> 16;
    if (value == 0)
        return 0;
    double fraction = frexp(fabs(value), &exponent); /* from 0.5 on */
    return (uint64_t)(value < 0) << 15 | (uint64_t)(exponent + 14) << 10 |
           ((uint64_t)ldexp(fraction, 11) & 0x3ff);
}

static double decode(const struct ring_type *type, uint64_t bits)
{
    uint32_t all = (uint32_t)(type->type == RING_BFLOAT16 ? bits << 16 : bits);
    int exponent = bits >> 10 & 31;
    double value;
    float single;
    if (type->type == ncclFloat64) {
        memcpy(&value, &bits, 8);
        return value;
    }
    if (type->type != ncclFloat16) {
        memcpy(&single, &all, 4);
        return single;
    }
    value = exponent == 31  ? NAN
            : exponent == 0 ? ldexp((double)(bits & 0x3ff), -24)
                            : ldexp((double)((bits & 0x3ff) | 0x400), exponent - 25);
    return bits >> 15 ? -value : value;
}

void ring_data_fill(const struct ring_collective *collective, int rank, int ranks, void *send)
{
    const struct ring_type *type = collective->type;
    size_t n = ring_data_sent(collective, ranks);
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = type->digits ? encode(type, sent_float(collective, rank, i))
                                     : sent_integer(type, rank, i);
        memcpy((char *)send + i * type->size, &bits, type->size);
    }
}

/* ---- results ---- */

static bool good_float(const struct ring_collective *collective, int ranks, size_t index,
                       uint64_t bits)
{
    long double got = decode(collective->type, bits), sum = 0, sizes = 0, product = 1;
    double least = INFINITY, most = -INFINITY;
    /* Of the result: ranks - 1 roundings, and two where each part is scaled first. */
    long double unit = ldexpl(ranks + 2, -collective->type->digits - 1), bound = unit / (1 - unit);
    for (int rank = 0; rank < ranks; rank++) {
        double value = sent_float(collective, rank, index);
        sum += value;
        sizes += fabs(value);
        product *= value;
        least = fmin(least, value);
        most = fmax(most, value);
    }
    switch ((int)collective->op) {
    case ncclMin:
        return got == least;
    case ncclMax:
        return got == most;
    case ncclProd:
        return fabsl(got - product) <= bound * fabsl(product);
    case ncclAvg:
        return fabsl(got - sum / ranks) <= bound * sizes / ranks;
    default:
        return fabsl(got - sum) <= bound * sizes;
    }
}

/* As a number of 64 bits. */
static int64_t extend(const struct ring_type *type, uint64_t bits)
{
    int shift = 64 - 8 * (int)type->size;
    return type->is_signed ? (int64_t)(bits << shift) >> shift : (int64_t)bits;
}

static bool is_less(const struct ring_type *type, uint64_t a, uint64_t b)
{
    return type->is_signed ? extend(type, a) < extend(type, b) : a < b;
}

static bool good_integer(const struct ring_collective *collective, int ranks, size_t index,
                         uint64_t got)
{
    const struct ring_type *type = collective->type;
    uint64_t result = sent_integer(type, 0, index), mask = UINT64_MAX >> (64 - 8 * type->size);
    for (int rank = 1; rank < ranks; rank++) {
        uint64_t value = sent_integer(type, rank, index);
        switch ((int)collective->op) {
        case ncclMin:
            result = is_less(type, value, result) ? value : result;
            break;
        case ncclMax:
            result = is_less(type, result, value) ? value : result;
            break;
        case ncclProd:
            result *= value;
            break;
        default:
            result += value;
        }
    }
    result &= mask;
    if (collective->op == ncclAvg)
        result = type->is_signed ? (uint64_t)(extend(type, result) / ranks) & mask
                                 : result / (uint64_t)ranks;
    return got == result;
}

/* What was sent by one rank. */
static bool good_copy(const struct ring_collective *collective, int rank, size_t index,
                      uint64_t got)
{
    const struct ring_type *type = collective->type;
    return got == (type->digits ? encode(type, sent_float(collective, rank, index))
                                : sent_integer(type, rank, index));
}

static bool good(const struct ring_collective *collective, int rank, int ranks, size_t i,
                 uint64_t got)
{
    size_t count = ring_collective_count(collective, ranks);
    switch (collective->kind) {
    case RING_ALL_GATHER:
        return good_copy(collective, (int)(i / count), i % count, got);
    case RING_ALL_TO_ALL:
        return good_copy(collective, (int)(i / count), (size_t)rank * count + i % count, got);
    case RING_BROADCAST:
        return good_copy(collective, ring_collective_root(collective, ranks), i, got);
    default:
        i += collective->kind == RING_REDUCE_SCATTER ? (size_t)rank * count : 0;
        return collective->type->digits ? good_float(collective, ranks, i, got)
                                        : good_integer(collective, ranks, i, got);
    }
}

size_t ring_data_wrong(const struct ring_collective *collective, int rank, int ranks,
                       const void *received)
{
    size_t size = collective->type->size, n = ring_data_received(collective, rank, ranks);
    size_t wrong = 0;
    for (size_t i = 0; i<n; i += n> FEW && i + STRIDE < n ? STRIDE : 1) {
        uint64_t got = 0;
        memcpy(&got, (const char *)received + i * size, size);
        wrong += !good(collective, rank, ranks, i, got);
    }
    return wrong;
}

uint64_t ring_data_digest(const struct ring_collective *collective, int rank, int ranks,
                          const void *received)
{
    size_t bytes = ring_data_received(collective, rank, ranks) * collective->type->size;
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = 0;
        memcpy(&word, (const char *)received + i, bytes - i < 8 ? bytes - i : 8);
        digest = (digest ^ word) * UINT64_C(0x100000001b3);
        digest ^= digest >> 29;
    }
    return digest;
}
