/* built-sum.c: verdicts of nodes added up on their way to the root, so that a message does not grow
 * with the number of nodes: a count for each verdict, and what the first node with it says. */
#include "tccld/join/built-sum.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/hostlist.h"
#include "client/message.h"

void built_sum_begin(struct built_sum *sum, int first)
{
    memset(sum, 0, sizeof(*sum));
    sum->first = sum->end = first;
    sum->rank_first = sum->rank_last = -1;
    for (int rank = 0; rank < BUILT_RANKS; rank++)
        sum->lowest[rank] = -1;
}

static void add(struct built_sum *sum, int rank, int nodes, int lowest, const char *text)
{
    if (nodes > 0 && sum->nodes[rank] == 0) {
        sum->lowest[rank] = lowest;
        snprintf(sum->text[rank], sizeof(sum->text[rank]), "%s", text);
    }
    sum->nodes[rank] += nodes;
    sum->end += nodes;
}

void built_sum_put(struct built_sum *sum, int nodes, int rank, const char *text)
{
    add(sum, rank, nodes, sum->end, text);
}

/* rank_first and rank_last: of what follows; -1: not known. */
static void add_order(struct built_sum *sum, bool is_first, int rank_first, int rank_last,
                      int falls)
{
    bool known = rank_first >= 0 && rank_last >= 0 && (is_first || sum->rank_last >= 0);
    sum->falls += falls + (known && !is_first && rank_first < sum->rank_last);
    sum->rank_first = !known ? -1 : is_first ? rank_first : sum->rank_first;
    sum->rank_last = known ? rank_last : -1;
    if (!known)
        sum->falls = 0;
}

void built_sum_put_rank(struct built_sum *sum, int lowest_rank)
{
    add_order(sum, sum->end == sum->first + 1, lowest_rank, lowest_rank, 0);
}

void built_sum_append(struct built_sum *sum, const struct built_sum *next)
{
    add_order(sum, sum->end == sum->first, next->rank_first, next->rank_last, next->falls);
    sum->later += next->later;
    if (!*sum->slowed)
        memcpy(sum->slowed, next->slowed, sizeof(sum->slowed));
    for (int rank = 0; rank < BUILT_RANKS; rank++)
        add(sum, rank, next->nodes[rank], next->lowest[rank], next->text[rank]);
}

bool built_sum_is_whole(const struct built_sum *sum)
{
    return sum->nodes[TCCL_BUILT_NOTHING] == 0;
}

/* Adds what the first node with a verdict says. */
static int say(const struct built_sum *sum, int rank, int of, const char *what,
               char reason[static TCCL_OUTCOME_REASON + 1], int *node)
{
    int all = sum->end - sum->first;
    size_t length = strlen(reason), room = TCCL_OUTCOME_REASON + 1;
    *node = length ? *node : sum->lowest[of];
    snprintf(reason + length, room - length, "%s%.*s", length ? "; " : "", BUILT_TEXT,
             sum->text[of]);
    length = strlen(reason);
    if (all > 1 && (sum->nodes[of] < all || *what))
        snprintf(reason + length, room - length, " (%d of %d nodes%s)", sum->nodes[of], all, what);
    return rank;
}

int built_sum_judge(const struct built_sum *sum, const char *nodes,
                    char reason[static TCCL_OUTCOME_REASON + 1], int *node)
{
    const int *of = sum->nodes;
    *reason = '\0';
    *node = -1;
    if (of[TCCL_BUILT_DIFFERS] > 0)
        return say(sum, TCCL_BUILT_DIFFERS, TCCL_BUILT_DIFFERS, "", reason, node);
    if (of[TCCL_BUILT_PARTLY] > 0) {
        /* Fewer rings, after the node, where it is known, that has kept them from being all. */
        if (sum->nodes[TCCL_BUILT_NOT_USED] > 0)
            say(sum, TCCL_BUILT_PARTLY, TCCL_BUILT_NOT_USED, " left the plan alone", reason, node);
        return say(sum, TCCL_BUILT_PARTLY, TCCL_BUILT_PARTLY, "", reason, node);
    }
    if (of[TCCL_BUILT_NOT_USED] > 0 && of[TCCL_BUILT_YES] + of[TCCL_BUILT_UNKNOWN] > 0)
        return say(sum, TCCL_BUILT_DIFFERS, TCCL_BUILT_NOT_USED, " left the plan alone", reason,
                   node);
    if (!built_sum_is_whole(sum)) {
        char name[TCCL_HOST_NAME + 1];
        int silent = sum->nodes[TCCL_BUILT_NOTHING];
        *node = sum->lowest[TCCL_BUILT_NOTHING];
        tccl_hosts_name(nodes, *node, name);
        snprintf(reason, TCCL_OUTCOME_REASON + 1, "%s has not said what was built (%d of %d nodes)",
                 name, silent, sum->end - sum->first);
        return TCCL_BUILT_UNKNOWN;
    }
    if (of[TCCL_BUILT_UNKNOWN] > 0)
        return say(sum, TCCL_BUILT_UNKNOWN, TCCL_BUILT_UNKNOWN, "", reason, node);
    if (of[TCCL_BUILT_NOT_USED] > 0)
        return say(sum, TCCL_BUILT_NOT_USED, TCCL_BUILT_NOT_USED, "", reason, node);
    if (sum->rank_last < 0 || sum->falls + (sum->rank_last > sum->rank_first) <= 1)
        return TCCL_BUILT_YES;
    snprintf(reason, TCCL_OUTCOME_REASON + 1,
             "NCCL has the nodes in another order, that of their lowest ranks");
    return TCCL_BUILT_DIFFERS;
}

