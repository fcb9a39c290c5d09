/* The shim's plan files and tccld's chains: those that tccld writes are read, all others refused
 * with a reason. */
#include "check.h"
#include "plan/plan.h"

static const char plan_text[] =
    "tccl-plan 1\ncluster c\njob 7\nhet_job 0\nhet_offset 5\nstep 2\nrestart 1\nrun 17\nuid 1000\n"
    "index 0\nn_nodes 1\nroot n1\nstart 0\nsocket /run/tccl/s\nstep_gpus 3\n"
    "gpus 0000:01:00.0 0000:41:00.0 0000:C1:00.0\ngbps 12.375\n"
    "baseline 22100 own 14.5 4 2 10 12 PHB SYS 1 2 20 12 PIX SYS\n"
    "baseline 22907 ring 6.0001 4 1 17.5 2.4 SYS PIX 3 1 0.12 0 PXB PHB\n"
    "source model\nchain 0000:c1:00.0 -m2> 0000:01:00.0 -w> 0000:41:00.0 -m0> 0000:c1:00.0\n"
    "nodes 0 1 3\nend\n";

/* The plan with one part of its text replaced. */
static int parse_with(const char *from, const char *to, struct shim_plan *plan,
                      struct tccl_error *why)
{
    static char text[8192];
    const char *at = strstr(plan_text, from);
    why->text[0] = '\0';
    if (!at) {
        CHECK(!"the text to be replaced is there");
        return 1;
    }
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - plan_text), plan_text, to,
             at + strlen(from));
    return shim_plan_parse(text, strlen(text), plan, why);
}

TEST(plan)
{
    struct shim_plan plan;
    char text[TCCL_CHAIN_TEXT];
    const struct tccl_named_chain *path = &plan.chain.rings.chains[0];
    CHECK_OK(shim_plan_parse(plan_text, strlen(plan_text), &plan, ERR));
    CHECK(plan.job == 7 && plan.step == 2 && plan.restart == 1 && plan.uid == 1000);
    CHECK_STR(plan.socket, "/run/tccl/s");
    CHECK(plan.n_gpus == 3 && plan.gpus[2] == 0xc100 && plan.step_gpus == 3);
    CHECK(path->closed && path->n_gpus == 3 && path->gpus[0] == 0xc100);
    CHECK(path->edges[0].kind == TCCL_BOUNCE && path->edges[0].memory == 3);
    CHECK(plan.chain.gbps == 12.375 && plan.chain.n_baselines == 2);
    tccl_named_format(path, text); /* memories by their NUMA nodes */
    CHECK_STR(text, "0000:c1:00.0 -m3> 0000:01:00.0 -w> 0000:41:00.0 -m0> 0000:c1:00.0");
}

/* For groups of the step's GPUs alone: whatever chain it might have does not count. */
TEST(groups_alone)
{
    struct shim_plan plan;
    CHECK_OK(parse_with("gbps 12.375\n", "ring no\n", &plan, ERR));
    CHECK(plan.job == 7 && plan.n_gpus == 3 && plan.step_gpus == 3);
    CHECK(plan.chain.rings.n == 0 && plan.chain.gbps == 0 && plan.chain.n_baselines == 0);
    CHECK_FAILS(parse_with("gbps 12.375\n", "ring yes\n", &plan, ERR),
                "the plan's gbps is wrong or missing");
    CHECK_INT(parse_with("gbps 12.375\n", "ring no\nring no\n", &plan, ERR), -1);
    CHECK(!plan.untouched);
}

/* Left to NCCL as a whole, to be measured; not to be measured. */
TEST(measuring)
{
    struct shim_plan plan;
    CHECK_OK(parse_with("gbps 12.375\n", "ring no\ngroups no\n", &plan, ERR));
    CHECK(plan.untouched && !plan.unmeasured && plan.chain.rings.n == 0);
    CHECK_OK(parse_with("gbps 12.375\n", "gbps 12.375\nmeasure no\ngroups no\n", &plan, ERR));
    CHECK(!plan.untouched && plan.unmeasured && plan.chain.rings.n == 1);
    CHECK_OK(parse_with("gbps 12.375\n", "gbps 12.375\nmeasure yes\n", &plan, ERR));
    CHECK(!plan.untouched && !plan.unmeasured);
}

