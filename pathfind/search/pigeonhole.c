/* pigeonhole.c: pairs of bounces through one memory. */
#include "search/pigeonhole.h"

/* Puts a bounce's two transfers on the stack; returns the bound of the stack. */
static double push_bounce(struct tccl_bounds *bounds, int memory, int from, int to, double above)
{
    tccl_transfer transfers[2];
    tccl_edge_transfers((struct tccl_edge){TCCL_BOUNCE, memory}, from, to, transfers);
    tccl_bounds_push(bounds, transfers[0], above);
    return tccl_bounds_push(bounds, transfers[1], above);
}

static void pop_bounce(struct tccl_bounds *bounds)
{
    tccl_bounds_pop(bounds);
    tccl_bounds_pop(bounds);
}

/* Looks for a second bounce that goes together with the first one, which is on the stack. */
static bool second_fits(struct tccl_bounds *bounds, uint32_t gpus, int memory, int from, int to,
                        double above, uint8_t *other_from, uint8_t *other_to)
{
    for (int a = from + 1; a < TCCL_MAX_GPUS; a++) {
        for (int b = 0; b < TCCL_MAX_GPUS; b++) {
            if (!(gpus >> a & 1) || !(gpus >> b & 1) || a == b || b == to)
                continue;
            double bound = push_bounce(bounds, memory, a, b, above);
            pop_bounce(bounds);
            if (bound > above) {
                *other_from = a;
                *other_to = b;
                return true;
            }
        }
    }
    return false;
}

static bool pair_fits(struct tccl_bounds *bounds, uint32_t gpus, int memory, double above,
                      uint8_t from[2], uint8_t to[2])
{
    for (int a = 0; a < TCCL_MAX_GPUS; a++) {
        for (int b = 0; b < TCCL_MAX_GPUS; b++) {
            if (!(gpus >> a & 1) || !(gpus >> b & 1) || a == b)
                continue;
            bool found = push_bounce(bounds, memory, a, b, above) > above &&
                         second_fits(bounds, gpus, memory, a, b, above, &from[1], &to[1]);
            pop_bounce(bounds);
            if (found) {
                from[0] = a;
                to[0] = b;
                return true;
            }
        }
    }
    return false;
}

bool tccl_pigeonholes_exclusive(struct tccl_pigeonholes *pigeonholes, struct tccl_bounds *bounds,
                                uint32_t gpus, int memory, double above)
{
    __typeof__(pigeonholes->memories[0]) *known = &pigeonholes->memories[memory];
    if (known->proven && above >= known->exclusive_above)
        return true;
    if (known->seen) {
        push_bounce(bounds, memory, known->from[0], known->to[0], above);
        double bound = push_bounce(bounds, memory, known->from[1], known->to[1], above);
        pop_bounce(bounds);
        pop_bounce(bounds);
        if (bound > above)
            return false;
    }
    known->seen = pair_fits(bounds, gpus, memory, above, known->from, known->to);
    if (!known->seen) {
        known->proven = true;
        known->exclusive_above = above;
    }
    return !known->seen;
}
