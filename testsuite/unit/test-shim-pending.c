/* An init's memory files: they are closed at its end, but not what a program has put in their place
 * meanwhile. Its end: of many threads one takes it. Which one a thread of NCCL's is at work for. */
#include "hook/hook.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "check.h"
#include "verify/verify.h"

enum { VERSION = 22907 };

/* The device of this thread (linked with --wrap). */
static tccl_bus device = 0x999;
static int device_fails;
int __wrap_shim_device_current(tccl_bus *bus, struct tccl_error *why);
int __wrap_shim_device_current(tccl_bus *bus, struct tccl_error *why)
{
    *bus = device;
    return device_fails;
}

/* While one of several is put aside its place may be given to nobody else: another thread forgets
 * it meanwhile and adds one of its own. */
static struct shim_init *victim;
static bool stays = true;

static void *intrude(void *unused)
{
    struct shim_init init = {.gpu = 0x300, .comm.key = 2}, *added;
    shim_pending_forget(victim);
    added = shim_pending_add(&init);
    if (added)
        shim_pending_forget(added);
    return NULL;
}

enum shim_decision __wrap_shim_settle_aside(struct shim_entry *entry, const struct shim_comm *comm,
                                            const struct tccl_error *why);
enum shim_decision __wrap_shim_settle_aside(struct shim_entry *entry, const struct shim_comm *comm,
                                            const struct tccl_error *why)
{
    static pthread_t thread;
    if (victim && comm == &victim->comm) {
        pthread_create(&thread, NULL, intrude, NULL);
        pthread_detach(thread);
        usleep(100000);
        stays = comm->key == 1;
    }
    return SHIM_ASIDE;
}

static bool open_still(int fd)
{
    return fcntl(fd, F_GETFD) != -1;
}

static void forget(bool reused)
{
    struct shim_init init = {.gpu = 0x100,
                             .graph_fd = memfd_create(SHIM_GRAPH_NAME, MFD_CLOEXEC),
                             .topo_fd = memfd_create(SHIM_TOPO_NAME, MFD_CLOEXEC)};
    int own = open("/dev/null", O_RDWR);
    CHECK(shim_is_memory_file(init.graph_fd, SHIM_GRAPH_NAME));
    CHECK(!shim_is_memory_file(init.graph_fd, SHIM_TOPO_NAME));
    CHECK(!shim_is_memory_file(own, SHIM_GRAPH_NAME) && !shim_is_memory_file(-1, SHIM_GRAPH_NAME));
    struct shim_init *added = shim_pending_add(&init);
    CHECK(added != NULL);
    if (!added)
        return;
    if (reused)
        CHECK(dup2(own, init.graph_fd) == init.graph_fd);
    shim_pending_forget(added);
    CHECK_INT(open_still(init.graph_fd), reused);
    CHECK(!open_still(init.topo_fd));
    close(own);
    close(init.graph_fd);
}

static struct shim_init *add(const void *handle)
{
    struct shim_init init = {.gpu = 0x200, .handle = handle};
    struct shim_init *added = shim_pending_add(&init);
    CHECK(added != NULL);
    return added;
}

/* As NCCL's thread for an init, which ends. */
static void *work(void *init)
{
    shim_pending_here(init);
    return shim_pending_claim(true);
}

static pthread_barrier_t together;

static void *finish(void *unused)
{
    long found = 0;
    pthread_barrier_wait(&together);
    for (struct shim_init *over = NULL; (over = shim_pending_over(over)); found++)
        ;
    return (void *)found;
}

TEST(taken_once)
{
    enum { THREADS = 4, ROUNDS = 200 };
    pthread_barrier_init(&together, NULL, THREADS);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread, threads[THREADS];
        struct shim_init *init = add(NULL);
        void *claimed, *count;
        long found = 0;
        pthread_create(&thread, NULL, work, init);
        pthread_join(thread, &claimed);
        CHECK(claimed == init);
        /* A thread that has been joined may still be there for the kernel, for a moment. */
        while (syscall(SYS_tgkill, getpid(), init->claimed_by, 0) == 0 || errno != ESRCH)
            sched_yield();
        for (int i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, finish, NULL);
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], &count);
            found += (long)count;
        }
        CHECK_INT(found, 1);
        shim_pending_forget(init);
    }
    pthread_barrier_destroy(&together);
}

/* What is destroyed is nobody else's from then on, and is there until it is forgotten. */
TEST(destroyed)
{
    static const char handles[2];
    struct shim_init *first = add(&handles[0]);
    CHECK(!shim_pending_take(&handles[1]) && !shim_pending_take(NULL));
    CHECK(shim_pending_take(&handles[0]) == first);
    CHECK(!shim_pending_take(&handles[0]) && !shim_pending_over(NULL));
    CHECK(!work(first) || first->state == SHIM_ENDING);
    CHECK(shim_pending_next(NULL) == first);
    shim_pending_here(NULL);
    struct shim_init *second = add(&handles[0]);
    CHECK(second != first && shim_pending_take(&handles[0]) == second);
    shim_pending_forget(first);
    shim_pending_forget(second);
    CHECK(!shim_pending_next(NULL));
}

