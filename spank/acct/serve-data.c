/* serve-data.c: what tcclacct's page asks for. */
#include "acct/serve-data.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "acct/acct-fields.h"
#include "acct/acct-filter.h"
#include "acct/acct-ring.h"
#include "acct/acct-time.h"
#include "acct/acct-users.h"
#include "acct/serve-panels.h"
#include "acct/serve-running.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "client/client.h"
#include "client/message.h"
#include "records/record.h"

enum {
    ANSWER_WITHIN_MS = 10000,
    SQUEUE_WITHIN_MS = 5000,
    STEPS = 500,      /* of the list */
    NODES_SHOWN = 200 /* bytes of a node list */
};
enum { OK = 200, BAD = 400, MISSING = 404, NO_ANSWER = 502 };
enum { DAY = 24 * 3600 };

/* Every answer */

static int put(const json_t *json, int status, FILE *out)
{
    if (json && json_dumpf(json, out, JSON_COMPACT | JSON_ENSURE_ASCII) == 0)
        return status;
    fputs("{\"error\":\"out of memory\"}", out);
    return 500;
}

/* Texts from other daemons need not be UTF-8. */
static int put_error(int status, const char *text, FILE *out)
{
    cleanup_json json_t *json = json_object();
    tccl_put_text(json, "error", text, sizeof(((struct tccl_error *)0)->text));
    return put(json, status, out);
}

static json_t *query(const struct tccl_conf *conf, const json_t *filter, int64_t deadline,
                     int *complete, struct tccl_error *err)
{
    int left = (int)(deadline - tccl_now_ms());
    json_t *records = tccl_client_query(conf, filter, left > 1 ? left : 1, complete, err);
    if (!records)
        tccl_fail_in(err, "no records from %s",
                     *conf->accounting_host ? conf->accounting_host : "this node");
    return records;
}

/* Who asks, and whom: what the page says of itself. */
static void put_origin(json_t *json, const struct tccl_conf *conf, int complete)
{
    const struct passwd *user = getpwuid(geteuid());
    json_object_set_new(json, "now", json_integer(time(NULL)));
    json_object_set_new(json, "version", json_string(TCCL_VERSION));
    json_object_set_new(json, "complete", json_boolean(complete));
    json_object_set_new(json, "node", json_string(conf->node));
    json_object_set_new(json, "accounting_host", json_string(conf->accounting_host));
    tccl_put_text(json, "user", user ? user->pw_name : "?", TCCL_RECORD_NAME);
}

/* Ranges */

long long serve_range_start(const char *range, long long now)
{
    static const struct {
        const char *name;
        int days;
    } ranges[] = {{"day", 0}, {"week", 6}, {"month", 30}};
    if (strcmp(range, "all") == 0)
        return 0;
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (strcmp(range, ranges[i].name) == 0)
            return acct_midnight(now - (long long)ranges[i].days * DAY);
    return -1;
}

/* Returns 0, or -1 with err. */
static int take_range(const struct serve_request *request, long long now, long long *start,
                      struct tccl_error *err)
{
    char range[16] = "day";
    if (serve_request_value(request, "range", range, sizeof(range)) < 0)
        return tccl_fail(err, "range: day, week, month or all is expected");
    *start = serve_range_start(range, now);
    return *start < 0 ? tccl_fail(err, "range: day, week, month or all is expected") : 0;
}

/* Steps */

/* The latest steps since from, newest first. *more: there are older ones. A new reference, or NULL
 * with err. */
static json_t *latest(const struct tccl_conf *conf, long long from, bool *more, int *complete,
                      struct tccl_error *err)
{
    cleanup_json json_t *filter = json_pack("{s:I, s:i, s:s}", "start", (json_int_t)from, "limit",
                                            STEPS + 1, "order", "newest");
    json_t *records =
        filter ? query(conf, filter, tccl_now_ms() + ANSWER_WITHIN_MS, complete, err) : NULL;
    *more = json_array_size(records) > STEPS;
    if (*more)
        json_array_remove(records, STEPS);
    return records;
}

static char *job_id(const json_t *record)
{
    const struct acct_field *field = acct_field_find("JobID");
    const struct acct_clock clock = {0};
    return field->text(field, record, &clock);
}

