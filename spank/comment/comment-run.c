#include "comment/comment-run.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/client.h"
#include "comment/comment-slurm.h"

enum {
    PAGE = 1000, /* records asked for at once */
    ANSWER_MS = 10000,
    SLURM_MS = 30000,
    ONCE_LATER_MS = 1000, /* in place of COMMENT_LATER_MS, */
    ONCE_TRIES = 30,      /* and of COMMENT_TRIES */
    REFUSALS = 3,
    LINE = 1024
};

void comment_say(const char *format, ...)
{
    char line[LINE];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    for (char *c = line; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
    fprintf(stderr, "tccl: %s\n", line);
}

/* Pauses grow while something fails. */
static int64_t next_pause(int64_t *pause_ms)
{
    *pause_ms = *pause_ms ? 2 * *pause_ms : COMMENT_PAUSE_MS;
    if (*pause_ms > COMMENT_PAUSE_MOST_MS)
        *pause_ms = COMMENT_PAUSE_MOST_MS;
    return *pause_ms;
}

static json_t *ask(struct comment_run *run, json_t *filter, struct tccl_error *err)
{
    int complete;
    cleanup_json json_t *question = filter;
    if (!question) {
        tccl_fail(err, "out of memory");
        return NULL;
    }
    json_t *records = tccl_client_query(run->conf, question, ANSWER_MS, &complete, err);
    if (!records)
        tccl_fail_in(err, "no records from %s",
                     *run->conf->accounting_host ? run->conf->accounting_host : "this node");
    return records;
}

static void tccld_failed(struct comment_run *run, const char *why)
{
    int64_t pause = next_pause(&run->scan_pause_ms), until = tccl_now_ms() + pause;
    run->failed = run->stuck = true;
    run->scan_ms = until;
    if (run->update_ms < until)
        run->update_ms = until;
    if (run->once)
        comment_say("%s", why);
    else
        comment_say("%s; tried again in %lld s", why, (long long)pause / 1000);
}

/* Reading records */

static void note(struct comment_run *run, const json_t *record, int64_t due_ms)
{
    struct comment_job job;
    if (!comment_job_of(record, &job) || comment_seen_add(&run->state.seen, record) == 0)
        return;
    run->changed = true;
    if (!comment_tells(record))
        return;
    if (comment_list_add(&run->state.list, &job, due_ms) == 0)
        return;
    if (!run->said_full)
        comment_say("more than %d jobs wait for their AdminComment: the oldest go without",
                    COMMENT_LIST_MOST);
    run->said_full = true;
}

/* Reads all records of steps that started since then, page by page: the last second of a page is
 * read again with the next one. Returns 0, or -1 with err. */
static int read_since(struct comment_run *run, int64_t since, struct tccl_error *err)
{
    size_t limit = PAGE, got;
    do {
        cleanup_json json_t *records = ask(
            run, json_pack("{s:I, s:I}", "start", (json_int_t)since, "limit", (json_int_t)limit),
            err);
        if (!records)
            return -1;
        int64_t due = run->once ? 0 : tccl_now_ms() + COMMENT_BATCH_MS;
        got = json_array_size(records);
        for (size_t i = 0; i < got; i++)
            note(run, json_array_get(records, i), due);
        if (got < limit)
            break;
        int64_t last =
            json_integer_value(json_object_get(json_array_get(records, got - 1), "start"));
        limit = last > since ? PAGE : 2 * limit;
        since = last > since ? last : since;
    } while (true);
    return 0;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* From where to read: after a long absence from where the last run stopped. What is older than the
 * days that are read again is forgotten. */
static int64_t read_from(struct comment_run *run, int64_t now, bool again)
{
    if (run->since >= 0)
        return run->since;
    int64_t cursor = run->state.cursor ? earlier(run->state.cursor, now) : now;
    int64_t from = cursor - (again ? COMMENT_AGAIN_S : COMMENT_POLL_S);
    return from > 0 ? from : 0;
}

static void scan(struct comment_run *run)
{
    struct tccl_error err = {0};
    int64_t now = time(NULL), now_ms = tccl_now_ms();
    bool again = now_ms >= run->again_ms;
    int64_t from = read_from(run, now, again);
    if (read_since(run, from, &err) != 0) {
        tccld_failed(run, err.text);
        return;
    }
    run->scan_pause_ms = 0;
    run->scan_ms = tccl_now_ms() + COMMENT_POLL_MS;
    run->state.cursor = now;
    run->since = -1;
    run->changed = true;
    if (!again)
        return;
    run->again_ms = now_ms + COMMENT_AGAIN_MS;
    comment_seen_forget(&run->state.seen, from);
}

/* Writing comments */

static void forget(struct comment_run *run, struct comment_todo *todo)
{
    comment_list_remove(&run->state.list, todo);
    run->changed = true;
    if (run->state.list.count < COMMENT_LIST_MOST / 2)
        run->said_full = false;
}

/* A run of --once leaves what does not settle soon to the next one. */
static void later(struct comment_run *run, struct comment_todo *todo, const char *why)
{
    int most = run->dry ? 1 : run->once ? ONCE_TRIES : COMMENT_TRIES;
    if (++todo->tries < most) {
        int64_t wait = run->once ? ONCE_LATER_MS : COMMENT_LATER_MS;
        comment_list_later(&run->state.list, todo, tccl_now_ms() + wait);
        return;
    }
    comment_say("job %u: AdminComment is left as it is%s: %s", todo->job.job,
                run->once ? " for now" : "", why);
    if (run->once)
        comment_list_later(&run->state.list, todo, INT64_MAX);
    else
        forget(run, todo);
}

/* It may be the cause of a failure itself: the others come first, the next time. */
static void step_back(struct comment_run *run, struct comment_todo *todo)
{
    comment_list_later(&run->state.list, todo, run->update_ms);
}

static void slurm_away(struct comment_run *run, const char *why)
{
    int64_t pause = next_pause(&run->update_pause_ms);
    run->update_ms = tccl_now_ms() + pause;
    run->failed = run->stuck = true;
    if (run->once)
        comment_say("%s", why);
    else
        comment_say("%s; tried again in %lld s", why, (long long)pause / 1000);
}

static void refused(struct comment_run *run, struct comment_todo *todo, const char *why)
{
    if (++todo->tries < REFUSALS) {
        comment_list_later(&run->state.list, todo, tccl_now_ms() + COMMENT_LATER_MS);
        return;
    }
    comment_say("job %u: AdminComment is not taken: %s", todo->job.job, why);
    run->failed = true;
    forget(run, todo);
}

/* slurmdbd is told after slurmctld, as an update of its own. */
static void written(struct comment_run *run, struct comment_todo *todo, const char *text,
                    const struct comment_answer *answer)
{
    if (run->dry) {
        printf("%u %s\n", todo->job.job, text);
        forget(run, todo);
        return;
    }
    comment_say("job %u: AdminComment in %s: %s", todo->job.job, answer->text, text);
    run->update_ms = tccl_now_ms() + COMMENT_UPDATE_MS;
    todo->due_ms = run->update_ms;
    todo->tries = 0;
    if (answer->done)
        forget(run, todo);
}

static void act_on(struct comment_run *run, struct comment_todo *todo, const char *text,
                   const struct comment_answer *answer)
{
    if (answer->result != COMMENT_AWAY)
        run->update_pause_ms = 0;
    switch (answer->result) {
    case COMMENT_WRITTEN:
        written(run, todo, text, answer);
        break;
    case COMMENT_SAME:
        forget(run, todo);
        break;
    case COMMENT_LATER:
        later(run, todo, answer->text);
        break;
    case COMMENT_NOWHERE:
        comment_say("job %u: AdminComment is left as it is: %s", todo->job.job, answer->text);
        forget(run, todo);
        break;
    case COMMENT_REFUSED:
        refused(run, todo, answer->text);
        break;
    case COMMENT_AWAY:
        slurm_away(run, answer->text);
        step_back(run, todo);
    }
}

static int64_t latest_start(const json_t *records, const struct comment_job *job)
{
    int64_t latest = job->started;
    for (size_t i = 0; i < json_array_size(records); i++) {
        struct comment_job of;
        if (comment_job_of(json_array_get(records, i), &of) && of.job == job->job &&
            strcmp(of.cluster, job->cluster) == 0 && of.started > latest)
            latest = of.started;
    }
    return latest;
}

/* Several records of a job are one update: all of them are read now. */
static void update(struct comment_run *run, struct comment_todo *todo)
{
    struct tccl_error err = {0};
    struct comment_answer answer;
    char text[COMMENT_SIZE];
    cleanup_json json_t *records =
        ask(run, json_pack("{s:[{s:I, s:b}]}", "jobs", "job", (json_int_t)todo->job.job, "raw", 1),
            &err);
    if (!records) {
        tccld_failed(run, err.text);
        step_back(run, todo);
        return;
    }
    if (!comment_of_job(records, &todo->job, text)) {
        forget(run, todo);
        return;
    }
    todo->job.started = latest_start(records, &todo->job);
    comment_write(&todo->job, text, run->dry, SLURM_MS, &answer);
    act_on(run, todo, text, &answer);
}

/* How long there is nothing to do; next: when the first job is due. */
static int64_t time_to_rest(const struct comment_run *run, int64_t next)
{
    int64_t now = tccl_now_ms();
    if (run->once && (run->stuck || next < 0 || next == INT64_MAX))
        return -1;
    if (next >= 0 && next < run->update_ms)
        next = run->update_ms;
    if (!run->once && (next < 0 || next > run->scan_ms))
        next = run->scan_ms;
    return next > now ? next - now : 0;
}

int64_t comment_run_step(struct comment_run *run)
{
    int64_t next;
    if (run->once ? run->scan_ms == 0 : tccl_now_ms() >= run->scan_ms)
        scan(run);
    if (!run->once || !run->stuck) {
        struct comment_todo *todo = comment_list_due(&run->state.list, tccl_now_ms(), &next);
        if (todo && tccl_now_ms() >= run->update_ms)
            update(run, todo);
    }
    if (comment_list_due(&run->state.list, tccl_now_ms(), &next))
        next = tccl_now_ms();
    return time_to_rest(run, next);
}
