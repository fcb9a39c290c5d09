/* step-fakes.h: all that a step in tccld talks to, counted and driven by a test: the clock, the
 * sockets, other nodes, the disk. Messages are as real ones, but for MERGE's classes, of which only
 * the range is left. Nothing real of these is linked. */
#pragma once

#include "base/clock.h"
#include "check.h"
#include "client/message.h"
#include "client/outcome.h"
#include "tccld/jobs/jobs.h"
#include "tccld/join/alongside.h"
#include "tccld/join/evidence.h"
#include "tccld/join/own.h"
#include "tccld/join/planfile.h"
#include "tccld/join/running.h"
#include "tccld/join/step.h"
#include "tccld/journal/journal.h"
#include "tccld/main/metrics.h"

/* Time stands still unless a test moves it. */
static int64_t fake_us = 1000000;

int64_t tccl_now_ns(void)
{
    return fake_us * 1000;
}
int64_t tccl_now_us(void)
{
    return fake_us;
}
int64_t tccl_now_ms(void)
{
    return fake_us / 1000;
}
int64_t tccl_wall_us(void)
{
    return fake_us;
}

/* The log: how many lines say that this is a bug. */
static int fake_bugs;

static void fake_log(const char *fmt, va_list args)
{
    char text[1024] = "";
    if (fmt)
        vsnprintf(text, sizeof(text), fmt, args);
    if (fmt && strstr(fmt, "a bug, please report")) /* texts from outside may say so, too */
        fake_bugs++;
    if (getenv("TCCL_VERBOSE"))
        fprintf(stderr, "%s\n", text);
}
void log_line(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fake_log(fmt, args);
    va_end(args);
}
void log_limited(struct log_limit *limit, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fake_log(fmt, args);
    va_end(args);
    limit->left_out = 0;
}

/* Connections, each with one question. */
struct connection {
    int holds, answers;
    bool closed, applied;
    bool dropped; /* without an answer */
    bool told;    /* a reason */
    char node[16];
};

struct connection *connection_hold(struct connection *connection)
{
    connection->holds++;
    return connection;
}
void connection_drop(struct connection *connection)
{
    CHECK(connection->holds-- > 0);
    connection->dropped = connection->answers == 0;
}
void connection_answer(struct connection *connection, json_t *message)
{
    const char *state = json_string_value(json_object_get(message, "state"));
    const char *path = json_string_value(json_object_get(message, "path"));
    connection->answers++;
    connection->told = json_object_get(message, "reason") != NULL;
    connection->applied = state && strcmp(state, "planned") == 0;
    CHECK(!connection->applied || connection->node[0] || (path && *path));
}
void connection_answer_ok(struct connection *connection)
{
    connection->answers++;
}
void connection_refuse_as(struct connection *connection, enum tccl_reason reason, const char *text)
{
    CHECK(*text && reason);
    connection->answers++;
}
void connection_refuse(struct connection *connection, const char *text)
{
    connection_refuse_as(connection, TCCL_REASON_OTHER, text);
}
bool connection_closed(const struct connection *connection)
{
    return connection->closed;
}
static bool fake_unseen; /* whose process it is */
pid_t connection_pid(const struct connection *connection)
{
    return fake_unseen ? 0 : getpid();
}
const char *connection_node(const struct connection *connection)
{
    return connection->node;
}

/* The slurmstepd here: how long it has been there; -1: it is not. */
static int64_t fake_stepd_ms = -1;

struct stepd_sockets *stepd_sockets_new(void)
{
    return malloc(1);
}
void stepd_sockets_free(struct stepd_sockets *sockets)
{
    free(sockets);
}
int64_t stepd_sockets_age(struct stepd_sockets *sockets, const char *node,
                          const struct tccl_step_key *key)
{
    CHECK(sockets && *node && key->job);
    return fake_stepd_ms;
}

