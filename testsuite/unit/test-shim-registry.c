/* The registry of a node's ranks: several processes, killed ones, a full table, foreign files. */
#include "plan/plan.h"

#include <sys/resource.h>

#include "check.h"

enum { PROCESSES = 8 };

static struct shim_plan plan;
static char path[128];

static void new_step(void)
{
    static unsigned count;
    plan = (struct shim_plan){.uid = geteuid()};
    snprintf(plan.folder, sizeof(plan.folder), "%08x%08x", (unsigned)getpid(), ++count);
    snprintf(path, sizeof(path), "/dev/shm/tccl-%u-%s.%u", plan.uid, plan.folder, plan.index);
    unlink(path);
}

static struct shim_registry *open_one(void)
{
    struct shim_registry *registry = shim_registry_open(&plan, ERR);
    CHECK_STR(check_err.text, "");
    return registry ? registry : (exit(1), NULL);
}

BEFORE
{
    new_step();
}

AFTER
{
    unlink(path);
}

static struct shim_member member_of(int i)
{
    return (struct shim_member){
        .gpu = (tccl_bus)(0x100 * (PROCESSES - i)), .rank = i, .version = 22907, .pid = getpid()};
}

/* Each process joins, waits for all and tries to decide: ends with 1 if it was the one, else 0. */
static int take_part(int i)
{
    struct shim_member members[SHIM_GPUS * 2], own = member_of(i);
    struct shim_entry *entry = shim_registry_entry(open_one(), 77, 0);
    if (!entry || shim_entry_join(entry, &own) < 0)
        return 9;
    for (int tries = 0; shim_entry_members(entry, members) < PROCESSES; tries++) {
        if (tries > 20000)
            return 8;
        shim_sleep_us(500);
    }
    if (shim_entry_begin(entry)) {
        shim_entry_answer(entry)->ranks = 42;
        shim_sleep_us(2000);
        return shim_entry_decide(entry, SHIM_USE, NULL) == SHIM_USE ? 1 : 7;
    }
    if (shim_entry_wait(entry, shim_now_us() + 20000000) != SHIM_USE)
        return 6;
    return shim_entry_answer(entry)->ranks == 42 ? 0 : 5;
}

TEST(several_processes)
{
    pid_t pids[PROCESSES];
    struct shim_member members[SHIM_GPUS * 2], late = member_of(0);
    int deciders = 0;
    for (int i = 0; i < PROCESSES; i++)
        if ((pids[i] = fork()) == 0)
            _exit(take_part(i));
    for (int i = 0; i < PROCESSES; i++) {
        int status = check_exit(pids[i]);
        CHECK(status == 0 || status == 1);
        deciders += status == 1;
    }
    CHECK_INT(deciders, 1);
    struct shim_entry *entry = shim_registry_entry(open_one(), 77, 0);
    CHECK_INT(shim_entry_members(entry, members), PROCESSES);
    for (int i = 1; i < PROCESSES; i++)
        CHECK(members[i - 1].gpu < members[i].gpu);
    CHECK_INT(members[0].rank, PROCESSES - 1);
    CHECK_INT(shim_entry_join(entry, &late), -1);
}