TEST(baselines)
{
    static const char *const wrong[][2] = {
        {"22100 own 14.5", "22100 14.5"},
        {"own 14.5", "other 14.5"},
        {"4 2 10 12 PHB SYS", "4 2 10 12 PHB"},
        {"PHB SYS 1", "PHB SYX 1"},
        {"22907 ring", "22100 ring"},
        {"22907 ring", "22907x ring"},
        {"6.0001", "6.0.1"},
        {"6.0001", "-6"},
        {"6.0001", "1e3"},
        {"PXB PHB\n", "PXB PHB more\n"},
        {"4 1 17.5", "4 65 17.5"},
        {"4 1 17.5", "9 1 17.5"},
        {"SYS PIX 3", "SY SPIX 3"},
        {"17.5 2.4", "17.5 2000000"},
    };
    struct shim_plan plan;
    CHECK_INT(shim_plan_parse(plan_text, strlen(plan_text), &plan, NULL), 0);
    const struct shim_baseline *old = shim_chain_baseline(&plan.chain, 22803);
    const struct shim_baseline *new = shim_chain_baseline(&plan.chain, 22907);
    CHECK(old == shim_chain_baseline(&plan.chain, 21400) &&
          new == shim_chain_baseline(&plan.chain, 23007));
    CHECK(old->better && old->gbps == 14.5 && old->first == 22100);
    CHECK(old->ring.pattern == 4 && old->ring.channels == 2 && old->ring.speed_intra == 10);
    CHECK_STR(old->ring.type_intra, "PHB");
    CHECK_STR(old->tree.type_inter, "SYS");
    CHECK(!new->better &&new->gbps == 6.0001 && new->ring.speed_inter == 2.4);
    CHECK(new->tree.pattern == 3 && new->tree.speed_intra == 0.12 && new->tree.speed_inter == 0);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        CHECK_FAILS(parse_with(wrong[i][0], wrong[i][1], &plan, ERR),
                    "the plan's baseline is wrong or missing");
    }
    CHECK_OK(parse_with("baseline 22100", "b_line 22100", &plan, ERR));
    CHECK_INT(plan.chain.n_baselines, 1);
    CHECK_INT(shim_chain_baseline(&(struct shim_chain){.n_baselines = 0}, 22907)->ring.channels, 0);
}

/* Two rings with other orders, NICs and memories. */
TEST(rings)
{
    static const char text[] = "tccl-chain 1\nstate planned\ngbps 3\nsource host\n"
                               "chain mlx5_0 -g> 0000:01:00.0 -m1> 0000:41:00.0 -m1> mlx5_1 | "
                               "mlx5_1 -m1> 0000:41:00.0 -m0> 0000:01:00.0 -g> mlx5_0\n"
                               "nodes 0 2\nnic mlx5_0 0000:22:00.0\nnic mlx5_1 0000:62:00.0\nend\n";
    static const tccl_bus gpus[] = {0x0100, 0x4100};
    struct shim_chain chain;
    CHECK_OK(shim_chain_parse(text, sizeof(text) - 1, gpus, 2, false, &chain, ERR));
    CHECK_INT(chain.rings.n, 2);
    CHECK(chain.entry[0] == 0x2200 && chain.exit[0] == 0x6200);
    CHECK(chain.entry[1] == 0x6200 && chain.exit[1] == 0x2200);
    CHECK_INT(shim_ring_find(&chain.rings.chains[1], 0x4100), 0);
    CHECK_INT(shim_ring_find(&chain.rings.chains[1], 0x4200), -1);
    CHECK_INT(shim_ring_memories(&chain.rings.chains[0], 0x4100).in, 2);
    CHECK_INT(shim_ring_memories(&chain.rings.chains[0], 0x4100).out, 2);
    CHECK_INT(shim_ring_memories(&chain.rings.chains[1], 0x0100).in, 0);
    CHECK_INT(shim_ring_memories(&chain.rings.chains[1], 0x0100).out, -1);
}

