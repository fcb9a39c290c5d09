/* check-step.c: asks a node's tccld whether the plugin has spoken for a step. srun runs this at the
 * end of a step that requires a ring (spank-local.c): where no node has the plugin, Slurm drops
 * --tccl in silence, and nobody else could say so. */
#include "check/check-items.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "client/client.h"

enum { ABSENT = 1, UNKNOWN = 3, ASK_MS = 2500 };

int check_step_named(const char *text, struct check_options *options)
{
    char *end, *last;
    if (!text || !options->node)
        return -1;
    options->job = strtoul(text, &end, 10);
    options->step = strtoul(end + (*end == '.'), &last, 10);
    return end != text && *end == '.' && last != end + 1 && !*last && options->job > 0 &&
                   options->job < UINT32_MAX && options->step < UINT32_MAX
               ? 0
               : -1;
}

/* What the node's tccld says. Returns the exit status. */
static int tell(const struct check_options *options, const json_t *answer)
{
    const char *text = tccl_text_of(answer, "text");
    const json_t *joined = json_object_get(answer, "joined");
    if (json_is_true(joined)) {
        printf("tccl: %s: the plugin has spoken for step %lu.%lu\n", options->node, options->job,
               options->step);
        return 0;
    }
    if (!json_is_false(joined)) {
        fprintf(stderr,
                "tccl: %s: whether the plugin has spoken for step %lu.%lu is not known%s%.600s\n",
                options->node, options->job, options->step, *text ? ": " : "", text);
        return UNKNOWN;
    }
    if (strcmp(tccl_text_of(answer, "plugin"), "missing") != 0)
        text = "run tccl-check on that node";
    fprintf(stderr, "tccl: %s: no plugin has spoken for step %lu.%lu, so it had no ring: %.600s\n",
            options->node, options->job, options->step, text);
    return ABSENT;
}

/* Where no tccld runs, a plugin would have ended a step that requires a ring. */
static int tell_failure(const struct check_options *options, const char *why)
{
    bool absent = strstr(why, "refused") != NULL;
    fprintf(stderr, "tccl: %s: %s step %lu.%lu%s: %.300s: %s\n", options->node,
            absent ? "no node has answered for"
                   : "it is not known whether the plugin has spoken for",
            options->job, options->step, absent ? ", so it had no ring" : "", why,
            check_peer_advice(why));
    return absent ? ABSENT : UNKNOWN;
}

int check_step(const struct check_options *options)
{
    struct tccl_error err = {""};
    struct tccl_conf conf;
    if (tccl_conf_read(tccl_conf_tool_path(options->config), NULL, &conf, &err) != 0) {
        fprintf(stderr, "tccl: %s\n", err.text);
        return UNKNOWN;
    }
    cleanup_json json_t *question =
        json_pack("{s:I, s:I, s:I}", "job", (json_int_t)options->job, "step",
                  (json_int_t)options->step, "since_ms", options->since * (json_int_t)1000);
    cleanup_json json_t *answer = tccl_client_node(&conf, options->node, question, ASK_MS, &err);
    tccl_conf_clear(&conf);
    return answer ? tell(options, answer) : tell_failure(options, err.text);
}