/* Questions to other nodes, until a test answers them. */
enum { FAKE_LINKS = 256 };
struct link {
    void (*done)(void *context, json_t *answer, const struct tccl_error *err);
    void *context;
    bool probe, busy, here, connected;
    int64_t wait_ms;
    char reason[64]; /* of a MERGE */
};
static struct link *fake_links[FAKE_LINKS];
static int fake_n_links;

static struct link *fake_link(void (*done)(void *, json_t *, const struct tccl_error *),
                              void *context, const json_t *message)
{
    const char *reason = message ? json_string_value(json_object_get(message, "reason")) : NULL;
    bool probe = message && strcmp(tccl_message_type(message), "here") == 0;
    if (fake_n_links == FAKE_LINKS)
        return NULL;
    struct link *link = calloc(1, sizeof(*link));
    *link = (struct link){.done = done, .context = context, .probe = probe, .busy = !message};
    snprintf(link->reason, sizeof(link->reason), "%s", reason ? reason : "");
    return fake_links[fake_n_links++] = link;
}
struct link *link_ask(struct daemon *daemon, const char *node, json_t *message, int64_t deadline,
                      void (*done)(void *, json_t *, const struct tccl_error *), void *context)
{
    CHECK(daemon && *node && json_is_object(message) && deadline < INT64_MAX);
    return fake_link(done, context, message);
}
struct link *link_ask_busy(struct daemon *daemon, const char *node, int64_t deadline,
                           void (*done)(void *, json_t *, const struct tccl_error *), void *context)
{
    CHECK(daemon && *node && deadline < INT64_MAX);
    return fake_link(done, context, NULL);
}
void link_wait(struct link *link, int64_t ms)
{
    link->wait_ms = ms;
}
bool link_failed_here(const struct link *link)
{
    return link->here;
}
bool link_connected(const struct link *link)
{
    return link->connected;
}
void link_cancel(struct link *link)
{
    for (int i = 0; i < fake_n_links; i++)
        if (fake_links[i] == link) {
            fake_links[i] = fake_links[--fake_n_links];
            free(link);
            return;
        }
    CHECK(!"a link is cancelled that is not there");
}

/* Questions to slurmctld, until a test answers them. */
enum { FAKE_QUESTIONS = 512 };
struct job_question {
    job_answer *answer;
    void *context;
};
static struct job_question *fake_questions[FAKE_QUESTIONS];
static int fake_n_questions;
static bool fake_knows;             /* slurmctld has said */
static struct tccl_step fake_facts; /* this of every job */

const struct tccl_step *jobs_known(const struct jobs *jobs, uint32_t job, int64_t age_ms)
{
    fake_facts.key.job = job;
    return fake_knows ? &fake_facts : NULL;
}
struct job_question *jobs_ask(struct jobs *jobs, uint32_t job, job_answer *answer, void *context)
{
    if (fake_n_questions == FAKE_QUESTIONS)
        return NULL;
    struct job_question *question = malloc(sizeof(*question));
    *question = (struct job_question){.answer = answer, .context = context};
    return fake_questions[fake_n_questions++] = question;
}
void jobs_forget(struct job_question *question)
{
    for (int i = 0; i < fake_n_questions; i++)
        if (fake_questions[i] == question) {
            fake_questions[i] = fake_questions[--fake_n_questions];
            free(question);
            return;
        }
    CHECK(!"a question is forgotten that is not there");
}
/* Those that wait now are answered: known, or not. */
static void fake_answer_questions(bool knows)
{
    fake_knows = knows;
    for (int count = fake_n_questions; count > 0 && fake_n_questions > 0; count--) {
        struct job_question question = *fake_questions[0];
        jobs_forget(fake_questions[0]);
        question.answer(question.context, knows ? &fake_facts : NULL);
    }
}

/* Records, counters, the disk. */
static int fake_expected;                                 /* records that wait for slurmctld */
static int fake_put, fake_made, fake_metrics, fake_plans; /* records put, and made of steps */
static bool fake_disk_full;
static bool fake_strangers; /* messages come whose reasons have no class */
static const char fake_reason[] = "a node below has no profile"; /* of children */

