/* nominal.c: what NCCL's search says of a graph, as text. */
#include "ring/nominal.h"

#include <stddef.h>

#include "base/append.h"

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
static void put_rate(struct tccl_append *to, float gbps)
{
    unsigned long hundredths =
        gbps > 0 && gbps < 1e6F ? (unsigned long)((double)gbps * 100 + .5) : 0;
    tccl_append(to, " ");
    tccl_append_number(to, hundredths / 100, 1, 10);
    if (hundredths % 100 == 0)
        return;
    tccl_append(to, ".");
    tccl_append_number(to, hundredths % 100, 2, 10);
}

void tccl_nominal_format(const struct tccl_nominal *nominal, char text[static TCCL_NOMINAL_TEXT])
{
    struct tccl_append to = {.text = text, .size = TCCL_NOMINAL_TEXT};
    tccl_append_number(&to, nominal->pattern, 1, 10);
    tccl_append(&to, " ");
    tccl_append_number(&to, nominal->channels, 1, 10);
    put_rate(&to, nominal->intra);
    put_rate(&to, nominal->inter);
    tccl_append(&to, " ");
    tccl_append(&to, far_word(nominal->far_intra));
    tccl_append(&to, " ");
    tccl_append(&to, far_word(nominal->far_inter));
}
