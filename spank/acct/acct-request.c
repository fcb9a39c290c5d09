/* acct-request.c: which records are asked for, and the query for them. */
#include "acct/acct.h"

#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "client/client.h"
#include "client/conf.h"
#include "records/records.h"

enum { ANSWER_WITHIN_MS = 20000, PAGE_BYTES = 1 << 20 };

int acct_request_begin(struct acct_request *request, struct tccl_error *err)
{
    request->now = time(NULL);
    request->filter = json_object();
    return request->filter ? 0 : tccl_fail(err, "out of memory");
}

void acct_request_clear(struct acct_request *request)
{
    json_decref(request->filter);
    json_decref(request->lost);
}

static int add_time(json_t *filter, const char *name, time_t when, struct tccl_error *err)
{
    if (when < 0)
        when = 0;
    return json_object_set_new(filter, name, json_integer(when)) == 0
               ? 0
               : tccl_fail(err, "out of memory");
}

/* The end is exclusive, unless it equals the start or is now, as in sacct. */
static int finish_times(struct acct_request *request, time_t start, struct tccl_error *err)
{
    time_t end;
    if (json_object_get(request->filter, "jobs"))
        start = 0;
    if (request->start && acct_time_parse(request->start, request->now, &start, err) != 0)
        return tccl_fail_in(err, "--starttime");
    if (add_time(request->filter, "start", start, err) != 0)
        return -1;
    if (!request->end && request->start && start > request->now)
        return tccl_fail(err, "--starttime=%.60s is in the future", request->start);
    if (!request->end)
        return 0;
    if (acct_time_parse(request->end, request->now, &end, err) != 0)
        return tccl_fail_in(err, "--endtime");
    if (end < start) {
        char text[64];
        acct_time_print(start, request->now, NULL, text, sizeof(text));
        return tccl_fail(err, "--endtime=%.60s is before the start (%s%s)", request->end, text,
                         request->start ? "" : "; give --starttime");
    }
    if (end != start && end != request->now)
        end--;
    return add_time(request->filter, "end", end, err);
}

/* Only a default: tccld itself enforces who may see what, whatever the filter says. */
static int finish_users(struct acct_request *request, struct tccl_error *err)
{
    json_t *filter = request->filter;
    if (request->all_users)
        json_object_del(filter, "users");
    if (request->all_users || request->file || getuid() == 0 || json_object_get(filter, "users") ||
        json_object_get(filter, "jobs"))
        return 0;
    return json_object_set_new(filter, "users", json_pack("[I]", (json_int_t)getuid())) == 0
               ? 0
               : tccl_fail(err, "out of memory");
}

int acct_request_finish(struct acct_request *request, time_t start, struct tccl_error *err)
{
    return finish_times(request, start, err) == 0 && finish_users(request, err) == 0 ? 0 : -1;
}

/* All pages of a store. A new reference, or NULL with err. */
static json_t *read_pages(struct tccl_records *store, const json_t *filter, struct tccl_error *err)
{
    cleanup_json json_t *all = json_array(), *next = json_deep_copy(filter);
    while (next && all) {
        cleanup_json json_t *asked = tccl_steal(next), *page = NULL;
        page = tccl_records_query(store, asked, -1, PAGE_BYTES, &next, err);
        if (!page)
            return NULL;
        if (json_array_extend(all, page) != 0)
            tccl_fail(err, "out of memory");
    }
    return all && !*err->text ? tccl_steal(all) : NULL;
}

/* In place of asking: a file of tccl-run's, or a copy of the store of AccountingHost. */
static json_t *read_file(const struct acct_request *request, bool summary, struct tccl_error *err)
{
    struct tccl_records *store;
    if (tccl_records_open_reader(request->file, &store, err) != 0)
        return NULL;
    json_t *answer = summary ? tccl_records_summary(store, request->filter, -1, err)
                             : read_pages(store, request->filter, err);
    tccl_records_close(store);
    return answer;
}

static json_t *ask(struct acct_request *request, bool summary, int *complete,
                   struct tccl_error *err)
{
    struct tccl_conf conf;
    *complete = 1;
    if (request->file)
        return read_file(request, summary, err);
    if (tccl_conf_read(tccl_conf_tool_path(request->config), request->node, &conf, err) != 0)
        return NULL;
    json_t *answer =
        summary ? tccl_client_summary(&conf, request->filter, ANSWER_WITHIN_MS, complete, err)
                : tccl_client_query(&conf, request->filter, ANSWER_WITHIN_MS, true, complete,
                                    &request->lost, err);
    if (summary)
        request->lost = json_incref(json_object_get(answer, "lost"));
    if (!answer)
        tccl_fail_in(err, "no records from %s",
                     *conf.accounting_host ? conf.accounting_host : "this node");
    else if (!*complete)
        fprintf(stderr,
                "tccl: AccountingHost is not set in %s: only records of this node (%s) are shown\n",
                conf.path, conf.node);
    tccl_conf_clear(&conf);
    return answer;
}

/* The array of a step's job comes from the step's environment and can be forged; the job id and the
 * user come from Slurm. All tasks of a real array have one user, so a mixture is reported. */
static void note_mixed_arrays(const json_t *records)
{
    size_t i;
    const json_t *record;
    cleanup_json json_t *users = json_object();
    json_array_foreach(records, i, record)
    {
        char array[TCCL_STEP_TEXT + 16];
        json_int_t id = tccl_number_of(record, "array_job_id");
        const json_t *uid = json_object_get(record, "uid"), *first;
        snprintf(array, sizeof(array), "%" JSON_INTEGER_FORMAT " %s", id,
                 tccl_text_of(record, "cluster"));
        if (id == 0 || !uid)
            continue;
        if (!(first = json_object_get(users, array))) {
            json_object_set(users, array, (json_t *)uid);
        } else if (!json_equal(first, uid)) {
            fprintf(stderr,
                    "tccl: tasks of array %" JSON_INTEGER_FORMAT " have different users: the "
                    "array id comes from the steps' environment, User and JobIDRaw from Slurm\n",
                    id);
            return;
        }
    }
}

json_t *acct_request_records(struct acct_request *request, int *complete, struct tccl_error *err)
{
    json_t *records = ask(request, false, complete, err);
    note_mixed_arrays(records);
    acct_name_users(records);
    return records;
}

json_t *acct_request_summary(struct acct_request *request, int *complete, struct tccl_error *err)
{
    return ask(request, true, complete, err);
}

bool acct_request_lost(const struct acct_request *request, const json_t *records,
                       char text[static ACCT_LOST_TEXT])
{
    const json_t *lost = request->lost, *end = json_object_get(request->filter, "end");
    json_int_t start = tccl_number_of(request->filter, "start");
    json_int_t count = tccl_number_of(lost, "records"), nodes = tccl_number_of(lost, "nodes");
    json_int_t first = tccl_number_of(lost, "first"), last = tccl_number_of(lost, "last");
    char from[64], to[64];
    if (start == 0)
        start = tccl_number_of(json_array_get(records, 0), "start");
    if (count <= 0 || last < start || (end && first > json_integer_value(end)))
        return false;
    acct_time_print((time_t)first, request->now, NULL, from, sizeof(from));
    acct_time_print((time_t)last, request->now, NULL, to, sizeof(to));
    snprintf(text, ACCT_LOST_TEXT,
             "up to %lld record%s of %lld node%s %s lost, from %s to %s: steps of that time may be "
             "missing",
             (long long)count, ending(count), (long long)nodes, ending(nodes),
             count == 1 ? "is" : "are", from, to);
    return true;
}
