/* evidence-file.c: the file is written whole, in a thread of its own, from a copy of the table. */
#include "tccld/join/evidence.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "client/message.h"
#include "client/step-fields.h"
#include "tccld/join/step-outcome.h"

enum { FILE_MOST = 4 << 20, STOP_MS = 1000 };
#define FORMAT "tccl-evidence"

struct evidence {
    struct daemon *daemon;
    struct threads *pool;
    struct event *save;
    struct evidence_table *table; /* NULL: it has not been read yet */
    bool ending;
    struct log_limit trouble;
    /* The thread's, while it reads or writes. */
    char path[PATH_MAX + 16];
    struct evidence_table *copy; /* NULL: it does neither */
    struct tccl_error err;
};

/* ---- as JSON ---- */

#define AT(member)                                                                                 \
    .at = offsetof(struct evidence_row, member), .size = sizeof(((struct evidence_row *)0)->member)

static const struct tccl_field fields[] = {
    {.name = "what", TCCL_FIELD_TEXT, .max = EVIDENCE_WHAT, AT(what)},
    {.name = "n_nodes", TCCL_FIELD_INT, .min = 1, .max = TCCL_MAX_NODES, AT(n_nodes)},
    {.name = "uid", TCCL_FIELD_INT, .max = UINT32_MAX, AT(uid)},
    {.name = "nccl", TCCL_FIELD_INT, .min = 1, .max = 99999, AT(nccl)},
    {.name = "from", TCCL_FIELD_INT, .min = 4, .max = EVIDENCE_LARGE, AT(from)},
    {.name = "off", TCCL_FIELD_BOOL, AT(off)},
    {.name = "latest", TCCL_FIELD_BOOL, AT(latest)},
    {.name = "left", TCCL_FIELD_REAL, .max = 1000000000, AT(left)},
    {.name = "promised", TCCL_FIELD_REAL, .max = 1000000000, AT(promised)},
    {.name = "first", TCCL_FIELD_INT, .min = 1, .max = INT64_MAX / 2, AT(first)},
    {.name = "order", TCCL_FIELD_INT, .min = 1, .max = INT64_MAX / 2, AT(order)},
};
enum { FIELDS = sizeof(fields) / sizeof(*fields) };

static const struct {
    const char *name;
    size_t at;
} means[] = {{"ring", offsetof(struct evidence_row, arms[EVIDENCE_RING])},
             {"own", offsetof(struct evidence_row, arms[EVIDENCE_OWN])},
             {"large", offsetof(struct evidence_row, large)}};
enum { MEANS = sizeof(means) / sizeof(*means) };

static json_t *row_to_json(uint64_t subject, const struct evidence_row *row)
{
    cleanup_json json_t *json = json_pack("{s:I}", "subject", (json_int_t)subject);
    for (int i = 0; i < FIELDS; i++)
        if (tccl_field_put(json, &fields[i], true, row) != 0)
            return NULL;
    for (int i = 0; i < MEANS; i++) {
        const struct evidence_mean *mean = (const void *)((const char *)row + means[i].at);
        json_t *numbers = json_pack("[f, f, f]", mean->n, mean->mean, mean->squares);
        if (json_object_set_new(json, means[i].name, numbers) != 0)
            return NULL;
    }
    return tccl_steal(json);
}

static int row_from_json(const json_t *json, uint64_t *subject, struct evidence_row *row,
                         struct tccl_error *err)
{
    json_int_t number;
    if (tccl_get_int(json, "subject", 1, INT64_MAX, &number, err) != 0)
        return -1;
    *subject = (uint64_t)number;
    for (int i = 0; i < FIELDS; i++)
        if (tccl_field_get(json, &fields[i], true, row, err) != 0)
            return -1;
    for (int i = 0; i < MEANS; i++) {
        struct evidence_mean *mean = (void *)((char *)row + means[i].at);
        if (json_unpack(json_object_get(json, means[i].name), "[F, F, F!]", &mean->n, &mean->mean,
                        &mean->squares) != 0 ||
            !evidence_is_mean(mean))
            return tccl_fail(err, "%s: it is no mean", means[i].name);
    }
    if (row->first > row->order || (row->off && !(row->left > 0 && row->left < EVIDENCE_SLOWER)))
        return tccl_fail(err, "first, left: no steps make such a row");
    return 0;
}

