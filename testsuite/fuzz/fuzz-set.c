/* Set notation: what is read and written again is the same set; numbers of GPUs likewise. */
#include "base/numberset.h"
#include "fuzz.h"
#include "machine/transfer.h"

static void check_numbers(const char *text)
{
    uint32_t mask, again;
    char out[128];
    if (tccl_numberset_parse(text, 32, &mask, NULL) < 0)
        return;
    FUZZ_CHECK(tccl_numberset_format(mask, out, sizeof(out)) >= 0);
    FUZZ_CHECK(mask == 0 || tccl_numberset_parse(out, 32, &again, NULL) == 0);
    FUZZ_CHECK(mask == 0 || mask == again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tccl_set set = {0}, again = {0};
    char out[TCCL_SET_TEXT];
    cleanup_free char *text = fuzz_text(data, size);
    if (tccl_set_parse(text, &set, ERR) == 0) {
        FUZZ_CHECK(set.count <= TCCL_MAX_SET);
        tccl_set_format(&set, out);
        FUZZ_CHECK(tccl_set_parse(out, &again, NULL) == 0 && tccl_set_equal(&set, &again));
    } else {
        FUZZ_CHECK(check_err.text[0]);
    }
    check_numbers(text);
    return 0;
}

FUZZ_SEEDS("g0>g1 g1>g0", "g1<g0,g2<m1, n0>g0 n0<m1 g15>m15 n15>m0", "0-3,6", "31", "0,2-4,30")
