/* jobs.c: questions to slurmctld about jobs. A program of Slurm's asks, not its library: the
 * library ends a process on some errors, waits as long as it likes, and changes with each release,
 * while squeue's -o doesn't. */
#include "tccld/jobs/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/command.h"
#include "tccld/main/metrics.h"

struct job_question {
    TAILQ_ENTRY(job_question) link;
    struct job *job;
    job_answer *answer;
    void *context;
    unsigned round; /* of the job's, when it was asked */
};

struct job {
    TAILQ_ENTRY(job) link;
    struct jobs *jobs;
    uint32_t id;
    bool asking, answering;
    unsigned round;   /* of answers so far */
    int64_t known_ms; /* 0: slurmctld has not said anything of it */
    struct tccl_step facts;
    TAILQ_HEAD(, job_question) questions; /* the oldest first */
};

TAILQ_HEAD(job_list, job);

struct jobs {
    struct daemon *daemon;
    struct threads *pool;
    struct job_list list; /* the oldest first */
    int count, waiting;
    int64_t pause_ms; /* until then nobody is asked */
    struct log_limit trouble;
};

/* One run of squeue. */
struct task {
    struct jobs *jobs;
    uint32_t job;
    int64_t deadline;
    char program[PATH_MAX];
    int status; /* of tccl_command_run */
    struct tccl_command_output output;
};

struct jobs *jobs_new(struct daemon *daemon, struct tccl_error *err)
{
    struct jobs *jobs = calloc(1, sizeof(*jobs));
    if (!jobs)
        return tccl_fail_null(err, "out of memory");
    jobs->daemon = daemon;
    TAILQ_INIT(&jobs->list);
    jobs->pool = threads_new(daemon->base, 1, JOBS_MOST, err);
    if (jobs->pool)
        return jobs;
    free(jobs);
    return NULL;
}

void jobs_forget(struct job_question *question)
{
    TAILQ_REMOVE(&question->job->questions, question, link);
    question->job->jobs->waiting--;
    free(question);
}

/* Those who ask again in their answer wait for another one. */
static void answer_all(struct job *job, const struct tccl_step *facts)
{
    struct job_question *question;
    job->answering = true;
    job->round++;
    while ((question = TAILQ_FIRST(&job->questions)) && question->round != job->round) {
        job_answer *answer = question->answer;
        void *context = question->context;
        jobs_forget(question);
        answer(context, facts);
    }
    job->answering = false;
}

static void drop(struct job *job)
{
    TAILQ_REMOVE(&job->jobs->list, job, link);
    job->jobs->count--;
    free(job);
}

void jobs_free(struct jobs *jobs)
{
    struct job *job;
    if (!jobs)
        return;
    jobs->pause_ms = INT64_MAX;
    TAILQ_FOREACH(job, &jobs->list, link)
    answer_all(job, NULL);
    if (threads_free(jobs->pool, 0) != 0)
        return; /* a thread uses it until the end of the process */
    while ((job = TAILQ_FIRST(&jobs->list)))
        drop(job);
    free(jobs);
}

static struct job *find(const struct jobs *jobs, uint32_t id)
{
    struct job *job;
    TAILQ_FOREACH_REVERSE(job, &jobs->list, job_list, link)
    if (job->id == id)
        return job;
    return NULL;
}

const struct tccl_step *jobs_known(const struct jobs *jobs, uint32_t id, int64_t age_ms)
{
    const struct job *job = find(jobs, id);
    bool known = job && job->known_ms && (!age_ms || tccl_now_ms() - job->known_ms <= age_ms);
    return known ? &job->facts : NULL;
}

/* In the pool's thread. */
static void ask(void *context)
{
    static const char *const without[] = {"SQUEUE_", "SLURM_CLUSTERS=", NULL};
    struct task *task = context;
    char id[16];
    snprintf(id, sizeof(id), "%u", task->job);
    const char *const argv[] = {task->program,    "--noheader", "--states=all",
                                "--jobs",         id,           "--format",
                                JOB_FACTS_FORMAT, NULL};
    task->status = tccl_now_ms() < task->deadline
                       ? tccl_command_run(argv, without, task->deadline, &task->output)
                       : TCCL_COMMAND_LATE;
}

