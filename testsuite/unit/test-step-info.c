/* What the job's environment says of a step, in the forms that Slurm 22.05 and 24.11 give it. */
#include "plugin/plugin.h"

#include <slurm/slurm.h>

#include "check.h"
#include "client/key.h"
#include "client/step-fields.h"

static struct tccl_step step;
static struct step_place place;

static int read_env(const struct step_items *items, char *const *env)
{
    tccl_step_clear(&step);
    return step_info_read(items, env, &step, &place, ERR);
}

AFTER
{
    tccl_step_clear(&step);
}

TEST(kind)
{
    CHECK_INT(step_kind(0), STEP_TASKS);
    CHECK_INT(step_kind(SLURM_BATCH_SCRIPT), STEP_BATCH);
    CHECK_INT(step_kind(SLURM_INTERACTIVE_STEP), STEP_SHELL);
    CHECK_INT(step_kind(SLURM_EXTERN_CONT), STEP_CONTAINER);
}

/* srun inside sbatch, on the second node: SLURMD_NODENAME and SLURM_NODEID are the batch host's. */
TEST(nested_step)
{
    char *env[] = {"SLURMD_NODENAME=n1",         "SLURM_NODEID=0",
                   "SLURM_JOB_GPUS=0,1,2,3",     "SLURM_STEP_GPUS=3,1",
                   "SLURM_STEP_NODELIST=n[1-2]", "SLURM_STEP_NUM_NODES=2",
                   "SLURM_TOPOLOGY_ADDR=s0.n2",  "SLURM_CLUSTER_NAME=c",
                   "SLURM_JOB_PARTITION=p",      "SLURM_JOB_USER=ann",
                   "SLURM_RESTART_COUNT=2",      NULL};
    struct step_items items = {
        .job = 7, .step = 3, .n_nodes = 2, .node = 1, .now = 1700000000000, .uid = 99, .gid = 98};
    CHECK_INT(read_env(&items, env), 0);
    CHECK_STR(place.name, "n2");
    CHECK(!place.first);
    CHECK_INT(step.node, 1);
    CHECK_INT(step.n_nodes, 2);
    CHECK_STR(step.nodes[0], "n1");
    CHECK_STR(step.nodes[1], "n2");
    CHECK_INT(step.n_gres, 2);
    CHECK_INT(step.gres[0], 1);
    CHECK_INT(step.gres[1], 3);
    CHECK_STR(step.key.cluster, ""); /* never what the user says */
    CHECK_INT(step.key.job, 7);
    CHECK_INT(step.key.step, 3);
    CHECK_INT(step.key.restart, 2);
    CHECK_INT(step.key.run, 0);
    CHECK_INT(step.key.het_job, 0);
    CHECK_INT(step.uid, 99);
    CHECK_INT(step.gid, 98);
    CHECK_STR(step.partition, "p");
    CHECK(!step.account[0] && !step.job_name[0] && !step.reason[0]);
}

TEST(batch_step)
{
    char *env[] = {"SLURM_JOB_GPUS=0-2", "SLURM_JOB_NODELIST=n[1-3]", "SLURM_TOPOLOGY_ADDR=n2",
                   "SLURM_STEP_GPUS=7", NULL};
    struct step_items items = {.job = 7, .step = SLURM_BATCH_SCRIPT, .now = 1700000000000};
    CHECK_INT(read_env(&items, env), 0);
    CHECK_INT(step.key.run, 1700000000000);
    CHECK_INT(step.launch, TCCL_LAUNCH_SCRIPT);
    CHECK_INT(place.job_nodes, 3);
    CHECK_STR(place.name, "n2");
    CHECK(place.first && place.placed);
    CHECK_INT(step.n_nodes, 1);
    CHECK_STR(step.nodes[0], "n2");
    CHECK_INT(step.n_gres, 3);
    CHECK_INT(step.node, 0);
}

