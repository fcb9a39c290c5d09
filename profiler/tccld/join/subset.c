/* CHAIN: a lookup in the chain table of that GPU set, as at a JOIN, or its part of what was chosen
 * for all groups of the step. */
#include "tccld/join/running.h"

#include <string.h>

#include "client/outcome.h"
#include "ring/reach.h"
#include "tccld/join/alongside.h"
#include "tccld/join/chain-lines.h"
#include "tccld/join/own.h"

enum { SUBSET_ANSWER = 4096 /* longest answer, bytes */ };

/* What is asked. */
struct question {
    tccl_bus gpus[TCCL_MAX_GPUS];
    int n_gpus;
    bool closed;
};

static int find_gpu(const tccl_bus *gpus, int n, tccl_bus gpu)
{
    for (int i = 0; i < n; i++)
        if (gpus[i] == gpu)
            return i;
    return -1;
}

static int read_question(const struct tccl_lines *lines, const struct running_step *step,
                         struct question *question, struct tccl_error *err)
{
    if (tccl_line_bool(lines, "closed", &question->closed) != 0)
        return tccl_fail(err, "closed: yes or no is expected");
    question->n_gpus = chain_lines_get_gpus(lines, question->gpus);
    if (question->n_gpus < 0)
        return tccl_fail(err, "gpus: a list of 1 to %d bus ids is expected", TCCL_MAX_GPUS);
    for (int i = 0; i < question->n_gpus; i++) {
        if (find_gpu(step->gpus, step->n_gpus, question->gpus[i]) < 0)
            return tccl_fail(err, "gpus: entry %d is not a GPU of this step on this node", i);
        if (find_gpu(question->gpus, i, question->gpus[i]) >= 0)
            return tccl_fail(err, "gpus: entry %d is there twice", i);
    }
    return 0;
}

static void answer(struct tccl_line_writer *lines, enum tccl_state state, const char *reason)
{
    tccl_line_put(lines, "state", "%s", tccl_state_name(state));
    if (*reason)
        tccl_line_put(lines, "reason", "%s", reason);
}

/* What harms a step beside it comes last. b: may be NULL. */
static bool is_better(const struct tccl_seen *a, const struct tccl_seen *b)
{
    return !b || (a->harms == b->harms ? a->gbps > b->gbps : b->harms);
}

/* The best over all pairs of NICs that meet those of the other nodes. */
static const struct tccl_seen *best_cell(const struct tccl_node_class *class)
{
    const struct tccl_seen *best = NULL;
    for (int i = 0; i < tccl_class_pairs(class); i++)
        if (class->seen[i].set.n && is_better(&class->seen[i], best) &&
            strcmp(class->nics[i / class->n_nics].fabric, class->meets) == 0 &&
            strcmp(class->nics[i % class->n_nics].fabric, class->meets) == 0)
            best = &class->seen[i];
    return best;
}

static void put_choice(struct tccl_line_writer *lines, const struct tccl_node_class *class,
                       const struct tccl_machine *machine, const struct tccl_group_choice *choice,
                       bool closed)
{
    struct tccl_error err = {0};
    const int gpus = class->n_gpus * (closed ? 1 : 2);
    bool better = false;
    if (tccl_chain_check(&choice->cell.set.rings[0], machine, &err) != 0 ||
        tccl_expressible(machine, &choice->cell.set.rings[0], 1, &err) != 0) {
        answer(lines, TCCL_STATE_FAILED, err.text);
        return;
    }
    for (int i = 0; i < TCCL_GENERATIONS; i++)
        better |= choice->better[i];
    const char *why_left =
        choice->cell.basis == TCCL_BASIS_BOUNDS
            ? "what it has beside others is known by bounds only (tccl-profile run --neighbours)"
            : "NCCL's own choice is as good";
    answer(lines, better ? TCCL_STATE_PLANNED : TCCL_STATE_LEFT, better ? "" : why_left);
    chain_lines_put_rates(lines, choice->cell.gbps * tccl_reach(choice->cell.told_ends, gpus),
                          class->source);
    for (int i = 0; i < TCCL_GENERATIONS; i++)
        chain_lines_put_baseline(
            lines,
            &(struct tccl_outcome_baseline){.first = tccl_generation(i)->first,
                                            .gbps = choice->baseline_gbps[i] *
                                                    tccl_reach(choice->baseline_ends[i], gpus),
                                            .better = !choice->better[i]},
            class, closed);
    if (better)
        chain_lines_put(lines, &(struct tccl_ring_set){1, {choice->cell.set.rings[0]}},
                        &choice->cell.tree, machine);
}

/* The answer for a class of that GPU set, added to the lines. joint: its chain beside the step's
 * other groups; NULL: the class's own. */
static void put_answer(struct tccl_line_writer *lines, const struct tccl_node_class *class,
                       const struct tccl_machine *machine, const struct tccl_group_choice *joint,
                       bool closed)
{
    const struct tccl_seen *cell = closed ? tccl_class_ring(class) : best_cell(class);
    struct tccl_group_choice alone;
    if (closed && class->n_gpus == 1)
        answer(lines, TCCL_STATE_LEFT, "one GPU");
    else if (!closed && class->n_nics == 0)
        answer(lines, TCCL_STATE_FAILED, "this node has no NIC");
    else if (!closed && !*class->meets)
        answer(lines, TCCL_STATE_FAILED,
               "NCCL's own NICs of these GPUs are on several fabrics: nodes would have to agree");
    else if (!cell || !cell->set.n || !(cell->gbps > 0))
        answer(lines, TCCL_STATE_FAILED, "the profile has no such chain of these GPUs");
    else if (joint)
        put_choice(lines, class, machine, joint, closed);
    else {
        tccl_group_alone(class, cell, closed, &alone);
        put_choice(lines, class, machine, &alone, closed);
    }
}

void subset_ask(struct daemon *daemon, struct connection *connection,
                const struct tccl_lines *lines)
{
    struct tccl_error err = {0};
    struct question question;
    char text[SUBSET_ANSWER];
    struct tccl_line_writer writer;
    struct running_step *step = running_asked(daemon, connection, lines, &err);
    if (!step || read_question(lines, step, &question, &err) != 0) {
        connection_refuse(connection, err.text);
        return;
    }
    tccl_lines_begin(&writer, text, sizeof(text), "tccl-chain", 1);
    if (step->measure) { /* a shim that does not know of it */
        answer(&writer, TCCL_STATE_LEFT, "what NCCL's own choice achieves is measured");
        connection_answer_lines(connection, &writer);
        return;
    }
    if (!question.closed && daemon->alone) {
        answer(&writer, TCCL_STATE_FAILED,
               "it has ranks on other machines, and tccl-run is for one");
        connection_answer_lines(connection, &writer);
        return;
    }
    struct shared_class *class = own_kind_busids(daemon->own, daemon->conf, question.gpus,
                                                 question.n_gpus, running_view(step), &err);
    if (class) {
        /* Beside the step's other groups, or else beside other steps alone. */
        bool closed = question.closed, group = !closed || class->class->n_gpus > 1;
        const struct tccl_group_choice *joint =
            group ? joint_choice(daemon->running, step, class->class, closed) : NULL;
        if (!joint)
            class = alongside_see(daemon->running, &step->key, class, closed, running_view(step));
        put_answer(&writer, class->class, own_machine(daemon->own), joint, closed);
        shared_class_drop(class);
    } else {
        answer(&writer, TCCL_STATE_FAILED, err.text);
    }
    connection_answer_lines(connection, &writer);
}
