/* pending.c: inits between wrapper and question. Where two on one GPU can't be told apart, both
 * stand aside. */
#include "hook/hook.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "verify/verify.h"

static struct shim_init inits[SHIM_INITS];
static shim_lock lock;
int shim_pending_count;
static int owner; /* the process whose inits these are */

static __thread struct {
    struct shim_init *calling, *claimed;
    pid_t pid;
} here;

/* After a fork nothing of the parent's is under way here. */
static void notice_fork(void)
{
    pid_t pid = getpid();
    if (here.pid != pid) {
        memset(&here, 0, sizeof(here));
        here.pid = pid;
    }
    if (shim_forked(&owner)) {
        memset(inits, 0, sizeof(inits));
        shim_store(&shim_pending_count, 0);
        shim_lock_release(&lock);
    }
}

static int state_of(const struct shim_init *init)
{
    return shim_load(&init->state);
}

static enum shim_decision put_aside(struct shim_init *init)
{
    static const struct tccl_error why = {"several communicators begin at once on one GPU"};
    return init->entry ? shim_settle_aside(init->entry, &init->comm, &why) : SHIM_ASIDE;
}

struct shim_init *shim_pending_add(const struct shim_init *init)
{
    struct shim_init *added = NULL;
    notice_fork();
    if (shim_lock_take(&lock))
        return NULL;
    for (int i = 0; i < SHIM_INITS && !added; i++)
        if (state_of(&inits[i]) == SHIM_FREE)
            added = &inits[i];
    if (added) {
        *added = *init;
        added->added_by = shim_tid();
        __atomic_fetch_add(&shim_pending_count, 1, __ATOMIC_SEQ_CST);
        shim_store(&added->state, SHIM_WAITING);
    }
    shim_lock_release(&lock);
    if (added && added->entry) {
        /* Other unclaimed ones on this GPU: all ASIDE; but those that others build already are
         * waited for, they come to their question without fail. */
        int64_t deadline = shim_now_us() + 10000000;
        for (int i = 0; i < SHIM_INITS; i++) {
            struct shim_init *other = &inits[i];
            if (other == added || state_of(other) != SHIM_WAITING || other->gpu != added->gpu ||
                !other->entry)
                continue;
            if (put_aside(other) == SHIM_USE)
                while (state_of(other) == SHIM_WAITING && shim_now_us() < deadline)
                    shim_sleep_us(200);
            if (state_of(other) == SHIM_WAITING)
                put_aside(added);
        }
    }
    return added;
}

void shim_pending_here(struct shim_init *init)
{
    notice_fork();
    here.calling = init;
    here.claimed = NULL;
}

/* Returns NULL: it is about to be forgotten. */
static struct shim_init *claim(struct shim_init *init)
{
    int waiting = SHIM_WAITING;
    init->claimed_by = shim_tid();
    if (!shim_swap(&init->state, &waiting, SHIM_CLAIMED))
        return NULL;
    here.claimed = init;
    return init;
}

/* What NCCL's log says that this thread is joining is another one. */
static bool another(const struct shim_init *init)
{
    int rank, ranks;
    tccl_bus gpu;
    if (!shim_nccllog_there())
        return false;
    shim_nccllog_read();
    if (shim_nccllog_joining(shim_tid(), &rank, &ranks, &gpu))
        return false;
    return gpu != init->gpu || (init->rank >= 0 && rank != init->rank) ||
           (init->comm.ranks >= 0 && ranks != init->comm.ranks);
}

/* The only one on this thread's device that it can be. Where there are several, none is. */
static struct shim_init *claim_by_device(void)
{
    struct shim_init *found[SHIM_INITS], *claimed = NULL;
    tccl_bus gpu;
    int n = 0;
    if (shim_device_current(&gpu, NULL) || shim_lock_take(&lock))
        return NULL;
    for (int i = 0; i < SHIM_INITS; i++)
        if (state_of(&inits[i]) == SHIM_WAITING && inits[i].gpu == gpu && !another(&inits[i]))
            found[n++] = &inits[i];
    if (n == 1)
        claimed = claim(found[0]);
    /* With the lock: nobody else gets the place of one that ends meanwhile. */
    for (int i = 0; n > 1 && i < n; i++)
        put_aside(found[i]);
    shim_lock_release(&lock);
    return claimed;
}

struct shim_init *shim_pending_claim(bool fresh)
{
    notice_fork();
    struct shim_init *init = here.calling;
    if (init)
        return state_of(init) == SHIM_WAITING ? claim(init) : init;
    init = here.claimed;
    if (init && (state_of(init) != SHIM_CLAIMED || init->claimed_by != shim_tid() ||
                 (fresh && init->graphs > 0)))
        init = here.claimed = NULL;
    return init ? init : claim_by_device();
}

const struct shim_init *shim_pending_claimed(void)
{
    notice_fork();
    const struct shim_init *init = here.calling ? here.calling : here.claimed;
    return init && state_of(init) == SHIM_CLAIMED && init->claimed_by == shim_tid() ? init : NULL;
}

void shim_pending_forget(struct shim_init *init)
{
    if (init->graph_fd > 0 && shim_is_memory_file(init->graph_fd, SHIM_GRAPH_NAME))
        close(init->graph_fd);
    if (init->topo_fd > 0 && shim_is_memory_file(init->topo_fd, SHIM_TOPO_NAME))
        close(init->topo_fd);
    init->graph_fd = init->topo_fd = 0;
    shim_store(&init->state, SHIM_FREE);
    __atomic_fetch_sub(&shim_pending_count, 1, __ATOMIC_SEQ_CST);
}

/* True for one thread. */
static bool take(struct shim_init *init, int state)
{
    return shim_swap(&init->state, &state, SHIM_ENDING);
}

struct shim_init *shim_pending_take(const void *handle)
{
    notice_fork();
    for (int i = 0; handle && i < SHIM_INITS; i++)
        if (inits[i].handle == handle &&
            (take(&inits[i], SHIM_WAITING) || take(&inits[i], SHIM_CLAIMED)))
            return &inits[i];
    return NULL;
}

void shim_pending_sweep(void)
{
    struct shim_built built;
    bool read = false;
    notice_fork();
    for (int i = 0; i < SHIM_INITS; i++) {
        struct shim_init *init = &inits[i];
        if (state_of(init) != SHIM_WAITING || init->called)
            continue;
        if (!read)
            shim_nccllog_read();
        read = true;
        if (init->handle && (!init->entry || shim_entry_stands(init->entry) == SHIM_ASIDE) &&
            shim_nccllog_there() &&
            !shim_nccllog_built(init->handle, init->gpu, init->rank, init->comm.ranks, false,
                                &built) &&
            built.complete && take(init, SHIM_WAITING))
            shim_pending_forget(init);
    }
}

struct shim_init *shim_pending_next(struct shim_init *after)
{
    notice_fork();
    for (int i = after ? (int)(after - inits) + 1 : 0; i < SHIM_INITS; i++)
        if (state_of(&inits[i]) != SHIM_FREE)
            return &inits[i];
    return NULL;
}

struct shim_init *shim_pending_over(struct shim_init *after)
{
    int tid = shim_tid();
    notice_fork();
    for (int i = after ? (int)(after - inits) + 1 : 0; i < SHIM_INITS; i++) {
        const struct shim_init *init = &inits[i];
        if (state_of(init) == SHIM_CLAIMED && !init->called &&
            (init->claimed_by == tid ||
             (syscall(SYS_tgkill, getpid(), init->claimed_by, 0) && errno == ESRCH)) &&
            take(&inits[i], SHIM_CLAIMED))
            return &inits[i];
    }
    return NULL;
}
