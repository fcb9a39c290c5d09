/* What is done in RunDir while its disk hangs (here: a task that waits to be let go): the event
 * loop gets -1, once after a while and then at once; what was late is taken back; then all goes on.
 */
#include "tccld/main/run-dir.h"

#include <pthread.h>
#include <sys/eventfd.h>

#include "check.h"

static int gate = -1;                     /* an eventfd: lets a task that hangs go */
static int late_gate = -1;                /* the same for what takes it back; -1: at once */
static int late_after, late_before, runs; /* of the thread, read where it is idle */
static struct tccl_error err;

struct task {
    int number;
    bool hangs;
    char text[300];
};

static void run(void *task)
{
    struct task *mine = task;
    eventfd_t count;
    __atomic_fetch_add(&runs, 1, __ATOMIC_SEQ_CST);
    if (mine->hangs)
        eventfd_read(gate, &count);
    mine->number *= 2;
    memset(mine->text, 'x', sizeof(mine->text) - 1);
}

static void late(void *task, int ran)
{
    const struct task *mine = task;
    eventfd_t count;
    CHECK_INT(mine->number, ran ? 10 : 7);
    if (ran && late_gate >= 0)
        eventfd_read(late_gate, &count);
    __atomic_fetch_add(ran ? &late_after : &late_before, 1, __ATOMIC_SEQ_CST);
}

static int ask(struct run_dir *run_dir, struct task *task)
{
    err.text[0] = '\0';
    return run_dir_do(run_dir, run, late, task, sizeof(*task), &err);
}

static void check_works(struct run_dir *run_dir)
{
    for (int i = 1; i < 100; i++) {
        struct task task = {.number = i};
        CHECK_INT(ask(run_dir, &task), 0);
        CHECK_INT(task.number, 2 * i);
        CHECK_INT(strlen(task.text), sizeof(task.text) - 1);
    }
}

/* Is it so in the end? */
static bool comes(const int *value, int wanted)
{
    for (int i = 0; i < 3000 && __atomic_load_n(value, __ATOMIC_SEQ_CST) != wanted; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return __atomic_load_n(value, __ATOMIC_SEQ_CST) == wanted;
}

/* It works again, if not at once. */
static void check_recovers(struct run_dir *run_dir)
{
    struct task next = {.number = 7};
    for (int i = 0; i < 3000 && ask(run_dir, &next) != 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    late_before = 0;
    check_works(run_dir);
}

/* What takes a task back works on the same disk: RunDir hangs until that has ended. */
static void check_slow_late(struct run_dir *run_dir)
{
    struct task stuck = {.number = 5, .hangs = true}, next = {.number = 7};
    late_gate = eventfd(0, EFD_CLOEXEC);
    late_after = 0;
    CHECK_INT(ask(run_dir, &stuck), -1);
    eventfd_write(gate, 1);
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    for (int i = 0; i < 3; i++)
        CHECK_INT(ask(run_dir, &next), -1);
    CHECK_INT(run_dir_free(run_dir), 1);
    eventfd_write(late_gate, 1);
    CHECK(comes(&late_after, 1));
    close(late_gate);
    late_gate = -1;
    check_recovers(run_dir);
}

static void check_hangs(struct run_dir *run_dir, int times)
{
    struct task stuck = {.number = 5, .hangs = true}, next = {.number = 7};
    int before = __atomic_load_n(&runs, __ATOMIC_SEQ_CST);
    CHECK_INT(ask(run_dir, &stuck), -1);
    CHECK(strstr(err.text, "RunDir does not answer"));
    CHECK(stuck.number == 5 && !late_after == !(times - 1));
    for (int i = 0; i < 100; i++)
        CHECK_INT(ask(run_dir, &next), -1);
    CHECK_INT(next.number, 7);
    CHECK_INT(__atomic_load_n(&runs, __ATOMIC_SEQ_CST), before + 1);
    CHECK_INT(late_before, 100 * times);
    eventfd_write(gate, 1);
    CHECK(comes(&late_after, times));
    late_before = 100 * times;
    for (int before_it = late_before; ask(run_dir, &next) != 0; late_before = before_it)
        next.number = 7;
    check_works(run_dir);
}

TEST(run_dir)
{
    struct event_base *base = event_base_new();
    gate = eventfd(0, EFD_CLOEXEC);
    struct run_dir *run_dir = run_dir_new(base, &err);
    CHECK(run_dir != NULL);
    if (!run_dir)
        return;
    check_works(NULL);
    check_works(run_dir);
    check_hangs(run_dir, 1);
    check_hangs(run_dir, 2);
    check_slow_late(run_dir);
    CHECK_INT(run_dir_free(run_dir), 0);
    CHECK_INT(run_dir_free(NULL), 0);
    run_dir = run_dir_new(base, &err); /* it hangs at the end */
    struct task stuck = {.number = 5, .hangs = true};
    CHECK_INT(ask(run_dir, &stuck), -1);
    late_after = 0;
    CHECK_INT(run_dir_free(run_dir), 1);
    eventfd_write(gate, 1);
    CHECK(comes(&late_after, 1));
    CHECK_INT(run_dir_free(run_dir), 0);
    event_base_free(base);
}

/* /dev/shm is in memory on each Linux; /proc can't be, nor what isn't there. */
TEST(in_memory)
{
    CHECK(run_dir_in_memory("/dev/shm"));
    CHECK(!run_dir_in_memory("/proc"));
    CHECK(!run_dir_in_memory("/nowhere"));
}
