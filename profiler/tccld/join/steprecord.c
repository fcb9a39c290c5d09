#include "tccld/join/steprecord.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "client/hostlist.h"
#include "client/key.h"
#include "client/message.h"
#include "client/outcome.h"
#include "client/step-fields.h"
#include "records/records.h"

static int put_texts(json_t *record, const struct tccl_join *join, const struct outcome *outcome)
{
    cleanup_free char *nodes = tccl_hosts_fold(join->nodes, (size_t)join->n_nodes);
    const struct {
        const char *name, *text;
        size_t max;
    } texts[] = {
        {"user", join->user, TCCL_RECORD_NAME},
        {"account", join->account, TCCL_RECORD_NAME},
        {"partition", join->partition, TCCL_RECORD_NAME},
        {"job_name", join->job_name, TCCL_RECORD_NAME},
        {"policy", join->policy, TCCL_RECORD_NAME},
        {"nodes", nodes, TCCL_RECORD_NODES},
        {"reason", outcome->reason, TCCL_RECORD_REASON},
        {"source", outcome->source, TCCL_RECORD_WORD},
        {"ring", outcome->ring, TCCL_RECORD_RING},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        if (tccl_put_text(record, texts[i].name, texts[i].text, texts[i].max) != 0)
            return -1;
    return 0;
}

json_t *steprecord(const struct tccl_join *join, const struct outcome *outcome, time_t start,
                   int64_t solve_us, long gpus)
{
    cleanup_json json_t *record = tccl_key_to_json(&join->key);
    cleanup_json json_t *rest = json_pack(
        "{s:I,s:i,s:I,s:s,s:s,s:f,s:f,s:f,s:I,s:I,s:i}", "uid", (json_int_t)join->uid, "n_nodes",
        join->n_nodes, "gpus", (json_int_t)gpus, "mode", tccl_mode_name(join->mode), "state",
        outcome->partial ? "partial" : tccl_state_name(outcome->state), "gbps", outcome->gbps,
        "baseline_gbps", outcome->baseline_gbps, "bound_gbps", outcome->bound_gbps, "solve_us",
        (json_int_t)solve_us, "start", (json_int_t)start, "reporter", join->node);
    if (join->array_job &&
        (json_object_set_new(record, "array_job_id", json_integer(join->array_job)) != 0 ||
         json_object_set_new(record, "array_task_id", json_integer(join->array_task)) != 0))
        return NULL;
    if (json_object_update(record, rest) != 0 || put_texts(record, join, outcome) != 0)
        return NULL;
    return tccl_steal(record);
}
