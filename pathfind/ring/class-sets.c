/* class-sets.c: the ring sets of a node class. */
#include "ring/class-sets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chain/expressible.h"

/* What the line rates leave, in one direction. */
static double line_rate(const struct tccl_node_class *class, const int *nics, int rings)
{
    int counts[TCCL_MAX_NICS] = {0};
    double rate = INFINITY;
    for (int i = 0; i < rings; i++)
        counts[nics[i]]++;
    for (int i = 0; i < rings; i++)
        rate = fmin(rate, class->nics[nics[i]].gbps / counts[nics[i]]);
    return rings * rate;
}

double tccl_class_hops(const struct tccl_node_class *class, const int *in, const int *out,
                       int rings)
{
    return fmin(line_rate(class, in, rings), line_rate(class, out, rings));
}

void tccl_set_nics(const struct tccl_ring_set *set, int *in, int *out)
{
    for (int i = 0; i < set->n; i++) {
        in[i] = set->rings[i].closed ? -1 : set->rings[i].entry.nic;
        out[i] = set->rings[i].closed ? -1 : set->rings[i].exit.nic;
    }
}

static bool one_fabric(const struct tccl_node_class *class, int a, int b)
{
    return a == b ||
           (a >= 0 && b >= 0 && strcmp(class->nics[a].fabric, class->nics[b].fabric) == 0);
}

/* Do they pass in the same way, ring by ring in some order? */
static bool same_way(const struct tccl_node_class *class, const struct tccl_ring_set *a,
                     const struct tccl_ring_set *b)
{
    int in[2][TCCL_CHAIN_RINGS], out[2][TCCL_CHAIN_RINGS];
    uint32_t taken = 0;
    if (a->n != b->n)
        return false;
    tccl_set_nics(a, in[0], out[0]);
    tccl_set_nics(b, in[1], out[1]);
    for (int i = 0; i < a->n; i++) {
        int j = 0;
        while (j < b->n && (taken >> j & 1 || !one_fabric(class, in[0][i], in[1][j]) ||
                            !one_fabric(class, out[0][i], out[1][j])))
            j++;
        if (j == b->n)
            return false;
        taken |= UINT32_C(1) << j;
    }
    return true;
}

/* Between equal nodes, GB/s. */
static double reached(const struct tccl_node_class *class, const struct tccl_class_set *set)
{
    int in[TCCL_CHAIN_RINGS], out[TCCL_CHAIN_RINGS];
    if (set->set.rings[0].closed)
        return set->gbps;
    tccl_set_nics(&set->set, in, out);
    return fmin(set->gbps, tccl_class_hops(class, in, out, set->set.n));
}

int tccl_class_best_rings(const struct tccl_node_class *class)
{
    double best = 0;
    int rings = 0;
    for (int i = 0; i < class->n_nics * class->n_nics; i++) {
        int in = i / class->n_nics, out = i % class->n_nics;
        best = fmax(best, fmin(class->cells[i].gbps, tccl_class_hops(class, &in, &out, 1)));
        rings = best > 0;
    }
    for (int i = 0; i < class->n_sets; i++)
        if (!class->sets[i].set.rings[0].closed &&
            reached(class, &class->sets[i]) > best * (1 + 1e-3)) {
            best = reached(class, &class->sets[i]);
            rings = class->sets[i].set.n;
        }
    return rings;
}

const struct tccl_class_set *tccl_class_best_set(const struct tccl_node_class *class, bool closed)
{
    const struct tccl_class_set *best = NULL;
    for (int i = 0; i < class->n_sets; i++)
        if (class->sets[i].set.rings[0].closed == closed &&
            (!best || reached(class, &class->sets[i]) > reached(class, best)))
            best = &class->sets[i];
    return best;
}

