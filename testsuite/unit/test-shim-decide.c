/* Which communicators are taken: each doubt alone is enough to leave one. */
#include "hook/hook.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "check.h"
#include "nccl/shim-nccl.h"

static struct shim_plan plan;
static struct shim_member members[SHIM_GPUS * 2];
static struct shim_comm comm;

/* A node with 4 GPUs of the step, all of them in one communicator. */
static void usual(int ranks)
{
    plan = (struct shim_plan){.n_gpus = 4, .step_gpus = 4, .n_nodes = 1, .uid = geteuid()};
    comm = (struct shim_comm){.key = 1, .ranks = ranks, .expected = -1};
    for (int i = 0; i < SHIM_GPUS * 2; i++)
        members[i] = (struct shim_member){.gpu = (tccl_bus)(0x100 * (i + 1)),
                                          .rank = i,
                                          .nvml = i,
                                          .sees = 0xf,
                                          .version = 22907,
                                          .host = 5,
                                          .pid = 100 + i,
                                          .room = UINT64_MAX};
    for (int i = 0; i < 4; i++)
        plan.gpus[i] = members[i].gpu;
}

static int check(const struct shim_registry *registry, int n, const char *word)
{
    int result = shim_members_check(&plan, registry, &comm, members, n, ERR);
    CHECK_HOLDS(check_err.text, word ? word : "");
    return result;
}

TEST(complete)
{
    usual(4);
    CHECK_INT(check(NULL, 4, NULL), 0); /* all of them are here */
    CHECK_INT(check(NULL, 3, "without the shim"), -1);
    usual(2);
    CHECK_INT(check(NULL, 2, NULL), 0);
    CHECK_INT(check(NULL, 3, "more local ranks"), -1);
    usual(8);
    CHECK_INT(check(NULL, 4, NULL), 0); /* all GPUs of this node, others elsewhere */
    CHECK_INT(check(NULL, 3, "without the shim"), -1);
    CHECK_INT(check(NULL, 0, "0 local ranks"), -1);
    usual(-1);
    CHECK_INT(check(NULL, 4, "number of ranks is unknown"), -1);
    usual(8);
    comm.expected = 2; /* a child of a parent that is known */
    CHECK_INT(check(NULL, 2, NULL), 0);
    CHECK_INT(check(NULL, 3, "of its 2"), -1);
    CHECK_INT(check(NULL, 1, "of its 2"), -1);
    comm.expected = 4;
    comm.ranks = 3;
    CHECK_INT(check(NULL, 4, "more local ranks"), -1);
}

/* Fewer than this node's GPUs: only if each has a living process with the shim. */
TEST(claimed)
{
    usual(6);
    snprintf(plan.folder, sizeof(plan.folder), "%016x", (unsigned)getpid());
    struct shim_registry *registry = shim_registry_open(&plan, ERR);
    CHECK(registry != NULL);
    for (int i = 0; registry && i < 4; i++) {
        CHECK_INT(check(registry, 3, "without the shim"), -1);
        shim_registry_claim_gpu(registry, plan.gpus[i]);
    }
    CHECK_INT(check(registry, 3, NULL), 0);
    CHECK(unlink(check_printf("/dev/shm/tccl-%u-%s.%u", plan.uid, plan.folder, plan.index)) == 0);
}

/* Ends of which one may take the network and one may not never meet, in no later communicator. */
TEST(network)
{
    struct shim_answer answer = {.no_net = true};
    usual(4);
    CHECK_SAYS(shim_members_can(&answer, members, 2, ERR) == -1, "only a communicator of all");
    answer.whole = true;
    CHECK_INT(shim_members_can(&answer, members, 4, NULL), 0);
    members[2].net = SHIM_NET_LEFT;
    CHECK_INT(shim_members_can(&answer, members, 4, NULL), -1);
    answer.whole = false;
    members[0].net = members[1].net = SHIM_NET_OFF;
    CHECK_INT(shim_members_can(&answer, members, 2, NULL), 0);
}

TEST(alike)
{
    usual(4);
    members[2].gpu = SHIM_NO_BUS;
    CHECK_INT(check(NULL, 4, "process 102) is not known"), -1);
    usual(4);
    members[3].gpu = 0x900;
    CHECK_INT(check(NULL, 4, "none of the step's"), -1);
    usual(4);
    members[1].gpu = members[0].gpu;
    CHECK_INT(check(NULL, 4, "two ranks are on one GPU"), -1);
    usual(4);
    members[1].host = 6;
    CHECK_INT(check(NULL, 4, "different hosts"), -1);
    usual(4);
    members[3].version = 22805;
    CHECK_INT(check(NULL, 4, "different NCCL versions"), -1);
}

