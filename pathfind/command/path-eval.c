/* path-eval.c: tccl-path eval: the bandwidth of a given ring, and of the baseline. */
#include "command/path.h"

#include <math.h>

#include "base/cleanup.h"

enum { MAX_RING = 16 << 20 };

/* "-" stands for standard input: the ring of many nodes is longer than an argument may be. *text is
 * the caller's. */
static int read_ring(const char *option, char **text, struct tccl_error *err)
{
    size_t size = 0;
    *text = malloc(MAX_RING + 1);
    if (!*text)
        return tccl_fail(err, "out of memory");
    if (option[0] != '-' || option[1]) {
        snprintf(*text, MAX_RING + 1, "%s", option);
        return 0;
    }
    size = fread(*text, 1, MAX_RING, stdin);
    (*text)[size] = '\0';
    if (ferror(stdin) || !feof(stdin))
        return tccl_fail(err, "--ring: standard input can't be read, or is longer than %d bytes",
                         MAX_RING);
    return 0;
}

static int evaluate_ring(const struct options *options, struct nodes *nodes, struct answer *answer,
                         struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    if (read_ring(options->ring, &text, err) != 0 ||
        route_parse(nodes, text, &answer->route, err) != 0 ||
        route_measure(&answer->route, err) != 0)
        return -1;
    answer_complete(answer);
    return 0;
}

/* Without --ring: the baseline is the ring. */
static int evaluate_baseline(struct nodes *nodes, struct answer *answer, struct tccl_error *err)
{
    struct route like;
    int rc = route_init(&like, nodes->total, err);
    for (int i = 0; rc == 0 && i < nodes->total; i++) {
        const struct group *group = nodes_group(nodes, i);
        like.stops[i].class = nodes_class(nodes, group->source, group->gpus, err);
        rc = like.stops[i].class ? 0 : -1;
    }
    if (rc == 0)
        rc = route_baseline(&like, nodes->total == 1, &answer->route, err);
    route_clear(&like);
    if (rc == 0)
        answer_complete(answer);
    return rc;
}

static long count_measured(const struct nodes *nodes)
{
    long count = 0;
    for (int i = 0; i < nodes->n_sources; i++)
        count += tccl_search_measured(nodes->sources[i]->search);
    return count;
}

int evaluate(const struct options *options, struct nodes *nodes, struct answer *answer,
             struct tccl_error *err)
{
    *answer = (struct answer){.bound = INFINITY};
    long before = count_measured(nodes);
    if (!options->ring && nodes->total == 1 && __builtin_popcount(nodes->groups[0].gpus) == 1) {
        answer->nothing = true;
        return 0;
    }
    if ((options->ring ? evaluate_ring(options, nodes, answer, err)
                       : evaluate_baseline(nodes, answer, err)) < 0)
        return -1;
    answer->is_baseline = !options->ring;
    answer->measured = count_measured(nodes) - before;
    return 0;
}

int command_eval(const struct options *options, struct tccl_error *err)
{
    return answer_command(evaluate, answer_show, options, err);
}