int tccl_job_sets(const struct tccl_table *table, const struct tccl_machine *machine,
                  struct tccl_class_set best[static 2])
{
    struct tccl_node_class *class = tccl_node_class_from_table(table, machine);
    if (!class)
        return -1;
    for (int closed = 0; closed < 2; closed++) {
        const struct tccl_class_set *own = tccl_class_best_set(class, closed);
        best[closed] = own ? *own : (struct tccl_class_set){0};
    }
    tccl_node_class_free(class);
    return 0;
}

/* The bound is of all sets of as many rings, whichever of them stays. */
static void keep_better(const struct tccl_node_class *class, struct tccl_class_set *own,
                        const struct tccl_class_set *other)
{
    double bound = fmin(own->bound, other->bound);
    if (reached(class, other) > reached(class, own))
        *own = *other;
    own->bound = fmax(bound, own->gbps);
}

int tccl_node_class_add_set(struct tccl_node_class *class, const struct tccl_class_set *set)
{
    struct tccl_class_set own = *set;
    if (!(own.alone > 0)) {
        own.alone = own.gbps;
        own.share = 1;
    }
    for (int i = 0; i < class->n_sets; i++)
        if (same_way(class, &class->sets[i].set, &own.set)) {
            keep_better(class, &class->sets[i], &own);
            return 0;
        }
    if (class->n_sets == TCCL_CLASS_SETS)
        return 0;
    struct tccl_class_set *sets = realloc(class->sets, sizeof(*sets) * (class->n_sets + 1));
    if (!sets)
        return -1;
    class->sets = sets;
    sets[class->n_sets++] = own;
    return 0;
}

/* Has it these NICs? */
static bool fits(const struct tccl_ring_set *set, const int *in, const int *out, int rings,
                 uint8_t *order)
{
    int own_in[TCCL_CHAIN_RINGS], own_out[TCCL_CHAIN_RINGS];
    uint32_t taken = 0;
    if (set->n != rings)
        return false;
    tccl_set_nics(set, own_in, own_out);
    for (int i = 0; i < rings; i++) {
        int j = 0;
        while (j < rings && (taken >> j & 1 || own_in[j] != in[i] || own_out[j] != out[i]))
            j++;
        if (j == rings)
            return false;
        taken |= UINT32_C(1) << j;
        order[i] = (uint8_t)j;
    }
    return true;
}

const struct tccl_class_set *tccl_class_find_set(const struct tccl_node_class *class, const int *in,
                                                 const int *out, int rings,
                                                 uint8_t order[static TCCL_CHAIN_RINGS])
{
    for (int i = 0; i < class->n_sets; i++)
        if (fits(&class->sets[i].set, in, out, rings, order))
            return &class->sets[i];
    return NULL;
}

static void format_set(const struct tccl_node_class *class, const struct tccl_ring_set *set,
                       char text[static TCCL_RINGS_TEXT])
{
    struct tccl_named_rings named = {.n = set->n};
    for (int i = 0; i < set->n; i++) {
        const struct tccl_chain *chain = &set->rings[i];
        tccl_chain_name_nics(chain, chain->closed ? "" : class->nics[chain->entry.nic].name,
                             chain->closed ? "" : class->nics[chain->exit.nic].name,
                             &named.chains[i]);
    }
    tccl_named_rings_format(&named, text);
}

/* An unknown bound (infinite) is null. */
json_t *tccl_class_sets_to_json(const struct tccl_node_class *class)
{
    char text[TCCL_RINGS_TEXT];
    json_t *json = json_array();
    for (int i = 0; i < class->n_sets; i++) {
        const struct tccl_class_set *set = &class->sets[i];
        format_set(class, &set->set, text);
        json_array_append_new(
            json,
            json_pack("{s:f, s:f, s:f, s:s, s:o, s:s}", "gbps", set->gbps, "alone", set->alone,
                      "share", set->share, "basis", tccl_basis_name(set->basis), "bound",
                      isfinite(set->bound) ? json_real(set->bound) : json_null(), "rings", text));
    }
    return json;
}

/* The NIC of that name; -1: the class has none. */
static int find_nic(const struct tccl_node_class *class, const char *name)
{
    for (int i = 0; i < class->n_nics; i++)
        if (strcmp(class->nics[i].name, name) == 0)
            return i;
    return -1;
}