TEST(versions)
{
    static const struct {
        uint32_t version;
        int result;
    } cases[] = {{0, -1}, {22099, -1}, {22105, 0}, {22907, 0}, {99900, -1}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        usual(4);
        for (int j = 0; j < 4; j++)
            members[j].version = cases[i].version;
        CHECK_INT(check(NULL, 4, cases[i].result ? ": not known" : NULL), cases[i].result);
    }
}

static void left_alone(uint32_t user, int ranks, int n, const char *word)
{
    static struct shim_answer answer;
    usual(ranks);
    members[n - 1].user = user;
    CHECK_SAYS(shim_decide(&plan, NULL, &comm, members, n, &answer, NULL, ERR) == -1, word);
    CHECK_INT(answer.locals, n); /* children may still rely on it */
    CHECK(answer.whole == (ranks == 4 && n == 4));
}

/* Of ranks that see only their own GPUs, one has NVLink. */
TEST(hidden)
{
    static struct shim_answer answer;
    usual(4);
    for (int i = 0; i < 4; i++)
        members[i].sees = 1u << i;
    members[2].linked = true;
    CHECK_SAYS(shim_decide(&plan, NULL, &comm, members, 4, &answer, NULL, ERR) == -1,
               "may be joined by NVLink");
}

TEST(left_alone)
{
    left_alone(SHIM_USER_FILES, 4, 4, "the user has set");
    left_alone(SHIM_USER_SHARP, 2, 2, "the user has set");
    left_alone(0, 1, 1, "one rank");
}

/* ---- tccld and other nodes that do not answer ---- */

static int64_t now_us, patience; /* told last; what a group's question had */
static int64_t skipped;          /* time that was not waited */
static enum { REAL, SILENT, PROMPT } tccld;
static bool good;        /* whatever is decided */
static int agreed, will; /* what other nodes say; what this one has said, -1: nothing */

int64_t __real_shim_now_us(void);
int64_t __wrap_shim_now_us(void);
int __real_shim_ask_chain(const struct shim_plan *asked, const tccl_bus *gpus, int n, bool closed,
                          int64_t deadline_us, struct shim_chain *chain, struct tccl_error *why);
int __wrap_shim_ask_chain(const struct shim_plan *asked, const tccl_bus *gpus, int n, bool closed,
                          int64_t deadline_us, struct shim_chain *chain, struct tccl_error *why);
int __wrap_shim_ask_agree(const struct shim_plan *asked, uint64_t key, bool says,
                          int64_t deadline_us, struct tccl_error *why);
int __real_shim_decide(const struct shim_plan *its_plan, struct shim_registry *registry,
                       const struct shim_comm *its, const struct shim_member *its_members, int n,
                       struct shim_answer *answer, struct shim_text *apart, struct tccl_error *why);
int __wrap_shim_decide(const struct shim_plan *its_plan, struct shim_registry *registry,
                       const struct shim_comm *its, const struct shim_member *its_members, int n,
                       struct shim_answer *answer, struct shim_text *apart, struct tccl_error *why);

int64_t __wrap_shim_now_us(void)
{
    return now_us = __real_shim_now_us() + skipped;
}

int __wrap_shim_ask_chain(const struct shim_plan *asked, const tccl_bus *gpus, int n, bool closed,
                          int64_t deadline_us, struct shim_chain *chain, struct tccl_error *why)
{
    patience = deadline_us - now_us;
    if (tccld == REAL)
        return __real_shim_ask_chain(asked, gpus, n, closed, deadline_us, chain, why);
    skipped += tccld == SILENT ? patience : 0;
    tccl_fail(why, tccld == SILENT ? "silent" : "left");
    return tccld == SILENT ? -1 : 1;
}

int __wrap_shim_ask_agree(const struct shim_plan *asked, uint64_t key, bool says,
                          int64_t deadline_us, struct tccl_error *why)
{
    CHECK(asked == &plan && key == comm.key && deadline_us > 0);
    will = says;
    if (agreed != 1)
        tccl_fail(why, "n2 is silent");
    return agreed;
}

