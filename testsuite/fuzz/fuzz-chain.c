/* Texts of chains without a machine, and facts as lines, which the runtime shim reads in the
 * programs of users: no byte beyond the text is looked at, what is read is within its bounds, and
 * the same when it is written again. */
#include "base/lines.h"
#include "chain/chain-text.h"
#include "fuzz.h"

static void check_chain(const char *text)
{
    struct tccl_named_chain chain, again;
    char out[TCCL_CHAIN_TEXT];
    if (tccl_named_parse(text, &chain, ERR) != 0) {
        FUZZ_CHECK(check_err.text[0]);
        return;
    }
    FUZZ_CHECK(chain.n_gpus >= (chain.closed ? 2 : 1) && chain.n_gpus <= TCCL_CHAIN_GPUS);
    for (int i = 0; i < tccl_named_arrows(&chain); i++) {
        struct tccl_text_arrow arrow = tccl_named_arrow(&chain, i);
        bool port = !chain.closed && (i == 0 || i == chain.n_gpus);
        FUZZ_CHECK(arrow.kind && strchr(port ? "gm" : "wrm", arrow.kind));
        FUZZ_CHECK(arrow.kind == 'm' ? arrow.memory >= 0 && arrow.memory < 1000
                                     : arrow.memory == -1);
    }
    for (int i = 0; i < chain.n_gpus; i++)
        for (int k = 0; k < i; k++)
            FUZZ_CHECK(chain.gpus[i] != chain.gpus[k]);
    tccl_named_format(&chain, out);
    FUZZ_CHECK(strlen(out) < TCCL_CHAIN_TEXT - 1);
    FUZZ_CHECK(tccl_named_parse(out, &again, NULL) == 0);
    FUZZ_CHECK(memcmp(&chain, &again, sizeof(chain)) == 0);
}

static void check_rings(const char *text)
{
    struct tccl_named_rings rings, again;
    char out[TCCL_RINGS_TEXT], back[TCCL_RINGS_TEXT];
    if (tccl_named_rings_parse(text, &rings, ERR) != 0) {
        FUZZ_CHECK(check_err.text[0]);
        return;
    }
    FUZZ_CHECK(rings.n >= 1 && rings.n <= TCCL_CHAIN_RINGS);
    for (int i = 1; i < rings.n; i++)
        FUZZ_CHECK(rings.chains[i].n_gpus == rings.chains[0].n_gpus &&
                   rings.chains[i].closed == rings.chains[0].closed);
    tccl_named_rings_format(&rings, out);
    FUZZ_CHECK(strlen(out) < TCCL_RINGS_TEXT - 1);
    FUZZ_CHECK(tccl_named_rings_parse(out, &again, NULL) == 0 && again.n == rings.n);
    tccl_named_rings_format(&again, back);
    FUZZ_CHECK(strcmp(out, back) == 0);
}

/* Every fact of a text that was taken for lines. */
static void check_lines(const char *text, size_t size)
{
    static const char *const keys[] = {"job", "gbps", "chain", "nic", "a", ""};
    struct tccl_lines lines;
    char value[64];
    int64_t integer;
    double number;
    bool truth;
    if (tccl_lines_open(text, size, &lines, ERR) != 0) {
        FUZZ_CHECK(check_err.text[0]);
        return;
    }
    FUZZ_CHECK(lines.name[0] && lines.version >= 0 && lines.facts + lines.size + 4 == text + size);
    for (size_t i = 0; i < COUNT(keys); i++) {
        const char *at = NULL;
        long length;
        int count = 0;
        while ((length = tccl_line_next(&lines, keys[i], &at, value, sizeof(value))) >= 0) {
            FUZZ_CHECK(strlen(value) == (size_t)length && !strpbrk(value, "\n\r\t"));
            count++;
        }
        FUZZ_CHECK(count < 2 || tccl_line_text(&lines, keys[i], value, sizeof(value)) < 0);
        if (tccl_line_integer(&lines, keys[i], -5, 5, &integer) == 0)
            FUZZ_CHECK(integer >= -5 && integer <= 5);
        if (tccl_line_number(&lines, keys[i], 0, 5, &number) == 0)
            FUZZ_CHECK(number >= 0 && number <= 5);
        tccl_line_bool(&lines, keys[i], &truth);
        if (tccl_line_text(&lines, keys[i], value, sizeof(value)) >= 0)
            check_chain(value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_free char *text = fuzz_text(data, size), *exact = fuzz_exact(data, size);
    check_chain(text);
    check_rings(text);
    check_lines(exact, size);
    return 0;
}

FUZZ_SEEDS("0 -w> 1 -m0> 2 -m1> 0", "mlx5_0-m12>3-w>1-r>2-g>mlx5_1",
           "0000:41:00.0 -w> c1:00.0 -m0> 10000:01:1f.7 -r> 0000:41:00.0",
           "mlx5_0-g>0-w>1-m0>2-g>mlx5_1|mlx5_1-m1>2-w>0-r>1-g>mlx5_1|a-g>1-w>0-w>2-g>a",
           "c1:00.0 -w> 41:00.0 -w> c1:00.0 | 41:00.0 -m0> c1:00.0 -m1> 41:00.0",
           "ib.0 -g> 00000000:C1:00.0 -m999> ib_1",
           "tccl-plan 1\njob 7\ngbps 4.25\nchain 0 -w> 1 -w> 0\nnic a 1\nnic b 2\nend\n",
           "t 0\nend\n")
