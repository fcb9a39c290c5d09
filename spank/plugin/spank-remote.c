/* spank-remote.c: the plugin in slurmstepd: sends JOIN, waits for the plan, sets variables. */
#include "plugin/spank-parts.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <slurm/slurm.h>

#include "base/clock.h"
#include "base/lines.h"
#include "client/client.h"
#include "client/frame.h"
#include "client/outcome.h"
#include "client/policy.h"
#include "client/step-fields.h"
#include "plugin/plugin.h"

enum {
    DEPART_MS = 200,       /* for messages without an answer: a record, the step's end */
    SKIP_MS = 10,          /* for a tccld that has hung: an answer, too */
    LOOK_MS = 100,         /* while waiting: is the step being cancelled? */
    ALIVE_MS = 1000,       /* and does this node's tccld still answer? */
    ENDED_MS = 500,        /* for slurmd to bring the signal, once another node ends the step */
    FORESEE_MS = 1000,     /* to look for NCCL: less than what other nodes take for silence */
    UNHEARD_MS = 1000,     /* for a crashed tccld to be restarted */
    UNHEARD_PAUSE_MS = 50, /* between two retries */
};

_Static_assert(TCCL_STEP_INTERACTIVE == SLURM_INTERACTIVE_STEP &&
                   TCCL_STEP_BATCH == SLURM_BATCH_SCRIPT && TCCL_STEP_EXTERN == SLURM_EXTERN_CONT,
               "they are Slurm's");

/* Of slurmstepd, which has it from slurmd; exported, though slurm.h doesn't declare it. */
extern slurm_conf_t slurm_conf __attribute__((weak));

/* This slurmstepd's step. */
static struct {
    struct tccl_conf conf;
    struct tccl_step step;
    struct step_place place;
    struct step_facts facts;
    struct policy_rule rule; /* of no effect unless tccl.conf could be read */
    struct policy_choice choice;
    bool by_claims;                    /* the policy may be another one than it seems */
    int environment;                   /* mode of TCCL=, or POLICY_NOT_GIVEN */
    struct tccl_error bad_environment; /* why TCCL= is ignored */
    struct tccl_outcome plan;          /* set in the step's environment if active */
    int64_t began, deadline;           /* it waits from, to: tccl_now_ms; 0: it doesn't */
    int timeout_ms;
    int fd;         /* connection to tccld while waiting for the plan, else -1 */
    pid_t opener;   /* of fd */
    int printed;    /* printed_open, if this step may print something, else -1 */
    bool active;    /* variables are set for the step */
    bool joined;    /* tccld knows of this step */
    bool silent;    /* and nothing else was wanted of it */
    bool unheard;   /* and has not answered: other nodes may have a ring */
    bool cancelled; /* or suspended, while it waited: who sent the signal ends the step */
    struct signal_watch watch;
    char hides[TASK_GPUS_TEXT]; /* the option by which tasks see only their own GPUs, or "" */
    bool script;                /* a job script that may start mpirun on several nodes */
    bool pyxis;                 /* pyxis runs the tasks in a container */
    const char *shim;           /* first in LD_PRELOAD, or NULL */
} remote = {
    .fd = -1, .printed = -1, .rule = {.traffic_class = {.tc = TCCL_NOT_SET, .sl = TCCL_NOT_SET}}};

static __attribute__((format(printf, 2, 3))) void fall_back(enum tccl_reason cause,
                                                            const char *format, ...)
{
    va_list arguments;
    tccl_outcome_clear(&remote.plan);
    remote.plan.state = TCCL_STATE_FAILED;
    remote.active = true;
    va_start(arguments, format);
    vsnprintf(remote.plan.reason, sizeof(remote.plan.reason), format, arguments);
    va_end(arguments);
    remote.plan.cause = cause;
    notice_clean(remote.plan.reason);
}

static const char *node_name(void)
{
    return remote.place.name[0] ? remote.place.name : "a node";
}

static struct step_items read_items(spank_t spank)
{
    char **argv = NULL;
    int argc = 0;
    struct step_items items = {.now = (uint64_t)tccl_wall_us() / 1000, .array_task = UINT32_MAX};
    spank_get_item(spank, S_JOB_ID, &items.job);
    spank_get_item(spank, S_JOB_STEPID, &items.step);
    spank_get_item(spank, S_JOB_NNODES, &items.n_nodes);
    spank_get_item(spank, S_JOB_NODEID, &items.node);
    spank_get_item(spank, S_SLURM_RESTART_COUNT, &items.restart);
    spank_get_item(spank, S_JOB_ARRAY_ID, &items.array_job);
    spank_get_item(spank, S_JOB_ARRAY_TASK_ID, &items.array_task);
    spank_get_item(spank, S_JOB_UID, &items.uid);
    spank_get_item(spank, S_JOB_GID, &items.gid);
    if (spank_get_item(spank, S_JOB_ARGV, &argc, &argv) == ESPANK_SUCCESS && argc > 0 && argv)
        items.program = argv[0];
    return items;
}