void journal_put(struct journal *journal, json_t *record)
{
    const char *state = json_string_value(json_object_get(record, "state"));
    const char *reason = json_string_value(json_object_get(record, "reason"));
    bool again = state && reason && strcmp(state, "planned") == 0 && !strcmp(reason, fake_reason);
    fake_put++;
    fake_made += !again;
    json_decref(record);
}
void journal_expect(struct journal *journal, int change)
{
    fake_expected += change;
}
void metrics_join(struct metrics *metrics, enum tccl_mode mode)
{
}
void metrics_answer(struct metrics *metrics, enum tccl_state state, enum tccl_reason reason,
                    double ratio, int64_t rings, int64_t waited_us)
{
    CHECK(waited_us >= 0);
    CHECK(state != TCCL_STATE_FAILED ||
          (reason != TCCL_REASON_NONE && (fake_strangers || reason != TCCL_REASON_OTHER)));
    fake_metrics++;
}
void planfile_begin(struct tccl_line_writer *plan, char text[static TCCL_LINES_SIZE])
{
    tccl_lines_begin(plan, text, TCCL_LINES_SIZE, PLANFILE_NAME, PLANFILE_VERSION);
}
int planfile_write(const char *run_dir, const struct tccl_step_key *key, gid_t gid,
                   const char *record, struct tccl_line_writer *plan, struct monitor *monitor,
                   char path[static PATH_MAX], struct tccl_error *err)
{
    CHECK(*record);
    CHECK_INT(tccl_lines_end(plan), 0);
    if (fake_disk_full)
        return tccl_fail(err, "no space left");
    fake_plans++;
    snprintf(path, PATH_MAX, "%s/%u", run_dir, key->job);
    return 0;
}
void planfile_take_back(const char *run_dir, const struct tccl_step_key *key,
                        struct monitor *monitor)
{
}
void planfile_remove(const char *run_dir, const struct tccl_step_key *key, struct monitor *monitor)
{
}
void planfile_link(const char *run_dir, const struct tccl_step_key *key)
{
}

/* The records of this node's steps: one for all, and that of the job script, if there is one. */
static struct running fake_running; /* without any */
static struct running_step fake_record, fake_script;
static bool fake_has_script;

struct running_step *running_begin(struct running *running, const struct tccl_step *join,
                                   const char *stepd)
{
    CHECK(join != NULL);
    return &fake_record;
}
struct running_step *running_find(const struct running *running, const struct tccl_step_key *key)
{
    fake_record.key = *key;
    return &fake_record;
}
struct running_step *running_planned(const struct running *running, const struct tccl_step_key *key)
{
    return NULL;
}
struct running_step *running_script(const struct running *running, const struct tccl_step_key *key)
{
    return fake_has_script ? &fake_script : NULL;
}
bool running_is_script(const struct running_step *step)
{
    return step == &fake_script;
}
void running_end(struct running *running, struct running_step *step)
{
}
char *running_text(const struct running_step *step)
{
    return strdup("{}");
}
void running_save_soon(struct running *running, struct running_step *step)
{
}
void built_end(struct running *running, struct running_step *step, bool silent)
{
}
void built_drop(struct running_step *step)
{
}
void agree_drop(struct running *running, const struct running_step *step)
{
}

/* This node, and ranges of nodes. */
static struct shared_class fake_class;
static bool fake_no_profile;
static enum tccl_state fake_solution;

/* slurmd's list is known at once, unless the test says when. */
static unsigned fake_look;

unsigned slurm_gpus_look(struct slurm_gpus *gpus)
{
    return fake_look;
}
struct shared_class *own_class(struct own *own, const struct tccl_conf *conf,
                               const struct slurm_gpus *slurm, const int *gres, int n_gres,
                               enum tccl_view view, struct tccl_error *err)
{
    CHECK(gres != NULL);
    if (fake_no_profile || n_gres == 0) { /* a JOIN from outside may have none */
        tccl_fail_as(err, TCCL_REASON_NO_PROFILE, n_gres ? "no profile" : "no GPU in this step");
        return NULL;
    }
    fake_class.holders++;
    return &fake_class;
}
const struct tccl_machine *own_machine(const struct own *own)
{
    return NULL;
}
/* Nobody else runs here. */
void alongside_plan(struct running *running, struct running_step *step,
                    const struct tccl_outcome *outcome, const struct tccl_step *join,
                    const struct tccl_node_class *class)
{
}
void alongside_began(struct running *running UNUSED, const struct running_step *step UNUSED)
{
}

