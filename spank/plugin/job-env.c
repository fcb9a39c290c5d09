/* job-env.c: computes the TCCL_ variables of a step from its plan. */
#include "plugin/plugin.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* TCCL_SHIM tells a nested step which element of LD_PRELOAD is ours, even after Shim= has changed.
 */
static const char *const plan_variables[] = {
    "TCCL_STATE",         "TCCL_REASON", "TCCL_GBPS", "TCCL_ALONE_GBPS", "TCCL_NEIGHBOURS_BY",
    "TCCL_BASELINE_GBPS", "TCCL_PLAN",   "TCCL_RING", "TCCL_SHIM",
};

static const char *const container_preloads[] = {"APPTAINERENV_LD_PRELOAD",
                                                 "SINGULARITYENV_LD_PRELOAD"};

void job_env_edits_clear(struct job_env_edits *edits)
{
    for (int i = 0; i < edits->count; i++)
        free(edits->list[i].value);
    edits->count = 0;
}

const char *job_env_get(char *const *env, const char *name)
{
    size_t length = strlen(name);
    for (; env && *env; env++)
        if (strncmp(*env, name, length) == 0 && (*env)[length] == '=')
            return *env + length + 1;
    return NULL;
}

uint32_t job_env_number(char *const *env, const char *name, uint32_t fallback)
{
    const char *text = job_env_get(env, name);
    char *end;
    if (!text || *text < '0' || *text > '9')
        return fallback;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    return errno || *end || number > UINT32_MAX ? fallback : (uint32_t)number;
}

/* Takes ownership of value; NULL: out of memory. */
static void add_edit(struct job_env_edits *edits, const char *name, char *value)
{
    if (value && edits->count < JOB_ENV_EDITS) {
        edits->list[edits->count++] = (struct job_env_edit){name, value};
        return;
    }
    free(value);
    edits->failed = true;
}

static void add_unset(struct job_env_edits *edits, const char *name)
{
    if (edits->count < JOB_ENV_EDITS)
        edits->list[edits->count++] = (struct job_env_edit){name, NULL};
    else
        edits->failed = true;
}

static int is_element(const char *text, size_t length, const char *element)
{
    return element && strlen(element) == length && memcmp(text, element, length) == 0;
}

char *job_env_preload_without(const char *list, const char *a, const char *b)
{
    static const char dividers[] = ": ";
    char *kept = strdup(list), *end = kept;
    size_t removed = 0, gap, length;
    if (!kept)
        return NULL;
    for (const char *at = list, *element; *at; at = element + length) {
        gap = strspn(at, dividers);
        element = at + gap;
        length = strcspn(element, dividers);
        if (length && (is_element(element, length, a) || is_element(element, length, b))) {
            removed++;
            continue;
        }
        if (end == kept) /* no divider before the first element kept */
            gap = 0;
        end = mempcpy(end, element - gap, gap + length);
    }
    *end = '\0';
    return removed ? kept : strcpy(kept, list);
}

/* Removes the preload of an outer step from LD_PRELOAD, what add_shim put in front of ASAN_OPTIONS,
 * and what job_env_contain set. */
static void forget_preload(char *const *env, const char *shim, struct job_env_edits *edits)
{
    static const size_t length = sizeof(JOB_ENV_ASAN) - 1;
    const char *list = job_env_get(env, "LD_PRELOAD"), *old = job_env_get(env, "TCCL_SHIM");
    const char *options = job_env_get(env, "ASAN_OPTIONS");
    cleanup_free char *kept = list ? job_env_preload_without(list, shim, old) : NULL;
    if (kept && !*kept)
        add_unset(edits, "LD_PRELOAD");
    else if (list && (!kept || strcmp(kept, list) != 0))
        add_edit(edits, "LD_PRELOAD", tccl_steal(kept));
    if (old && options && strcmp(options, JOB_ENV_ASAN) == 0)
        add_unset(edits, "ASAN_OPTIONS");
    else if (old && options && strncmp(options, JOB_ENV_ASAN ":", length + 1) == 0)
        add_edit(edits, "ASAN_OPTIONS", strdup(options + length + 1));
    for (int i = 0; i < 2; i++) {
        const char *value = job_env_get(env, container_preloads[i]);
        if (value && *value == ':')
            add_unset(edits, container_preloads[i]);
    }
}