/* A decision is put into effect only once all ranks are there to take it. */
TEST(asked)
{
    static const struct tccl_error why = {"given up"};
    struct shim_entry *entry = shim_registry_entry(open_one(), 5, 0);
    shim_entry_asked(entry, -1, SHIM_BUFFERS_FILES, SHIM_NET_OPEN);
    shim_entry_asked(entry, SHIM_GPUS * 2, SHIM_BUFFERS_FILES, SHIM_NET_OPEN);
    shim_entry_asked(entry, 3, SHIM_BUFFERS_CUMEM, SHIM_NET_OPEN);
    shim_entry_asked(entry, 3, SHIM_BUFFERS_CUMEM, SHIM_NET_OPEN);
    CHECK_INT(shim_entry_await(entry, 1, 0), 0);
    CHECK_INT(shim_entry_await(entry, 2, shim_now_us() + 1000), -1);
    pid_t pid = fork();
    if (pid == 0) {
        entry = shim_registry_entry(open_one(), 5, 0);
        shim_sleep_us(2000);
        shim_entry_asked(entry, 0, SHIM_BUFFERS_FIXED, SHIM_NET_OPEN);
        _exit(0);
    }
    CHECK_INT(shim_entry_await(entry, 2, shim_now_us() + 20000000), 0);
    CHECK_INT(check_exit(pid), 0);
    CHECK(shim_entry_begin(entry));
    CHECK_INT(shim_entry_aside(entry, &why), SHIM_ASIDE);
    CHECK_INT(shim_entry_await(entry, 3, INT64_MAX), -1);
    CHECK_INT(shim_entry_decide(entry, SHIM_USE, NULL), SHIM_ASIDE);
}