void alongside_warn(struct running *running, const struct running_step *step)
{
}
void alongside_describe(struct running *running, const struct tccl_step *join,
                        const struct tccl_node_class *class, struct tccl_outcome *outcome)
{
}
struct shared_class *alongside_see(struct running *running, const struct tccl_step_key *key,
                                   struct shared_class *class, bool closed, enum tccl_view view)
{
    return class;
}
enum tccl_view running_view_of(const struct running *running, const struct tccl_step *join)
{
    return TCCL_VIEW_WRITES;
}
/* Why Slurm has no plugin here; NULL: it has. */
static const char *fake_missing;

const char *presence_missing(struct daemon *daemon)
{
    CHECK(daemon != NULL);
    return fake_missing;
}
void shared_class_drop(struct shared_class *shared)
{
    if (shared)
        CHECK(shared->holders-- > 0);
}
struct merge *merge_new(int first)
{
    struct merge *merge = calloc(1, sizeof(*merge));
    merge->first = merge->end = first;
    return merge;
}
void merge_free(struct merge *merge)
{
    free(merge);
}
int merge_add(struct merge *merge, struct shared_class *class, int count, struct tccl_error *err)
{
    CHECK(class == &fake_class);
    merge->end += count;
    return 0;
}
int merge_append(struct merge *merge, const struct merge *next, struct tccl_error *err)
{
    CHECK_INT(next->first, merge->end);
    merge->end = next->end;
    return 0;
}
json_t *merge_to_json(const struct merge *merge, struct tccl_error *err)
{
    return json_pack("{s:[ii]}", "range", merge->first, merge->end);
}
struct merge *merge_from_json(const json_t *json, int first, int end, struct tccl_error *err)
{
    if (json_object_get(json, "bad")) {
        tccl_fail(err, "classes: they are bad");
        return NULL;
    }
    struct merge *merge = merge_new(first);
    merge->end = end;
    return merge;
}
long merge_gpus(const struct merge *merge)
{
    return merge->end - merge->first;
}

/* What comes of a step. */
static int fake_most_rings;
void outcome_solve(struct tccl_outcome *outcome, const struct merge *merge,
                   const struct tccl_step *join, int most_rings)
{
    fake_most_rings = most_rings;
    CHECK_INT(merge->first, 0); /* never without all nodes */
    CHECK_INT(merge->end, join->n_nodes);
    outcome->state = fake_solution;
    outcome->n_choices = join->n_nodes;
    outcome->choices = calloc((size_t)join->n_nodes, sizeof(*outcome->choices));
    if (fake_solution == TCCL_STATE_LEFT)
        strcpy(outcome->reason, "NCCL's own ring is as fast");
}
void evidence_apply(struct daemon *daemon, struct tccl_outcome *outcome,
                    const struct tccl_step *join)
{
    (void)daemon, (void)outcome, (void)join;
}
json_t *outcome_to_json(const struct tccl_outcome *outcome, const struct tccl_step_key *key,
                        int first, int end)
{
    return tccl_plan_to_json(outcome, key, first, end);
}
int outcome_plan(const struct tccl_outcome *outcome, const struct tccl_step *join,
                 const struct tccl_node_class *class, const struct tccl_machine *machine,
                 const char *socket, struct tccl_line_writer *plan, char **ring,
                 struct tccl_error *err)
{
    tccl_line_put(plan, "job", "%u", join->key.job);
    CHECK_INT(outcome->state, TCCL_STATE_PLANNED);
    *ring = strdup("ring");
    return 0;
}