int job_env_forget(char *const *env, const char *shim, struct job_env_edits *edits)
{
    forget_preload(env, shim, edits);
    for (size_t i = 0; i < sizeof(plan_variables) / sizeof(*plan_variables); i++)
        if (job_env_get(env, plan_variables[i]))
            add_unset(edits, plan_variables[i]);
    return edits->failed ? -1 : 0;
}

int job_env_unload(char *const *env, struct job_env_edits *edits)
{
    if (job_env_get(env, "TCCL_SHIM")) {
        forget_preload(env, NULL, edits);
        add_unset(edits, "TCCL_SHIM");
    }
    return edits->failed ? -1 : 0;
}

static void add_text(struct job_env_edits *edits, const char *name, const char *text)
{
    if (text && *text)
        add_edit(edits, name, strdup(text));
}

static void add_gbps(struct job_env_edits *edits, const char *name, double gbps)
{
    char *text = NULL;
    if (gbps > 0)
        add_edit(edits, name, asprintf(&text, "%.2f", gbps) < 0 ? NULL : text);
}

/* name = text:(previous value) */
static void add_in_front(char *const *env, const char *name, const char *text,
                         struct job_env_edits *edits)
{
    const char *list = job_env_get(env, name);
    char *whole = NULL;
    int size = asprintf(&whole, "%s%s%s", text, list && *list ? ":" : "", list ? list : "");
    add_edit(edits, name, size < 0 ? NULL : whole);
}

/* execve fails with E2BIG if a single string (name, '=', value and NUL) is longer: then the step
 * could not start at all. */
static bool is_short(const char *name, size_t length)
{
    enum { LONGEST = 32 * 4096 };
    return strlen(name) + length + 2 <= LONGEST;
}

static bool has_room(char *const *env, const char *name, const char *text)
{
    const char *list = job_env_get(env, name);
    return is_short(name, strlen(text) + (list ? strlen(list) + 1 : 0));
}

static int add_shim(char *const *env, const char *shim, struct job_env_edits *edits)
{
    if (has_room(env, "LD_PRELOAD", shim) && has_room(env, "ASAN_OPTIONS", JOB_ENV_ASAN)) {
        add_text(edits, "TCCL_SHIM", shim);
        add_in_front(env, "LD_PRELOAD", shim, edits);
        add_in_front(env, "ASAN_OPTIONS", JOB_ENV_ASAN, edits);
    }
    return edits->failed ? -1 : 0;
}

int job_env_announce(char *const *env, const struct tccl_outcome *plan, const char *shim,
                     struct job_env_edits *edits)
{
    bool ring = plan->state == TCCL_STATE_PLANNED;
    add_text(edits, "TCCL_STATE", tccl_state_name(plan->state));
    add_text(edits, "TCCL_REASON", plan->reason);
    add_gbps(edits, "TCCL_BASELINE_GBPS", plan->baseline_gbps);
    if (ring) {
        add_gbps(edits, "TCCL_GBPS", plan->gbps);
        add_gbps(edits, "TCCL_ALONE_GBPS", plan->alone_gbps);
        add_text(edits, "TCCL_NEIGHBOURS_BY", plan->neighbours_by);
        add_text(edits, "TCCL_RING", plan->ring);
    }
    if (ring || shim) /* else its groups may have chains */
        add_text(edits, "TCCL_PLAN", plan->path);
    if (shim && (ring || plan->path))
        return add_shim(env, shim, edits);
    return edits->failed ? -1 : 0;
}

int job_env_prepare(char *const *env, const char *path, const char *shim,
                    struct job_env_edits *edits)
{
    add_text(edits, "TCCL_PLAN", path);
    return add_shim(env, shim, edits);
}

/* Both or neither: one alone would contradict the other. */
static bool may_contain(char *const *env, size_t length)
{
    for (int i = 0; i < 2; i++) {
        const char *value = job_env_get(env, container_preloads[i]);
        if ((value && *value != ':') || !is_short(container_preloads[i], length))
            return false;
    }
    return true;
}

int job_env_contain(char *const *env, const char *inside, struct job_env_edits *edits)
{
    const char *list = job_env_get(env, "LD_PRELOAD");
    const char *own = list ? list : "";
    cleanup_free char *value = NULL;
    if (asprintf(&value, ":%s%s%s", inside, *inside && *own ? ":" : "", own) < 0)
        return -1;
    if (strchr(value, '$') || !may_contain(env, strlen(value)))
        return 0;
    for (int i = 0; i < 2; i++)
        add_edit(edits, container_preloads[i], strdup(value));
    return edits->failed ? -1 : 0;
}