/* The tree beside a chain of several nodes, which a plan need not have. */
TEST(tree)
{
    static const char *const wrong[] = {
        "tree 4.5 8 mlx5_1 0000:41:00.0 0000:01:00.0",
        "tree 4.5 8 mlx5_1 0000:41:00.0 0000:01:00.0 0000:41:00.0",
        "tree 4.5 8 mlx5_1 0000:41:00.0 0000:01:00.0 0000:c2:00.0",
        "tree 4.5 8 mlx5_1 0000:41:00.0 0000:01:00.0 0000:c1:00.0 0000:c1:00.0",
        "tree 4.5 8 mlx5_2 0000:41:00.0 0000:01:00.0 0000:c1:00.0",
        "tree 4.5 0 mlx5_1 0000:41:00.0 0000:01:00.0 0000:c1:00.0",
        "tree -1 8 mlx5_1 0000:41:00.0 0000:01:00.0 0000:c1:00.0",
        "tree 4.5 1e3 mlx5_1 0000:41:00.0 0000:01:00.0 0000:c1:00.0",
    };
    static const char right[] = "tree 4.5 8 mlx5_1 0000:41:00.0 0000:01:00.0 0000:c1:00.0";
    static const char open[] =
        "tccl-plan 1\ncluster c\njob 7\nhet_job 0\nhet_offset 5\nstep 2\nrestart 1\nrun 17\n"
        "uid 1000\nindex 0\nn_nodes 2\nsocket /run/tccl/s\nstep_gpus 3\n"
        "gpus 0000:01:00.0 0000:41:00.0 0000:C1:00.0\ngbps 12.375\nsource model\n"
        "chain mlx5_0 -m2> 0000:01:00.0 -w> 0000:41:00.0 -m0> 0000:c1:00.0 -g> mlx5_0\n"
        "nodes 0 1 3\nnic mlx5_0 0000:50:00.0\nnic mlx5_1 0000:51:00.0\n%s\nend\n";
    struct shim_plan plan;
    char text[2048];
    snprintf(text, sizeof(text), open, right);
    CHECK_OK(shim_plan_parse(text, strlen(text), &plan, ERR));
    CHECK(plan.chain.tree.along == 4.5 && plan.chain.tree.gbps == 8);
    CHECK_STR(plan.chain.tree.nic, "mlx5_1");
    CHECK(memcmp(plan.chain.tree.order, (uint8_t[]){1, 0, 2}, 3) == 0);
    snprintf(text, sizeof(text), open, "another line");
    CHECK_OK(shim_plan_parse(text, strlen(text), &plan, ERR));
    CHECK(plan.chain.tree.gbps == 0);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        snprintf(text, sizeof(text), open, wrong[i]);
        CHECK_FAILS(shim_plan_parse(text, strlen(text), &plan, ERR),
                    "the plan's tree is wrong or missing");
    }
    CHECK_INT(parse_with("source model", right, &plan, ERR), -1); /* a ring of one node */
}

/* The key is sent back as it came. */
TEST(key)
{
    struct shim_plan plan;
    char text[256];
    struct tccl_line_writer writer;
    CHECK_INT(shim_plan_parse(plan_text, strlen(plan_text), &plan, NULL), 0);
    tccl_lines_begin(&writer, text, sizeof(text), "key", 1);
    shim_plan_put_key(&plan, &writer);
    CHECK_INT(tccl_lines_end(&writer), 0);
    CHECK_STR(text, "key 1\ncluster c\njob 7\nhet_job 0\nhet_offset 5\nstep 2\nrestart 1\nrun 17\n"
                    "end\n");
}

