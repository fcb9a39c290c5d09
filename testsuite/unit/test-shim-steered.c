/* Communicators of several threads that NCCL is done with at the same time: each is looked after by
 * itself, and told once. */
#include "hook/hook.h"

#include <pthread.h>

#include "check.h"
#include "verify/verify.h"

enum { THREADS = 4, ROUNDS = 50000 };

const struct shim_process *__wrap_shim_process_armed(void);
const struct shim_process *__wrap_shim_process_armed(void)
{
    static struct shim_process process;
    return &process;
}

bool __wrap_shim_nccllog_there(void);
bool __wrap_shim_nccllog_there(void)
{
    return false;
}

bool __wrap_shim_entry_read(const struct shim_entry *entry UNUSED, struct shim_answer *answer);
bool __wrap_shim_entry_read(const struct shim_entry *entry UNUSED, struct shim_answer *answer)
{
    answer->locals = 1;
    return true;
}

/* How often something was told of the communicator of each thread: its entry is the counter. */
static int told[THREADS];

bool __wrap_shim_entry_done(struct shim_entry *entry, int locals, int verdict, const char *text,
                            int *worst, char *worst_text);
bool __wrap_shim_entry_done(struct shim_entry *entry, int locals, int verdict, const char *text,
                            int *worst UNUSED, char *worst_text UNUSED)
{
    CHECK(locals == 1 && verdict == SHIM_UNKNOWN && text[0]);
    __atomic_fetch_add((int *)(void *)entry, 1, __ATOMIC_SEQ_CST);
    return false;
}

static void *end_many(void *counter)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct shim_init init = {.entry = counter, .gpu = 0x100};
        shim_steered_begin(&init);
    }
    return NULL;
}

TEST(each_by_itself)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, end_many, &told[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        CHECK_INT(told[i], ROUNDS);
    CHECK_INT(shim_steered_count, 0);
}
