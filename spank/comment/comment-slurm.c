#include "comment/comment-slurm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurmdb.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* How far the clocks of a step's first node and of slurmctld may be apart, seconds. */
enum { CLOCKS_APART = 60 };

/* What the child works on. It ends with _exit, so nothing is freed. */
struct work {
    const struct comment_job *job;
    const char *own;
    bool dry;
    bool has_dbd, is_running, is_known; /* is_known: to slurmctld */
    char cluster[COMMENT_CLUSTER];
    struct comment_answer *answer;
};

__attribute__((format(printf, 3, 4))) static void
answer(struct work *work, enum comment_result result, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    work->answer->result = result;
    vsnprintf(work->answer->text, sizeof(work->answer->text), format, list);
    va_end(list);
}

/* What a call of Slurm's library ended with. */
static void answer_error(struct work *work, const char *whom, int code)
{
    bool refused = code == ESLURM_ACCESS_DENIED || code == ESLURM_USER_ID_MISSING ||
                   code == ESLURM_NOT_SUPPORTED || code == ESLURM_CANNOT_MODIFY_CRON_JOB;
    bool changing = code == ESLURM_JOB_FINISHED || code == ESLURM_ALREADY_DONE ||
                    code == ESLURM_INVALID_JOB_ID || code == SLURM_NO_CHANGE_IN_DATA;
    answer(work,
           refused    ? COMMENT_REFUSED
           : changing ? COMMENT_LATER
                      : COMMENT_AWAY,
           "%s: %s", whom, slurm_strerror(code));
}

/* Another job with this number, or another run of it, began after the step of the record. */
static bool began_later(struct work *work, time_t start)
{
    if ((int64_t)start <= work->job->started + CLOCKS_APART)
        return false;
    answer(work, COMMENT_NOWHERE, "another run or job has this number now");
    return true;
}

/* Returns true with *merged if it is to be written; else answers, or leaves the answer to others
 * where nothing is to be done. */
static bool needs_writing(struct work *work, const char *existing, char **merged)
{
    int change = comment_merge(existing, work->own, merged);
    if (change < 0)
        answer(work, COMMENT_NOWHERE, "its AdminComment is too long to add to");
    return change > 0;
}

static int ask_conf(struct work *work)
{
    slurm_conf_t *conf = NULL;
    if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS) {
        answer_error(work, "slurmctld", errno);
        return -1;
    }
    const char *storage = conf->accounting_storage_type;
    work->has_dbd = storage && strstr(storage, "slurmdbd");
    bool here = !*work->job->cluster || !conf->cluster_name ||
                strcasecmp(work->job->cluster, conf->cluster_name) == 0;
    snprintf(work->cluster, sizeof(work->cluster), "%s",
             here && conf->cluster_name ? conf->cluster_name : work->job->cluster);
    work->is_known = here;
    return 0;
}

/* slurmdbd */

static slurmdb_job_cond_t *condition(const struct work *work, uint32_t job, uint32_t task)
{
    slurmdb_job_cond_t *cond = calloc(1, sizeof(*cond));
    slurm_selected_step_t *step = calloc(1, sizeof(*step));
    if (!cond || !step)
        _exit(1);
    step->array_task_id = task;
    step->het_job_offset = NO_VAL;
    step->step_id.job_id = job;
    step->step_id.step_het_comp = NO_VAL;
    step->step_id.step_id = NO_VAL;
    cond->db_flags = SLURMDB_JOB_FLAG_NOTSET;
    cond->flags =
        JOBCOND_FLAG_NO_STEP | JOBCOND_FLAG_NO_DEFAULT_USAGE | JOBCOND_FLAG_NO_WHOLE_HETJOB;
    cond->step_list = slurm_list_create(NULL);
    slurm_list_append(cond->step_list, step);
    cond->cluster_list = slurm_list_create(NULL);
    slurm_list_append(cond->cluster_list, (void *)work->cluster);
    return cond;
}