/* mpirun's daemons: the job script's node is in front, if it has no daemon, and is of the job. */
static void check_daemons(const char *program, char *script_node, char *nodes, int launch, int node)
{
    char *env[] = {"SLURM_JOB_NODELIST=n[1-4]",
                   "SLURM_STEP_GPUS=0-3",
                   "SLURM_TOPOLOGY_ADDR=n3",
                   nodes,
                   script_node,
                   NULL};
    struct step_items items = {.job = 7, .n_nodes = 3, .node = 1, .program = program};
    CHECK_INT(read_env(&items, env), 0);
    CHECK_INT(step.launch, launch);
    CHECK_INT(step.node, node);
    CHECK_INT(step.n_nodes, launch == TCCL_LAUNCH_BELOW ? 4 : 3);
    CHECK_STR(step.nodes[step.node], "n3");
    CHECK_STR(place.name, "n3");
    if (launch == TCCL_LAUNCH_BELOW)
        CHECK_STR(step.nodes[0], "n1");
}

TEST(daemons)
{
    char head[] = "SLURMD_NODENAME=n1", other[] = "SLURMD_NODENAME=m1";
    char below[] = "SLURM_STEP_NODELIST=n[2-4]", all[] = "SLURM_STEP_NODELIST=n[1,3-4]";
    check_daemons("orted", head, below, TCCL_LAUNCH_BELOW, 2);
    check_daemons("/opt/ompi/bin/prted", head, below, TCCL_LAUNCH_BELOW, 2);
    check_daemons("/usr/bin/hydra_pmi_proxy", head, all, TCCL_LAUNCH_DAEMONS, 1);
    check_daemons("hydra_bstrap_proxy", head, below, TCCL_LAUNCH_DAEMONS, 1);
    check_daemons("orted", other, below, TCCL_LAUNCH_DAEMONS, 1);
    check_daemons("orted", NULL, below, TCCL_LAUNCH_DAEMONS, 1);
    check_daemons("/home/orted/train", head, below, TCCL_LAUNCH_TASKS, 1);
    check_daemons(NULL, head, below, TCCL_LAUNCH_TASKS, 1);
}

TEST(no_gpus)
{
    char *env[] = {"SLURM_STEP_NODELIST=n1", "SLURM_JOB_GPUS=0,1", NULL};
    struct step_items items = {.job = 7, .n_nodes = 1};
    CHECK_INT(read_env(&items, env), 0);
    CHECK(!place.has_gpus);
    CHECK_INT(step.n_gres, 0);
    CHECK(place.first);
}

/* Component 1 of two; srun --het-group=1, then --het-group=0,1. */
TEST(components)
{
    char *env[] = {"SLURM_HET_SIZE=2",
                   "SLURM_JOB_ID=3",
                   "SLURM_JOB_ID_HET_GROUP_0=3",
                   "SLURM_JOB_ID_HET_GROUP_1=4",
                   "SLURM_STEP_NODELIST=n[2-3]",
                   "SLURM_STEP_NUM_NODES=2",
                   "SLURM_TOPOLOGY_ADDR=n3",
                   "SLURM_STEP_GPUS=0",
                   NULL};
    struct step_items items = {.job = 4, .n_nodes = 2, .node = 1};
    CHECK_INT(read_env(&items, env), 0);
    CHECK_INT(step.key.het_job, 3);
    CHECK_INT(step.key.het_offset, 1);
    CHECK_INT(step.node, 1);
    env[2] = "SLURM_JOB_ID_HET_GROUP_0=2"; /* somebody else's job: components have no gaps */
    CHECK_INT(read_env(&items, env), 0);
    CHECK_INT(step.key.het_job, 0);
    CHECK_INT(step.key.job, 4);
    env[2] = "SLURM_JOB_ID_HET_GROUP_0=3";
    env[4] = "SLURM_STEP_NODELIST=n[1-3]";
    env[5] = "SLURM_STEP_NUM_NODES=3";
    CHECK_FAILS(
        read_env(&items, env),
        "the step spans components of a heterogeneous job: give srun one of them (--het-group=0)");
    CHECK(place.spans && !place.first && !place.placed && !place.speaks);
    CHECK_STR(place.name, "n3");
    items.node = 0; /* of the component: the second of the step's nodes */
    env[6] = "SLURM_TOPOLOGY_ADDR=n2";
    CHECK_INT(read_env(&items, env), -1);
    CHECK(place.spans && !place.first && place.speaks);
    CHECK_INT(step.key.het_offset, 1);
    items = (struct step_items){.job = 9, .n_nodes = 2, .node = 0}; /* variables of another job */
    env[4] = "SLURM_STEP_NODELIST=n[2-3]";
    env[5] = "SLURM_STEP_NUM_NODES=2";
    env[6] = "SLURM_TOPOLOGY_ADDR=n2";
    CHECK_INT(read_env(&items, env), 0);
    CHECK_INT(step.key.het_job, 0);
    env[5] = "SLURM_STEP_NUM_NODES=3"; /* srun A : B, which says nothing of its components */
    CHECK_INT(read_env(&items, env), -1);
    CHECK(place.spans && place.first && place.speaks);
    CHECK_INT(step.key.het_job, 9);
    CHECK_INT(step.key.het_offset, 0);
}