TEST(wrong_plans)
{
    static const char *const wrong[][2] = {
        {"tccl-plan 1", "tccl-plan 2"},
        {"tccl-plan 1\n", ""},
        {"tccl-plan", "tccl-chain"},
        {"job 7", "job -7"},
        {"job 7", "job 4294967296"},
        {"job 7", "job"},
        {"job 7\n", ""},
        {"step 2", "step 2\nstep 2"},
        {"run 17", "run x"},
        {"index 0", "index 1"},
        {"n_nodes 1", "n_nodes 2"},
        {"n_nodes 1", "n_nodes 0"},
        {"12.375", "0"},
        {"12.375", "-1"},
        {"12.375", "1e3"},
        {"12.375", "99999999"},
        {"12.375", "12,375"},
        {"source model", "source mo\tdel"},
        {"source model", "source mo;del"},
        {"source model", "source "},
        {"/run/tccl/s", "run/tccl/s"},
        {"uid 1000", "uid 4294967296"},
        {"uid 1000\n", ""},
        {" 0000:41:00.0 0000:C1:00.0\n", " 0000:41:00.0\n"},
        {" 0000:41:00.0 0000:C1:00.0\n", " 0000:C1:00.0 0000:41:00.0\n"},
        {" 0000:41:00.0 0000:C1:00.0\n", " 0000:41:00.0 0000:41:00.0\n"},
        {" 0000:41:00.0 0000:C1:00.0\n", " 0000:41:00.0 GPU-1\n"},
        {"step_gpus 3", "step_gpus 2"},
        {"-m0> 0000:c1:00.0\n", "-m0> mlx5_0\n"},
        {"chain 0000:c1:00.0 -m2>", "chain mlx5_0 -m2>"},
        {"chain 0000:c1:00.0", "chain 0000:01:00.0"},
        {"chain 0000:c1:00.0", "chain 0000:c2:00.0"},
        {"chain 0000:c1:00.0", "chain GPU-1"},
        {"chain 0000:c1:00.0 -m2> 0000:01:00.0 -w> 0000:41:00.0 -m0> 0000:c1:00.0",
         "chain 2 -m2> 0 -w> 1 -m0> 2"},
        {"-m2>", "-m3>"},
        {"-m2>", "-j>"},
        {"-m2>", "-m>"},
        {"-w>", "-g>"},
        {"-w>", "-n0n1>"},
        {" -m0> 0000:c1:00.0\n", "\n"},
        {"-m0> 0000:c1:00.0\n", "-m0> 0000:c1:00.0 -m0> 0000:01:00.0\n"},
        {"chain 0000", "chains 0000"},
        {"nodes 0 1 3", "nodes 0 1"},
        {"nodes 0 1 3", "nodes 0 1 1024"},
        {"nodes 0 1 3", "nodes 0 1 -1"},
        {"nodes 0 1 3\n", ""},
        {"end\n", ""},
        {"end\n", "end\nend\n"},
    };
    struct shim_plan plan;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        CHECK_NO(parse_with(wrong[i][0], wrong[i][1], &plan, ERR) != -1 || !check_err.text[0],
                 "accepted, or without a reason: %s\n", wrong[i][1]);
    }
    for (size_t size = 0; size < strlen(plan_text); size++)
        CHECK_INT(shim_plan_parse(plan_text, size, &plan, NULL), -1);
}

TEST(open)
{
    static const char good[] = "tccl-chain 1\nstate planned\ngbps 3\nsource host\n"
                               "chain mlx5_0 -g> 0000:01:00.0 -m1> mlx5_1\nnodes 0 2\n"
                               "nic mlx5_0 0000:02:00.0\nnic mlx5_1 0000:03:00.0\nend\n";
    static const char *const wrong[][2] = {{"nic mlx5_1", "nic mlx5_2"},
                                           {"mlx5_1 0000:03:00.0", "mlx5_1 here"},
                                           {"mlx5_1 0000:03:00.0", "mlx5_1"},
                                           {"nic mlx5_0 0000:02:00.0\n", ""},
                                           {"nodes 0 2", "nodes 0"}};
    char text[1024];
    struct shim_chain chain;
    tccl_bus gpu = 0x100, other = 0x200;
    size_t size = strlen(good);
    CHECK_OK(shim_chain_parse(good, size, &gpu, 1, false, &chain, ERR));
    CHECK(chain.rings.chains[0].entry.gpudirect && chain.entry[0] == 0x200 &&
          !chain.rings.chains[0].exit.gpudirect);
    CHECK(chain.exit[0] == 0x300 && chain.rings.chains[0].exit.memory == 2);
    tccl_named_format(&chain.rings.chains[0], text);
    CHECK_STR(text, "mlx5_0 -g> 0000:01:00.0 -m2> mlx5_1");
    CHECK_INT(shim_chain_parse(good, size, &gpu, 1, true, &chain, ERR), -1);
    CHECK_INT(shim_chain_parse(good, size, &other, 1, false, &chain, ERR), -1);
    const tccl_bus both[] = {gpu, other};
    CHECK_INT(shim_chain_parse(good, size, both, 2, false, &chain, ERR), -1);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        const char *at = strstr(good, wrong[i][0]);
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good, wrong[i][1],
                 at + strlen(wrong[i][0]));
        CHECK_INT(shim_chain_parse(text, strlen(text), &gpu, 1, false, &chain, NULL), -1);
    }
}

