/* CHAIN: a lookup in the chain table of that GPU set, as at a JOIN. */
#include "tccld/join/subset.h"

#include <string.h>

#include "base/cleanup.h"
#include "client/message.h"
#include "client/outcome.h"
#include "tccld/join/node-profile.h"
#include "tccld/net/links.h"
#include "tccld/net/liveness.h"

/* What is asked. */
struct question {
    const char *gpus[TCCL_MAX_GPUS]; /* borrowed from the message */
    int n_gpus;
    bool closed;
};

static bool has_gpu(const struct alive *alive, const char *busid)
{
    for (int i = 0; i < alive->n_gpus; i++)
        if (strcasecmp(alive->gpus[i], busid) == 0)
            return true;
    return false;
}

static int read_question(const json_t *json, const struct alive *alive, struct question *question,
                         struct tccl_error *err)
{
    const json_t *gpus = json_object_get(json, "gpus"), *closed = json_object_get(json, "closed");
    size_t count = json_array_size(gpus);
    if (!json_is_boolean(closed))
        return tccl_fail(err, "closed: true or false is expected");
    if (count < 1 || count > TCCL_MAX_GPUS)
        return tccl_fail(err, "gpus: a list of 1 to %d bus ids is expected", TCCL_MAX_GPUS);
    question->closed = json_is_true(closed);
    for (size_t i = 0; i < count; i++) {
        const char *busid = json_string_value(json_array_get(gpus, i));
        if (!busid || !has_gpu(alive, busid))
            return tccl_fail(err, "gpus: entry %zu is not a GPU of this step on this node", i);
        for (size_t k = 0; k < i; k++)
            if (strcasecmp(question->gpus[k], busid) == 0)
                return tccl_fail(err, "gpus: %s is there twice", busid);
        question->gpus[i] = busid;
    }
    question->n_gpus = (int)count;
    return 0;
}

static json_t *answer(enum tccl_state state, const char *reason)
{
    cleanup_json json_t *json = tccl_message_new("chain");
    if (json_object_set_new(json, "state", json_string(tccl_state_name(state))) != 0 ||
        tccl_put_text(json, "reason", reason, 511) != 0)
        return NULL;
    return tccl_steal(json);
}

/* The best over all pairs of NICs. */
static const struct tccl_cell *best_cell(const struct tccl_kind *kind)
{
    const struct tccl_cell *best = NULL;
    for (int i = 0; i < kind->n_nics * kind->n_nics; i++)
        if (kind->cells[i].chain.n_gpus && (!best || kind->cells[i].gbps > best->gbps))
            best = &kind->cells[i];
    return best;
}

static json_t *found(const struct tccl_kind *kind, const struct tccl_machine *machine,
                     const struct tccl_cell *cell, double baseline)
{
    struct tccl_error err = {0};
    if (tccl_chain_check(&cell->chain, machine, &err) != 0 ||
        tccl_chain_expressible(&cell->chain, &err) != 0)
        return answer(TCCL_STATE_FALLBACK, err.text);
    bool better = tccl_ring_gains(
        &(struct tccl_ring){.gbps = cell->gbps, .baseline_gbps = baseline, .noise = kind->noise});
    cleanup_json json_t *json = answer(better ? TCCL_STATE_APPLIED : TCCL_STATE_NOTHING,
                                       better ? "" : "NCCL's own choice is as good");
    cleanup_json json_t *rest =
        json_pack("{s:f,s:f,s:s}", "gbps", links_gbps(cell->gbps), "baseline_gbps",
                  links_gbps(baseline), "source", kind->source);
    if (json_object_update(json, rest) != 0 ||
        (better && json_object_set_new(json, "links", links_to_json(&cell->chain, machine)) != 0))
        return NULL;
    return tccl_steal(json);
}

json_t *subset_answer(const struct tccl_kind *kind, const struct tccl_machine *machine, bool closed)
{
    if (closed && kind->n_gpus == 1)
        return answer(TCCL_STATE_NOTHING, "one GPU");
    if (!closed && kind->n_nics == 0)
        return answer(TCCL_STATE_FALLBACK, "this node has no NIC");
    if (!closed && !links_one_fabric(machine))
        return answer(TCCL_STATE_FALLBACK,
                      "the NICs of this node are on several fabrics: nodes would have to agree");
    const struct tccl_cell *cell = closed ? &kind->ring : best_cell(kind);
    if (!cell || !cell->chain.n_gpus || !(cell->gbps > 0))
        return answer(TCCL_STATE_FALLBACK, "the profile has no such chain of these GPUs");
    return found(kind, machine, cell,
                 closed ? kind->baseline_ring_gbps : kind->baseline_chain_gbps);
}

void subset_ask(struct daemon *daemon, struct connection *connection, json_t *message)
{
    struct tccl_error err = {0};
    struct question question;
    struct alive *alive = alives_asked(daemon, connection, message, &err);
    if (!alive || read_question(message, alive, &question, &err) != 0) {
        connection_refuse(connection, err.text);
        return;
    }
    struct shared_kind *kind =
        own_kind_busids(daemon->own, daemon->conf, question.gpus, question.n_gpus, &err);
    cleanup_json json_t *json =
        kind ? subset_answer(kind->kind, own_machine(daemon->own), question.closed)
             : answer(TCCL_STATE_FALLBACK, err.text);
    shared_kind_drop(kind);
    if (json)
        connection_answer(connection, json);
    else
        connection_refuse(connection, "out of memory");
}
