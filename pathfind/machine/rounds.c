/* rounds.c: the rounds of all-reduces that run at once, in up to nine ways in which these meet. */
#include "machine/sides.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

enum { FIRST, BOTH, LAST, PHASES, WAYS = PHASES * PHASES, TIMES = 30, STEADY = -1 };
#define RARE 1e-6    /* the part of what takes no time */
#define SETTLED 1e-4 /* rounds that differ by less of themselves from those before */

/* A side in its rounds. */
struct party {
    const struct tccl_side *side;
    int at; /* its first transfer, among all that may run */
    int n_blocks;
    struct tccl_block blocks[TCCL_MAX_SIDE];
    int number; /* of those whose phases differ; STEADY: it does one thing all the time */
    int phases[WAYS];
    double parts[PHASES], round;
};

struct meeting {
    int n, ways, count; /* sides; ways in which they meet; transfers */
    struct party parties[TCCL_MAX_SIDES];
    double times[WAYS][TCCL_MAX_RUNNING]; /* of a chunk; 0: it does not run */
};

/* What the party does in one of the ways: of each two with other numbers below 4 all that two can
 * do. */
static void find_phases(struct party *party)
{
    static const int factors[][2] = {{1, 0}, {0, 1}, {1, 1}, {1, 2}};
    const int *own = party->number == STEADY ? NULL : factors[party->number % 4];
    for (int way = 0; way < WAYS; way++)
        party->phases[way] =
            own ? (own[0] * (way % PHASES) + own[1] * (way / PHASES)) % PHASES : BOTH;
}

/* Blocks wait for their GPU's own copies alone. */
static bool is_under_way(tccl_transfer transfer, int phase)
{
    return phase == BOTH || (tccl_transfer_initiator(transfer).kind == TCCL_GPU &&
                             tccl_transfer_reads(transfer) == (phase == LAST));
}

/* Returns 0, or -1 with err. */
static int set_up(struct meeting *meeting, const struct tccl_side *const *sides, int n,
                  struct tccl_error *err)
{
    int number = 0;
    meeting->n = n;
    for (int i = 0; i < n; i++) {
        struct party *party = &meeting->parties[i];
        const int steps = 2 * sides[i]->ranks - 1;
        party->side = sides[i];
        party->at = meeting->count;
        party->number = number;
        meeting->count += sides[i]->count;
        if (meeting->count > TCCL_MAX_RUNNING)
            return tccl_fail(err, "more than %d transfers at once", TCCL_MAX_RUNNING);
        party->n_blocks = tccl_side_blocks(party->side, party->blocks);
        bool sends = false, receives = false;
        for (int k = 0; k < party->n_blocks; k++) {
            sends = sends || party->blocks[k].sends >= 0;
            receives = receives || party->blocks[k].receives >= 0;
        }
        if (!sends || !receives || party->side->ranks < 2)
            party->number = STEADY;
        party->parts[BOTH] = 1;
        find_phases(party);
        if (party->number == STEADY)
            continue;
        number++;
        party->parts[FIRST] = party->parts[LAST] = 1.0 / steps;
        party->parts[BOTH] -= 2.0 / steps;
    }
    meeting->ways = number > 1 ? WAYS : number > 0 ? PHASES : 1;
    return 0;
}

static int rate_way(const struct tccl_model *model, struct meeting *meeting, int way,
                    struct tccl_error *err)
{
    tccl_transfer members[TCCL_MAX_RUNNING] = {0};
    int places[TCCL_MAX_RUNNING], count = 0;
    double rates[TCCL_MAX_RUNNING];
    for (int i = 0; i < meeting->n; i++) {
        const struct party *party = &meeting->parties[i];
        for (int k = 0; k < party->side->count; k++)
            if (is_under_way(party->side->transfers[k], party->phases[way])) {
                places[count] = party->at + k;
                members[count++] = party->side->transfers[k];
            }
    }
    if (tccl_model_rates(model, members, count, rates, NULL, err) != 0)
        return -1;
    for (int i = 0; i < count; i++)
        meeting->times[way][places[i]] = 1 / rates[i];
    return 0;
}

/* How often the others do what they do in each way, of those in which the party does the same. */
static void weigh(const struct meeting *meeting, const struct party *own, double *weights)
{
    double all[PHASES] = {0};
    for (int way = 0; way < meeting->ways; way++) {
        weights[way] = 1;
        for (int i = 0; i < meeting->n; i++) {
            const struct party *other = &meeting->parties[i];
            if (other != own)
                weights[way] *= fmax(other->parts[other->phases[way]], RARE);
        }
        all[own->phases[way]] += weights[way];
    }
    for (int way = 0; way < meeting->ways; way++)
        weights[way] /= all[own->phases[way]];
}

/* How long a chunk of one of its transfers takes, on average over what the others do meanwhile. -1:
 * no time. */
static double time_of(const struct meeting *meeting, const struct party *own, const double *weights,
                      int phase, int transfer)
{
    double time = 0;
    for (int way = 0; way < meeting->ways && transfer >= 0; way++)
        if (own->phases[way] == phase)
            time += weights[way] * meeting->times[way][own->at + transfer];
    return time;
}

/* The slowest block's, and no shorter than any transfer takes. */
static void go_around(const struct meeting *meeting, struct party *own)
{
    const int both = own->number == STEADY ? 1 : 2 * own->side->ranks - 3;
    double step = 0, weights[WAYS];
    weigh(meeting, own, weights);
    own->round = 0;
    for (int i = 0; i < own->side->count; i++)
        step = fmax(step, time_of(meeting, own, weights, BOTH, i));
    for (int i = 0; i < own->n_blocks && own->number != STEADY; i++) {
        const struct tccl_block *block = &own->blocks[i];
        double times[PHASES] = {time_of(meeting, own, weights, FIRST, block->sends),
                                both * fmax(time_of(meeting, own, weights, BOTH, block->sends),
                                            time_of(meeting, own, weights, BOTH, block->receives)),
                                time_of(meeting, own, weights, LAST, block->receives)};
        double round = times[FIRST] + times[BOTH] + times[LAST];
        if (round <= own->round)
            continue;
        own->round = round;
        for (int k = 0; k < PHASES; k++)
            own->parts[k] = times[k] / round;
    }
    own->round = fmax(own->round, (own->number == STEADY ? 1 : both + 1) * step);
}

static void settle(struct meeting *meeting)
{
    double moved = 1;
    for (int turn = 0; turn < TIMES && moved > SETTLED; turn++) {
        moved = 0;
        for (int i = 0; i < meeting->n; i++) {
            struct party *own = &meeting->parties[i];
            const double before = own->round;
            go_around(meeting, own);
            moved = fmax(moved, fabs(own->round / before - 1));
        }
    }
}

int tccl_model_rounds(const struct tccl_model *model, const struct tccl_side *const *sides, int n,
                      double *gbps, struct tccl_error *err)
{
    cleanup_free struct meeting *meeting = calloc(1, sizeof(*meeting));
    if (!meeting)
        return tccl_fail(err, "out of memory");
    if (set_up(meeting, sides, n, err) != 0)
        return -1;
    for (int way = 0; way < meeting->ways; way++)
        if (rate_way(model, meeting, way, err) != 0)
            return -1;
    settle(meeting);
    for (int i = 0; i < n; i++) {
        const struct party *party = &meeting->parties[i];
        const int chunks = party->number == STEADY ? 1 : 2 * sides[i]->ranks - 2;
        gbps[i] = party->round > 0 ? sides[i]->rings * chunks / party->round : INFINITY;
    }
    return 0;
}
