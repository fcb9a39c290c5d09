/* test-comment-run.c: a job whose records can't be had, or that Slurm does not answer for, does not
 * keep the AdminComment of others from being written. */
#include "base/cleanup.h"
#include "check.h"
#include "client/client.h"
#include "comment/comment-run.h"
#include "comment/comment-slurm.h"

enum { UNREADABLE = 1, UNANSWERED = 2, GOOD = 3 };

static int asked[GOOD + 1], written;

/* In place of a tccld. */
json_t *tccl_client_query(const struct tccl_conf *conf, const json_t *filter, int timeout_ms,
                          int *complete, struct tccl_error *err)
{
    const json_t *wanted = json_array_get(json_object_get(filter, "jobs"), 0);
    json_int_t job = json_integer_value(json_object_get(wanted, "job"));
    (void)conf;
    (void)timeout_ms;
    *complete = 1;
    asked[job]++;
    if (job == UNREADABLE) {
        tccl_fail(err, "no answer in time");
        return NULL;
    }
    return json_pack("[{s:s, s:I, s:i, s:s, s:i}]", "cluster", "c", "job", job, "start", 1000,
                     "state", "applied", "gpus", 8);
}

/* In place of Slurm. */
void comment_write(const struct comment_job *job, const char *own, bool dry, int timeout_ms,
                   struct comment_answer *result)
{
    (void)own;
    (void)dry;
    (void)timeout_ms;
    *result = (struct comment_answer){.result = job->job == GOOD ? COMMENT_WRITTEN : COMMENT_AWAY,
                                      .done = true};
    written += job->job == GOOD;
}

int main(void)
{
    struct tccl_conf conf = {.node = "n1"};
    struct comment_run run = {.conf = &conf, .since = -1, .scan_ms = INT64_MAX};
    comment_state_init(&run.state);
    for (uint32_t i = UNREADABLE; i <= GOOD; i++) {
        const struct comment_job job = {.cluster = "c", .job = i, .started = 1000};
        CHECK_INT(comment_list_add(&run.state.list, &job, 0), 0);
    }
    for (int i = 0; i < GOOD; i++) {
        CHECK(comment_run_step(&run) >= 0);
        run.update_ms = 0; /* as if the pause were over */
    }
    CHECK_INT(asked[UNREADABLE], 1);
    CHECK_INT(asked[UNANSWERED], 1);
    CHECK_INT(written, 1);
    CHECK_INT(run.state.list.count, 2);
    comment_state_clear(&run.state);
    return check_result();
}
