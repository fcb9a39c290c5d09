/* steered.c: when the verdict on what NCCL built is taken, and to whom it is told. */
#include "hook/hook.h"

#include <stdio.h>
#include <string.h>

#include "verify/verify.h"

enum {
    FREE,
    WAITING,
    TAKEN,     /* a thread looks after it */
    LOOKS = 16 /* the log is read after so many collectives, then after twice as many, … */
};
/* Of such sizes a ring is what NCCL should use: what it takes for small ones is its own affair. */
#define LARGE ((size_t)64 << 20)

static struct watch {
    int state;
    struct shim_init comm; /* as it was when NCCL was done with it */
    bool compared;         /* as far as it can be before it is connected */
    unsigned calls;        /* collectives so far */
    size_t begun;          /* the largest all-reduce whose call has not returned, bytes */
    size_t started;        /* the largest of which NCCL has returned no error */
    size_t done;           /* the largest that NCCL has connected what it takes for */
    int called_by;         /* the thread whose collective has not been looked after; 0: none */
} watches[SHIM_STEERED];

int shim_steered_count;
static int owner; /* the process whose they are */

static void notice_fork(void)
{
    if (shim_forked(&owner)) {
        memset(watches, 0, sizeof(watches));
        shim_store(&shim_steered_count, 0);
    }
}

/* True for one thread. */
static bool change(struct watch *watch, int from, int to)
{
    return shim_swap(&watch->state, &from, to);
}

static bool waits(const struct watch *watch)
{
    return shim_load(&watch->state) == WAITING;
}

/* ---- The verdict ---- */

static enum shim_verdict compare(const struct watch *watch, const struct shim_answer *answer,
                                 const struct shim_built *built, char text[static 256])
{
    const struct shim_init *comm = &watch->comm;
    struct shim_member members[SHIM_GPUS * 2];
    int n = shim_entry_members(comm->entry, members);
    enum shim_verdict verdict = shim_verdict_of(&answer->chain, members, n, comm->gpu, built,
                                                answer->entry, answer->exit, text);
    if (verdict == SHIM_UNKNOWN && built->complete && !built->connected) {
        /* Nothing more comes, and the ring is not connected. */
        const char *why = watch->calls > 0
                              ? "no collective used the ring: NCCL has not connected it"
                              : "no collective was run: NCCL has not connected it";
        if (built->unclear)
            why = "NCCL connected several communicators at once, or trees first: its log does not "
                  "say which edges are the ring's";
        else if (built->trees && watch->started >= LARGE) {
            snprintf(text, 256, "all-reduces, of up to %zu MiB, went by trees in place of the ring",
                     watch->started >> 20);
            return SHIM_DIFFERS;
        }
        snprintf(text, 256, "%s", why);
        return SHIM_UNKNOWN;
    }
    if (verdict == SHIM_FEWER) { /* as NCCL takes no more than any node has room for */
        struct tccl_error why = {"NCCL has no channels for more"};
        size_t length = strlen(text);
        shim_entry_why(comm->entry, &why);
        snprintf(text + length, 256 - length, ": %.200s", why.text);
    }
    if ((verdict == SHIM_APPLIED || verdict == SHIM_FEWER) && comm->memory.text[0]) {
        snprintf(
            text, 256,
            "buffers in host memory are where the kernel puts them, not where the ring wants them: "
            "%.150s",
            comm->memory.text);
        return SHIM_DIFFERS;
    }
    return verdict;
}

/* -1: not known of all. */
static int lowest_rank(const struct shim_entry *entry)
{
    struct shim_member members[SHIM_GPUS * 2];
    int n = shim_entry_members(entry, members), lowest = -1;
    for (int i = 0; i < n; i++) {
        if (members[i].rank < 0)
            return -1;
        lowest = i == 0 || members[i].rank < lowest ? members[i].rank : lowest;
    }
    return lowest;
}

static void tell(const struct shim_process *process, const struct watch *watch,
                 const struct shim_answer *answer, enum shim_verdict verdict, const char *text)
{
    static const char *const words[] = {[SHIM_APPLIED] = "built as planned",
                                        [SHIM_UNKNOWN] = "what was built is not known: ",
                                        [SHIM_FEWER] = "built in part: ",
                                        [SHIM_DIFFERS] = "differs: "};
    const struct shim_init *comm = &watch->comm;
    char worst_text[256];
    int worst;
    if (verdict == SHIM_DIFFERS)
        shim_log(SHIM_LOG_WARN, "communicator %016llx: NCCL built something else: %s",
                 (unsigned long long)comm->comm.key, text);
    if (!shim_entry_done(comm->entry, answer->locals, verdict, text, &worst, worst_text))
        return;
    shim_log(worst == SHIM_FEWER ? SHIM_LOG_WARN : SHIM_LOG_INFO, "communicator %016llx: %s%s",
             (unsigned long long)comm->comm.key, words[worst],
             worst == SHIM_APPLIED ? "" : worst_text);
    shim_ask_confirm(&process->plan, (enum shim_verdict)worst, worst_text, process->version,
                     answer->ranks, answer->whole, answer->locals, lowest_rank(comm->entry),
                     shim_now_us() + SHIM_CONFIRM_US, NULL);
}