TEST(answer_by_nics)
{
    static const char start[] = "tccl-chain 1\nstate planned\ngbps 3\nsource host\nchain ";
    static const struct {
        const char *back;
        int rc;
    } cases[] = {{"-w>", 0}, {"-n0n1>", -1}};
    const tccl_bus gpus[] = {0x100, 0x200};
    struct shim_chain chain;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *text =
            check_printf("%s0000:01:00.0 -w> 0000:02:00.0 %s 0000:01:00.0\nnodes 0 1\nend\n", start,
                         cases[i].back);
        CHECK_INT(shim_chain_parse(text, strlen(text), gpus, 2, true, &chain, NULL), cases[i].rc);
    }
}

TEST(answers)
{
    static const struct {
        const char *text;
        int wanted;
        const char *why;
    } answers[] = {
        {"tccl-chain 1\nstate failed\nreason no profile\nend\n", -1, "no profile"},
        {"tccl-chain 1\nstate left\nend\n", 1, "tccld has no chain for these GPUs"},
        {"tccl-error 1\ntext go away\nend\n", -1, "cannot get a chain: tccld refused the request"},
        {"tccl-chain 2\nstate planned\nend\n", -1, "tccld's answer is of another version"},
        {"tccl-chain 1\nend\n", -1, "tccld's answer has no state"},
        {"tccl-chain 1\nstate planned\nend\n", -1, "the plan's nodes is wrong or missing"},
        {"garbage", -1,
         "tccld's answer can't be read: it does not begin with a name and a version"},
        {"tccl-chain 1\nstate planned\n", -1,
         "tccld's answer can't be read: it is truncated: its last line is not \"end\""},
    };
    tccl_bus gpu = 0x100;
    struct shim_chain chain;
    for (size_t i = 0; i < COUNT(answers); i++) {
        struct tccl_error why = {""};
        CHECK_INT(
            shim_chain_parse(answers[i].text, strlen(answers[i].text), &gpu, 1, true, &chain, &why),
            answers[i].wanted);
        CHECK_STR(why.text, answers[i].why);
    }
}

static const char *file(const char *name)
{
    const char *path = check_at("%s/plan", name);
    mkdir(check_at("%s", name), 0700);
    cleanup_file FILE *stream = fopen(path, "w");
    fwrite(plan_text, 1, strlen(plan_text), stream);
    return path;
}