/* The component that these variables name, in the newer and the older form: -1: none. */
static int component(uint32_t job, const char *size, const char *newer, const char *older)
{
    char text[3][64];
    char *env[] = {"SLURM_STEP_NODELIST=n1", "SLURM_STEP_GPUS=0", text[0], text[1], text[2], NULL};
    struct step_items items = {.job = job, .n_nodes = 1};
    snprintf(text[0], sizeof(text[0]), "%s%s", *size ? "SLURM_HET_SIZE=" : "NONE=", size);
    snprintf(text[1], sizeof(text[1]), "SLURM_JOB_ID_HET_GROUP_%s", newer);
    snprintf(text[2], sizeof(text[2]), "SLURM_JOB_ID_PACK_GROUP_%s", older);
    CHECK_INT(read_env(&items, env), 0);
    return step.key.het_job ? (int)step.key.het_offset : -1;
}

TEST(component_of)
{
    CHECK_INT(component(5, "2", "0=5", "x=1"), 0);
    CHECK_INT(component(5, "2", "x=1", "0=5"), 0);
    CHECK_INT(component(5, "", "0=5", "x=1"), -1); /* no size: no such job */
    CHECK_INT(component(5, "0", "0=5", "x=1"), -1);
    CHECK_INT(component(1, "2", "x=1", "x=1"), -1); /* what is not there is not job 1 */
}

/* The newer names go first; of so many components as there are, and as Slurm has at most. */
TEST(many_components)
{
    enum { MOST = 128 };
    static char texts[MOST + 3][64];
    char *env[MOST + 8] = {"SLURM_STEP_NODELIST=n1", "SLURM_STEP_GPUS=0"};
    int n = 2;
    for (int i = 0; i <= MOST; i++, n++) {
        snprintf(texts[i], sizeof(texts[i]), "SLURM_JOB_ID_HET_GROUP_%d=%d", i, 100 + i);
        env[n] = texts[i];
    }
    snprintf(texts[MOST + 1], sizeof(texts[0]), "SLURM_JOB_ID_PACK_GROUP_0=101");
    env[n++] = texts[MOST + 1];
    env[n] = texts[MOST + 2];
    for (int size = 1; size <= 2 * MOST; size++)
        for (int i = size - 1; i <= size; i++) {
            struct step_items items = {.job = 100 + (uint32_t)i, .n_nodes = 1};
            bool is = i < size && i < MOST;
            snprintf(texts[MOST + 2], sizeof(texts[0]), "SLURM_HET_SIZE=%d", size);
            CHECK_INT(read_env(&items, env), 0);
            /* by its older name component 1 would be the leader of a job of its own */
            CHECK_INT(step.key.het_job, is ? 100 : i == 1 ? 101 : 0);
            CHECK_INT(step.key.het_offset, is ? i : 0);
        }
}

