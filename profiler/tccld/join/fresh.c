/* fresh.c: judging again what a profile has finds most of what there is on links that carry less
 * (unit/narrowed), but a ring that was no candidate while all links were whole may be the best one
 * now. Steps do not wait for it. */
#include "tccld/join/nic-links.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <event2/event.h>

#include "base/cleanup.h"
#include "profile/cache.h"
#include "search/model-table.h"
#include "search/recall.h"
#include "search/setmap.h"
#include "tccld/join/own.h"
#include "tccld/main/threads.h"

enum { STOP_MS = 100, NICE = 19, RECALL_MS = 60000 };

struct fresh {
    struct daemon *daemon;
    struct threads *pool;
    struct own_wanted wanted; /* the thread's, while it searches, */
    struct tccl_setmap sets;  /* and this */
    struct tccl_model *model;
    struct tccl_model_tables *tables;
    const struct tccl_table *found;
    struct tccl_table *recalled; /* found is that, */
    int64_t until_ms;            /* by then, of the thread's own time */
    atomic_bool ending, stale;   /* nobody wants it any more */
};

/* What the thread has had of a processor: jobs may leave it little. */
static int64_t thread_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int follow(void *context, const struct tccl_search_progress *progress UNUSED)
{
    const struct fresh *fresh = context;
    return fresh->ending || fresh->stale || thread_ms() > fresh->until_ms ? TCCL_SEARCH_STOP
                                                                          : TCCL_SEARCH_GO_ON;
}

/* A tccl_recall_note that ends with the search. */
static int note(void *context, const struct tccl_set *set, const struct tccl_measurement *value)
{
    struct fresh *fresh = context;
    return follow(fresh, NULL) == TCCL_SEARCH_STOP ? -1
                                                   : tccl_recall_note(&fresh->sets, set, value);
}

static struct tccl_table *recall(struct fresh *fresh)
{
    const struct own_wanted *wanted = &fresh->wanted;
    struct tccl_profile *profile;
    struct tccl_table *table = NULL;
    char id[TCCL_HASH_HEX];
    tccl_machine_id(&wanted->machine, id);
    if (tccl_profile_open(wanted->cache_dir, id, &profile, NULL) != 0)
        return NULL;
    fresh->until_ms = thread_ms() + RECALL_MS;
    const struct tccl_table *before = tccl_profile_table(profile, wanted->gpus, NULL);
    if (before && tccl_profile_sets(profile, note, fresh, NULL, NULL) >= 0)
        table = tccl_recall_table(&wanted->machine, &fresh->sets, &wanted->narrowed, before, follow,
                                  fresh, NULL);
    tccl_setmap_clear(&fresh->sets);
    tccl_profile_close(profile);
    return table;
}

static void run_search(void *task)
{
    struct fresh *fresh = task;
    fresh->found = NULL;
    if (!fresh->wanted.model)
        fresh->found = fresh->recalled = recall(fresh);
    else if (tccl_narrowed_model(fresh->wanted.model, &fresh->wanted.machine,
                                 &fresh->wanted.narrowed, &fresh->model, NULL) == 0)
        fresh->tables = tccl_model_tables_new(fresh->model, NULL);
    if (fresh->tables)
        fresh->found = tccl_model_tables_get(fresh->tables, fresh->wanted.gpus, NULL);
}

static void on_searched(void *task)
{
    struct fresh *fresh = task;
    const bool stale = atomic_exchange(&fresh->stale, false);
    if (!fresh->ending && !stale)
        own_found(fresh->daemon->own, &fresh->wanted, fresh->found);
    tccl_table_free(tccl_steal(fresh->recalled));
    tccl_model_tables_free(tccl_steal(fresh->tables));
    tccl_model_free(tccl_steal(fresh->model));
    json_decref(tccl_steal(fresh->wanted.model));
}

void fresh_look(struct fresh *fresh)
{
    bool searches = fresh && threads_busy(fresh->pool) > 0;
    if (searches)
        fresh->stale = !own_is_wanted(fresh->daemon->own, &fresh->wanted);
    if (!fresh || searches || !own_wants(fresh->daemon->own, &fresh->wanted))
        return;
    if (threads_submit(fresh->pool, run_search, on_searched, fresh) != 0)
        json_decref(tccl_steal(fresh->wanted.model));
}

struct fresh *fresh_new(struct daemon *daemon, struct tccl_error *err)
{
    struct fresh *fresh = calloc(1, sizeof(*fresh));
    if (!fresh)
        return tccl_fail_null(err, "out of memory");
    fresh->daemon = daemon;
    fresh->pool = threads_new(daemon->base, 1, 1, err);
    if (fresh->pool) {
        threads_be_nice(fresh->pool, NICE);
        return fresh;
    }
    fresh_free(fresh);
    return NULL;
}

void fresh_free(struct fresh *fresh)
{
    if (!fresh)
        return;
    fresh->ending = true;
    if (fresh->pool && threads_free(fresh->pool, STOP_MS) != 0)
        return; /* the thread still has it */
    free(fresh);
}
