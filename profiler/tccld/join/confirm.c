/* CONFIRM: verdicts of the processes of a step on what NCCL built. The one that counts most goes on
 * record: node 0's, and from other nodes only that theirs differs. */
#include "tccld/join/confirm.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/key.h"
#include "client/message.h"
#include "records/record.h"
#include "tccld/journal/journal.h"
#include "tccld/main/log.h"
#include "tccld/net/liveness.h"

struct verdict {
    int rank; /* tccl_built_rank */
    const char *text;
    bool whole;
};

static int read_verdict(const json_t *json, struct verdict *verdict, struct tccl_error *err)
{
    const json_t *whole = json_object_get(json, "whole");
    json_int_t ranks, gpus;
    const char *word;
    if (tccl_get_text(json, "verdict", 16, &word, err) != 0 ||
        tccl_get_text(json, "text", CONFIRM_TEXT, &verdict->text, err) != 0 ||
        tccl_get_int(json, "ranks", -1, INT32_MAX, &ranks, err) != 0 ||
        tccl_get_int(json, "gpus", -1, INT32_MAX, &gpus, err) != 0)
        return -1;
    if (!json_is_boolean(whole))
        return tccl_fail(err, "whole: true or false is expected");
    verdict->whole = json_is_true(whole);
    verdict->rank = tccl_built_rank(word);
    return verdict->rank > 0 ? 0 : tccl_fail(err, "verdict: \"%.16s\" is unknown", word);
}

/* How the verdict reads on record: what differs is of one node. */
static json_t *record_of(const struct daemon *daemon, const struct alive *alive, int rank,
                         const char *text)
{
    char reason[TCCL_OUTCOME_REASON + 1];
    bool differs = rank == TCCL_BUILT_DIFFERS;
    cleanup_json json_t *record = tccl_key_to_json(&alive->key);
    snprintf(reason, sizeof(reason), "%s%s%s", differs ? daemon->conf->node : "",
             differs ? ": " : "", text);
    if (json_object_set_new(record, "start", json_integer(alive->start)) != 0 ||
        json_object_set_new(record, "built", json_string(tccl_built_name(rank))) != 0 ||
        tccl_put_text(record, "built_reason", reason, TCCL_OUTCOME_REASON) != 0)
        return NULL;
    return tccl_steal(record);
}

static void put(struct daemon *daemon, struct alive *alive, int rank, const char *text)
{
    if (rank <= alive->told || (alive->index != 0 && rank != TCCL_BUILT_DIFFERS))
        return;
    json_t *record = record_of(daemon, alive, rank, text);
    if (!record)
        return;
    journal_put_at(daemon->journal, record, alive->index == 0 ? NULL : alive->root);
    alive_told(daemon, alive, rank);
}

void confirm_hear(struct daemon *daemon, struct connection *connection, json_t *message)
{
    struct tccl_error err = {0};
    struct verdict verdict;
    struct alive *alive = alives_asked(daemon, connection, message, &err);
    if (!alive || read_verdict(message, &verdict, &err) != 0) {
        connection_refuse(connection, err.text);
        return;
    }
    if (verdict.whole)
        put(daemon, alive, verdict.rank, verdict.text);
    cleanup_json json_t *answer = tccl_message_new("ok");
    connection_answer(connection, answer);
}

void confirm_end(struct daemon *daemon, const struct tccl_step_key *key)
{
    struct alive *alive = alives_find(daemon, key);
    if (alive && alive->told == 0)
        put(daemon, alive, TCCL_BUILT_NOT_USED,
            "no communicator over the step's GPUs was made with this plan");
}
