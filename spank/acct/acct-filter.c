/* acct-filter.c: what tcclacct's options ask for. */
#include "acct/acct.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/lines.h"
#include "base/state.h"
#include "client/hostlist.h"
#include "records/records.h"

static const struct {
    const char *name;
    uint32_t step;
} special_steps[] = {{"interactive", TCCL_STEP_INTERACTIVE},
                     {"batch", TCCL_STEP_BATCH},
                     {"extern", TCCL_STEP_EXTERN}};

const char *acct_step_name(json_int_t step)
{
    for (size_t i = 0; i < sizeof(special_steps) / sizeof(special_steps[0]); i++)
        if (special_steps[i].step == step)
            return special_steps[i].name;
    return NULL;
}

/* Reads a 32-bit number and moves *at past it; -1 if there is none. */
static json_int_t read_number(const char **at)
{
    size_t length = strspn(*at, "0123456789");
    if (length == 0 || length > 10)
        return -1;
    json_int_t number = strtoll(*at, NULL, 10);
    *at += length;
    return number <= UINT32_MAX ? number : -1;
}

/* Reads a step, a number or a name, and moves *at past it; -1 if there is none. */
static json_int_t read_step(const char **at)
{
    for (size_t i = 0; i < sizeof(special_steps) / sizeof(special_steps[0]); i++) {
        size_t length = strlen(special_steps[i].name);
        if (!strncasecmp(*at, special_steps[i].name, length)) {
            *at += length;
            return special_steps[i].step;
        }
    }
    return read_number(at);
}

/* JOB[+OFFSET][.STEP], of a task of an array what surrounds the task numbers. */
struct job_text {
    json_int_t job, het_offset, step; /* -1: not given */
};

/* Some tasks of an array. */
struct task_range {
    json_int_t first, last, by;
};

static int add_entry(json_t *jobs, const struct job_text *text, const struct task_range *tasks,
                     struct tccl_error *err)
{
    json_t *entry = tasks ? json_pack("{s:I, s:I, s:I}", "array_job", text->job, "first",
                                      tasks->first, "last", tasks->last)
                          : json_pack("{s:I}", "job", text->job);
    if (text->het_offset >= 0)
        json_object_set_new(entry, "het_offset", json_integer(text->het_offset));
    if (text->step >= 0)
        json_object_set_new(entry, "step", json_integer(text->step));
    if (json_array_size(jobs) < TCCL_FILTER_JOBS)
        return json_array_append_new(jobs, entry) == 0 ? 0 : tccl_fail(err, "out of memory");
    json_decref(entry);
    return tccl_fail(err, "more than %d jobs", TCCL_FILTER_JOBS);
}

/* FIRST[-LAST[:BY]], as in sbatch's --array. Returns 0, or -1. */
static int read_range(const char **at, struct task_range *range)
{
    range->first = range->last = read_number(at);
    range->by = 1;
    if (range->first < 0 || **at != '-')
        return range->first < 0 ? -1 : 0;
    ++*at;
    range->last = read_number(at);
    if (**at == ':') {
        ++*at;
        range->by = read_number(at);
    }
    return range->last >= range->first && range->by >= 1 ? 0 : -1;
}

/* Adds the tasks of a range; with a stride above 1, one by one. */
static int add_tasks(json_t *jobs, const struct job_text *text, const struct task_range *range,
                     struct tccl_error *err)
{
    if (range->by == 1)
        return add_entry(jobs, text, range, err);
    for (json_int_t task = range->first; task <= range->last; task += range->by) {
        struct task_range one = {task, task, 1};
        if (add_entry(jobs, text, &one, err) != 0)
            return -1;
    }
    return 0;
}

/* Reads the tasks after '_' at *at: N or [RANGE,…], optionally with squeue's %LIMIT. Moves *at past
 * them and adds them to jobs unless that is NULL. Returns 0; 1 if there are none; -1 with err. */
static int read_tasks(const char **at, json_t *jobs, const struct job_text *text,
                      struct tccl_error *err)
{
    struct task_range range;
    bool several = **at == '[';
    do {
        *at += several;
        if (!several) {
            range.first = range.last = read_number(at);
            range.by = 1;
        }
        if (several ? read_range(at, &range) != 0 : range.first < 0)
            return 1;
        if (jobs && add_tasks(jobs, text, &range, err) != 0)
            return -1;
    } while (several && **at == ',');
    if (several && **at == '%') {
        ++*at;
        if (read_number(at) < 0)
            return 1;
    }
    if (several && *(*at)++ != ']')
        return 1;
    return 0;
}

