/* Chain table files. The checksum at the end is made right, or nothing behind it would be reached;
 * what is accepted names only chains that the machine has. */
#include <inttypes.h>

#include "base/fileio.h"
#include "fuzz.h"
#include "owned.h"
#include "sample.h"

static void fix_checksum(uint8_t *data, size_t size)
{
    char sum[32];
    snprintf(sum, sizeof(sum), "sum %016" PRIx64 "\n", tccl_hash64(data, size - 21));
    memcpy(data + size - 21, sum, 21);
}

static void check_result_of(const struct tccl_result *result, const struct tccl_machine *machine)
{
    FUZZ_CHECK(!(result->gbps < 0) && result->bound >= result->gbps);
    FUZZ_CHECK(tccl_tree_fits(&result->tree, &result->chain, machine->n_nics));
    if (result->chain.n_gpus > 0)
        FUZZ_CHECK(tccl_chain_check(&result->chain, machine, NULL) == 0);
}

static void check_baseline(const struct tccl_baseline *baseline, const struct tccl_machine *machine)
{
    FUZZ_CHECK(baseline->gbps >= 0 && baseline->set.n <= TCCL_MAX_CHANNELS);
    for (int i = 0; i < baseline->set.n; i++)
        FUZZ_CHECK(tccl_chain_check(&baseline->set.rings[i], machine, NULL) == 0);
}

static void check_table(const struct tccl_table *table, const struct tccl_machine *machine)
{
    for (int i = 0; i < tccl_table_pairs(table); i++)
        check_result_of(&table->results[i], machine);
    check_result_of(tccl_table_ring(table), machine);
    check_result_of(tccl_table_host_ring(table), machine);
    FUZZ_CHECK(!tccl_chain_has_p2p(&tccl_table_host_ring(table)->chain));
    for (const struct tccl_result *own = NULL; (own = tccl_table_next(table, own, ~0U));) {
        check_result_of(own, machine);
        FUZZ_CHECK(own->part != TCCL_HOST || !tccl_chain_has_p2p(&own->chain));
        if (own->set)
            FUZZ_CHECK(own->gbps > 0 && own->set->n >= 2 &&
                       tccl_ring_set_check(own->set, machine, NULL) == 0);
    }
    tccl_node_class_free(tccl_node_class_from_table(table, machine, TCCL_VIEW_HIDDEN));
    check_baseline(&table->baselines[1][TCCL_NEWEST], machine);
    check_baseline(&table->baselines[0][TCCL_NEWEST], machine);
    cleanup_class struct tccl_node_class *class =
        tccl_node_class_from_table(table, machine, TCCL_VIEW_JOB);
    FUZZ_CHECK(class != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tccl_machine machine = sample_machine();
    owned(table) struct tccl_table *table = NULL;
    cleanup_free uint8_t *copy = (uint8_t *)fuzz_text(data, size);
    char path[FUZZ_PATH];
    if (size >= 21)
        fix_checksum(copy, size);
    int fd = fuzz_file(copy, size, path);
    if (tccl_table_read(path, &machine, &table, ERR) == 0)
        check_table(table, &machine);
    else
        FUZZ_CHECK(!table && strstr(check_err.text, path));
    close(fd);
    return 0;
}

static void add_table(fuzz_add *add, void *context, uint32_t gpus)
{
    struct tccl_machine machine = sample_machine();
    owned(table) struct tccl_table *table = sample_table(&machine, gpus);
    cleanup_free char *data = NULL;
    size_t size;
    const char *name = check_at("table");
    if (tccl_table_write(table, name, NULL) < 0 ||
        tccl_read_file(name, 1 << 20, &data, &size, NULL) < 0)
        abort();
    add(context, data, size);
    check_clear();
}

void fuzz_seeds(fuzz_add *add, void *context)
{
    srand(1);
    add_table(add, context, 0x3);
    add_table(add, context, 0x4);
    add_table(add, context, 0xf);
}
