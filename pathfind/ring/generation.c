/* generation.c: generations of NCCL, and what its search says of a graph as text. */
#include "ring/generation.h"

#include <stddef.h>
#include <stdio.h>

/* nccl/baseline.h says what changed with each. */
const struct tccl_generation tccl_generations[TCCL_GENERATIONS] = {
    {21800, "2.18"}, {21900, "2.19"}, {22200, "2.22"}, {22300, "2.23"},
    {22500, "2.25"}, {22600, "2.26"}, {22700, "2.27"}, {22900, "2.29"},
};

int tccl_generation_of(int version)
{
    int generation = TCCL_NEWEST;

    while (generation > 0 && version < tccl_generations[generation].first)
        generation--;
    return generation;
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