json_t *evidence_to_json(const struct evidence_table *table)
{
    json_t *rows = json_array();
    cleanup_json json_t *json =
        json_pack("{s:s, s:i, s:o}", "format", FORMAT, "version", 1, "rows", rows);
    for (int i = 0; json && i < table->n; i++)
        if (json_array_append_new(rows, row_to_json(table->subjects[i], &table->rows[i])) != 0)
            return NULL;
    return tccl_steal(json);
}

int evidence_from_json(const json_t *json, struct evidence_table *table, struct tccl_error *err)
{
    size_t i;
    const json_t *row, *rows = json_object_get(json, "rows");
    const char *format = json_string_value(json_object_get(json, "format"));
    if (!format || strcmp(format, FORMAT) != 0 ||
        json_integer_value(json_object_get(json, "version")) != 1 || !json_is_array(rows) ||
        json_array_size(rows) > EVIDENCE_ROWS)
        return tccl_fail(err, "it is no " FORMAT " of version 1");
    json_array_foreach(rows, i, row)
    {
        if (row_from_json(row, &table->subjects[i], &table->rows[i], err) != 0)
            return tccl_fail_in(err, "row %zu", i);
        table->order = table->rows[i].order > table->order ? table->rows[i].order : table->order;
        table->n++;
    }
    return 0;
}

/* ---- in the thread ---- */

static void run_read(void *task)
{
    struct evidence *evidence = task;
    cleanup_json json_t *json = tccl_read_json(evidence->path, FILE_MOST, &evidence->err);
    if (!json && errno == ENOENT)
        evidence->err = (struct tccl_error){""};
    if (json && evidence_from_json(json, evidence->copy, &evidence->err) != 0)
        memset(evidence->copy, 0, sizeof(*evidence->copy));
}

static void run_write(void *task)
{
    struct evidence *evidence = task;
    cleanup_json json_t *json = evidence_to_json(evidence->copy);
    evidence->err = (struct tccl_error){""};
    if (!json)
        tccl_fail(&evidence->err, "%s: out of memory", evidence->path);
    else
        tccl_write_json(evidence->path, 0600, json, &evidence->err);
}

/* ---- on the event loop ---- */

static void save_soon(struct evidence *evidence)
{
    if (!event_pending(evidence->save, EV_TIMEOUT, NULL))
        daemon_set(evidence->save, EVIDENCE_SAVE_MS);
}

static void on_read(void *task)
{
    struct evidence *evidence = task;
    if (*evidence->err.text)
        log_line("%s can't be used, so what steps achieve is collected anew: %s", evidence->path,
                 evidence->err.text);
    evidence->table = tccl_steal(evidence->copy);
}

static void on_written(void *task)
{
    struct evidence *evidence = task;
    free(tccl_steal(evidence->copy));
    if (*evidence->err.text) {
        log_limited(&evidence->trouble, "what steps have achieved is not kept: %s",
                    evidence->err.text);
        if (!evidence->ending)
            save_soon(evidence);
    }
}

static void save(struct evidence *evidence)
{
    evidence->copy = malloc(sizeof(*evidence->copy));
    if (!evidence->copy)
        return;
    *evidence->copy = *evidence->table;
    if (threads_submit(evidence->pool, run_write, on_written, evidence) != 0)
        free(tccl_steal(evidence->copy));
}

static void on_time(evutil_socket_t fd UNUSED, short what UNUSED, void *argument)
{
    struct evidence *evidence = argument;
    if (evidence->copy)
        save_soon(evidence);
    else
        save(evidence);
}