json_t *built_sum_to_json(const struct built_sum *sum)
{
    cleanup_json json_t *said = json_array();
    for (int rank = 0; rank < BUILT_RANKS; rank++) {
        json_t *one =
            json_pack("{s:i, s:i}", "nodes", sum->nodes[rank], "lowest", sum->lowest[rank]);
        if (json_array_append_new(said, one) != 0 ||
            tccl_put_text(one, "text", sum->text[rank], BUILT_TEXT) != 0)
            return NULL;
    }
    cleanup_json json_t *json =
        json_pack("{s:O, s:[i,i,i], s:o*}", "said", said, "order", sum->rank_first, sum->rank_last,
                  sum->falls, "later", sum->later > 0 ? json_integer(sum->later) : NULL);
    if (tccl_put_text(json, "slowed", *sum->slowed ? sum->slowed : NULL, BUILT_TEXT) != 0)
        return NULL;
    return tccl_steal(json);
}

static int read_rank(const json_t *json, int rank, int first, int end, struct built_sum *sum,
                     struct tccl_error *err)
{
    json_int_t nodes, lowest;
    const char *text;
    if (tccl_get_int(json, "nodes", 0, end - first, &nodes, err) != 0 ||
        tccl_get_int(json, "lowest", -1, end - 1, &lowest, err) != 0 ||
        tccl_get_text(json, "text", BUILT_TEXT, &text, err) != 0)
        return -1;
    if (nodes > 0 ? lowest < first || lowest > end - nodes : lowest != -1)
        return tccl_fail(err, "lowest: %d does not fit", (int)lowest);
    add(sum, rank, (int)nodes, (int)lowest, text);
    return 0;
}

int built_sum_from_json(const json_t *json, int first, int end, struct built_sum *sum,
                        struct tccl_error *err)
{
    const json_t *said = json_object_get(json, "said");
    const char *slowed;
    json_int_t later = json_object_get(json, "slowed") != NULL; /* of an older tccld */
    built_sum_begin(sum, first);
    if (tccl_get_optional_text(json, "slowed", BUILT_TEXT, &slowed, err) != 0 ||
        (json_object_get(json, "later") &&
         tccl_get_int(json, "later", 1, end - first, &later, err) != 0))
        return -1;
    sum->later = (int)later;
    snprintf(sum->slowed, sizeof(sum->slowed), "%s", slowed ? slowed : "");
    if (json_array_size(said) != BUILT_RANKS)
        return tccl_fail(err, "said: %d verdicts are expected", BUILT_RANKS);
    for (int rank = 0; rank < BUILT_RANKS; rank++)
        if (read_rank(json_array_get(said, (size_t)rank), rank, first, end, sum, err) != 0)
            return -1;
    if (sum->end == end) {
        const json_t *order = json_object_get(json, "order");
        int *const numbers[] = {&sum->rank_first, &sum->rank_last, &sum->falls};
        const int least[] = {-1, -1, 0}, most[] = {INT32_MAX, INT32_MAX, (end - first) - 1};
        for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
            const json_t *number = json_array_get(order, i);
            json_int_t value = json_integer_value(number);
            if (!json_is_integer(number) || value < least[i] || value > most[i])
                return tccl_fail(err, "order: entry %zu is no number within its bounds", i);
            *numbers[i] = (int)value;
        }
        return 0;
    }
    return tccl_fail(err, "said: of %d nodes in place of %d", sum->end - first, end - first);
}