/* JOB[_TASKS|+OFFSET][.STEP], into the list. Returns 0, or -1 with err. */
static int read_job(json_t *jobs, const char *text, struct tccl_error *err)
{
    struct job_text job = {.het_offset = -1, .step = -1};
    const char *at = text, *tasks = NULL;
    job.job = read_number(&at);
    bool good = job.job >= 1;
    if (good && *at == '_') {
        tasks = ++at;
        good = read_tasks(&at, NULL, &job, NULL) == 0;
    } else if (good && *at == '+') {
        at++;
        good = (job.het_offset = read_number(&at)) >= 0;
    }
    if (good && *at == '.') {
        at++;
        good = (job.step = read_step(&at)) >= 0;
    }
    if (!good || *at)
        return tccl_fail(err,
                         "'%.40s' is not a job: give JOB[_TASK|+OFFSET][.STEP], such as 12, 13.0 "
                         "or 14_[1-3]",
                         text);
    return tasks ? read_tasks(&tasks, jobs, &job, err) : add_entry(jobs, &job, NULL, err);
}

static json_t *read_user(const char *text, struct tccl_error *err)
{
    const char *at = text;
    json_int_t uid = read_number(&at);
    if (uid >= 0 && !*at)
        return json_integer(uid);
    errno = 0;
    struct passwd *user = getpwnam(text);
    if (user)
        return json_integer(user->pw_uid);
    return tccl_fail_null(err, "unknown user '%.40s'", text);
}

/* The job states that sacct's -s takes, with their abbreviations. */
static bool is_job_state(const char *text)
{
    static const char *const states[] = {
        "pending",      "pd", "running",       "r",  "suspended",   "s",  "completed",     "cd",
        "cancelled",    "ca", "failed",        "f",  "timeout",     "to", "node_fail",     "nf",
        "preempted",    "pr", "boot_fail",     "bf", "deadline",    "dl", "out_of_memory", "oom",
        "completing",   "cg", "configuring",   "cf", "resizing",    "rs", "requeued",      "rq",
        "revoked",      "rv", "stopped",       "st", "signaling",   "si", "stage_out",     "so",
        "special_exit", "se", "resv_del_hold", "rd", "requeue_fed", "rf", "requeue_hold",  "rh"};
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (!strcasecmp(text, states[i]))
            return true;
    return false;
}

/* The word, or the only one that begins with it, case-insensitive, unless it is known to be
 * something else (what, else NULL). */
static json_t *read_word(const char *text, const char *const *words, const char *kind,
                         const char *what, struct tccl_error *err)
{
    char known[400] = "";
    const char *found = NULL;
    int n_found = 0;
    for (int i = 0; words[i]; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "", words[i]);
        if (!what && !strcasecmp(text, words[i]))
            return json_string(words[i]);
        if (*text && !strncasecmp(text, words[i], strlen(text)) && n_found++ == 0)
            found = words[i];
    }
    if (n_found == 1 && !what)
        return json_string(found);
    return tccl_fail_null(err, "'%.40s' is %s%s: give one of: %s", text, what ? what : "not ",
                          what ? "" : kind, known);
}

static json_t *read_state(const char *text, struct tccl_error *err)
{
    const char *words[16];
    int n = 0;
    for (int i = 0; tccl_state_names[i]; i++)
        words[n++] = tccl_state_names[i];
    for (int i = 0; tccl_built_names[i]; i++)
        words[n++] = tccl_built_names[i];
    words[n] = NULL;
    static const char *const before[][2] = {{"applied", "planned"},    {"fallback", "failed"},
                                            {"nothing-to-do", "left"}, {"partial", "partly"},
                                            {"fewer", "partly"},       {"differs", "no"},
                                            {"not used", "no"}}; /* what was shown once */
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
        if (strcasecmp(text, before[i][0]) == 0)
            text = before[i][1];
    /* sacct's "F", too, which is not a ring that failed */
    bool of_job = is_job_state(text) && strcasecmp(text, "failed") != 0;
    return read_word(text, words, "a state", of_job ? "a job state, which sacct shows" : NULL, err);
}

static json_t *read_name(const char *text, struct tccl_error *err)
{
    json_t *name = *text ? json_string(text) : NULL;
    if (!name)
        tccl_fail(err, *text ? "'%.40s' is not UTF-8" : "empty name in the list", text);
    return name;
}

static json_t *read_class(const char *text, struct tccl_error *err)
{
    return read_word(text, tccl_reason_words + 1, "a class of reason", NULL, err);
}

/* Is the entry empty because of a superfluous comma, as in "12," or "12,,13"? */
static bool left_over(const char *entry, const char *text)
{
    return !*entry && text[strspn(text, ",")];
}