/* srun A : B outside of a job, in 22.05: only the older names, and SLURM_JOB_ID is the leader's. */
TEST(components_of_srun)
{
    char *env[] = {"SLURM_HET_SIZE=2",
                   "SLURM_JOB_ID=13",
                   "SLURM_JOB_ID_PACK_GROUP_0=13",
                   "SLURM_JOB_ID_PACK_GROUP_1=14",
                   "SLURM_STEP_NODELIST=n[1-3]",
                   "SLURM_STEP_NUM_NODES=3",
                   "SLURM_TOPOLOGY_ADDR=n2",
                   "SLURM_STEP_GPUS=0",
                   NULL};
    struct step_items items = {.job = 14, .n_nodes = 2};
    CHECK_INT(read_env(&items, env), -1);
    CHECK(place.spans && !place.first && place.speaks);
    CHECK_INT(step.key.het_job, 13);
    CHECK_INT(step.key.het_offset, 1);
    items.node = 1;
    env[6] = "SLURM_TOPOLOGY_ADDR=n3";
    CHECK_INT(read_env(&items, env), -1);
    CHECK(!place.speaks);
    env[2] = env[3] = "X=1"; /* nothing names the component: only the leader's node speaks */
    items.node = 0;
    env[6] = "SLURM_TOPOLOGY_ADDR=n2";
    CHECK_INT(read_env(&items, env), -1);
    CHECK(place.spans && !place.speaks);
}

/* What the items and the environment say of an array, and what is believed. */
static void check_array(uint32_t number, uint32_t array_job, uint32_t array_task, char *variable,
                        uint32_t job, uint32_t task)
{
    char *env[] = {"SLURM_STEP_NODELIST=n1", "SLURM_JOB_NODELIST=n1", variable, NULL};
    struct step_items items = {
        .job = 19, .step = number, .n_nodes = 1, .array_job = array_job, .array_task = array_task};
    CHECK_INT(read_env(&items, env), 0);
    CHECK_INT(step.key.job, 19);
    CHECK_INT(step.array_job, job);
    CHECK_INT(step.array_task, task);
}

TEST(arrays)
{
    check_array(0, 17, 3, "X=", 17, 3);
    check_array(0, 17, 0, "X=", 17, 0);
    check_array(0, 19, 4000000, "X=", 19, 4000000);
    check_array(SLURM_BATCH_SCRIPT, 17, 3, "X=", 17, 3);
    check_array(0, 19, NO_VAL, "X=", 0, 0); /* slurmstepd's word for none */
    check_array(SLURM_BATCH_SCRIPT, 0, NO_VAL, "SLURM_ARRAY_JOB_ID=17", 0, 0);
    check_array(0, 0, 0, "X=", 0, 0);
    check_array(0, 20, 3, "X=", 0, 0); /* an array of later than this job */
    check_array(0, 4294967295u, 3, "X=", 0, 0);
    check_array(0, 17, 4000001, "X=", 0, 0);
    check_array(0, 17, 4294967295u, "X=", 0, 0);
    check_array(0, 17, 3, "TCCL_NO_ARRAY=19", 0, 0); /* inherited through sbatch */
    check_array(0, 17, 3, "TCCL_NO_ARRAY=18", 17, 3);
    check_array(0, 17, 3, "SLURM_ARRAY_TASK_ID=3", 17, 3);
    check_array(0, 17, 0, "SLURM_ARRAY_TASK_ID=x", 0, 0); /* slurmstepd's atoi makes 0 of it */
    check_array(0, 17, 3, "SLURM_ARRAY_TASK_ID=3x", 0, 0);
    check_array(0, 17, 3, "SLURM_ARRAY_JOB_ID=4294967313", 0, 0);
    char *inherited[] = {"SLURM_ARRAY_JOB_ID=17", "SLURM_ARRAY_TASK_ID=3", NULL}, *none[] = {NULL};
    struct step_items items = {.job = 19, .step = SLURM_BATCH_SCRIPT, .array_task = NO_VAL};
    CHECK(step_info_needs_no_array(&items, inherited) && !step_info_needs_no_array(&items, none));
    items.array_job = 17;
    items.array_task = 3;
    CHECK(!step_info_needs_no_array(&items, inherited));
    items.step = 0;
    items.array_task = NO_VAL;
    CHECK(!step_info_needs_no_array(&items, inherited));
}