/* "JOB.STEP" as serve_running has it. */
static bool is_running(const json_t *record, const json_t *running)
{
    char name[64];
    json_int_t step = json_integer_value(json_object_get(record, "step"));
    json_int_t job = json_integer_value(json_object_get(record, "job"));
    const char *word = acct_step_name(step);
    if (word)
        snprintf(name, sizeof(name), "%" JSON_INTEGER_FORMAT ".%s", job, word);
    else
        snprintf(name, sizeof(name), "%" JSON_INTEGER_FORMAT ".%" JSON_INTEGER_FORMAT, job, step);
    return json_object_get(running, name) != NULL;
}

/* What the page adds to a record. running: NULL where that isn't known. */
static void dress(json_t *record, const json_t *running)
{
    cleanup_free char *id = job_id(record);
    json_object_set_new(record, "id", json_string(id ? id : "?"));
    json_object_set_new(record, "running",
                        running ? json_boolean(is_running(record, running)) : json_null());
}

/* A list needs no rings, and no long lists of nodes. */
static void shorten(json_t *record)
{
    const char *nodes = json_string_value(json_object_get(record, "nodes"));
    if (nodes && strlen(nodes) > NODES_SHOWN) {
        size_t keep = NODES_SHOWN;
        while (keep > 0 && ((unsigned char)nodes[keep] & 0xc0) == 0x80)
            keep--;
        cleanup_free char *text = NULL;
        if (asprintf(&text, "%.*s…", (int)keep, nodes) > 0)
            json_object_set_new(record, "nodes", json_string(text));
    }
    json_object_del(record, "ring");
}

/* Of several runs of a step, whose job was requeued, only the latest can run. */
static void dress_all(json_t *records, const json_t *running)
{
    cleanup_json json_t *seen = json_object();
    json_t *record;
    size_t i;
    acct_name_users(records);
    json_array_foreach(records, i, record)
    {
        dress(record, running);
        const char *id = json_string_value(json_object_get(record, "id"));
        if (id && json_object_get(seen, id) && running)
            json_object_set_new(record, "running", json_false());
        if (id)
            json_object_set_new(seen, id, json_true());
    }
}

static int put_steps(const struct tccl_conf *conf, const struct serve_request *request, FILE *out)
{
    struct tccl_error err = {0}, why = {0};
    long long now = time(NULL), start = 0;
    bool more = false;
    int complete = 1;
    if (take_range(request, now, &start, &err) != 0)
        return put_error(BAD, err.text, out);
    cleanup_json json_t *records = latest(conf, start, &more, &complete, &err);
    if (!records)
        return put_error(NO_ANSWER, err.text, out);
    cleanup_json json_t *running = serve_running(SQUEUE_WITHIN_MS, &why);
    dress_all(records, running);
    for (size_t i = 0; i < json_array_size(records); i++)
        shorten(json_array_get(records, i));
    cleanup_json json_t *answer =
        json_pack("{s:I, s:b, s:s*, s:O}", "start", (json_int_t)start, "more", more,
                  "running_unknown", running ? NULL : why.text, "steps", records);
    put_origin(answer, conf, complete);
    return put(answer, OK, out);
}

/* Summary */

static int put_summary(const struct tccl_conf *conf, const struct serve_request *request, FILE *out)
{
    struct tccl_error err = {0};
    long long now = time(NULL), start = 0;
    int complete = 1;
    if (take_range(request, now, &start, &err) != 0)
        return put_error(BAD, err.text, out);
    cleanup_json json_t *filter = json_pack("{s:I}", "start", (json_int_t)start);
    cleanup_json json_t *summary =
        tccl_client_summary(conf, filter, ANSWER_WITHIN_MS, &complete, &err);
    if (!summary) {
        tccl_fail_in(&err, "no records from %s",
                     *conf->accounting_host ? conf->accounting_host : "this node");
        return put_error(NO_ANSWER, err.text, out);
    }
    put_origin(summary, conf, complete);
    return put(summary, OK, out);
}

/* One step */