/* The list of that name, made if there is none; NULL without memory. */
static json_t *list_of(json_t *filter, const char *name)
{
    if (!json_object_get(filter, name))
        json_object_set_new(filter, name, json_array());
    return json_object_get(filter, name);
}

/* Like strsep at commas, but ignores commas in brackets. */
static char *next_job(char **rest)
{
    char *job = *rest;
    bool inside = false;
    for (char *at = job; at && *at; at++) {
        inside = *at == '[' || (inside && *at != ']');
        if (*at == ',' && !inside) {
            *at = '\0';
            *rest = at + 1;
            return job;
        }
    }
    *rest = NULL;
    return job;
}

static int add_jobs(json_t *filter, const char *text, struct tccl_error *err)
{
    cleanup_free char *copy = strdup(text);
    json_t *jobs = list_of(filter, "jobs");
    if (!copy || !jobs)
        return tccl_fail(err, "out of memory");
    char *rest = copy;
    for (char *job; (job = next_job(&rest));)
        if (!left_over(job, text) && read_job(jobs, job, err) != 0)
            return -1;
    return 0;
}

/* MIN[-MAX] nodes. */
static int set_range(json_t *filter, const char *text, struct tccl_error *err)
{
    const char *at = text;
    json_int_t low = read_number(&at), high = low;
    if (low >= 0 && *at == '-') {
        at++;
        high = read_number(&at);
    }
    if (low < 0 || high < 1 || *at || low > high)
        return tccl_fail(err, "'%.40s' is not a number of nodes: give MIN[-MAX]", text);
    return json_object_set_new(filter, "min_nodes", json_integer(low)) == 0 &&
                   json_object_set_new(filter, "max_nodes", json_integer(high)) == 0
               ? 0
               : tccl_fail(err, "out of memory");
}

static int add_nodes(json_t *filter, const char *text, struct tccl_error *err)
{
    __attribute__((cleanup(tccl_hosts_clear))) struct tccl_hosts hosts = {0};
    if (tccl_hosts_expand(text, TCCL_FILTER_NODES, &hosts, err) != 0)
        return -1;
    json_t *list = list_of(filter, "nodes");
    if (json_array_size(list) + hosts.count > TCCL_FILTER_NODES)
        return tccl_fail(err, "more than %d nodes", TCCL_FILTER_NODES);
    for (size_t i = 0; i < hosts.count; i++)
        if (json_array_append_new(list, json_string(hosts.names[i])) != 0)
            return tccl_fail(err, "out of memory");
    return 0;
}

/* What an option adds: by a function of its own, or to a list an entry for each name. */
static const struct kind {
    const char *option, *list;
    size_t most;
    json_t *(*read)(const char *, struct tccl_error *);
    int (*add)(json_t *, const char *, struct tccl_error *);
} kinds[] = {
    {"jobs", NULL, 0, NULL, add_jobs},
    {"nodelist", NULL, 0, NULL, add_nodes},
    {"nnodes", NULL, 0, NULL, set_range},
    {"user", "users", TCCL_FILTER_USERS, read_user, NULL},
    {"uid", "users", TCCL_FILTER_USERS, read_user, NULL},
    {"state", "states", TCCL_FILTER_STATES, read_state, NULL},
    {"reason", "classes", TCCL_FILTER_NAMES, read_class, NULL},
    {"partition", "partitions", TCCL_FILTER_NAMES, read_name, NULL},
    {"accounts", "accounts", TCCL_FILTER_NAMES, read_name, NULL},
    {"qos", "qos", TCCL_FILTER_NAMES, read_name, NULL},
    {"name", "names", TCCL_FILTER_NAMES, read_name, NULL},
};

int acct_filter(json_t *filter, const char *option, const char *text, struct tccl_error *err)
{
    const struct kind *kind = kinds;
    while (strcmp(kind->option, option) != 0)
        kind++;
    if (kind->add)
        return kind->add(filter, text, err);
    cleanup_free char *copy = strdup(text);
    json_t *list = list_of(filter, kind->list);
    char *rest = copy;
    for (char *entry; (entry = strsep(&rest, ","));) {
        if (left_over(entry, text))
            continue;
        if (json_array_size(list) == kind->most)
            return tccl_fail(err, "more than %zu %s", kind->most, kind->list);
        json_t *value = kind->read(entry, err);
        if (!value || json_array_append_new(list, value) != 0)
            return tccl_fail(err, "out of memory");
    }
    return copy && list ? 0 : tccl_fail(err, "out of memory");
}