/* The job's latest row. Returns NULL after answering. */
static slurmdb_job_rec_t *find_row(struct work *work, void *connection)
{
    slurmdb_job_rec_t *row;
    errno = 0;
    struct xlist *rows = slurmdb_jobs_get(connection, condition(work, work->job->job, NO_VAL));
    if (!rows) {
        answer_error(work, "slurmdbd", errno ? errno : ESLURM_DB_CONNECTION);
        return NULL;
    }
    while ((row = slurm_list_pop(rows)))
        if (row->jobid == work->job->job)
            return row;
    if (work->is_running)
        answer(work, COMMENT_SAME, "slurmctld");
    else
        answer(work, work->is_known ? COMMENT_LATER : COMMENT_NOWHERE,
               "slurmdbd knows no such job");
    return NULL;
}

static void modify_row(struct work *work, void *connection, const slurmdb_job_rec_t *row,
                       char *text)
{
    slurmdb_job_rec_t *change = calloc(1, sizeof(*change));
    if (!change)
        _exit(1);
    /* A row is found by its job's number; of arrays that number would mean all tasks. */
    slurmdb_job_cond_t *cond = row->array_job_id && row->array_task_id != NO_VAL
                                   ? condition(work, row->array_job_id, row->array_task_id)
                                   : condition(work, row->jobid, NO_VAL);
    change->array_task_id = NO_VAL;
    change->derived_ec = NO_VAL;
    change->requid = (__typeof__(change->requid))-1;
    change->resvid = NO_VAL;
    change->steps = slurm_list_create(NULL);
    change->admin_comment = text;
    errno = 0;
    struct xlist *changed = slurmdb_job_modify(connection, cond, change);
    if (!changed || slurm_list_count(changed) == 0)
        answer_error(work, "slurmdbd", errno ? errno : SLURM_NO_CHANGE_IN_DATA);
    else if (slurmdb_connection_commit(connection, true) != SLURM_SUCCESS)
        answer_error(work, "slurmdbd", errno ? errno : ESLURM_DB_CONNECTION);
    else
        answer(work, COMMENT_WRITTEN, "slurmdbd");
}

/* When a job ends, slurmctld sends slurmdbd the AdminComment that it knows, which replaces what is
 * there. So a row is left alone between the job's end and that message. */
static void write_to_dbd(struct work *work)
{
    uint16_t flags = 0;
    char *text = NULL;
    void *connection = slurmdb_connection_get(&flags);
    slurmdb_job_rec_t *row = connection ? find_row(work, connection) : NULL;
    if (!connection)
        answer_error(work, "slurmdbd", errno ? errno : ESLURM_DB_CONNECTION);
    if (!row || began_later(work, row->start))
        return;
    if (row->start == 0 || (!work->is_running && work->is_known && row->end == 0)) {
        answer(work, COMMENT_LATER, "slurmdbd does not know yet that it ran");
        return;
    }
    answer(work, COMMENT_SAME, "slurmdbd");
    if (!needs_writing(work, row->admin_comment, &text))
        return;
    work->answer->done = true;
    if (work->dry)
        answer(work, COMMENT_WRITTEN, "slurmdbd");
    else
        modify_row(work, connection, row, text);
}

/* slurmctld */

static void update_job(struct work *work, char *text)
{
    job_desc_msg_t change;
    slurm_init_job_desc_msg(&change);
    change.job_id = work->job->job;
    change.admin_comment = text;
    work->answer->done = !work->has_dbd;
    if (work->dry || slurm_update_job(&change) == SLURM_SUCCESS)
        answer(work, COMMENT_WRITTEN, "slurmctld");
    else
        answer_error(work, "slurmctld", errno);
}

/* Returns the job as slurmctld knows it, NULL if it does not know it, or after answering (*failed).
 */