/* The records of one job or step, newest first. NULL with err; *status is then the answer's. */
static json_t *records_of(const struct tccl_conf *conf, const struct serve_request *request,
                          int *status, struct tccl_error *err)
{
    char id[80];
    int complete;
    cleanup_json json_t *filter = json_pack("{s:s, s:i}", "order", "newest", "limit", STEPS);
    *status = BAD;
    if (serve_request_value(request, "id", id, sizeof(id)) != 0 || !*id || strchr(id, ',')) {
        tccl_fail(err, "id: a job or step is expected, such as 12 or 12.0");
        return NULL;
    }
    if (acct_filter_jobs(filter, id, err) != 0)
        return NULL;
    *status = NO_ANSWER;
    json_t *records = query(conf, filter, tccl_now_ms() + ANSWER_WITHIN_MS, &complete, err);
    if (records && json_array_size(records) == 0) {
        *status = MISSING;
        tccl_fail(err,
                  "no record of %s: it asked for no ring, its record was dropped after its "
                  "time, or it is not yours to see",
                  id);
        json_decref(records);
        return NULL;
    }
    return records;
}

/* The one that started then, or else the latest. */
static json_t *choose(const json_t *records, const struct serve_request *request)
{
    char text[24];
    json_t *record;
    size_t i;
    if (serve_request_value(request, "start", text, sizeof(text)) == 0)
        json_array_foreach(records, i, record)
        {
            if (json_integer_value(json_object_get(record, "start")) == atoll(text))
                return record;
        }
    return json_array_get(records, 0);
}

/* All records that were found, for a choice. */
static json_t *others_of(const json_t *records)
{
    json_t *list = json_array(), *record;
    size_t i;
    json_array_foreach(records, i, record)
    {
        json_array_append_new(list,
                              json_pack("{s:O, s:O, s:O, s:O}", "id", json_object_get(record, "id"),
                                        "start", json_object_get(record, "start"), "restart",
                                        json_object_get(record, "restart"), "state",
                                        json_object_get(record, "state")));
    }
    return list;
}

/* The ring as acct_ring_svg draws it; NULL with err. */
static json_t *draw(const json_t *record, struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    int failed = acct_ring_svg(out, record, err);
    return fclose(out) == 0 && !failed ? json_stringn(text, size) : NULL;
}

static int put_step(const struct tccl_conf *conf, const struct serve_request *request, FILE *out)
{
    struct tccl_error err = {0}, no_ring = {0};
    struct serve_kinds kinds;
    int status;
    cleanup_json json_t *records = records_of(conf, request, &status, &err);
    if (!records)
        return put_error(status, err.text, out);
    cleanup_json json_t *running = serve_running(SQUEUE_WITHIN_MS, NULL);
    dress_all(records, running);
    json_t *record = choose(records, request);
    serve_kinds_open(conf, &kinds, NULL); /* without kinds there are no pictures of nodes */
    cleanup_json json_t *answer =
        json_pack("{s:O, s:o, s:o*, s:o*}", "record", record, "records", others_of(records),
                  "overview", draw(record, &no_ring), "panels", serve_panels(conf, &kinds, record));
    serve_kinds_close(&kinds);
    tccl_put_text(answer, "no_ring", no_ring.text, sizeof(no_ring.text));
    return put(answer, OK, out);
}

/* Kinds of machines */

static int put_kinds(const struct tccl_conf *conf, const struct serve_request *request, FILE *out)
{
    struct tccl_error err = {0};
    (void)request;
    cleanup_json json_t *list = serve_kinds_list(conf, &err);
    return list ? put(list, OK, out) : put_error(NO_ANSWER, err.text, out);
}

static int put_kind(const struct tccl_conf *conf, const struct serve_request *request, FILE *out)
{
    struct tccl_error err = {0};
    char id[80];
    bool missing;
    if (serve_request_value(request, "id", id, sizeof(id)) != 0)
        return put_error(BAD, "id: that of a kind of machine is expected", out);
    cleanup_json json_t *kind = serve_kind(conf, id, &missing, &err);
    return kind ? put(kind, OK, out) : put_error(missing ? MISSING : NO_ANSWER, err.text, out);
}

int serve_data(void *context, const struct serve_request *request, FILE *out)
{
    static const struct {
        const char *path;
        int (*put)(const struct tccl_conf *conf, const struct serve_request *request, FILE *out);
    } answers[] = {{"/api/steps", put_steps},
                   {"/api/summary", put_summary},
                   {"/api/step", put_step},
                   {"/api/kinds", put_kinds},
                   {"/api/kind", put_kind}};
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
        if (strcmp(answers[i].path, request->path) == 0)
            return answers[i].put(context, request, out);
    return put_error(MISSING, "there is no such answer here", out);
}
