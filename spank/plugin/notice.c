/* notice.c: composes the one-line message to the user. */
#include "plugin/plugin.h"

#include <stdio.h>
#include <string.h>

void notice_clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = ' ';
}

/* Counts the GPUs of a ring by the arrows in its text: an open chain has one arrow more than GPUs,
 * a closed one as many. Of several rings, which are over the same GPUs, the first one counts.
 * Returns 0 if the text is not the whole ring. */
static int ring_gpus(const char *ring, int n_nodes)
{
    int arrows = 0, chains = 0;
    bool first = true;
    if (!ring || strstr(ring, "…"))
        return 0;
    for (; *ring; ring++) {
        first = *ring == '[' || (first && *ring != '|');
        arrows += first && *ring == '>';
        chains += *ring == '[';
    }
    if (n_nodes == 1)
        return arrows;
    return chains == n_nodes && arrows > chains ? arrows - chains : 0;
}

/* The other steps that run at the same time. */
static void describe_beside(const struct tccl_outcome *plan, int n_nodes, char *text, size_t size)
{
    *text = '\0';
    if (plan->neighbours > 0)
        snprintf(text, size, " beside %lld other step%s%s%s%s%s, alone %.1f%s",
                 (long long)plan->neighbours, plan->neighbours == 1 ? "" : "s",
                 plan->neighbours > 1 && n_nodes > 1 ? ", counted on each node" : "",
                 *plan->neighbours_by ? " (" : "", plan->neighbours_by,
                 *plan->neighbours_by ? ")" : "", plan->alone_gbps,
                 tccl_outcome_collapses(plan, plan->gbps)
                     ? ": copies of both " TCCL_OUTCOME_COLLAPSE
                 : tccl_outcome_collapses(plan, plan->baseline_gbps)
                     ? ": so chosen that copies of both do not slow each other down"
                     : "");
}

static void describe_ring(const struct tccl_outcome *plan, int n_nodes, char *line)
{
    int gpus = ring_gpus(plan->ring, n_nodes), end;
    char rings[32] = "ring", of[64] = "", baseline[64] = "", beside[256] = "";
    const char *by = strcmp(plan->source, "model") == 0 ? ", by a model"
                     : plan->moved                      ? ", as measured of other GPUs like these"
                                                        : "";
    if (plan->rings > 1)
        snprintf(rings, sizeof(rings), "%d rings", (int)plan->rings);
    if (n_nodes > 1)
        snprintf(of, sizeof(of), gpus ? " of %d nodes, %d GPUs" : " of %d nodes", n_nodes, gpus);
    else if (gpus)
        snprintf(of, sizeof(of), " of %d GPUs", gpus);
    if (plan->baseline_gbps > 0)
        snprintf(baseline, sizeof(baseline), " (NCCL's own choice: %.1f, %.2fx)",
                 plan->baseline_gbps, plan->gbps / plan->baseline_gbps);
    describe_beside(plan, n_nodes, beside, sizeof(beside));
    end = snprintf(line, NOTICE_SIZE, "tccl: %s%s: %s%.1f GB/s%s%s%s%s%s", rings, of,
                   strcmp(plan->neighbours_by, "bounds") == 0 ? "at least " : "", plan->gbps,
                   beside, baseline, by, *plan->degraded ? "; " : "", plan->degraded);
    line[end < NOTICE_SIZE ? end : NOTICE_SIZE - 1] = '\0';
}

bool notice_of_plan(enum tccl_mode mode, const struct tccl_outcome *plan, int n_nodes,
                    char line[static NOTICE_SIZE])
{
    if (mode != TCCL_MODE_ON && mode != TCCL_MODE_REQUIRE)
        return false;
    if (plan->state == TCCL_STATE_PLANNED && plan->reason[0])
        snprintf(line, NOTICE_SIZE, "tccl: %s", plan->reason);
    else if (plan->state == TCCL_STATE_PLANNED)
        describe_ring(plan, n_nodes, line);
    else if (plan->state == TCCL_STATE_FAILED)
        snprintf(line, NOTICE_SIZE, "tccl: no ring: %s (%s)", plan->reason,
                 mode == TCCL_MODE_ON ? "NCCL's own choice is used"
                                      : "the step ends, because a ring is required");
    else if (plan->measure)
        snprintf(line, NOTICE_SIZE, "tccl: no ring: %s", plan->reason);
    else if (plan->state == TCCL_STATE_LEFT)
        snprintf(line, NOTICE_SIZE, "tccl: nothing to do: %s%s%s", plan->reason,
                 *plan->degraded ? "; " : "", plan->degraded);
    else
        return false;
    notice_clean(line);
    return true;
}