/* Has the step all cores that its job has here? Then no other one of it can begin beside it. */
static bool has_all_cores(spank_t spank)
{
    char *job = NULL, *step = NULL;
    return spank_get_item(spank, S_JOB_ALLOC_CORES, &job) == ESPANK_SUCCESS &&
           spank_get_item(spank, S_STEP_ALLOC_CORES, &step) == ESPANK_SUCCESS && job && step &&
           *job && strcmp(job, step) == 0;
}

static char **job_environment(spank_t spank)
{
    char **env = NULL;
    return spank_get_item(spank, S_JOB_ENV, &env) == ESPANK_SUCCESS ? env : NULL;
}

static void apply_edits(spank_t spank, struct job_env_edits *edits)
{
    for (int i = 0; i < edits->count; i++)
        if (edits->list[i].value)
            spank_setenv(spank, edits->list[i].name, edits->list[i].value, 1);
        else
            spank_unsetenv(spank, edits->list[i].name);
    job_env_edits_clear(edits);
}

/* Removes the variables that a policy set for an outer step. */
static void forget_environment(spank_t spank)
{
    char *names = NULL, *name;
    if (policy_env_inherited(job_environment(spank), &names) != 0)
        slurm_error("tccl: out of memory: variables of a policy may not have been removed");
    for (char *rest = names; (name = strsep(&rest, ";"));)
        spank_unsetenv(spank, name);
    if (job_env_get(job_environment(spank), POLICY_ENV_LIST))
        spank_unsetenv(spank, POLICY_ENV_LIST);
    free(names);
}

/* Sets TrafficClass= where the ranks, or those of an mpirun that it starts, use the network, and
 * Environment= where there is a ring. */
static void set_environment(spank_t spank)
{
    /* The first node's rule, so that all nodes have the same variables; where no plan says which,
     * this node's. */
    const char *name = remote.plan.policy;
    const struct tccl_policy *policy = name[0]       ? policy_named(&remote.conf, name)
                                       : remote.shim ? &remote.conf.policy
                                                     : NULL;
    struct policy_rule rule = policy ? policy_rule_of(&remote.conf, policy) : remote.rule;
    char *list = NULL, *item;
    bool network = remote.step.n_nodes > 1 || remote.script;
    bool ring = remote.shim && remote.plan.state == TCCL_STATE_PLANNED;
    if (policy_env_choose(job_environment(spank), &rule, network, ring, &list) != 0)
        slurm_error(
            "tccl: out of memory: Environment= and TrafficClass= of the policy are not set");
    if (list)
        spank_setenv(spank, POLICY_ENV_LIST, list, 1);
    for (char *rest = list; (item = strsep(&rest, ";"));) {
        char *equals = strchr(item, '=');
        *equals = '\0';
        spank_setenv(spank, item, equals + 1, 1);
    }
    free(list);
}

static void forget_inherited(spank_t spank, const char *shim)
{
    forget_environment(spank);
    struct job_env_edits edits = {.count = 0};
    if (job_env_forget(job_environment(spank), shim, &edits) != 0)
        slurm_error("tccl: out of memory: variables of an outer step may not have been removed");
    apply_edits(spank, &edits);
}

/* The mode in TCCL= of the job's environment, unless --tccl overrides it. */
static int environment_mode(char *const *env)
{
    if (option_mode() != POLICY_NOT_GIVEN)
        return POLICY_NOT_GIVEN;
    int mode = option_environment(job_env_get(env, "TCCL"), job_env_get(env, TCCL_FORWARDED),
                                  &remote.bad_environment);
    notice_clean(remote.bad_environment.text);
    return mode;
}

/* A connection to a tccld that answers within so many milliseconds, or before the step's end of
 * waiting; -1 with err: it is not there; -2: it gives no answer; -3 with err: but an error. */
static int reach_tccld(int patience, struct tccl_error *err)
{
    int left = tccl_left_ms(remote.deadline);
    int64_t deadline = tccl_now_ms() + (patience < left ? patience : left);
    int fd = tccl_frame_connect(remote.conf.socket, deadline, err);
    if (fd < 0)
        return errno == ETIMEDOUT ? -2 : -1;
    int late = tccl_client_alive(fd, tccl_left_ms(deadline), err);
    if (late == 0)
        return fd;
    close(fd);
    return late > 0 ? -2 : -3;
}

/* Sends a JOIN on the connection, which is closed on an error. reason: why this node cannot take
 * part, or NULL. Returns the connection, or -1 with err. */
