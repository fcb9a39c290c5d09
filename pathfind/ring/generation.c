/* generation.c: generations of NCCL, and what its search says of a graph as text. */
#include "ring/generation.h"

#include <stddef.h>
#include <stdio.h>

/* nccl/baseline.h says what changed with each. */
const struct tccl_generation tccl_generations[TCCL_GENERATIONS] = {
    [TCCL_NCCL_2_18] = {21800, "2.18"}, [TCCL_NCCL_2_19] = {21900, "2.19"},
    [TCCL_NCCL_2_20] = {22000, "2.20"}, [TCCL_NCCL_2_21] = {22100, "2.21"},
    [TCCL_NCCL_2_22] = {22200, "2.22"}, [TCCL_NCCL_2_23] = {22300, "2.23"},
    [TCCL_NCCL_2_25] = {22500, "2.25"}, [TCCL_NCCL_2_26] = {22600, "2.26"},
    [TCCL_NCCL_2_27] = {22700, "2.27"}, [TCCL_NCCL_2_28] = {22800, "2.28"},
    [TCCL_NCCL_2_29] = {22900, "2.29"}, [TCCL_NCCL_2_30] = {23000, "2.30"},
};

int tccl_generation_of(int version)
{
    int generation = TCCL_NEWEST;

    while (generation > 0 && version < tccl_generations[generation].first)
        generation--;
    return generation;
}

void tccl_nominal_least(struct tccl_nominal *all, const struct tccl_nominal *other)
{
    all->channels = other->channels < all->channels ? other->channels : all->channels;
    all->intra = other->intra < all->intra ? other->intra : all->intra;
    all->inter = other->inter < all->inter ? other->inter : all->inter;
    all->far_intra = other->far_intra > all->far_intra ? other->far_intra : all->far_intra;
    all->far_inter = other->far_inter > all->far_inter ? other->far_inter : all->far_inter;
}

/* NCCL's words for enum tccl_far. */
static const char *far_word(uint8_t far)
{
    static const char *const words[] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                        "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};

    return far < sizeof(words) / sizeof(*words) ? words[far] : "DIS";
}

/* In plain digits, whatever the locale: NCCL's rates have two decimals at the most. */
static int put_rate(char *text, size_t size, float gbps)
{
    long hundredths = gbps > 0 && gbps < 1e6F ? (long)((double)gbps * 100 + .5) : 0;

    if (hundredths % 100 == 0)
        return snprintf(text, size, " %ld", hundredths / 100);
    return snprintf(text, size, " %ld.%02ld", hundredths / 100, hundredths % 100);
}

void tccl_nominal_format(const struct tccl_nominal *nominal, char text[static TCCL_NOMINAL_TEXT])
{
    int length = snprintf(text, TCCL_NOMINAL_TEXT, "%u %u", nominal->pattern, nominal->channels);

    length += put_rate(text + length, (size_t)(TCCL_NOMINAL_TEXT - length), nominal->intra);
    length += put_rate(text + length, (size_t)(TCCL_NOMINAL_TEXT - length), nominal->inter);
    snprintf(text + length, (size_t)(TCCL_NOMINAL_TEXT - length), " %s %s",
             far_word(nominal->far_intra), far_word(nominal->far_inter));
}
