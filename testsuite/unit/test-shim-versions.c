/* The table of NCCL's releases: each row is complete, and a version without one is given nothing.
 */
#include "chain/nccl-version.h"

#include "hook/hook.h"
#include "nccl/shim-nccl.h"
#include "random-model.h"
#include "verify/verify.h"

/* Without gaps from the first release to the last, each within one minor version. */
TEST(rows)
{
    const struct tccl_release *before = NULL, *release = tccl_release_of(22100);
    uint32_t all = 0;
    CHECK(release && release->search == 0);
    for (; release; before = release, release = tccl_release_of(release->last + 1)) {
        char text[TCCL_NCCL_TEXT];
        tccl_nccl_format(release->first, text);
        CHECK(strncmp(text + strlen("NCCL "), release->name, strlen(release->name)) == 0);
        CHECK(release->first <= release->last && release->first / 100 == release->last / 100);
        CHECK(!(release->facts >> TCCL_FACTS));
        CHECK((int)release->search >= 0 && (int)release->search < TCCL_GENERATIONS);
        all |= release->facts;
        if (!before)
            continue;
        CHECK_INT(release->first, before->last + 1);
        CHECK(release->search == before->search || release->search == before->search + 1);
    }
    CHECK_INT(all, (1 << TCCL_FACTS) - 1);
    CHECK(before && before == tccl_release_of(23203) && before->search == TCCL_NEWEST);
}

TEST(versions)
{
    static const struct {
        int64_t version;
        const char *name; /* NULL: not known */
    } cases[] = {{0, NULL},         {-22907, NULL},    {21801, NULL},     {22005, NULL},
                 {22099, NULL},     {22105, "2.21"},   {22304, "2.23"},   {22605, "2.26"},
                 {22702, "2.27"},   {22703, "2.27.3"}, {22906, "2.29"},   {22907, "2.29.7"},
                 {23004, "2.30.3"}, {23007, "2.30.5"}, {23099, "2.30.5"}, {23102, "2.31"},
                 {23203, "2.32"},   {23300, NULL}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct tccl_release *release = tccl_release_of(cases[i].version);
        CHECK(!release == !cases[i].name);
        if (release)
            CHECK_STR(release->name, cases[i].name);
    }
    CHECK(!tccl_release_of(INT64_MAX) && !tccl_release_of(INT64_C(0x100000000) + 22907));
    char text[TCCL_NCCL_TEXT];
    tccl_nccl_format(29903, text);
    CHECK_STR(text, "NCCL 2.99.3");
    tccl_nccl_not_known(29903, text);
    CHECK_STR(text, "NCCL 2.99.3: not known (2.21 to 2.32 are)");
    tccl_nccl_not_known(INT64_MAX, text);
    CHECK_STR(text, "NCCL of an unknown version: not known (2.21 to 2.32 are)");
}

TEST(generations)
{
    static const int versions[][2] = {{21400, TCCL_NCCL_2_21}, {22105, TCCL_NCCL_2_21},
                                      {22403, TCCL_NCCL_2_23}, {22501, TCCL_NCCL_2_25},
                                      {22907, TCCL_NCCL_2_29}, {23007, TCCL_NCCL_2_30},
                                      {99999, TCCL_NEWEST}};
    for (size_t i = 0; i < COUNT(versions); i++)
        CHECK_INT(tccl_generation_of(versions[i][0]), versions[i][1]);
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        CHECK_INT(tccl_generation(i)->search, i);
        CHECK_INT(tccl_generation_of(tccl_generation(i)->first), i);
    }
}

/* Ranks of this version are left alone, with a line that names it. */
static void check_left(uint32_t version)
{
    struct shim_plan plan = {.n_gpus = 1, .step_gpus = 2, .n_nodes = 2, .gpus = {0x100}};
    struct shim_comm comm = {.ranks = 2, .expected = 1};
    struct shim_member member = {.gpu = 0x100, .version = version};
    struct tccl_error why = {""};
    char text[TCCL_NCCL_TEXT];
    tccl_nccl_not_known(version, text);
    CHECK_INT(shim_members_check(&plan, NULL, &comm, &member, 1, &why), -1);
    CHECK_STR(why.text, text);
}

/* No memory for buffers, no log, no number of a NIC; no file, since its ranks are left alone. */
TEST(unknown)
{
    unsigned long seed = check_seed();
    int known = 0;
    CHECK(shim_settings_cumem_host(22907, 13000, 0));
    for (int i = 0; i < 20000; i++) {
        uint32_t version = random_below(&seed, 4) ? 20000 + (uint32_t)random_below(&seed, 5000)
                                                  : (uint32_t)random_below(&seed, INT32_MAX);
        known += tccl_release_of(version) != NULL;
        if (tccl_release_of(version) || version == 0)
            continue;
        struct shim_nccl nccl = {.version = version};
        struct tccl_error why = {""};
        for (int fact = 0; fact < TCCL_FACTS; fact++)
            CHECK(!tccl_release_does(version, (enum tccl_fact)(1 << fact)));
        CHECK(!shim_settings_cumem_host(version, 13000, SHIM_USER_HOST));
        CHECK(!shim_nccllog_answer("NCCL_DEBUG", version));
        CHECK(!tccl_release_does(version, TCCL_FACT_GRAPH_RANKS) &&
              !tccl_release_does(version, TCCL_FACT_PAIR_WAYS));
        CHECK_INT(shim_nic_number("mlx5_0", &nccl, &why), -1);
        check_left(version);
    }
    CHECK(known > 0);
}