/* Returns false: later. */
static bool settle_by(const struct shim_process *process, struct watch *watch,
                      const struct shim_answer *answer, const struct shim_built *built, bool last)
{
    const struct shim_init *comm = &watch->comm;
    struct shim_built taken;
    char text[256];
    enum shim_verdict verdict = compare(watch, answer, built, text);
    watch->compared = true;
    if (verdict == SHIM_UNKNOWN && !last && built->complete && !built->connected && !built->unclear)
        return false;
    shim_nccllog_built(comm->handle, comm->gpu, comm->rank, comm->comm.ranks, true, &taken);
    tell(process, watch, answer, verdict, text);
    return true;
}

/* A verdict, if it can be had. Returns false: later. */
static bool settle(const struct shim_process *process, struct watch *watch, bool last)
{
    const struct shim_init *comm = &watch->comm;
    struct shim_built built = {.complete = false};
    struct tccl_error why = {"NCCL's log does not tell of this communicator"};
    bool told = shim_nccllog_there();
    if (told)
        shim_nccllog_read();
    else
        shim_nccllog_missing((why.text[0] = '\0', &why));
    told = told && !shim_nccllog_built(comm->handle, comm->gpu, comm->rank, comm->comm.ranks, false,
                                       &built);
    /* Can there be a verdict now? */
    bool by_trees = built.trees && watch->done >= LARGE;
    if (told && !last && built.complete && !built.connected && !built.unclear && watch->compared &&
        !by_trees)
        return false;
    struct shim_answer *answer = shim_scratch(sizeof(*answer));
    bool done = true;
    if (!answer || !shim_entry_read(comm->entry, answer))
        shim_log(SHIM_LOG_WARN, "communicator %016llx: its file in /dev/shm is damaged",
                 (unsigned long long)comm->comm.key);
    else if (told)
        done = settle_by(process, watch, answer, &built, last);
    else
        tell(process, watch, answer, SHIM_UNKNOWN, why.text);
    shim_scratch_free(answer, sizeof(*answer));
    return done;
}

/* ---- When ---- */

static void look_after(struct watch *watch, bool last)
{
    const struct shim_process *process = shim_process_armed();
    if (!change(watch, WAITING, TAKEN))
        return;
    if (process && !settle(process, watch, last)) {
        shim_store(&watch->state, WAITING);
        return;
    }
    shim_store(&watch->state, FREE);
    __atomic_fetch_sub(&shim_steered_count, 1, __ATOMIC_SEQ_CST);
}

void shim_steered_begin(const struct shim_init *init)
{
    const struct shim_process *process = shim_process_armed();
    struct watch only = {.comm = *init};
    notice_fork();
    if (!process)
        return;
    for (int i = 0; i < SHIM_STEERED; i++) {
        struct watch *watch = &watches[i];
        if (!change(watch, FREE, TAKEN))
            continue;
        /* All but its state: what is assigned as a whole may be zero for a moment, which is FREE.
         */
        watch->comm = *init;
        watch->compared = false;
        watch->calls = 0;
        watch->begun = watch->started = watch->done = 0;
        watch->called_by = 0;
        __atomic_fetch_add(&shim_steered_count, 1, __ATOMIC_SEQ_CST);
        shim_store(&watch->state, WAITING);
        look_after(watch, false);
        return;
    }
    settle(process, &only, true);
}

/* Is the log read after so many collectives? */
static bool is_looked_at(unsigned calls)
{
    return calls <= LOOKS || (calls & (calls - 1)) == 0;
}

void shim_steered_collective(const void *handle, size_t all_reduce)
{
    struct watch *watch = NULL;
    notice_fork();
    for (int i = 0; handle && !watch && i < SHIM_STEERED; i++)
        if (waits(&watches[i]) && watches[i].comm.handle == handle)
            watch = &watches[i];
    /* What others have connected since is in the log, too, and may fit this communicator. */
    if (watch && is_looked_at(watch->calls + 1))
        shim_nccllog_read();
    shim_nccllog_expect(handle); /* others may be connected at the same time */
    if (!watch)
        return;
    watch->calls++;
    watch->begun = all_reduce > watch->begun ? all_reduce : watch->begun;
    watch->called_by = shim_tid();
}

void shim_steered_collectives_done(enum shim_started started)
{
    int self = shim_tid();
    notice_fork();
    for (int i = 0; i < SHIM_STEERED; i++) {
        struct watch *watch = &watches[i];
        if (!waits(watch) || watch->called_by != self)
            continue;
        watch->called_by = 0;
        if (started != SHIM_FAILED && watch->begun > watch->started)
            watch->started = watch->begun;
        if (started == SHIM_STARTED)
            watch->done = watch->started;
        watch->begun = 0;
        if (is_looked_at(watch->calls))
            look_after(watch, false);
    }
    if (started != SHIM_UNDER_WAY)
        shim_nccllog_expect_no_more();
}

static void look_at(const void *handle, bool last)
{
    notice_fork();
    for (int i = 0; i < SHIM_STEERED; i++)
        if (waits(&watches[i]) && (!handle || watches[i].comm.handle == handle))
            look_after(&watches[i], last);
}

void shim_steered_look(void)
{
    look_at(NULL, false);
}

void shim_steered_end(const void *handle)
{
    look_at(handle, true);
}
