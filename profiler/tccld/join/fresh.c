/* fresh.c: judging again what a profile has finds most of what there is on links that carry less
 * (unit/narrowed), but a ring that was no candidate while all links were whole may be the best one
 * now. Steps do not wait for it. */
#include "tccld/join/fresh.h"

#include <stdlib.h>

#include <event2/event.h>

#include "base/cleanup.h"
#include "search/model-table.h"
#include "tccld/join/node-profile.h"
#include "tccld/main/threads.h"

enum { PERIOD_MS = 10000, STOP_MS = 100, NICE = 19 };

struct fresh {
    struct daemon *daemon;
    struct event *timer;
    struct pool *pool;
    struct own_wanted wanted; /* the thread's, while it searches */
    struct tccl_model *model;
    struct tccl_model_tables *tables;
    const struct tccl_table *found;
    bool searching, ending;
};

static void run_search(void *task)
{
    struct fresh *fresh = task;
    fresh->found = NULL;
    if (tccl_narrowed_model(fresh->wanted.model, &fresh->wanted.machine, &fresh->wanted.narrowed,
                            &fresh->model, NULL) == 0)
        fresh->tables = tccl_model_tables_new(fresh->model, NULL);
    if (fresh->tables)
        fresh->found = tccl_model_tables_get(fresh->tables, fresh->wanted.gpus, NULL);
}

static void on_searched(void *task)
{
    struct fresh *fresh = task;
    fresh->searching = false;
    if (!fresh->ending)
        own_found(fresh->daemon->own, &fresh->wanted, fresh->found);
    tccl_model_tables_free(tccl_steal(fresh->tables));
    tccl_model_free(tccl_steal(fresh->model));
    json_decref(tccl_steal(fresh->wanted.model));
}

static void on_time(evutil_socket_t fd UNUSED, short what UNUSED, void *argument)
{
    struct fresh *fresh = argument;
    if (fresh->searching || !own_wants(fresh->daemon->own, &fresh->wanted))
        return;
    fresh->searching = pool_submit(fresh->pool, run_search, on_searched, fresh) == 0;
    if (!fresh->searching)
        json_decref(tccl_steal(fresh->wanted.model));
}

struct fresh *fresh_new(struct daemon *daemon, struct tccl_error *err)
{
    struct fresh *fresh = calloc(1, sizeof(*fresh));
    struct timeval period = daemon_in(PERIOD_MS);
    if (!fresh)
        return tccl_fail_null(err, "out of memory");
    fresh->daemon = daemon;
    fresh->pool = pool_new(daemon->base, 1, 1, err);
    fresh->timer = event_new(daemon->base, -1, EV_PERSIST, on_time, fresh);
    if (fresh->pool && fresh->timer && event_add(fresh->timer, &period) == 0) {
        pool_be_nice(fresh->pool, NICE);
        return fresh;
    }
    tccl_fail(err, "out of memory");
    fresh_free(fresh);
    return NULL;
}

void fresh_free(struct fresh *fresh)
{
    if (!fresh)
        return;
    fresh->ending = true;
    if (fresh->timer)
        event_free(fresh->timer);
    if (fresh->pool && pool_free(fresh->pool, STOP_MS) != 0)
        return; /* the thread still has it */
    free(fresh);
}
