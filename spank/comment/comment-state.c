#include "comment/comment-state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fileio.h"

enum { STATE_VERSION = 1, STATE_BYTES = 32 * 1024 * 1024 };

void comment_state_init(struct comment_state *state)
{
    *state = (struct comment_state){0};
    comment_list_init(&state->list);
}

void comment_state_clear(struct comment_state *state)
{
    comment_list_clear(&state->list);
    comment_seen_clear(&state->seen);
}

static int take_jobs(struct comment_state *state, const json_t *jobs, struct tccl_error *err)
{
    if (json_array_size(jobs) > COMMENT_LIST_MOST)
        return tccl_fail(err, "jobs: more than %d", COMMENT_LIST_MOST);
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        struct comment_job job;
        if (!comment_job_of(json_array_get(jobs, i), &job))
            return tccl_fail(err, "jobs: entry %zu is none", i);
        if (comment_list_add(&state->list, &job, 0) < 0)
            return tccl_fail(err, "out of memory");
    }
    return 0;
}

static int take_state(struct comment_state *state, const json_t *json, struct tccl_error *err)
{
    const json_t *cursor = json_object_get(json, "cursor"), *jobs = json_object_get(json, "jobs"),
                 *seen = json_object_get(json, "seen");
    if (json_integer_value(json_object_get(json, "version")) != STATE_VERSION)
        return tccl_fail(err, "not a file of this version");
    if (!json_is_integer(cursor) || json_integer_value(cursor) < 0 || !json_is_array(jobs) ||
        !json_is_array(seen))
        return tccl_fail(err, "cursor, jobs and seen are expected");
    state->cursor = json_integer_value(cursor);
    if (take_jobs(state, jobs, err) != 0)
        return -1;
    return comment_seen_from_json(&state->seen, seen, err);
}

int comment_state_read(struct comment_state *state, const char *path, struct tccl_error *err)
{
    struct tccl_error why = {0};
    errno = 0;
    cleanup_json json_t *json = tccl_read_json(path, STATE_BYTES, &why);
    if (!json)
        return errno == ENOENT ? 1 : tccl_fail(err, "%s", why.text);
    if (take_state(state, json, err) == 0)
        return 0;
    comment_state_clear(state);
    comment_state_init(state);
    return tccl_fail_in(err, "%s", path);
}

int comment_state_write(const struct comment_state *state, const char *path, struct tccl_error *err)
{
    const struct comment_todo *todo;
    json_t *seen = comment_seen_to_json(&state->seen), *jobs = json_array();
    cleanup_json json_t *json =
        json_pack("{s:i, s:I, s:o, s:o}", "version", STATE_VERSION, "cursor",
                  (json_int_t)state->cursor, "jobs", jobs, "seen", seen ? seen : json_array());
    if (!json || !seen)
        return tccl_fail(err, "%s: out of memory", path);
    TAILQ_FOREACH(todo, &state->list.jobs, link)
    {
        json_t *job = json_pack("{s:s, s:I, s:I}", "cluster", todo->job.cluster, "job",
                                (json_int_t)todo->job.job, "start", (json_int_t)todo->job.started);
        if (!job || json_array_append_new(jobs, job) != 0)
            return tccl_fail(err, "%s: out of memory", path);
    }
    cleanup_free char *text = json_dumps(json, JSON_COMPACT);
    if (!text)
        return tccl_fail(err, "%s: out of memory", path);
    return tccl_write_file(path, 0600, text, strlen(text), err);
}
