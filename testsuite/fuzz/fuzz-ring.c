/* Ring notation: a chain that is read is possible on its machine, and the same when written again.
 */
#include <string.h>

#include "check.h"
#include "fuzz.h"
#include "sample.h"

static void check_chain(const struct tccl_machine *machine, const char *text)
{
    struct tccl_error err = {0};
    struct tccl_chain chain, again;
    struct tccl_set set;
    char out[TCCL_CHAIN_TEXT];

    if (tccl_chain_parse(text, machine, &chain, &err) < 0) {
        FUZZ_CHECK(err.text[0]);
        return;
    }
    FUZZ_CHECK(tccl_chain_check(&chain, machine, NULL) == 0);
    tccl_chain_format(&chain, machine, out);
    FUZZ_CHECK(tccl_chain_parse(out, machine, &again, NULL) == 0);
    FUZZ_CHECK(again.n_gpus == chain.n_gpus && again.closed == chain.closed);
    tccl_chain_set(&chain, &set);
    for (int i = 0; i < set.count; i++)
        FUZZ_CHECK(tccl_machine_allows(machine, set.transfers[i], NULL) == 0);
}

static int piece(void *context, int index, const char *name, const char *chain,
                 struct tccl_error *err)
{
    (void)err;
    FUZZ_CHECK(index >= 0 && name);
    check_chain(context, chain);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tccl_machine machine = sample_machine();
    struct tccl_error err = {0};
    char *text = fuzz_text(data, size);

    check_chain(&machine, text);
    FUZZ_CHECK(tccl_ring_split(text, piece, &machine, &err) >= 0 || err.text[0]);
    free(text);
    return 0;
}

void fuzz_seeds(fuzz_add *add, void *context)
{
    static const char *const seeds[] = {
        "0 -w> 1 -m0> 2 -m1> 0",
        "mlx5_0 -m0> 3 -w> 1 -r> 2 -m1> mlx5_1",
        "mlx5_0-g>1-w>0-g>mlx5_0",
        "n1[mlx5_0 -g> 0 -w> 1 -g> mlx5_0] n2[mlx5_0 -m1> 1 -m0> 0 -m0> mlx5_0]",
    };

    for (size_t i = 0; i < sizeof(seeds) / sizeof(*seeds); i++)
        add(context, seeds[i], strlen(seeds[i]));
}