/* The topology address wins over the index, and node names may hold dots. */
TEST(place)
{
    char *env[] = {"SLURM_STEP_NODELIST=a.b,b,c", "SLURM_TOPOLOGY_ADDR=s1.a.b", "SLURM_STEP_GPUS=0",
                   NULL};
    struct step_items items = {.job = 7, .n_nodes = 3, .node = 0};
    CHECK_INT(read_env(&items, env), 0);
    CHECK_STR(place.name, "a.b");
    env[1] = "SLURM_TOPOLOGY_ADDR=c";
    CHECK_INT(read_env(&items, env), 0);
    CHECK_INT(step.node, 2);
    CHECK(!place.first);
}

static void check_refused(char *const *env, struct step_items items, const char *expected)
{
    CHECK_INT(read_env(&items, env), -1);
    if (!strstr(check_err.text, expected))
        CHECK_STR(check_err.text, expected);
}

TEST(bad)
{
    struct step_items items = {.job = 7, .n_nodes = 2, .node = 1};
    char *no_list[] = {"SLURM_STEP_GPUS=0", NULL};
    check_refused(no_list, items, "SLURM_STEP_NODELIST is not set");
    char *broken[] = {"SLURM_STEP_NODELIST=n[1-", "SLURM_STEP_GPUS=0", NULL};
    check_refused(broken, items, "SLURM_STEP_NODELIST: ");
    char *huge[] = {"SLURM_STEP_NODELIST=n[1-999999999]", "SLURM_STEP_GPUS=0", NULL};
    check_refused(huge, items, "SLURM_STEP_NODELIST: ");
    char *short_list[] = {"SLURM_STEP_NODELIST=n1", "SLURM_STEP_GPUS=0", NULL};
    check_refused(short_list, items, "this node is not in SLURM_STEP_NODELIST (n1)");
    char *long_list[] = {"SLURM_STEP_NODELIST=n[1-3]", "SLURM_STEP_GPUS=0", NULL};
    check_refused(long_list, items, "SLURM_STEP_NODELIST (n[1-3]) has 3 nodes, the step 2");
    char *stranger[] = {"SLURM_STEP_NODELIST=n[1-2]", "SLURM_TOPOLOGY_ADDR=n9", NULL};
    check_refused(stranger, items, "this node is not in");
    char *gpus[] = {"SLURM_STEP_NODELIST=n[1-2]", "SLURM_STEP_GPUS=0,GPU-4711", NULL};
    check_refused(gpus, items, "SLURM_STEP_GPUS: ");
    items.step = SLURM_BATCH_SCRIPT;
    check_refused(no_list, items, "SLURM_JOB_NODELIST is not set");
}

/* A node whose GPUs can't be read can still be named to the others. */
TEST(placed_without_gpus)
{
    char *env[] = {"SLURM_STEP_NODELIST=n[1-2]", "SLURM_STEP_GPUS=40", NULL};
    struct step_items items = {.job = 7, .n_nodes = 2, .node = 1};
    CHECK_INT(read_env(&items, env), -1);
    CHECK(place.placed && place.has_gpus && step.n_gres == 0);
    CHECK_STR(place.name, "n2");
}
