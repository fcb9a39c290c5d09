/* test-choice.c: what we take for NCCL's own choice. That it is what NCCL chooses is shown where
 * there is an NCCL (testsuite/nccl/test-choice.sh); here are answers that it gave. */
#include "chain/chain.h"
#include "machines.h"
#include "nccl/choice.h"
#include "random-model.h"

static void check_chain(const struct tccl_machine *machine, const struct tccl_choice *choice, int i,
                        const char *expected)
{
    char text[TCCL_CHAIN_TEXT];

    tccl_chain_format(&choice->chains[i], machine, text);
    CHECK_STR(text, expected);
}

/* The choice is these chains, second NULL: one. */
static void check_choice(const struct tccl_machine *machine, uint32_t gpus, bool closed,
                         const char *first, const char *second)
{
    struct tccl_choice choice;
    struct tccl_error err = {0};

    CHECK_INT(tccl_nccl_choice(machine, gpus, closed, &choice, &err), 0);
    CHECK_STR(err.text, "");
    CHECK_INT(choice.n_chains, second ? 2 : 1);
    check_chain(machine, &choice, 0, first);
    if (choice.n_chains == 2 && second)
        check_chain(machine, &choice, 1, second);
}

/* Built by NCCL 2.29.7 on these machines. */
static void check_machines(void)
{
    struct tccl_model *models[4];
    const struct tccl_machine *machines[4];

    for (int i = 0; i < 4; i++) {
        models[i] = load_machine(machine_names[i]);
        machines[i] = tccl_model_machine(models[i]);
    }
    check_choice(machines[0], 0xf, true, "0 -m0> 3 -m1> 1 -m1> 2 -m3> 0", NULL);
    check_choice(machines[0], 0xf, false, "mlx5_0 -m0> 3 -m3> 0 -m1> 2 -m1> 1 -m1> mlx5_0", NULL);
    check_choice(machines[0], 0x9, true, "0 -w> 3 -w> 0", NULL);
    check_choice(machines[1], 0xf, true, "0 -m0> 1 -m2> 2 -m2> 3 -m0> 0", NULL);
    check_choice(machines[1], 0xf, false, "mlx5_0 -m0> 0 -m2> 2 -m2> 3 -m0> 1 -m0> mlx5_0", NULL);
    check_choice(machines[2], 0xff, false,
                 "mlx5_0 -g> 0 -w> 1 -m0> 2 -w> 3 -m1> 7 -w> 6 -m1> 5 -w> 4 -g> mlx5_1",
                 "mlx5_1 -g> 4 -w> 5 -m1> 7 -w> 6 -m0> 2 -w> 3 -m0> 1 -w> 0 -g> mlx5_0");
    check_choice(machines[3], 0xff, true,
                 "0 -m2> 1 -m0> 3 -m6> 5 -m4> 7 -m1> 2 -m7> 4 -m5> 6 -m3> 0", NULL);
    for (int i = 0; i < 4; i++)
        tccl_model_free(models[i]);
}

/* GPUs with NICs of their own, in two sockets: the NICs are faster, and NCCL takes them. */
static void check_by_network(void)
{
    struct tccl_model *dual = load_machine("dual-8gpu");
    struct tccl_choice choice;

    CHECK_INT(tccl_nccl_choice(tccl_model_machine(dual), 0x11, true, &choice, NULL), 0);
    CHECK_INT(choice.n_chains, 1);
    CHECK_INT(choice.by_network[0], 3);
    CHECK_INT(choice.chains[0].edges[0].kind, TCCL_BOUNCE);
    CHECK_INT(tccl_nccl_choice(tccl_model_machine(dual), 0x3, true, &choice, NULL), 0);
    CHECK_INT(choice.by_network[0], 0);
    tccl_model_free(dual);
}

static void check_refused(struct tccl_machine *machine, uint32_t gpus, bool closed, const char *why)
{
    struct tccl_choice choice;
    struct tccl_error err = {0};

    CHECK_INT(tccl_nccl_choice(machine, gpus, closed, &choice, &err), -1);
    CHECK_STR(err.text, why);
}

static void check_errors(void)
{
    struct tccl_model *amd = load_machine("amd-4gpu");
    struct tccl_machine machine = *tccl_model_machine(amd);

    check_refused(&machine, 0, false, "no GPU, or one that the machine doesn't have");
    check_refused(&machine, 0x10, true, "no GPU, or one that the machine doesn't have");
    check_refused(&machine, 2, true, "one GPU makes no ring");
    machine.n_nics = 0;
    check_refused(&machine, 2, false, "the machine has no NIC");
    tccl_model_free(amd);
}

static int pick_switch(unsigned long *state, const struct tccl_machine *machine)
{
    return random_below(state, machine->n_switches + 1) - 1;
}

static void place(unsigned long *state, const struct tccl_machine *machine, int *numa, int *parent)
{
    *parent = pick_switch(state, machine);
    *numa =
        *parent < 0 ? random_below(state, machine->n_memories) : machine->switches[*parent].numa;
}