static int read_answer(const struct task *task, struct tccl_step *facts, struct tccl_error *err)
{
    if (task->status == TCCL_COMMAND_NONE)
        return tccl_fail(err, "there is no program %.200s: see Squeue= in tccl.conf(5)",
                         task->program);
    if (task->status == TCCL_COMMAND_LATE)
        return tccl_fail(err, "squeue got no answer within %d ms", JOBS_ASK_MS);
    if (task->status != 0)
        return tccl_fail(err, "squeue: exit status %d: %.*s", task->status,
                         (int)strcspn(task->output.err, "\n"), task->output.err);
    return job_facts_read(task->output.out, task->job, facts, err);
}

static void answered(void *context)
{
    struct task *task = context;
    struct jobs *jobs = task->jobs;
    struct job *job = find(jobs, task->job);
    struct tccl_step facts;
    struct tccl_error err = {0};
    bool known = read_answer(task, &facts, &err) == 0;
    if (!known)
        log_limited(
            &jobs->trouble,
            "job %u: can't ask slurmctld for its partition, account and QOS: its records have "
            "those of its environment, which users can change: %s",
            task->job, err.text);
    if (task->status == TCCL_COMMAND_LATE && jobs->pause_ms != INT64_MAX)
        jobs->pause_ms = tccl_now_ms() + JOBS_PAUSE_MS;
    metrics_works(jobs->daemon->metrics, METRICS_SQUEUE, task->status == 0);
    job->asking = false;
    if (known) {
        job->facts = facts;
        job->known_ms = tccl_now_ms();
    }
    free(task);
    answer_all(job, known ? &facts : NULL);
}

/* Returns 0, or -1: it can't be asked. */
static int begin(struct job *job)
{
    struct jobs *jobs = job->jobs;
    struct task *task = malloc(sizeof(*task));
    if (!task)
        return -1;
    task->jobs = jobs;
    task->job = job->id;
    task->deadline = tccl_now_ms() + JOBS_ASK_MS;
    strcpy(task->program, jobs->daemon->conf->squeue);
    if (threads_submit(jobs->pool, ask, answered, task) != 0) {
        free(task);
        return -1;
    }
    job->asking = true;
    return 0;
}

/* The oldest that nobody waits for makes room. NULL: there is none, or no memory. */
static struct job *add(struct jobs *jobs, uint32_t id)
{
    struct job *old = TAILQ_FIRST(&jobs->list);
    while (jobs->count >= JOBS_MOST && old && (old->asking || old->answering))
        old = TAILQ_NEXT(old, link);
    if (jobs->count >= JOBS_MOST && !old)
        return NULL;
    if (jobs->count >= JOBS_MOST)
        drop(old);
    struct job *job = calloc(1, sizeof(*job));
    if (!job)
        return NULL;
    job->jobs = jobs;
    job->id = id;
    TAILQ_INIT(&job->questions);
    TAILQ_INSERT_TAIL(&jobs->list, job, link);
    jobs->count++;
    return job;
}

struct job_question *jobs_ask(struct jobs *jobs, uint32_t id, job_answer *answer, void *context)
{
    if (!jobs->daemon->conf->squeue[0] || jobs->waiting >= JOBS_WAITING ||
        tccl_now_ms() < jobs->pause_ms)
        return NULL;
    struct job *job = find(jobs, id);
    struct job_question *question = malloc(sizeof(*question));
    if (question && (job || (job = add(jobs, id))) && (job->asking || begin(job) == 0)) {
        *question = (struct job_question){
            .job = job, .answer = answer, .context = context, .round = job->round};
        TAILQ_INSERT_TAIL(&job->questions, question, link);
        jobs->waiting++;
        return question;
    }
    free(question);
    return NULL;
}
