/* An init's memory files: they are closed at its end, but not what a program has put in their place
 * meanwhile. Its end: of many threads one takes it. */
#include "hook/pending.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

static bool open_still(int fd)
{
    return fcntl(fd, F_GETFD) != -1;
}

static void forget(bool reused)
{
    struct shim_init init = {.gpu = 0x100,
                             .graph_fd = shim_memory_file(SHIM_GRAPH_NAME, "", 0),
                             .topo_fd = shim_memory_file(SHIM_TOPO_NAME, "", 0)};
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

/* A thread that has been joined may still be there for the kernel, for a moment. */
static void await_end(pid_t thread)
{
    while (syscall(SYS_tgkill, getpid(), thread, 0) == 0 || errno != ESRCH)
        sched_yield();
}

static pthread_barrier_t together;

static void *finish(void *unused)
{
    long found = 0;
    (void)unused;
    pthread_barrier_wait(&together);
    for (struct shim_init *over = NULL; (over = shim_pending_over(over)); found++)
        ;
    return (void *)found;
}

static void taken_once(void)
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
        await_end(init->claimed_by);
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
static void destroyed(void)
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

int main(void)
{
    forget(false);
    forget(true);
    taken_once();
    destroyed();
    return check_result();
}