struct evidence *evidence_new(struct daemon *daemon, struct tccl_error *err)
{
    struct evidence *evidence = calloc(1, sizeof(*evidence));
    if (evidence) {
        evidence->daemon = daemon;
        snprintf(evidence->path, sizeof(evidence->path), "%s/evidence.json",
                 daemon->conf->state_dir);
        evidence->pool = threads_new(daemon->base, 1, 2, err);
        evidence->save = evtimer_new(daemon->base, on_time, evidence);
        evidence->copy = calloc(1, sizeof(*evidence->copy));
    }
    if (evidence && evidence->pool && evidence->save && evidence->copy &&
        threads_submit(evidence->pool, run_read, on_read, evidence) == 0)
        return evidence;
    evidence_free(evidence);
    return tccl_fail_null(err, "out of memory");
}

void evidence_free(struct evidence *evidence)
{
    if (!evidence)
        return;
    bool late = evidence->save && event_pending(evidence->save, EV_TIMEOUT, NULL);
    evidence->ending = true;
    if (late && !evidence->copy)
        save(evidence);
    if (evidence->pool && threads_free(evidence->pool, STOP_MS) != 0)
        return; /* the thread uses it until the end of the process */
    daemon_drop(evidence->save);
    free(evidence->table);
    free(evidence->copy);
    free(evidence);
}

void evidence_take(struct daemon *daemon, const struct running_step *step, enum evidence_arm arm,
                   int64_t bytes, double achieved)
{
    struct evidence *evidence = daemon->evidence;
    if (daemon->conf->evidence && evidence && evidence->table &&
        evidence_add(evidence->table, step, arm, bytes, achieved))
        save_soon(evidence);
}

void evidence_apply(struct daemon *daemon, struct tccl_outcome *outcome,
                    const struct tccl_step *join)
{
    const struct tccl_conf *conf = daemon->conf;
    const struct evidence *evidence = daemon->evidence;
    if (outcome->state != TCCL_STATE_PLANNED || !conf->evidence || !evidence || !evidence->table ||
        !evidence_leaves(evidence->table, (uint64_t)outcome->subject, join->uid,
                         conf->evidence_users) ||
        evidence_draws(&join->key, "again", EVIDENCE_RETURN))
        return;
    outcome_measure_own(outcome);
    tccl_outcome_say(outcome, TCCL_REASON_EVIDENCE,
                     "evidence: steps before were slower with the ring than with NCCL's own "
                     "choice (tccl-check policy --explain)");
}

/* ---- for people ---- */

json_t *evidence_report(const struct daemon *daemon)
{
    const struct evidence_table *table = daemon->evidence ? daemon->evidence->table : NULL;
    const int users = daemon->conf->evidence_users;
    json_t *report = json_array();
    int64_t before = INT64_MAX;
    for (int shown = 0; table && shown < EVIDENCE_SHOWN;) {
        int latest = -1;
        for (int i = 0; i < table->n; i++)
            if (table->rows[i].order < before &&
                (latest < 0 || table->rows[i].order > table->rows[latest].order))
                latest = i;
        if (latest < 0)
            break;
        const struct evidence_row *row = &table->rows[latest];
        const struct evidence_view view = evidence_look(table, table->subjects[latest], users);
        before = row->order;
        if (view.row != row)
            continue;
        json_array_append_new(report,
                              json_pack("{s:s, s:i, s:f, s:i, s:i, s:i, s:i, s:b, s:b, s:f, s:f}",
                                        "what", row->what, "n_nodes", row->n_nodes, "promised_gbps",
                                        row->promised, "with_ring", (int)view.steps[EVIDENCE_RING],
                                        "without", (int)view.steps[EVIDENCE_OWN], "slower",
                                        view.slower, "good", view.good, "off", view.off, "untrue",
                                        view.untrue, "ratio", view.ratio, "reached", view.reached));
        shown++;
    }
    return report;
}