/* ---- by its device and NCCL's log ---- */

/* As NCCL in this thread: its "Init START" or "Init COMPLETE" of a communicator. */
static void log_line(FILE *log, int rank, int ranks, const char *gpu, const char *what)
{
    fprintf(log,
            "n1:%d:%d [0] NCCL INFO ncclCommInitRank comm 0x55d0c0ffee rank %d nranks %d cudaDev 0 "
            "nvmlDev 0 busId %s commId 0x1 - Init %s\n",
            getpid(), shim_tid(), rank, ranks, gpu, what);
    fflush(log);
}

static FILE *begin_log(void)
{
    static const char *const names[] = {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"};
    const char *path = check_at("log");
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "INIT,GRAPH,NET", 1);
    setenv("NCCL_DEBUG_FILE", path, 1);
    for (int i = 0; i < 3; i++)
        shim_nccllog_answer(names[i], VERSION);
    FILE *log = shim_nccllog_opened(path, fopen(path, "w"));
    CHECK(shim_nccllog_there());
    return log;
}

/* The one init of the device is this thread's, unless NCCL's log says that it joins another one. */
TEST(claimed_by_log)
{
    static const struct {
        int rank, ranks;               /* of the init; -1: not known */
        int logged_rank, logged_ranks; /* of NCCL's log; 0 ranks: it says nothing */
        const char *gpu;
        bool claimed;
    } cases[] = {
        {3, 8, 3, 8, "41000", true},  {3, 8, 3, 8, "42000", false},  {3, 8, 4, 8, "41000", false},
        {3, 8, 3, 4, "41000", false}, {-1, 8, 4, 8, "41000", true},  {-1, 8, 4, 4, "41000", false},
        {3, -1, 3, 4, "41000", true}, {3, -1, 4, 4, "41000", false}, {0, 8, 1, 8, "41000", false},
        {1, 8, 0, 8, "41000", false}, {-1, -1, 5, 9, "41000", true}, {-1, -1, 5, 9, "42000", false},
        {3, 8, 3, 0, "41000", true},
    };
    FILE *log = begin_log();
    CHECK_INT(tccl_bus_parse("0000:41:00.0", &device), 0);
    for (size_t i = 0; log && i < COUNT(cases); i++) {
        struct shim_init init = {
            .gpu = device, .rank = cases[i].rank, .comm.ranks = cases[i].ranks};
        struct shim_init *added = shim_pending_add(&init);
        if (cases[i].logged_ranks)
            log_line(log, cases[i].logged_rank, cases[i].logged_ranks, cases[i].gpu, "START");
        shim_pending_here(NULL);
        CHECK_NO((shim_pending_claim(true) == added) != cases[i].claimed,
                 "case %zu: claimed is not %d\n", i, cases[i].claimed);
        if (cases[i].logged_ranks)
            log_line(log, cases[i].logged_rank, cases[i].logged_ranks, cases[i].gpu, "COMPLETE");
        shim_pending_here(NULL);
        shim_pending_forget(added);
    }
    if (log)
        fclose(log);
}

/* Of two on one device, or of another device, none. */
TEST(claimed_by_device)
{
    struct shim_init init = {.gpu = device, .rank = -1, .comm.ranks = -1};
    struct shim_init *first = shim_pending_add(&init);
    init.gpu = device + 0x100;
    struct shim_init *other = shim_pending_add(&init);
    shim_pending_here(NULL);
    device += 0x200;
    CHECK(!shim_pending_claim(true));
    device -= 0x200;
    device_fails = -1;
    CHECK(!shim_pending_claim(true));
    device_fails = 0;
    init.gpu = device; /* one that is given nothing may be what the thread works for */
    struct shim_init *refused = shim_pending_add(&init);
    CHECK(!shim_pending_claim(true));
    shim_pending_forget(refused);
    CHECK(shim_pending_claim(true) == first);
    CHECK(shim_pending_claim(true) == first); /* it is this thread's now */
    shim_pending_here(NULL);
    CHECK(!shim_pending_claim(true)); /* and no second time */
    shim_pending_forget(first);
    shim_pending_forget(other);
}

TEST(put_aside)
{
    struct shim_entry *some = (struct shim_entry *)&device;
    struct shim_init init = {.gpu = device, .rank = -1, .comm = {.ranks = -1, .key = 1}};
    struct shim_init *first = shim_pending_add(&init), *second = shim_pending_add(&init);
    first->entry = second->entry = some;
    victim = first;
    shim_pending_here(NULL);
    CHECK(!shim_pending_claim(true) && stays);
    victim = NULL;
    shim_pending_forget(second);
    while (__atomic_load_n(&shim_pending_count, __ATOMIC_SEQ_CST) > 0)
        usleep(1000);
}

TEST(forgotten)
{
    forget(false);
    forget(true);
}
