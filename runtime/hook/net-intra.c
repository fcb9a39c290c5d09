/* net-intra.c: what this process' NCCL was answered. */
#include "hook/hook.h"

#include "nccl/shim-nccl.h"

static int state; /* enum shim_net */
/* The NCCL that has asked, by where it begins. A second one has asked for itself, or will. */
static uintptr_t whose;

static enum shim_net now(void)
{
    return (enum shim_net)shim_load(&state);
}

static bool is_of_another(uintptr_t start)
{
    uintptr_t before = shim_load(&whose);
    return before && before != start;
}

/* One that another thread makes at the same time may ask first. */
static bool others_begin(const struct shim_init *init)
{
    for (struct shim_init *other = NULL; (other = shim_pending_next(other));)
        if (other->entry != init->entry)
            return true;
    return false;
}

enum shim_net shim_net_intra(const struct shim_init *init, uint32_t user)
{
    if (user & SHIM_USER_NO_NET_INTRA)
        return SHIM_NET_OFF;
    if (is_of_another(init->comm.nccl.start) || (now() == SHIM_NET_OPEN && others_begin(init)))
        return SHIM_NET_LEFT;
    return now();
}

/* It has said that it can have it, and what it needs is not known yet, or that it needs it. */
static bool needs(const struct shim_init *init)
{
    return init->entry && shim_load(&init->state) == SHIM_CLAIMED &&
           (init->decision == SHIM_UNDECIDED ||
            (init->decision == SHIM_USE && shim_entry_answer(init->entry)->no_net));
}

/* In the one case in which another thread's init asks between the question of the first one and its
 * decision, that one counts: a chain that lacks the setting can end its init. */
static bool is_needed(const struct shim_init *init)
{
    if (init && needs(init))
        return true;
    for (struct shim_init *other = NULL; (other = shim_pending_next(other));)
        if (other != init && needs(other))
            return true;
    return false;
}

const char *shim_net_intra_answer(const struct shim_init *init, uintptr_t start)
{
    uintptr_t before = 0;
    int open = SHIM_NET_OPEN;
    shim_swap(&whose, &before, start);
    if (is_of_another(start))
        return NULL;
    shim_swap(&state, &open, is_needed(init) ? SHIM_NET_OFF : SHIM_NET_LEFT);
    return now() == SHIM_NET_OFF ? "1" : NULL;
}

void shim_net_intra_early(void)
{
    shim_store(&state, SHIM_NET_LEFT);
}
