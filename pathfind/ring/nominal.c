/* nominal.c: what NCCL's search says of a graph, as text. */
#include "ring/nominal.h"

#include <stddef.h>
#include <stdio.h>

void tccl_nominal_least(struct tccl_nominal *all, const struct tccl_nominal *other)
{
    all->channels = other->channels < all->channels ? other->channels : all->channels;
    all->intra = other->intra < all->intra ? other->intra : all->intra;
    all->inter = other->inter < all->inter ? other->inter : all->inter;
    all->far_intra = other->far_intra > all->far_intra ? other->far_intra : all->far_intra;
    all->far_inter = other->far_inter > all->far_inter ? other->far_inter : all->far_inter;
    all->alike = all->alike && other->alike;
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
