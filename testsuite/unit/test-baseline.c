/* NCCL's own choice where it runs several rings at once: their transfers together, and how fast. */
#include "nccl/baseline.h"

#include "base/cleanup.h"
#include "machines.h"
#include "ring/ring.h"
#include "search/search.h"

/* A closed ring over GPUs 0 to n - 1, all edges through one memory. */
static struct tccl_chain ring_through(int n, int memory, bool backwards)
{
    struct tccl_chain chain = {.n_gpus = n, .closed = true};
    for (int i = 0; i < n; i++) {
        chain.gpus[i] = backwards ? n - 1 - i : i;
        chain.edges[i] = (struct tccl_edge){TCCL_BOUNCE, memory};
    }
    return chain;
}

static void test_set(void)
{
    struct tccl_choice choice = {.n_chains = 3};
    struct tccl_error err = {0};
    struct tccl_set set;
    choice.chains[0] = ring_through(4, 0, false);
    choice.chains[1] = ring_through(4, 1, false);
    choice.chains[2] = ring_through(4, 1, true); /* nothing new */
    CHECK_INT(tccl_baseline_set(&choice, &set, &err), 0);
    CHECK_INT(set.count, 16);
    CHECK(tccl_baseline_gbps(&choice, 2.5) == 7.5);
    for (int i = 0; i < TCCL_MAX_CHANNELS; i++)
        choice.chains[i] = ring_through(16, i, false);
    choice.n_chains = 2;
    CHECK_INT(tccl_baseline_set(&choice, &set, &err), 0);
    CHECK_INT(set.count, TCCL_MAX_SET);
    choice.n_chains = 3;
    CHECK_INT(tccl_baseline_set(&choice, &set, &err), -1);
    CHECK(strstr(err.text, "3 rings make more than 64 transfers at once"));
}

/* What the search finds of it, against the model asked for all transfers at once. */
static void test_search(const char *name, bool several)
{
    struct tccl_model *model = load_machine(name);
    const struct tccl_machine *machine = tccl_model_machine(model);
    uint32_t gpus = (UINT32_C(1) << machine->n_gpus) - 1;
    struct tccl_symmetry *symmetry = tccl_symmetry_of_model(model);
    struct tccl_search *search = tccl_search_new(machine, tccl_model_meter(model), symmetry);
    struct tccl_table *table = tccl_table_new(machine, gpus);
    const struct tccl_search_options options = {.gap = 0.05, .pairs = 1, .budget = 500};
    struct tccl_choice choice;
    struct tccl_set all = {0}, one;
    double gbps;
    CHECK(tccl_search_table(search, table, &options, NULL) >= 0);
    CHECK_INT(tccl_nccl_choice(machine, gpus, false, &choice, NULL), 0);
    CHECK((choice.n_chains > 1) == several);
    for (int i = 0; i < choice.n_chains; i++) {
        tccl_chain_set(&choice.chains[i], &one);
        for (int k = 0; k < one.count; k++)
            tccl_set_add(&all, one.transfers[k]);
    }
    CHECK_INT(tccl_model_measure(model, &all, &gbps, NULL, NULL, NULL), 0);
    CHECK(table->default_chain.gbps == choice.n_chains * gbps);
    CHECK_INT(memcmp(&table->default_chain.chain, &choice.chains[0], sizeof(choice.chains[0])), 0);
    struct tccl_kind *kind = tccl_kind_from_table(table, machine);
    CHECK(kind->default_chain_gbps == table->default_chain.gbps);
    CHECK_INT(kind->n_default, choice.n_chains);
    /* Each chain alone is one of those that may be taken. */
    for (int i = 0; i < choice.n_chains; i++) {
        const struct tccl_chain *chain = &choice.chains[i];
        tccl_chain_set(chain, &one);
        CHECK_INT(tccl_model_measure(model, &one, &gbps, NULL, NULL, NULL), 0);
        CHECK(kind->cells[chain->entry.nic * kind->n_nics + chain->exit.nic].gbps >=
              gbps * (1 - 1e-9));
    }
    tccl_kind_free(kind);
    tccl_table_free(table);
    tccl_search_free(search);
    tccl_symmetry_free(symmetry);
    tccl_model_free(model);
}

int main(void)
{
    test_set();
    test_search("intel-4gpu", false);
    test_search("dual-8gpu", true);
    return check_result();
}
