/* acct-fold.c: one record for each job in place of its steps' (-X). */
#include "acct/acct.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "base/state.h"

static int weight_of(const json_t *record)
{
    static const int weights[] = {[TCCL_STATE_OFF] = 0,
                                  [TCCL_STATE_LEFT] = 1,
                                  [TCCL_STATE_FAILED] = 2,
                                  [TCCL_STATE_PLANNED] = 3};
    int state = tccl_state_named(tccl_text_of(record, "state"));
    return state < 0 ? 3 : weights[state];
}

bool acct_fold_prefers(const json_t *a, const json_t *b)
{
    int more = weight_of(a) - weight_of(b);
    json_int_t nodes = tccl_number_of(a, "n_nodes") - tccl_number_of(b, "n_nodes");
    if (more || nodes)
        return more ? more > 0 : nodes > 0;
    return tccl_number_of(a, "start") >= tccl_number_of(b, "start");
}

json_t *acct_fold(const json_t *records)
{
    cleanup_json json_t *folded = json_array(), *places = json_object();
    size_t i;
    json_t *record;
    json_array_foreach((json_t *)records, i, record)
    {
        char job[300];
        snprintf(job, sizeof(job), "%lld %s", (long long)tccl_number_of(record, "job"),
                 tccl_text_of(record, "cluster"));
        json_t *place = json_object_get(places, job);
        size_t at = place ? (size_t)json_integer_value(place) : json_array_size(folded);
        json_t *known = json_array_get(folded, at);
        json_int_t steps = tccl_number_of(known, "steps");
        if (!known || acct_fold_prefers(record, known)) {
            known = json_copy(record);
            json_object_del(known, "step");
            if ((place ? json_array_set_new(folded, at, known)
                       : json_array_append_new(folded, known)) != 0)
                return NULL;
        }
        if (json_object_set_new(known, "steps", json_integer(steps + 1)) != 0 ||
            (!place && json_object_set_new(places, job, json_integer((json_int_t)at)) != 0))
            return NULL;
    }
    return folded ? tccl_steal(folded) : NULL;
}
