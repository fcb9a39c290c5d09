/* Ring notation: a chain that is read is possible on its machine, and the same when written again.
 */
#include "fuzz.h"
#include "sample.h"

static void check_chain(const struct tccl_machine *machine, const char *text)
{
    struct tccl_chain chain, again;
    struct tccl_set set;
    char out[TCCL_CHAIN_TEXT];
    if (tccl_chain_parse(text, machine, &chain, ERR) < 0) {
        FUZZ_CHECK(check_err.text[0]);
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

static void check_ring(const char *text)
{
    struct tccl_ring_reader ring = {.text = text};
    struct tccl_named_chain chain, again;
    struct tccl_error err = {0};
    char out[TCCL_CHAIN_TEXT];
    int more, node = -1;
    while ((more = tccl_ring_next(&ring, &chain, &err)) > 0) {
        FUZZ_CHECK(ring.node == node + (ring.chain == 0) && strlen(ring.name) < sizeof(ring.name));
        node = ring.node;
        tccl_named_format(&chain, out);
        FUZZ_CHECK(strlen(out) < TCCL_CHAIN_TEXT - 1);
        FUZZ_CHECK(tccl_named_parse(out, &again, NULL) == 0);
        FUZZ_CHECK(memcmp(&chain, &again, sizeof(chain)) == 0);
    }
    FUZZ_CHECK(!more == !err.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tccl_machine machine = sample_machine();
    cleanup_free char *text = fuzz_text(data, size);
    check_chain(&machine, text);
    check_ring(text);
    return 0;
}

FUZZ_SEEDS("0 -w> 1 -m0> 2 -m1> 0", "mlx5_0 -m0> 3 -w> 1 -r> 2 -m1> mlx5_1",
           "mlx5_0-g>1-w>0-g>mlx5_0", "0000:41:00.0 -w> c1:00.0 -m0> 0000:41:00.0",
           "n1[mlx5_0 -g> 0 -w> 1 -g> mlx5_0 | b -g> 1 -g> b] n2[mlx5_0 -m1> 1 -m0> 0 -m0> mlx5_0]",
           "n1[a -g> 0 -g> a | b -g> 0 -g> b] n2[= n1] n3[a -g> 1 -g> a] n4[= n3] n5 [ =n1 ]")