static int resolve(const struct tccl_node_class *class, const struct tccl_named_chain *named,
                   struct tccl_chain *chain)
{
    int entry = named->closed ? -1 : find_nic(class, named->entry.nic);
    int exit = named->closed ? -1 : find_nic(class, named->exit.nic);
    uint32_t gpus = 0;
    if ((!named->closed && (entry < 0 || exit < 0)) ||
        tccl_chain_resolve_nics(named, entry, exit, chain, NULL) != 0)
        return -1;
    for (int i = 0; i < chain->n_gpus; i++)
        gpus |= UINT32_C(1) << chain->gpus[i];
    return gpus == class->gpus ? 0 : -1;
}

/* Two chains or more over the GPUs of the class, by its NICs. */
static int parse_set(const struct tccl_node_class *class, const char *text,
                     struct tccl_ring_set *set)
{
    struct tccl_named_rings named;
    if (tccl_named_rings_parse(text, &named, NULL) != 0 || named.n < 2)
        return -1;
    set->n = named.n;
    for (int i = 0; i < named.n; i++)
        if (resolve(class, &named.chains[i], &set->rings[i]) != 0)
            return -1;
    return 0;
}

static bool is_rate(double gbps)
{
    return gbps >= 0 && gbps <= 1e6;
}

static int set_from_json(json_t *json, struct tccl_node_class *class)
{
    struct tccl_class_set set = {0};
    const char *basis, *text;
    json_t *bound;
    if (json_unpack(json, "{s:F, s:F, s:F, s:s, s:o, s:s!}", "gbps", &set.gbps, "alone", &set.alone,
                    "share", &set.share, "basis", &basis, "bound", &bound, "rings", &text) != 0 ||
        tccl_basis_parse(basis) < 0)
        return -1;
    set.basis = (enum tccl_basis)tccl_basis_parse(basis);
    set.bound = json_is_null(bound) ? INFINITY : json_number_value(bound);
    if (!is_rate(set.gbps) || !(set.gbps > 0) || !is_rate(set.alone) || !(set.alone >= set.gbps) ||
        !(set.share >= 0 && set.share <= 1) || !(set.bound >= set.gbps) ||
        !(json_is_null(bound) || (json_is_number(bound) && is_rate(set.bound))))
        return -1;
    if (parse_set(class, text, &set.set) != 0)
        return -1;
    return tccl_expressible(NULL, set.set.rings, set.set.n, NULL) == 0
               ? tccl_node_class_add_set(class, &set)
               : 0;
}

int tccl_class_sets_from_json(const json_t *json, struct tccl_node_class *class,
                              struct tccl_error *err)
{
    if (json && (!json_is_array(json) || json_array_size(json) > TCCL_CLASS_SETS))
        return tccl_fail(err, "sets of a node class: a list of at most %d is expected",
                         TCCL_CLASS_SETS);
    for (size_t i = 0; i < json_array_size(json); i++)
        if (set_from_json(json_array_get(json, i), class) != 0)
            return tccl_fail(err, "set %zu of a node class is wrong", i);
    return 0;
}

static bool set_equal(const struct tccl_class_set *a, const struct tccl_class_set *b)
{
    if (a->gbps != b->gbps || a->bound != b->bound || a->alone != b->alone ||
        a->share != b->share || a->basis != b->basis || a->set.n != b->set.n)
        return false;
    for (int i = 0; i < a->set.n; i++)
        if (!tccl_chain_equal(&a->set.rings[i], &b->set.rings[i]))
            return false;
    return true;
}

bool tccl_class_sets_equal(const struct tccl_node_class *a, const struct tccl_node_class *b)
{
    if (a->n_sets != b->n_sets)
        return false;
    for (int i = 0; i < a->n_sets; i++)
        if (!set_equal(&a->sets[i], &b->sets[i]))
            return false;
    return true;
}