int __wrap_shim_decide(const struct shim_plan *its_plan, struct shim_registry *registry,
                       const struct shim_comm *its, const struct shim_member *its_members, int n,
                       struct shim_answer *answer, struct shim_text *apart, struct tccl_error *why)
{
    if (!good)
        return __real_shim_decide(its_plan, registry, its, its_members, n, answer, apart, why);
    *answer = (struct shim_answer){.chain = its_plan->chain, .ranks = its->ranks, .locals = n};
    shim_text_add(apart, "one ring");
    return 0;
}

/* A tccld that is so busy, for one question. */
static void *answer_late(void *listening)
{
    static const char answer[] = "\0\0\0\x28tccl-chain 1\nstate left\nreason late\nend\n";
    char question[8192];
    cleanup_close int fd = accept(*(int *)listening, NULL, NULL);
    CHECK(recv(fd, question, sizeof(question), 0) > 0);
    usleep(300000);
    CHECK_INT(send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL), sizeof(answer) - 1);
    return NULL;
}

/* A group of this node's first two GPUs asks. Returns for how long, µs. */
static int64_t ask_for_group(struct shim_registry *registry, const char *expected)
{
    static struct shim_answer answer;
    for (int i = 0; i < 2; i++)
        members[i].sees = 1u << i; /* no NVML is asked */
    comm.ranks = 2;
    CHECK_FAILS(shim_decide(&plan, registry, &comm, members, 2, &answer, NULL, ERR), expected);
    CHECK(answer.no_gain == (tccld != SILENT));
    return patience;
}

TEST(late_answer)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    pthread_t thread;
    usual(2);
    tccld = REAL;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", check_at("sock"));
    snprintf(plan.socket, sizeof(plan.socket), "%s", address.sun_path);
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(listening, (struct sockaddr *)&address, sizeof(address)), 0);
    CHECK_INT(listen(listening, 5), 0);
    CHECK_INT(pthread_create(&thread, NULL, answer_late, &listening), 0);
    CHECK_INT(ask_for_group(NULL, "late"), 2000000);
    shutdown(listening, SHUT_RDWR); /* if nobody has come */
    pthread_join(thread, NULL);
    close(listening);
}

/* A communicator of all GPUs of two nodes with three rings, which this node would build. Returns
 * whether it builds them, not one alone. */
static bool settle_rings(struct shim_registry *registry)
{
    comm.key++;
    comm.ranks = 8;
    plan.chain.rings.n = 3;
    struct shim_entry *entry = shim_registry_entry(registry, comm.key, 4);
    for (int i = 0; entry && i < 4; i++)
        shim_entry_asked(entry, shim_entry_join(entry, &members[i]), SHIM_BUFFERS_FILES,
                         SHIM_NET_OPEN);
    good = true;
    will = -1;
    CHECK(entry && shim_settle(&plan, registry, entry, &comm) == SHIM_USE);
    good = false;
    plan.chain.rings.n = 0;
    struct tccl_error why = {""}; /* for the verdict that it is built in part */
    shim_entry_why(entry, &why);
    CHECK_STR(why.text, shim_entry_answer(entry)->graph_size ? "n2 is silent" : "");
    return entry && shim_entry_answer(entry)->graph_size == 0;
}

/* A tccld that hangs is waited for once, until it answers again, and costs no node its rings. A
 * node that is not heard is waited for once in the step, and costs no group its chain. */
TEST(silence)
{
    usual(8);
    plan.n_nodes = 2;
    plan.step_gpus = 8;
    snprintf(plan.folder, sizeof(plan.folder), "5%015x", (unsigned)getpid());
    struct shim_registry *registry = shim_registry_open(&plan, ERR);
    CHECK(registry != NULL);
    if (!registry)
        return;
    tccld = SILENT;
    CHECK_INT(ask_for_group(registry, "silent"), 2000000);
    CHECK_INT(ask_for_group(registry, "silent"), 50000);
    agreed = 1;
    CHECK(settle_rings(registry));
    CHECK_INT(will, true);
    tccld = PROMPT;
    CHECK_INT(ask_for_group(registry, "left"), 50000);
    agreed = -1;
    CHECK(!settle_rings(registry));
    CHECK_INT(will, true);
    agreed = 1;
    settle_rings(registry);
    CHECK_INT(will, false); /* nobody waits again */
    CHECK_INT(ask_for_group(registry, "left"), 2000000);
    CHECK(unlink(check_printf("/dev/shm/tccl-%u-%s.%u", plan.uid, plan.folder, plan.index)) == 0);
}
