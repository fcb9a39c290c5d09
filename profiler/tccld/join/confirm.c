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
    char text[CONFIRM_TEXT + 1];
    bool whole;
};

static int read_verdict(const struct tccl_lines *lines, struct verdict *verdict,
                        struct tccl_error *err)
{
    int64_t ranks, gpus;
    char word[17];
    if (tccl_line_text(lines, "text", verdict->text, sizeof(verdict->text)) < 0)
        return tccl_fail(err, "text: a text of at most %d bytes is expected", CONFIRM_TEXT);
    if (tccl_line_integer(lines, "ranks", -1, INT32_MAX, &ranks) != 0 ||
        tccl_line_integer(lines, "gpus", -1, INT32_MAX, &gpus) != 0)
        return tccl_fail(err, "ranks, gpus: numbers from -1 to %d are expected", INT32_MAX);
    if (tccl_line_bool(lines, "whole", &verdict->whole) != 0)
        return tccl_fail(err, "whole: yes or no is expected");
    if (tccl_line_text(lines, "verdict", word, sizeof(word)) < 0)
        return tccl_fail(err, "verdict: a word is expected");
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

void confirm_hear(struct daemon *daemon, struct connection *connection,
                  const struct tccl_lines *question)
{
    struct tccl_error err = {0};
    struct verdict verdict;
    struct alive *alive = alives_asked(daemon, connection, question, &err);
    if (!alive || read_verdict(question, &verdict, &err) != 0) {
        connection_refuse(connection, err.text);
        return;
    }
    if (verdict.whole)
        put(daemon, alive, verdict.rank, verdict.text);
    char text[32];
    struct tccl_line_writer answer;
    tccl_lines_begin(&answer, text, sizeof(text), "tccl-ok", 1);
    connection_answer_lines(connection, &answer);
}

void confirm_end(struct daemon *daemon, const struct tccl_step_key *key)
{
    struct alive *alive = alives_find(daemon, key);
    if (alive && alive->told == 0)
        put(daemon, alive, TCCL_BUILT_NOT_USED,
            "no communicator over the step's GPUs was made with this plan");
}