TEST(folder)
{
    struct shim_plan plan;
    CHECK_OK(shim_plan_read(file("7.2.1-0123456789abcdef"), &plan, ERR));
    CHECK_STR(plan.folder, "0123456789abcdef");
    CHECK_INT(shim_plan_read(file("7.2.0-0123456789abcdef"), &plan, NULL), -1);
    CHECK_INT(shim_plan_read(file("17.2.1-0123456789abcdef"), &plan, NULL), -1);
    CHECK_INT(shim_plan_read(file("7.2.1-0123456789abcdeF"), &plan, NULL), -1);
    CHECK_INT(shim_plan_read(file("7.2.1-123456789abcdef"), &plan, NULL), -1);
    CHECK_INT(shim_plan_read(file("x"), &plan, NULL), -1);
    CHECK_INT(shim_plan_read(check_folder(), &plan, NULL), -1);
    CHECK_SAYS(shim_plan_read("plan", &plan, ERR) == -1, "can't be read: plan");
    char found[PATH_MAX], again[PATH_MAX];
    const char *script = check_at("7.4294967291.0-0123456789abcdef/plan");
    CHECK(!shim_plan_of_launcher(script, found, sizeof(found))); /* no mpirun so far */
    CHECK_SAYS(shim_plan_read(script, &plan, ERR) == -1, "nothing was planned for this job script");
    CHECK_INT(symlink("7.2.1-0123456789abcdef", check_at("7.launcher")), 0);
    CHECK(shim_plan_of_launcher(script, found, sizeof(found)));
    CHECK_OK(shim_plan_read(found, &plan, ERR));
    CHECK(!shim_plan_of_launcher(found, again, sizeof(again))); /* a step's own plan */
    CHECK(!shim_plan_of_launcher("plan", found, sizeof(found)));
    const char *path = file("7.2.1-0123456789abcdef");
    CHECK_INT(truncate(path, SHIM_PLAN_SIZE + 1), 0); /* what follows is no record of tccld's */
    CHECK_INT(shim_plan_read(path, &plan, NULL), -1);
    cleanup_file FILE *stream = fopen(path, "r+");
    CHECK(fseek(stream, (long)strlen(plan_text), SEEK_SET) == 0 && fputs("{}", stream) > 0 &&
          fflush(stream) == 0);
    CHECK_INT(shim_plan_read(path, &plan, NULL), 0);
    CHECK_INT(truncate(path, (off_t)strlen(plan_text) - 1), 0);
    CHECK_INT(shim_plan_read(path, &plan, NULL), -1);
    CHECK_INT(truncate(path, SHIM_PLAN_SIZE + 1), 0); /* and its end is not among the first */
    CHECK_INT(shim_plan_read(path, &plan, NULL), -1);
}

static int fits(struct shim_plan *plan, const char *job, const char *step, const char *restart)
{
    const char *const names[] = {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"};
    const char *values[] = {job, step, restart};
    for (int i = 0; i < 3; i++)
        values[i] ? setenv(names[i], values[i], 1) : unsetenv(names[i]);
    int answer = shim_plan_fits(plan, ERR);
    CHECK(!answer == !check_err.text[0]);
    return answer;
}

TEST(fits)
{
    struct shim_plan plan;
    CHECK_INT(shim_plan_parse(plan_text, strlen(plan_text), &plan, NULL), 0);
    plan.uid = geteuid() + 1;
    CHECK_INT(fits(&plan, "7", "2", "1"), -1);
    plan.uid = geteuid();
    CHECK_INT(fits(&plan, "7", "2", "1"), 0);
    CHECK_INT(fits(&plan, NULL, NULL, NULL), 0);
    CHECK_INT(fits(&plan, "8", NULL, NULL), -1);
    CHECK_INT(fits(&plan, "7", "3", NULL), -1);
    CHECK_INT(fits(&plan, "7", "2", "0"), -1);
    CHECK_INT(fits(&plan, "", "2", NULL), -1);
    CHECK_INT(fits(&plan, "7", "batch", NULL), -1);
    plan.het_job = 5;
    CHECK_INT(fits(&plan, "5", "2", "1"), 0);
    plan.step = 0xfffffffb; /* of a job script, which is told its restart count later */
    plan.batch = true;
    CHECK_INT(fits(&plan, "7", NULL, "3"), 0);
    CHECK_INT(fits(&plan, "7", "4294967291", NULL), 0);
    CHECK_INT(fits(&plan, "7", "-5", NULL), 0);
    CHECK_INT(fits(&plan, "7", "batch", NULL), 0);
    CHECK_INT(fits(&plan, "7", "interactive", NULL), -1);
}

/* A process of root's that works for the user for a while, and one that gave up its rights. */
TEST(rights)
{
    enum { UID = 65534 };
    struct shim_plan plan = {.uid = UID, .job = 7};
    if (geteuid() != 0)
        return;
    for (int kept = 0; kept < 4; kept++) { /* 1: the real uid, 2: the saved one */
        pid_t pid = fork();
        if (pid == 0) {
            if (setresuid(kept & 1 ? 0 : UID, UID, kept & 2 ? 0 : UID))
                _exit(2);
            _exit(fits(&plan, NULL, NULL, NULL) != 0);
        }
        CHECK_INT(check_exit(pid), kept != 0);
    }
}