static int send_join(int fd, enum tccl_reason cause, const char *reason, int timeout_ms,
                     struct tccl_error *err)
{
    struct tccl_step join = remote.step; /* borrows the node list */
    char *name = remote.place.name;
    int64_t deadline = tccl_now_ms() + timeout_ms;
    if (remote.place.spans) { /* one node records the whole component */
        join.node = 0;
        join.n_nodes = 1;
        join.nodes = &name;
    }
    join.mode = remote.choice.mode;
    join.timeout_ms = timeout_ms;
    int64_t waited = remote.began ? tccl_now_ms() - remote.began : 0; /* suspended, too */
    join.waited_ms = waited < TCCL_MAX_TIMEOUT_MS ? (int)waited : TCCL_MAX_TIMEOUT_MS;
    join.by_claims = remote.by_claims;
    join.min_nodes = remote.rule.min_nodes;
    join.min_gpus = remote.rule.min_gpus;
    join.min_gain = remote.rule.min_gain / 1000.0;
    bool wanted = remote.choice.asked && remote.choice.mode >= TCCL_MODE_ON;
    join.trial = wanted ? 0 : remote.rule.trial;
    join.max_rings = remote.rule.max_rings;
    snprintf(join.policy, sizeof(join.policy), "%s", remote.rule.name);
    join.cause = cause;
    snprintf(join.reason, sizeof(join.reason), "%s", reason ? reason : "");
    if (tccl_client_join(fd, &join, tccl_left_ms(deadline), err) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Sends a JOIN without waiting for the answer: for the record, and so that other nodes do not wait
 * for this one. Returns whether tccld got it. */
static bool tell_tccld(enum tccl_reason cause, const char *reason)
{
    bool hung = hung_stamp_age(remote.conf.run_dir, tccl_now_ms()) >= 0;
    int64_t deadline = tccl_now_ms() + (hung ? SKIP_MS : DEPART_MS);
    int fd = tccl_frame_connect(remote.conf.socket, deadline, NULL);
    if (fd < 0 || (fd = send_join(fd, cause, reason, tccl_left_ms(deadline), NULL)) < 0)
        return false;
    close(fd);
    remote.joined = !hung;
    return true;
}

/* Nothing is wanted: but tccld knows what runs here, so that others get their rings beside it. */
static void tell_silently(void)
{
    enum tccl_mode mode = remote.choice.mode;
    enum tccl_launch launch = remote.step.launch;
    if (!remote.place.placed || remote.joined)
        return;
    remote.choice.mode = TCCL_MODE_OFF;
    remote.step.silent = true;
    remote.step.launch = TCCL_LAUNCH_TASKS;
    remote.silent = tell_tccld(TCCL_REASON_NONE, NULL);
    remote.step.launch = launch;
    remote.step.silent = false;
    remote.choice.mode = mode;
}

/* A connection to a tccld that answers; -1 with err. One that hung is given a moment only, for a
 * minute. */
static int find_tccld(struct tccl_error *err)
{
    int64_t age = hung_stamp_age(remote.conf.run_dir, tccl_now_ms());
    int all = tccl_left_ms(remote.deadline), patience = remote.conf.alive_timeout_ms;
    if (patience > all)
        patience = all;
    int fd = reach_tccld(age < 0 ? patience : SKIP_MS, err);
    if (fd >= 0 && age >= 0)
        hung_stamp_remove(remote.conf.run_dir);
    if (fd != -2)
        return fd < 0 ? -1 : fd;
    *err = (struct tccl_error){""};
    if (age >= 0)
        return tccl_fail_as(
            err, TCCL_REASON_NO_ANSWER,
            "its tccld hung less than a minute ago: not asked until a minute is over");
    hung_stamp_put(remote.conf.run_dir, tccl_now_ms());
    return tccl_fail_as(
        err, TCCL_REASON_NO_ANSWER,
        "tccld hangs: no answer within %d ms; steps here don't wait for it for %d s", patience,
        HUNG_MS / 1000);
}

/* The first node looks, which prints the line. A job script may be any program by the time that it
 * starts one. */
static void foresee_nccl(spank_t spank)
{
    struct nccl_task task = {.env = job_environment(spank)};
    const char *bundle = job_env_get(task.env, "SLURM_CONTAINER");
    gid_t *groups = NULL;
    struct step_items items = read_items(spank);
    if (!remote.place.first || step_kind(items.step) != STEP_TASKS || remote.pyxis ||
        (bundle && *bundle) ||
        spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &groups, &task.n_groups) != ESPANK_SUCCESS)
        return;
    task.program = items.program;
    task.uid = items.uid;
    task.gid = items.gid;
    task.groups = groups;
    int ms = remote.conf.alive_timeout_ms;
    nccl_foresee(&task, ms < FORESEE_MS ? ms : FORESEE_MS, remote.step.foreseen,
                 sizeof(remote.step.foreseen));
}

static void join_ring(spank_t spank)
{
    struct tccl_error err = {""};
    const struct policy_rule *rule = &remote.rule;
    remote.timeout_ms = rule->timeout_ms;
    if (remote.choice.mode == TCCL_MODE_REQUIRE)
        remote.timeout_ms = rule->require_timeout_ms;
    else if (remote.choice.mode == TCCL_MODE_AUTO && rule->auto_timeout_ms < rule->timeout_ms)
        remote.timeout_ms = rule->auto_timeout_ms;
    remote.began = tccl_now_ms();
    remote.deadline = remote.began + remote.timeout_ms;
    signal_watch_begin(&remote.watch, remote.place.name, remote.step.key.job, remote.step.key.step);
    foresee_nccl(spank);
    remote.fd = find_tccld(&err);
    if (remote.fd >= 0)
        remote.fd =
            send_join(remote.fd, TCCL_REASON_NONE, NULL, tccl_left_ms(remote.deadline), &err);
    remote.opener = getpid();
    remote.active = true;
    remote.joined = remote.fd >= 0;
    if (remote.fd >= 0)
        return;
    tccl_fail_because(&err, TCCL_REASON_NO_DAEMON);
    fall_back(err.reason, "%s: %s", node_name(), err.text);
    tell_tccld(err.reason, err.text); /* for the record, if it hangs and goes on later */
}

static void tell_failure(void)
{
    if (remote.place.placed || remote.place.speaks)
        tell_tccld(remote.plan.cause, remote.plan.reason);
}

static void fall_back_on_step(enum tccl_reason cause, const char *reason)
{
    if (remote.place.spans)
        fall_back(cause, "%s", reason);
    else
        fall_back(cause, "%s: %s", node_name(), reason);
    tell_failure();
}

/* The policy on this node excludes a ring. Other nodes may have other GPUs, and so another policy:
 * tell them, so that they do not wait for this node. */
static void warn_others(void)
{
    struct policy_rule own = remote.rule;
    struct policy_choice choice = remote.choice;
    char reason[64 + TCCL_POLICY_NAME];
    if (remote.place.placed &&
        policy_others_want(&remote.conf, &remote.facts.facts, option_mode(), remote.environment,
                           TCCL_MODE_AUTO, &remote.rule, &remote.choice)) {
        snprintf(reason, sizeof(reason), "policy%s%s%s: no ring with this node's GPUs",
                 own.name[0] ? " '" : "", own.name, own.name[0] ? "'" : "");
        tell_tccld(TCCL_REASON_POLICY, reason);
    }
    remote.rule = own;
    remote.choice = choice;
}

/* A job script may start mpirun, whose daemons are a step on the other nodes; then this node takes
 * part with the script's GPUs, and the ranks here have the script's environment. So tccld is told
 * of the script even where that has no ring of its own. */
static void begin_script(void)
{
    struct tccl_step *step = &remote.step;
    if (step->launch != TCCL_LAUNCH_SCRIPT || !remote.place.has_gpus || !step->n_gres ||
        !policy_wants(&remote.rule, &remote.choice, remote.place.job_nodes, step->n_gres))
        return;
    remote.script = true;
    if (remote.joined)
        return;
    step->launch = TCCL_LAUNCH_SCRIPT_ONLY;
    remote.joined = tell_tccld(TCCL_REASON_NONE, NULL);
    step->launch = TCCL_LAUNCH_SCRIPT;
}

/* The mode is known and tccl.conf is read: decides whether to join, without other nodes. */
static void begin_step(spank_t spank, const struct tccl_error *step_error)
{
    const struct tccl_step *step = &remote.step;
    const struct step_place *place = &remote.place;
    enum tccl_mode mode = remote.choice.mode;
    remote.by_claims = policy_by_claims(&remote.conf, &remote.facts.facts, option_mode(),
                                        remote.environment, step->n_gres);
    if (!place->has_gpus) {
        if (remote.choice.asked && mode >= TCCL_MODE_ON)
            fall_back(TCCL_REASON_NO_GPU, "no GPUs in this step");
        if (remote.active && mode == TCCL_MODE_REQUIRE) /* srun asks whether a plugin has spoken */
            tell_silently();
    } else if (remote.choice.forbidden) {
        /* The user requests a ring that the site forbids. */
        fall_back(TCCL_REASON_POLICY, "policy%s%s%s forbids rings", remote.rule.name[0] ? " '" : "",
                  remote.rule.name, remote.rule.name[0] ? "'" : "");
        tell_failure();
    } else if (mode == TCCL_MODE_OFF && remote.choice.asked) {
        if (place->placed)
            tell_tccld(TCCL_REASON_NONE, NULL);
    } else if (!policy_wants(&remote.rule, &remote.choice, step->n_nodes, step->n_gres)) {
        warn_others();
        if (step->n_gres)
            tell_silently();
    } else if (step_error->text[0]) {
        fall_back_on_step(step_error->reason, step_error->text);
    } else if (step->n_nodes == 1 && step->n_gres == 1) {
        remote.plan.state = TCCL_STATE_LEFT;
        tccl_outcome_say(&remote.plan, TCCL_REASON_NONE, "the step has one GPU");
        remote.active = true;
        tell_tccld(TCCL_REASON_NONE, NULL);
    } else if (remote.hides[0] && mode == TCCL_MODE_REQUIRE) {
        /* Each task sees only its own GPUs: whether NCCL can build the ring depends on its version.
         */
        char reason[TCCL_OUTCOME_REASON + 1];
        snprintf(
            reason, sizeof(reason),
            "with %.100s each task sees only its own GPUs (ConstrainDevices), and not every NCCL "
            "can build a ring then: use --gpus-per-node=%d without it",
            remote.hides, remote.step.n_gres);
        fall_back_on_step(TCCL_REASON_OWN_GPUS, reason);
    } else {
        join_ring(spank);
    }
}

void remote_init(spank_t spank)
{
    remote.pyxis = preload_pyxis(job_environment(spank));
}

static void set_no_array(spank_t spank, const struct step_items *items, char *const *env)
{
    char own_job[16];
    if (!step_info_needs_no_array(items, env))
        return;
    snprintf(own_job, sizeof(own_job), "%u", items->job);
    spank_setenv(spank, STEP_NO_ARRAY, own_job, 1);
}

/* May this step have a ring, or be told why it has none? Of the other ones, which may be most of a
 * cluster's, neither tccl.conf nor the nodes are read. LD_PRELOAD may have the shim in it, of an
 * outer step, which tccl.conf names. */
static bool may_want_ring(char *const *env, enum step_kind kind)
{
    const char *const names[] = {kind == STEP_TASKS ? "SLURM_STEP_GPUS" : "SLURM_JOB_GPUS",
                                 "SLURM_SHARDS_ON_NODE",
                                 "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
                                 "TCCL",
                                 TCCL_FORWARDED,
                                 "LD_PRELOAD"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const char *value = job_env_get(env, names[i]);
        if (value && *value)
            return true;
    }
    return option_mode() != POLICY_NOT_GIVEN;
}

int remote_init_post_opt(spank_t spank, int argc, char **argv)
{
    struct tccl_error step_error = {""}, conf_error = {""};
    struct step_items items = read_items(spank);
    enum step_kind kind = step_kind(items.step);
    if (kind == STEP_CONTAINER)
        return 0;
    char **env = job_environment(spank);
    if (!may_want_ring(env, kind)) {
        set_no_array(spank, &items, env);
        forget_inherited(spank, NULL);
        return 0;
    }
    int step_rc = step_info_read(&items, env, &remote.step, &remote.place, &step_error);
    if (step_rc != 0)
        tccl_fail_because(&step_error, TCCL_REASON_NODE_LISTS);
    if (step_rc == 0 && kind == STEP_TASKS &&
        !task_gpus_hidden(env, remote.step.n_gres, getenv("SLURM_CONF"), remote.hides))
        remote.hides[0] = '\0';
    remote.step.hidden = remote.hides[0] != '\0';
    remote.step.whole = has_all_cores(spank);
    if (step_rc == 0 && task_gpus_check(env, &step_error) != 0) {
        step_rc = tccl_fail_because(&step_error, TCCL_REASON_SHARED_GPU);
        remote.place.has_gpus = true; /* parts of some, of which Slurm may give no numbers */
    }
    const char *name = remote.place.name[0] ? remote.place.name : NULL;
    bool configured = plugin_conf_read(argc, argv, name, &remote.conf, &conf_error) == 0;
    if (configured) {
        preload_simplify(&remote.conf, PRELOAD_LOADERS);
        /* Cluster= of conf, else ClusterName as slurmd has read it; "" where neither is known.
         * Never what the environment says, which is the user's. */
        const char *own = remote.conf.cluster,
                   *slurms = &slurm_conf ? slurm_conf.cluster_name : NULL;
        snprintf(remote.step.key.cluster, sizeof(remote.step.key.cluster), "%s",
                 *own     ? own
                 : slurms ? slurms
                          : "");
    }
    remote.environment = environment_mode(env);
    set_no_array(spank, &items, env);
    forget_inherited(spank, configured ? remote.conf.shim : NULL);
    struct tccl_error facts_error = {""};
    if (configured) {
        if (step_facts_read(&remote.conf, &remote.step, &remote.facts, &facts_error) != 0)
            slurm_verbose("tccl: GpuTypes= of policies match nothing: %s", facts_error.text);
        remote.rule = policy_find(&remote.conf, &remote.facts.facts);
    }
    remote.choice =
        policy_choose(configured ? &remote.rule : NULL, option_mode(), remote.environment);
    bool given = configured && remote.choice.mode != TCCL_MODE_OFF; /* also without a ring */
    policy_env_class(job_environment(spank), given && remote.step.n_nodes > 1 ? &remote.rule : NULL,
                     remote.step.traffic_class);
    if (!configured)
        slurm_error("tccl: %s", conf_error.text);
    else if (remote.conf.passed_over)
        slurm_verbose("tccl: %s:%d: an unknown key is passed over: see tccl-check",
                      remote.conf.path, remote.conf.passed_over);
    if (configured && kind != STEP_SHELL)
        begin_step(spank, &step_error);
    if (configured && step_rc == 0)
        begin_script();
    if (!configured && kind != STEP_SHELL && remote.choice.mode != TCCL_MODE_OFF)
        fall_back(TCCL_REASON_CONFIGURATION, "%s: %s", node_name(), conf_error.text);
    if (remote.active && !*remote.watch.socket)
        signal_watch_begin(&remote.watch, remote.place.name, remote.step.key.job,
                           remote.step.key.step);
    /* What the job's steps have printed here, if this one may print something: it has to be opened
     * as root. With TCCL_DEBUG each step prints. */
    const char *debug = job_env_get(job_environment(spank), "TCCL_DEBUG");
    bool prints = remote.active && remote.choice.mode >= TCCL_MODE_ON;
    if (configured && remote.place.first && (prints || remote.bad_environment.text[0]) &&
        !(debug && *debug))
        remote.printed = printed_open(remote.conf.run_dir);
    return 0;
}

/* Until there is something to read on the connection to tccld. False: there will be nothing, why.
 */
static bool wait_for_tccld(void)
{
    struct pollfd pollfd = {.fd = remote.fd, .events = POLLIN};
    int64_t asked = tccl_now_ms();
    for (int left; (left = tccl_left_ms(remote.deadline)) > 0;) {
        if (poll(&pollfd, 1, left < LOOK_MS ? left : LOOK_MS) > 0)
            return true;
        if (signal_watch_look(&remote.watch, tccl_now_ms())) {
            remote.cancelled = true;
            remote.unheard = false;
            fall_back(TCCL_REASON_CANCELLED,
                      "%s: the step was sent a signal while it waited for its plan (cancelled or "
                      "suspended)",
                      node_name());
            return false;
        }
        bool whole = left >= remote.conf.alive_timeout_ms; /* else the end of the wait says it */
        bool asks = tccl_now_ms() >= asked + ALIVE_MS;
        int fd = whole && asks ? reach_tccld(remote.conf.alive_timeout_ms, NULL) : -3;
        if (fd >= 0)
            close(fd);
        else if (fd != -3) { /* an error is an answer */
            if (poll(&pollfd, 1, 0) > 0)
                return true; /* the plan has come meanwhile */
            fall_back(TCCL_REASON_NO_ANSWER, "%s: tccld hangs: no answer within %d ms", node_name(),
                      remote.conf.alive_timeout_ms);
            return false;
        }
        if (asks)
            asked = tccl_now_ms();
    }
    fall_back(TCCL_REASON_NO_ANSWER, "%s: tccld gave no answer within %d ms", node_name(),
              remote.timeout_ms);
    return false;
}

/* Under ContainSpank slurm_spank_user_init runs in a process that has slurmstepd's memory, but
 * descriptors of its own: slurmstepd closes its one later (remote_task_post_fork). */
static void hang_up(void)
{
    close(remote.fd);
    if (getpid() == remote.opener)
        remote.fd = -1;
}

/* If the plan has a ring but there is no shim, TCCL_REASON says why. A plan without a ring is one
 * for the step's groups. */
static void choose_shim(char *const *env)
{
    const char *why;
    bool ring = remote.plan.state == TCCL_STATE_PLANNED;
    if (!ring && !remote.plan.path)
        return;
    remote.shim = preload_choose(&remote.conf, env, remote.pyxis, &why);
    if (remote.shim || !ring)
        return;
    slurm_verbose("tccl: LD_PRELOAD is not set: %s", why);
    snprintf(remote.plan.reason, sizeof(remote.plan.reason), "%s", why);
}

static bool step_is_refused(void)
{
    return remote.active && remote.plan.state == TCCL_STATE_FAILED &&
           (remote.choice.mode == TCCL_MODE_REQUIRE || remote.plan.required);
}

/* Prints a line that no step of this job has printed on this node. */
static __attribute__((format(printf, 1, 2))) void say_once(const char *format, ...)
{
    char line[2 * NOTICE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (!printed_before(remote.printed, &remote.step.key, line))
        slurm_spank_log("%s", line);
}

/* Is another node about to end the step? Those that are alive know within AliveTimeout= that there
 * is no ring. */
static bool is_ended(int times)
{
    int64_t end = tccl_now_ms() + times * (int64_t)(remote.conf.alive_timeout_ms + ENDED_MS);
    while (!signal_watch_look(&remote.watch, tccl_now_ms())) {
        if (tccl_now_ms() >= end)
            return false;
        poll(NULL, 0, LOOK_MS);
    }
    return true;
}

/* Of a step without a ring that goes on, as far as this node knows: does another one require a
 * ring, by its GPUs, and end the step? That node says why. */
static bool others_end_step(void)
{
    struct policy_rule rule;
    struct policy_choice choice;
    return remote.plan.state == TCCL_STATE_FAILED && remote.step.n_nodes > 1 &&
           remote.step.n_gres > 0 && policy_asks(&remote.conf, POLICY_OF_GPUS) &&
           policy_others_want(&remote.conf, &remote.facts.facts, option_mode(), remote.environment,
                              TCCL_MODE_REQUIRE, &rule, &choice) &&
           is_ended(2);
}

static void tell_user(void)
{
    char line[NOTICE_SIZE], condition[NOTICE_SIZE];
    /* Where it is up to NCCL whether the ring is built. */
    bool open =
        remote.hides[0] && remote.plan.state == TCCL_STATE_PLANNED && !remote.plan.reason[0];
    snprintf(condition, open ? NOTICE_SIZE : 1,
             ", with NCCL 2.30.3 or later: with %.100s each task sees only its own GPUs; for all "
             "versions, use --gpus-per-node=%d without it",
             remote.hides, remote.step.n_gres);
    notice_clean(condition);
    if (!notice_of_plan(remote.choice.mode, &remote.plan, remote.step.n_nodes, line)) {
        if (remote.plan.state == TCCL_STATE_FAILED)
            slurm_verbose("tccl: no ring: %s", remote.plan.reason);
    } else if (remote.place.first && !step_is_refused() && !others_end_step()) {
        /* What a ring is over, where that is not just the step. */
        const char *extent =
            remote.plan.state != TCCL_STATE_PLANNED    ? ""
            : remote.step.launch == TCCL_LAUNCH_BELOW  ? ", with the job script's node "
            : remote.step.launch == TCCL_LAUNCH_SCRIPT ? ", for this job script alone, on "
                                                       : "";
        say_once("%s%s%s%s", line, extent, *extent ? remote.step.nodes[0] : "", condition);
    }
}

/* Does this node end the step, and print why? The first node does. It may not know of it where the
 * policy depends on a node's GPUs, or only this node's plan is lost; then this node does, unless
 * the step is being ended already. */
static bool ends_step(void)
{
    bool others_have_it = remote.plan.gbps > 0; /* a plan that only this node could not take */
    bool doubt = (remote.joined && remote.unheard) ||
                 (!remote.choice.asked && policy_asks(&remote.conf, POLICY_OF_GPUS));
    if (remote.place.first || (remote.joined && others_have_it))
        return true;
    return doubt && !remote.plan.required && !remote.cancelled && !is_ended(1);
}

/* The tasks of this node end in remote_task_init; those of others would wait for them in NCCL.
 * Slurm delivers the signal once the tasks run. */
static void refuse_step(void)
{
    struct tccl_error err = {""};
    char line[NOTICE_SIZE];
    if (!step_is_refused() || !ends_step())
        return;
    if (notice_of_plan(TCCL_MODE_REQUIRE, &remote.plan, remote.step.n_nodes, line))
        slurm_spank_log("%s", line);
    if (remote.step.n_nodes > 1 && !remote.cancelled &&
        step_kind(remote.step.key.step) == STEP_TASKS && step_end(&remote.step.key, &err) != 0)
        slurm_error("tccl: the step can't be ended on the other nodes: %s", err.text);
}

/* The variables by which the ranks of mpirun on this node find the plan of the step that it starts.
 * TCCL_STATE stays what it is for the script itself. */
static void prepare_script(spank_t spank)
{
    struct job_env_edits edits = {.count = 0};
    char path[PATH_MAX + TCCL_KEY_TEXT + 8], folder[TCCL_KEY_TEXT];
    char **env = job_environment(spank);
    const char *why;
    remote.shim = preload_choose(&remote.conf, env, remote.pyxis, &why);
    if (!remote.shim)
        return;
    tccl_key_folder(&remote.step.key, folder);
    snprintf(path, sizeof(path), "%s/%s/plan", remote.conf.run_dir, folder);
    if (job_env_prepare(env, path, remote.shim, &edits) != 0 ||
        job_env_contain(env, remote.conf.container_shim, &edits) != 0)
        slurm_error("tccl: out of memory: some of the TCCL_ variables are not set");
    apply_edits(spank, &edits);
    if (!remote.active)
        set_environment(spank);
}

int remote_user_init(spank_t spank)
{
    if (remote.bad_environment.text[0] && remote.place.first)
        say_once("tccl: TCCL is ignored: %s", remote.bad_environment.text);
    if (remote.active && remote.fd >= 0) {
        struct tccl_error err = {""};
        struct tccl_outcome plan;
        remote.unheard = true;
        if (wait_for_tccld()) {
            int rc = tccl_client_wait_plan(remote.fd, tccl_left_ms(remote.deadline), &plan, &err);
            remote.unheard = rc != 0;
            if (rc == 0)
                remote.plan = plan;
            else if (rc > 0)
                fall_back(TCCL_REASON_NO_ANSWER, "%s: tccld gave no answer within %d ms",
                          node_name(), remote.timeout_ms);
            else
                fall_back(err.reason ? err.reason : TCCL_REASON_NO_DAEMON, "%s: tccld: %s",
                          node_name(), err.text);
        }
        hang_up();
    }
    if (remote.active) {
        struct job_env_edits edits = {.count = 0};
        char **env = job_environment(spank);
        /* A ring with P2P; the shim is given the plan all the same: it says in the record what was
         * built. */
        const char *ring = remote.plan.ring ? remote.plan.ring : "";
        if (remote.hides[0] && remote.plan.state == TCCL_STATE_PLANNED &&
            (strstr(ring, "-w>") || strstr(ring, "-r>")))
            snprintf(remote.plan.reason, sizeof(remote.plan.reason),
                     "the ring is not built: with %.100s each task sees only its own GPUs "
                     "(ConstrainDevices), and it has P2P between them: use --gpus-per-node=%d "
                     "without it",
                     remote.hides, remote.step.n_gres);
        notice_clean(remote.plan.reason);
        choose_shim(env);
        if (job_env_announce(env, &remote.plan, remote.shim, &edits) != 0 ||
            (remote.shim && job_env_contain(env, remote.conf.container_shim, &edits) != 0))
            slurm_error("tccl: out of memory: some of the TCCL_ variables are not set");
        apply_edits(spank, &edits);
        set_environment(spank);
    }
    if (remote.script && remote.plan.state != TCCL_STATE_PLANNED)
        prepare_script(spank);
    if (remote.active)
        tell_user();
    if (remote.active)
        refuse_step();
    return 0;
}

/* Another plugin may have put the task into a container by now, in which the shim is not found. The
 * path of ContainerShim= is not checked, since such a plugin may also run after this one. */
static void take_back_shim(spank_t spank)
{
    struct job_env_edits edits = {.count = 0};
    if (!remote.shim || remote.shim == remote.conf.container_shim || preload_readable(remote.shim))
        return;
    if (job_env_unload(job_environment(spank), &edits) != 0)
        return;
    apply_edits(spank, &edits);
    forget_environment(spank);
    remote.shim = NULL;
    set_environment(spank);
    spank_setenv(spank, "TCCL_REASON",
                 "the ring is not built: the task does not see the shim (a container?)", 1);
}

int remote_task_post_fork(void)
{
    if (remote.fd >= 0)
        hang_up();
    return 0;
}

int remote_task_init(spank_t spank)
{
    take_back_shim(spank);
    if (step_is_refused())
        _exit(1);
    return 0;
}

int remote_exit(void)
{
    if (remote.fd >= 0)
        close(remote.fd);
    remote.fd = -1;
    if (remote.printed >= 0)
        close(remote.printed);
    remote.printed = -1;
    /* tccld may have received this node's plan before it died, so other nodes have the ring.
     * Retries until a restarted tccld can tell the first node that the step had its ring in part
     * only. */
    int64_t end = tccl_now_ms() + UNHEARD_MS;
    bool last = !remote.unheard || remote.place.first, told = last;
    while (!told && !last) { /* one last try after the deadline */
        last = tccl_now_ms() >= end;
        told = tell_tccld(TCCL_REASON_NO_DAEMON,
                          "its tccld died or hung before the step had its plan");
        if (!told && !last)
            poll(NULL, 0, UNHEARD_PAUSE_MS);
    }
    remote.unheard = false;
    if (remote.joined) {
        int patience = remote.silent ? SKIP_MS : DEPART_MS;
        int fd = tccl_frame_connect(remote.conf.socket, tccl_now_ms() + patience, NULL);
        if (fd >= 0) {
            tccl_client_leave(fd, &remote.step.key, patience, NULL);
            close(fd);
        }
    }
    tccl_outcome_clear(&remote.plan);
    step_facts_clear(&remote.facts);
    tccl_step_clear(&remote.step);
    tccl_conf_clear(&remote.conf);
    remote.active = remote.joined = remote.silent = remote.cancelled = remote.script = false;
    remote.shim = NULL;
    return 0;
}
