#include "tccld/join/steprecord.h"

#include "base/cleanup.h"
#include "client/message.h"
#include "client/outcome.h"
#include "client/step-json.h"
#include "records/records.h"

json_t *steprecord(const struct tccl_step *join, const struct outcome *outcome, time_t start,
                   int64_t solve_us, long gpus)
{
    cleanup_json json_t *record = json_object();
    cleanup_json json_t *rest = json_pack(
        "{s:I,s:s,s:f,s:f,s:f,s:I,s:I}", "gpus", (json_int_t)gpus, "state",
        outcome->partial ? "partial" : tccl_state_name(outcome->state), "gbps", outcome->gbps,
        "baseline_gbps", outcome->baseline_gbps, "bound_gbps", outcome->bound_gbps, "solve_us",
        (json_int_t)solve_us, "start", (json_int_t)start);
    if (tccl_step_put(record, TCCL_IN_RECORD, join) != 0 || json_object_update(record, rest) != 0 ||
        tccl_put_text(record, "reason", outcome->reason, TCCL_RECORD_REASON) != 0 ||
        tccl_put_text(record, "source", outcome->source, TCCL_RECORD_WORD) != 0 ||
        tccl_put_text(record, "ring", outcome->ring, TCCL_RECORD_RING) != 0)
        return NULL;
    return tccl_steal(record);
}