/* A process dies wherever it is; what it leaves keeps nobody from anything. */
TEST(killed_processes)
{
    unsigned long seed = check_seed();
    struct shim_registry *registry = open_one();
    for (int round = 0; round < 30; round++) {
        pid_t pid = fork();
        if (pid == 0) {
            registry = open_one();
            for (uint64_t key = 1; key < 300; key++) {
                struct shim_entry *entry = shim_registry_entry(registry, key * 7919, 0);
                struct shim_member member = member_of(1);
                shim_entry_join(entry, &member);
                shim_entry_begin(entry);
                shim_registry_claim_gpu(registry, 0x100 * (key % 16));
            }
            _exit(0);
        }
        shim_sleep_us((long)(seed % 977 * (unsigned long)round));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    for (uint64_t key = 1; key < 300; key++) {
        struct shim_entry *entry = shim_registry_entry(registry, key * 7919, 0);
        CHECK(entry && shim_entry_wait(entry, shim_now_us()) == SHIM_ASIDE);
        if (check_failures)
            return;
    }
    CHECK(shim_registry_entry(registry, 5, 0) != NULL);
}

TEST(decisions)
{
    struct tccl_error first = {"the first"}, second = {"the second"}, why = {""};
    struct shim_registry *registry = open_one();
    struct shim_entry *entry = shim_registry_entry(registry, 1, 0);
    CHECK_INT(shim_entry_aside(entry, &first), SHIM_ASIDE);
    CHECK_INT(shim_entry_aside(entry, &second), SHIM_ASIDE);
    CHECK(!shim_entry_begin(entry));
    shim_entry_why(entry, &why);
    CHECK_STR(why.text, "the first");
    entry = shim_registry_entry(registry, 2, 0); /* given up on while somebody decides */
    CHECK(shim_entry_begin(entry));
    CHECK_INT(shim_entry_wait(entry, shim_now_us() + 1000), SHIM_ASIDE);
    CHECK_INT(shim_entry_decide(entry, SHIM_USE, NULL), SHIM_ASIDE);
    entry = shim_registry_entry(registry, 3, 0); /* too late */
    CHECK(shim_entry_begin(entry));
    CHECK_INT(shim_entry_decide(entry, SHIM_USE, NULL), SHIM_USE);
    CHECK_INT(shim_entry_aside(entry, &first), SHIM_USE);
    CHECK_INT(shim_entry_proven(entry), 0);
    shim_entry_prove(entry, 4);
    CHECK_INT(shim_entry_proven(shim_registry_entry(registry, 3, 0)), 4);
    entry = shim_registry_entry(registry, 4, 0);
    struct shim_member member = member_of(0);
    for (int i = 0; i < SHIM_GPUS * 2; i++)
        CHECK_INT(shim_entry_join(entry, &member), i);
    CHECK_INT(shim_entry_join(entry, &member), -1);
    struct shim_member members[SHIM_GPUS * 2];
    CHECK_INT(shim_entry_members(entry, members), SHIM_GPUS * 2);
}

TEST(verdicts)
{
    char text[256];
    int worst = -1;
    struct shim_entry *entry = shim_registry_entry(open_one(), 1, 0);
    CHECK(!shim_entry_done(entry, 4, 0, "", &worst, text));
    CHECK(!shim_entry_done(entry, 4, 3, "differs here", &worst, text));
    CHECK(!shim_entry_done(entry, 4, 3, "differs there", &worst, text));
    CHECK(shim_entry_done(entry, 4, 2, "fewer", &worst, text));
    CHECK_INT(worst, 3);
    CHECK_STR(text, "differs here");
    entry = shim_registry_entry(open_one(), 2, 0);
    CHECK(!shim_entry_done(entry, 2, 0, "", &worst, text));
    CHECK(shim_entry_done(entry, 2, 0, "", &worst, text));
    CHECK_INT(worst, 0);
    CHECK_STR(text, "");
    entry = shim_registry_entry(open_one(), 3, 0);
    CHECK(!shim_entry_done(entry, 3, 2, "1 of 3 rings", &worst, text));
    CHECK(!shim_entry_done(entry, 3, 2, "2 of 3 rings", &worst, text));
    CHECK(shim_entry_done(entry, 3, 2, "1 of 3 rings", &worst, text));
    CHECK_STR(text, "2 of 3 rings");
}

TEST(full_table)
{
    struct shim_registry *registry = open_one();
    for (uint64_t key = 1; key <= SHIM_ENTRIES; key++)
        CHECK(shim_registry_entry(registry, key * 31, 0) != NULL);
    CHECK(shim_registry_entry(registry, 5, 0) == NULL);
    CHECK(shim_registry_entry(registry, 31, 0) != NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(shim_registry_entry(open_one(), 5, 0) != NULL);
    CHECK_INT(check_exit(pid), 0);
    CHECK(shim_registry_closed(registry));
    struct stat status;
    CHECK(stat(path, &status) == 0 && status.st_nlink == 1);
}

enum { GROUPS = 2000, OPEN = 40 };

/* Joins and leaves many groups, of which some stay open; 1: one was not what it should be. Each
 * counts its own members, which nothing of an earlier group in that place may add to. */
static int make_groups(int i, unsigned seed)
{
    struct shim_registry *registry = open_one();
    struct shim_entry *open[OPEN] = {NULL};
    struct shim_member members[SHIM_GPUS * 2], own = member_of(i);
    for (int group = 0; group < GROUPS; group++) {
        struct shim_entry *entry = shim_registry_entry(registry, (uint64_t)group + 1, PROCESSES);
        if (!entry || shim_entry_join(entry, &own) < 0)
            return 1;
        seed = seed * 1103515245 + 12345;
        for (int tries = 0; shim_entry_members(entry, members) < PROCESSES; tries++) {
            if (tries > 100000)
                return 1;
            shim_sleep_us(20);
        }
        if (shim_entry_members(entry, members) != PROCESSES)
            return 1;
        int at = (int)(seed >> 16) % OPEN;
        shim_registry_drop(registry, open[at]);
        open[at] = entry;
    }
    for (int at = 0; at < OPEN; at++)
        shim_registry_drop(registry, open[at]);
    return 0;
}

TEST(many_groups)
{
    unsigned long seed = check_seed();
    pid_t pids[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        if ((pids[i] = fork()) == 0)
            _exit(make_groups(i, (unsigned)seed + (unsigned)i));
    for (int i = 0; i < PROCESSES; i++)
        CHECK_INT(check_exit(pids[i]), 0);
    CHECK(!shim_registry_closed(open_one()));
    for (uint64_t key = 1; key <= SHIM_ENTRIES; key++) /* all places are free again */
        CHECK(shim_registry_entry(open_one(), GROUPS + key, 0) != NULL);
}

/* Who is the first to come and go leaves the entry to the others that are expected. */
TEST(expected_ranks)
{
    struct shim_registry *registry = open_one();
    struct shim_member own = member_of(0), members[SHIM_GPUS * 2];
    struct shim_entry *first = shim_registry_entry(registry, 9, 2);
    CHECK_INT(shim_entry_join(first, &own), 0);
    shim_registry_drop(registry, first);
    CHECK(shim_registry_entry(registry, 9, 2) == first);
    CHECK_INT(shim_entry_members(first, members), 1);
    shim_registry_drop(registry, first);
    struct shim_entry *again = shim_registry_entry(registry, 9, 2);
    CHECK_INT(shim_entry_members(again, members), 0);
    CHECK_INT(shim_entry_stands(again), SHIM_UNDECIDED);
}

/* In a new process each, since one registry is kept. */
static void refused(const char *what)
{
    pid_t pid = fork();
    if (pid == 0) {
        _exit(shim_registry_open(&plan, ERR) == NULL && check_err.text[0] ? 0 : 1);
    }
    int status = check_exit(pid);
    if (status != 0)
        fprintf(stderr, "%s: not refused\n", what);
    CHECK_INT(status, 0);
}

static void put(off_t size, mode_t mode, const char *text)
{
    cleanup_close int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, mode);
    CHECK(fd >= 0 && ftruncate(fd, size) == 0 && fchmod(fd, mode) == 0);
    CHECK(pwrite(fd, text, strlen(text), 0) == (ssize_t)strlen(text));
}

TEST(foreign_files)
{
    char other[160];
    open_one();
    struct stat status;
    CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0600);
    CHECK(status.st_blocks * 512 < 1 << 20); /* sparse */
    unlink(path);
    new_step();
    put(17, 0600, "x");
    refused("a short file");
    put(status.st_size, 0600, "something else");
    refused("a file of another layout");
    unlink(path);
    CHECK(mkdir(path, 0700) == 0);
    refused("a folder");
    rmdir(path);
    CHECK(symlink("/dev/shm/tccl-nowhere", path) == 0);
    refused("a link");
    CHECK(access("/dev/shm/tccl-nowhere", F_OK) != 0);
    unlink(path);
    CHECK(mkfifo(path, 0600) == 0);
    refused("a pipe");
    unlink(path);
    put(0, 0600, "");
    snprintf(other, sizeof(other), "%s.b", path);
    CHECK(link(path, other) == 0);
    refused("a file with two names");
    unlink(other);
    put(0, 0622, "");
    refused("a file that others may write");
    put(0, 0600, "");
    if (geteuid() == 0) {
        CHECK(chown(path, 65534, 65534) == 0);
        refused("a file of another user");
    }
}

/* Another process of the user's has written to the file. */
TEST(damaged_answers)
{
    static struct shim_answer read;
    struct shim_entry *entry = shim_registry_entry(open_one(), 1, 0);
    struct shim_answer *answer = shim_entry_answer(entry);
    const struct shim_answer good = {.chain.rings.n = 2,
                                     .chain.rings.chains[0].n_gpus = 2,
                                     .chain.rings.chains[1].n_gpus = 2,
                                     .graph_size = SHIM_GRAPH_SIZE,
                                     .graph = "<g>"};
    CHECK(!shim_entry_read(entry, &read));
    *answer = good;
    CHECK(shim_entry_read(entry, &read) && memcmp(&read, &good, sizeof(good)) == 0);
    memset(answer->chain.rings.chains[0].exit.nic, 'x', SHIM_NAME);
    CHECK(shim_entry_read(entry, &read) &&
          strlen(read.chain.rings.chains[0].exit.nic) == SHIM_NAME - 1);
    for (int i = 0; i < 5; i++) {
        *answer = good;
        answer->graph_size += i == 0;
        answer->topo_size += i == 1 ? SHIM_TOPO_SIZE + 1 : 0;
        answer->chain.rings.chains[1].n_gpus += i == 2 ? SHIM_GPUS : 0;
        answer->chain.rings.n += i == 3 ? TCCL_CHAIN_RINGS : 0;
        answer->chain.rings.chains[0].edges[1].kind += i == 4 ? TCCL_BOUNCE + 1 : 0;
        CHECK(!shim_entry_read(entry, &read));
    }
}

/* The kernel would end the program with SIGXFSZ. */
TEST(limited_files)
{
    struct rlimit limit;
    pid_t pid = fork();
    if (pid == 0) {
        CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
        limit.rlim_cur = 1 << 20;
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        CHECK(shim_registry_open(&plan, ERR) == NULL && strstr(check_err.text, "limited"));
        limit.rlim_cur = limit.rlim_max;
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        struct shim_registry *registry = shim_registry_open(&plan, ERR);
        CHECK(registry != NULL && shim_registry_entry(registry, 7, 0) != NULL);
        limit.rlim_cur = 1 << 10; /* by the program itself, later */
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        CHECK(registry != NULL && shim_registry_entry(registry, 8, 0) == NULL);
        _exit(check_failures != 0);
    }
    CHECK_INT(check_exit(pid), 0);
}

TEST(claims)
{
    int told[2], stop[2];
    char byte;
    const tccl_bus gpus[] = {0x100, 0x200};
    struct shim_registry *registry = open_one();
    CHECK(pipe(told) == 0 && pipe(stop) == 0 && !shim_registry_all_claimed(registry, gpus, 2));
    shim_registry_claim_gpu(registry, 0x100);
    CHECK(shim_registry_all_claimed(registry, gpus, 1));
    pid_t pid = fork();
    if (pid == 0) {
        close(stop[1]);
        shim_registry_claim_gpu(open_one(), 0x200);
        CHECK(write(told[1], "x", 1) == 1 && read(stop[0], &byte, 1) == 0);
        _exit(0);
    }
    CHECK(read(told[0], &byte, 1) == 1 && shim_registry_all_claimed(registry, gpus, 2));
    close(stop[1]);
    CHECK_INT(check_exit(pid), 0);
    CHECK(!shim_registry_all_claimed(registry, gpus, 2));
}

/* Reads once all GPUs have a process, and then for ever; or never, if NCCL asks before, or one will
 * not. */
TEST(kinds)
{
    const tccl_bus gpus[] = {0x100, 0x200};
    struct shim_registry *registry = open_one();
    CHECK(!shim_registry_reads(registry, gpus, 2, false));
    shim_registry_claim_gpu(registry, 0x100);
    CHECK(!shim_registry_reads(registry, gpus, 2, false));
    shim_registry_claim_gpu(registry, 0x200);
    CHECK(shim_registry_reads(registry, gpus, 2, false));
    shim_registry_keep_writing(registry);
    const tccl_bus more[] = {0x100, 0x300};
    CHECK(shim_registry_reads(registry, more, 2, true));
    unlink(path);
    new_step();
    registry = open_one();
    CHECK(!shim_registry_reads(registry, gpus, 2, true));
    shim_registry_claim_gpu(registry, 0x100);
    shim_registry_claim_gpu(registry, 0x200);
    CHECK(!shim_registry_reads(registry, gpus, 2, false));
    unlink(path);
    new_step();
    registry = open_one();
    shim_registry_keep_writing(registry);
    shim_registry_claim_gpu(registry, 0x100);
    shim_registry_claim_gpu(registry, 0x200);
    CHECK(!shim_registry_reads(registry, gpus, 2, true));
}

/* Communicators may have a quarter of what was free in /dev/shm, as long as any of their ranks is
 * there. */
TEST(files_in_shm)
{
    struct shim_entry *entries[3];
    struct shim_member member = {.gpu = 0x100, .pid = (int32_t)getpid()};
    struct shim_registry *registry = open_one();
    for (int i = 0; i < 3; i++) {
        entries[i] = shim_registry_entry(registry, (uint64_t)i + 1, 1);
        CHECK(shim_entry_join(entries[i], &member) == 0);
    }
    CHECK_OK(shim_registry_charge(registry, entries[0], 0, ERR));
    CHECK_INT(shim_registry_charge(registry, entries[0], 1, ERR), -1); /* it is not known yet */
    shim_registry_begin(registry, 4000);
    shim_registry_begin(registry, 40000); /* who comes first says it */
    CHECK_OK(shim_registry_charge(registry, entries[0], 600, ERR));
    CHECK_SAYS(shim_registry_charge(registry, entries[1], 401, ERR) == -1, "a quarter");
    CHECK_OK(shim_registry_charge(registry, entries[1], 400, ERR));
    CHECK_INT(shim_registry_charge(registry, entries[2], 1, ERR), -1);
    shim_registry_drop(registry, entries[0]);
    CHECK_OK(shim_registry_charge(registry, entries[2], 600, ERR));
}

/* What killed processes had is there for others. */
TEST(files_of_killed)
{
    struct shim_registry *registry = open_one();
    shim_registry_begin(registry, 4000);
    pid_t pid = fork();
    if (pid == 0) {
        struct shim_entry *entry = shim_registry_entry(open_one(), 1, 1);
        struct shim_member member = {.gpu = 0x100, .pid = (int32_t)getpid()};
        shim_entry_join(entry, &member);
        _exit(shim_registry_charge(open_one(), entry, 1000, ERR));
    }
    CHECK_INT(check_exit(pid), 0);
    struct shim_entry *entry = shim_registry_entry(registry, 2, 1);
    CHECK_OK(shim_registry_charge(registry, entry, 1000, ERR));
}

/* ---- Memory ---- */

enum { ROOM = 1000, TURNS = 2000 };

/* Takes and gives back at random, the last of it bit by bit. */
static int take_memory(unsigned seed)
{
    struct shim_registry *registry = open_one();
    uint64_t held = 0;
    for (int i = 0; i < TURNS; i++) {
        seed = seed * 1103515245 + 12345;
        uint64_t bytes = (seed >> 16) % (ROOM / 2) + 1;
        if (held == 0 && shim_registry_reserve(registry, bytes, ROOM))
            held = bytes;
        else if (held > 0) {
            shim_registry_release(registry, held);
            held = 0;
        }
    }
    while (held-- > 0)
        shim_registry_release(registry, 1);
    return 0;
}

/* Of several communicators that start at once, as many as there is room for. */
TEST(memory)
{
    unsigned long seed = check_seed();
    pid_t pids[PROCESSES];
    struct shim_registry *registry = open_one();
    CHECK(shim_registry_reserve(registry, 600, ROOM));
    CHECK(!shim_registry_reserve(registry, 401, ROOM));
    CHECK(!shim_registry_reserve(registry, UINT64_MAX - 1, ROOM));
    CHECK(!shim_registry_reserve(registry, 1, 599)); /* others have taken memory meanwhile */
    CHECK(shim_registry_reserve(registry, 400, ROOM));
    CHECK(!shim_registry_reserve(registry, 1, ROOM));
    shim_registry_release(registry, 1000);
    for (int i = 0; i < PROCESSES; i++)
        if ((pids[i] = fork()) == 0)
            _exit(take_memory((unsigned)seed + (unsigned)i));
    for (int i = 0; i < PROCESSES; i++)
        CHECK_INT(check_exit(pids[i]), 0);
    CHECK(shim_registry_reserve(registry, ROOM, ROOM)); /* all was given back, and nothing twice */
    CHECK(!shim_registry_reserve(registry, 1, ROOM));
    shim_registry_release(registry, 2 * ROOM);
    CHECK(!shim_registry_reserve(registry, ROOM + 1, ROOM));
    CHECK(shim_registry_reserve(registry, ROOM, ROOM));
}