/* Any tree of switches, any devices. */
static void make_machine(unsigned long *state, struct tccl_machine *machine)
{
    static const int sms[] = {0, 70, 80, 90, 100};

    memset(machine, 0, sizeof *machine);
    machine->cpu = (enum tccl_cpu)random_below(state, TCCL_CPU_YONGFENG + 1);
    machine->n_memories = 1 + random_below(state, 4);
    int switches = random_below(state, 5), sm = sms[random_below(state, 5)];
    for (; machine->n_switches < switches; machine->n_switches++) {
        struct tccl_switch *new = &machine->switches[machine->n_switches];
        place(state, machine, &new->numa, &new->parent);
    }
    machine->n_gpus = 1 + random_below(state, 8);
    for (int i = 0; i < machine->n_gpus; i++) {
        snprintf(machine->gpus[i].busid, TCCL_BUSID, "0000:%02x:00.0", 8 * i + 8);
        machine->gpus[i].sm = sm;
        place(state, machine, &machine->gpus[i].numa, &machine->gpus[i].parent);
        for (int other = 0; other < i; other++)
            machine->p2p[i][other] = machine->p2p[other][i] = random_below(state, 4) != 0;
    }
    machine->n_nics = random_below(state, 5);
    for (int i = 0; i < machine->n_nics; i++) {
        snprintf(machine->nics[i].name, TCCL_NAME, "mlx5_%d", i);
        snprintf(machine->nics[i].busid, TCCL_BUSID, "0000:%02x:00.0",
                 8 * random_below(state, 12) + 9 + i);
        machine->nics[i].gbps = 1 + random_below(state, 60);
        place(state, machine, &machine->nics[i].numa, &machine->nics[i].parent);
        for (int gpu = 0; gpu < machine->n_gpus; gpu++)
            machine->gpudirect[i][gpu] = random_below(state, 4) != 0;
    }
}

static uint32_t gpus_of(const struct tccl_chain *chain)
{
    uint32_t mask = 0;

    for (int i = 0; i < chain->n_gpus; i++)
        mask |= UINT32_C(1) << chain->gpus[i];
    return mask;
}

/* Each chain is possible on the machine, has all of the GPUs, and is there once. */
static void check_chains(const struct tccl_machine *machine, const struct tccl_choice *choice,
                         uint32_t gpus, bool closed)
{
    CHECK(choice->n_chains >= 1 && choice->n_chains <= TCCL_MAX_CHANNELS);
    for (int i = 0; i < choice->n_chains; i++) {
        const struct tccl_chain *chain = &choice->chains[i];
        struct tccl_error err = {0};
        CHECK_INT(tccl_chain_check(chain, machine, &err), 0);
        CHECK_STR(err.text, "");
        CHECK_INT(gpus_of(chain), gpus);
        CHECK_INT(chain->closed, closed);
        CHECK(!closed || !(gpus & ((UINT32_C(1) << chain->gpus[0]) - 1)));
        CHECK(choice->by_network[i] >> tccl_chain_edges(chain) == 0);
        for (int edge = 0; edge < tccl_chain_edges(chain); edge++)
            CHECK(!(choice->by_network[i] >> edge & 1) || chain->edges[edge].kind == TCCL_BOUNCE);
        for (int other = 0; other < i; other++)
            CHECK(memcmp(chain, &choice->chains[other], sizeof *chain) != 0);
    }
}

/* Nothing that NCCL doesn't look at matters. */
static void check_same_when_renamed(struct tccl_machine machine, const struct tccl_choice *choice,
                                    uint32_t gpus, bool closed)
{
    struct tccl_choice again;

    snprintf(machine.name, sizeof machine.name, "other");
    for (int i = 0; i < machine.n_gpus; i++)
        machine.gpus[i].minor = 7 - i;
    for (int i = 0; i < machine.n_nics; i++)
        snprintf(machine.nics[i].fabric, TCCL_NAME, "f%d", i);
    CHECK_INT(tccl_nccl_choice(&machine, gpus, closed, &again, NULL), 0);
    CHECK(memcmp(choice, &again, sizeof again) == 0);
}

static void check_random(unsigned long *state)
{
    struct tccl_machine machine;
    struct tccl_choice choice;

    for (int round = 0; round < 60; round++) {
        make_machine(state, &machine);
        uint32_t gpus = (uint32_t)random_below(state, (1 << machine.n_gpus) - 1) + 1;
        bool closed = machine.n_nics == 0 || random_below(state, 2);
        if (closed && (gpus & (gpus - 1)) == 0)
            continue;
        CHECK_INT(tccl_nccl_choice(&machine, gpus, closed, &choice, NULL), 0);
        check_chains(&machine, &choice, gpus, closed);
        check_same_when_renamed(machine, &choice, gpus, closed);
    }
}

int main(void)
{
    unsigned long state = (unsigned long)check_seed();

    check_machines();
    check_by_network();
    check_errors();
    check_random(&state);
    return check_result();
}
