/* plain-search.h: the paper's search for the best ring of a node as it stands there: best first
 * over transfer sets, each measured when it is inserted; P2P edges write, as those of ours do that
 * bounds are proven for. To compare with. */
#pragma once

#include "chain/chain.h"
#include "machine/model.h"

/* A path from the first GPU on; pending: the last GPU has written to a memory, nobody has read yet.
 */
struct plain_state {
    double gbps;
    long born;
    int progress;            /* transfers, if the more complete of equals is to go first */
    int8_t bounces, pending; /* pending: memory or -1 */
    uint32_t visited;
    int8_t last;
    bool closed;
    struct tccl_set set;
};

struct plain_search {
    const struct tccl_model *model;
    uint32_t gpus;
    int n_gpus, first;
    struct plain_state *heap;
    long count, room, limit;
    long measured;
    bool complete_first;
};

/* Is a to be taken before b: the faster; of equals the more complete, if wanted, then the older. */
static bool plain_before(const struct plain_state *a, const struct plain_state *b)
{
    if (a->gbps != b->gbps)
        return a->gbps > b->gbps;
    if (a->progress != b->progress)
        return a->progress > b->progress;
    return a->born < b->born;
}

static void plain_push(struct plain_search *search, struct plain_state *state)
{
    if (tccl_model_measure(search->model, &state->set, &state->gbps, NULL, NULL, NULL) < 0)
        return;
    state->born = search->measured++;
    state->progress = search->complete_first ? state->set.count : 0;
    if (search->count == search->room) {
        search->room = search->room ? 2 * search->room : 1024;
        search->heap = realloc(search->heap, search->room * sizeof(*search->heap));
    }
    long place = search->count++;
    while (place > 0 && plain_before(state, &search->heap[(place - 1) / 2])) {
        search->heap[place] = search->heap[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    search->heap[place] = *state;
}

static struct plain_state plain_pop(struct plain_search *search)
{
    struct plain_state top = search->heap[0], moved = search->heap[--search->count];
    long place = 0;
    for (;;) {
        long child = 2 * place + 1;
        if (child >= search->count)
            break;
        if (child + 1 < search->count &&
            plain_before(&search->heap[child + 1], &search->heap[child]))
            child++;
        if (!plain_before(&search->heap[child], &moved))
            break;
        search->heap[place] = search->heap[child];
        place = child;
    }
    search->heap[place] = moved;
    return top;
}

static void plain_add(struct plain_state *state, int who_kind, int who, bool reads, int whom_kind,
                      int whom)
{
    tccl_set_add(&state->set, tccl_transfer_make((struct tccl_device){who_kind, who}, reads,
                                                 (struct tccl_device){whom_kind, whom}));
}

/* The path arrives at a GPU, by one more transfer in its set. */
static void plain_arrive(struct plain_search *search, struct plain_state *next, int to)
{
    next->closed = next->visited >> to & 1;
    next->visited |= 1u << to;
    next->last = to;
    if (next->closed && next->bounces == 1)
        return; /* a stock NCCL can't be made to build it */
    plain_push(search, next);
}

static void plain_expand_to(struct plain_search *search, const struct plain_state *state, int to)
{
    const struct tccl_machine *machine = tccl_model_machine(search->model);
    struct plain_state next = *state;
    if (state->pending >= 0) {
        plain_add(&next, TCCL_GPU, to, true, TCCL_MEMORY, state->pending);
        next.pending = -1;
        next.bounces++;
        plain_arrive(search, &next, to);
        return;
    }
    if (machine->p2p[state->last][to]) {
        plain_add(&next, TCCL_GPU, state->last, false, TCCL_GPU, to);
        plain_arrive(search, &next, to);
    }
}

static void plain_expand(struct plain_search *search, const struct plain_state *state)
{
    bool all = state->visited == search->gpus;
    for (int to = 0; to < TCCL_MAX_GPUS; to++)
        if ((search->gpus >> to & 1) && to != state->last &&
            (all ? to == search->first : !(state->visited >> to & 1)))
            plain_expand_to(search, state, to);
    for (int m = 0; state->pending < 0 && m < tccl_model_machine(search->model)->n_memories; m++) {
        struct plain_state next = *state;
        next.pending = m;
        plain_add(&next, TCCL_GPU, state->last, false, TCCL_MEMORY, m);
        plain_push(search, &next);
    }
}

/* The best ring over the GPUs of the mask: its bandwidth in *gbps, and how many sets were measured.
 * The paper does not say which of equal sets goes first: the older, or (complete_first) the one
 * with more transfers, which is kinder to it. Returns -1 where it had not ended after limit sets.
 */
__attribute__((unused)) static long plain_ring(const struct tccl_model *model, uint32_t gpus,
                                               long limit, bool complete_first, double *gbps)
{
    struct plain_search search = {
        .model = model, .gpus = gpus, .limit = limit, .complete_first = complete_first};
    search.first = __builtin_ctz(gpus);
    struct plain_state state = {.pending = -1, .visited = 1u << search.first, .last = search.first};
    *gbps = 0;
    plain_expand(&search, &state);
    while (search.count > 0 && search.measured <= limit) {
        state = plain_pop(&search);
        if (state.closed) {
            *gbps = state.gbps;
            break;
        }
        plain_expand(&search, &state);
    }
    free(search.heap);
    return search.measured <= limit ? search.measured : -1;
}