static const job_info_t *load_job(struct work *work, bool *failed)
{
    job_info_msg_t *jobs = NULL;
    *failed = false;
    if (slurm_load_job(&jobs, work->job->job, SHOW_ALL) != SLURM_SUCCESS) {
        if (errno != ESLURM_INVALID_JOB_ID) {
            answer_error(work, "slurmctld", errno);
            *failed = true;
        }
        return NULL;
    }
    for (uint32_t i = 0; i < jobs->record_count; i++)
        if (jobs->job_array[i].job_id == work->job->job)
            return &jobs->job_array[i];
    return NULL;
}

/* Returns true if all that was to be done is done and answered. */
static bool write_to_ctld(struct work *work)
{
    char *text = NULL;
    bool failed;
    const job_info_t *job = load_job(work, &failed);
    work->is_known = job != NULL;
    if (!job)
        return failed;
    uint32_t state = job->job_state & JOB_STATE_BASE;
    if (state == JOB_PENDING) {
        answer(work, COMMENT_LATER, "it waits to run again");
        return true;
    }
    work->is_running = state == JOB_RUNNING || state == JOB_SUSPENDED;
    if (began_later(work, job->start_time))
        return true;
    if (!work->is_running)
        return false;
    answer(work, COMMENT_SAME, "slurmctld");
    if (!needs_writing(work, job->admin_comment, &text))
        return work->answer->result != COMMENT_SAME;
    update_job(work, text);
    return true;
}

static void do_work(struct work *work)
{
    slurm_init(NULL);
    if (ask_conf(work) != 0 || (work->is_known && write_to_ctld(work)))
        return;
    if (work->has_dbd)
        write_to_dbd(work);
    else if (!work->is_running)
        answer(work, COMMENT_NOWHERE, "it has ended, and there is no slurmdbd");
}

/* The child */

static _Noreturn void be_child(struct work *work, int result, pid_t parent)
{
    sigset_t none;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (null < 0 || getppid() != parent)
        _exit(1);
    /* The library's own messages: what failed is in the answer. */
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    do_work(work);
    ssize_t done = write(result, work->answer, sizeof(*work->answer));
    _exit(done == (ssize_t)sizeof(*work->answer) ? 0 : 1);
}

/* Reads the child's answer. Returns 0, 1 when the time is over, -1 if it ended without one. */
static int hear(int fd, struct comment_answer *heard, int64_t deadline)
{
    size_t got = 0;
    while (got < sizeof(*heard)) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int64_t left = deadline - tccl_now_ms();
        if (left <= 0)
            return 1;
        if (poll(&ready, 1, (int)left) <= 0)
            continue;
        ssize_t more = read(fd, (char *)heard + got, sizeof(*heard) - got);
        if (more == 0 || (more < 0 && errno != EINTR))
            return -1;
        got += more > 0 ? (size_t)more : 0;
    }
    return 0;
}

void comment_write(const struct comment_job *job, const char *own, bool dry, int timeout_ms,
                   struct comment_answer *result)
{
    struct work work = {.job = job, .own = own, .dry = dry, .answer = result};
    pid_t parent = getpid(), child;
    int ends[2];
    memset(result, 0, sizeof(*result));
    if (pipe2(ends, O_CLOEXEC) != 0) {
        answer(&work, COMMENT_AWAY, "no process can be started: %s", strerror(errno));
        return;
    }
    child = fork();
    if (child == 0)
        be_child(&work, ends[1], parent);
    close(ends[1]);
    int late = child > 0 ? hear(ends[0], result, tccl_now_ms() + timeout_ms) : -1;
    close(ends[0]);
    if (child < 0) {
        answer(&work, COMMENT_AWAY, "no process can be started: %s", strerror(errno));
        return;
    }
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (late > 0)
        answer(&work, COMMENT_AWAY, "Slurm: no answer in %d s", timeout_ms / 1000);
    else if (late < 0)
        answer(&work, COMMENT_AWAY,
               "Slurm's library gave up: is slurm.conf where it looks for it?");
}
