/* class-message.c: node classes in messages between nodes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "chain/beside-text.h"
#include "ring/node-class.h"

/* ---- writing ---- */

/* An unknown bound (infinite) is null. No set harms. */
static json_t *seen_to_json(const struct tccl_node_class *class, const struct tccl_seen *seen)
{
    bool several = seen - class->seen >= tccl_class_first_set(class);
    char text[TCCL_RINGS_TEXT];
    tccl_class_format(class, &seen->set, text);
    json_t *json =
        json_pack("{s:f, s:f, s:f, s:i, s:s, s:o, s:o}", "gbps", seen->gbps, "alone", seen->alone,
                  "share", seen->share, "ends", seen->ends, "basis", tccl_basis_name(seen->basis),
                  "bound", isfinite(seen->bound) ? json_real(seen->bound) : json_null(),
                  several ? "rings" : "chain", *text ? json_string(text) : json_null());
    if (!several)
        json_object_set_new(json, "harms", json_boolean(seen->harms));
    return json;
}

static json_t *list_to_json(const struct tccl_node_class *class, int first, int end)
{
    json_t *json = json_array();
    for (int i = first; i < end; i++)
        json_array_append_new(json, seen_to_json(class, &class->seen[i]));
    return json;
}

static json_t *numbers_to_json(const uint8_t *numbers, int count)
{
    json_t *json = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(json, json_integer(numbers[i]));
    return json;
}

static bool baseline_equal(const struct tccl_class_baseline *a, const struct tccl_class_baseline *b)
{
    for (int closed = 0; closed < 2; closed++)
        if (a->gbps[closed] != b->gbps[closed] || a->share[closed] != b->share[closed] ||
            a->bounces[closed] != b->bounces[closed] || a->ends[closed] != b->ends[closed])
            return false;
    return a->n_chains == b->n_chains && memcmp(a->entry_nics, b->entry_nics, a->n_chains) == 0 &&
           memcmp(a->exit_nics, b->exit_nics, a->n_chains) == 0;
}

/* Most generations have the baseline of the one before: that is null. */
static json_t *baselines_to_json(const struct tccl_node_class *class)
{
    json_t *json = json_array();
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        const struct tccl_class_baseline *own = &class->baselines[i];
        json_array_append_new(
            json, i > 0 && baseline_equal(own, own - 1)
                      ? json_null()
                      : json_pack("{s:f, s:f, s:f, s:f, s:i, s:i, s:i, s:i, s:o, s:o}", "ring_gbps",
                                  own->gbps[1], "chain_gbps", own->gbps[0], "ring_share",
                                  own->share[1], "chain_share", own->share[0], "ring_bounces",
                                  own->bounces[1], "chain_bounces", own->bounces[0], "ring_ends",
                                  own->ends[1], "chain_ends", own->ends[0], "entry_nics",
                                  numbers_to_json(own->entry_nics, own->n_chains), "exit_nics",
                                  numbers_to_json(own->exit_nics, own->n_chains)));
    }
    return json;
}

json_t *tccl_node_class_to_json(const struct tccl_node_class *class)
{
    json_t *nics = json_array();
    for (int i = 0; i < class->n_nics; i++)
        json_array_append_new(nics,
                              json_pack("{s:s, s:s, s:f}", "name", class->nics[i].name, "fabric",
                                        class->nics[i].fabric, "gbps", class->nics[i].gbps));
    return json_pack("{s:s, s:s, s:I, s:o*, s:i, s:s*, s:s*, s:o, s:o, s:o, s:o, s:f, s:o}",
                     "machine", class->machine, "source", class->source, "gpus",
                     (json_int_t) class->gpus, "moved", class->moved ? json_true() : NULL,
                     "neighbours", class->neighbours, "beside", class->beside, "worse",
                     *class->worse ? class->worse : NULL, "nics", nics, "cells",
                     list_to_json(class, 0, tccl_class_pairs(class)), "ring",
                     seen_to_json(class, tccl_class_ring(class)), "sets",
                     list_to_json(class, tccl_class_first_set(class), class->n_seen), "noise",
                     class->noise, "baselines", baselines_to_json(class));
}

/* ---- reading ---- */

/* Copies a name of printable ASCII characters. Returns 0, or -1. */
static int take_name(const char *text, char *name, size_t size, bool may_be_empty)
{
    size_t length = strlen(text);
    if (length >= size || (length == 0 && !may_be_empty))
        return -1;
    for (const char *at = text; *at; at++)
        if (*at < ' ' || *at > '~')
            return -1;
    memcpy(name, text, length + 1);
    return 0;
}

static bool is_rate(double gbps)
{
    return gbps >= 0 && gbps <= 1e6;
}

static bool is_share(double share)
{
    return share >= 0 && share <= 1;
}

/* The NIC of that name; -1: the class has none. */
static int find_nic(const struct tccl_node_class *class, const char *name)
{
    for (int i = 0; i < class->n_nics; i++)
        if (strcmp(class->nics[i].name, name) == 0)
            return i;
    return -1;
}

/* Chains over the GPUs of the class, by its NICs. */
static int set_from_text(const struct tccl_node_class *class, const char *text,
                         struct tccl_ring_set *set)
{
    struct tccl_named_rings named;
    if (tccl_named_rings_parse(text, &named, NULL) != 0)
        return -1;
    set->n = named.n;
    for (int i = 0; i < named.n; i++) {
        const struct tccl_named_chain *from = &named.chains[i];
        int entry = from->closed ? 0 : find_nic(class, from->entry.nic);
        int exit = from->closed ? 0 : find_nic(class, from->exit.nic);
        if (entry < 0 || exit < 0 ||
            tccl_chain_resolve_nics(from, entry, exit, &set->rings[i], NULL) != 0 ||
            tccl_chain_gpus(&set->rings[i]) != class->gpus)
            return -1;
    }
    return 0;
}

static bool are_ends(int ends)
{
    return ends == 0 || (ends >= TCCL_ENDS_LEAST && ends <= TCCL_ENDS_MOST);
}

/* What NCCL can't be made to build is left out: n = 0. */
static int seen_from_json(json_t *json, const struct tccl_node_class *class, bool several,
                          struct tccl_seen *seen)
{
    json_t *bound, *chains;
    const char *basis;
    int harms = 0, ends = 0;
    *seen = (struct tccl_seen){0};
    if (json_unpack(json,
                    several ? "{s:F, s:F, s:F, s?i, s:s, s:o, s:o!}"
                            : "{s:F, s:F, s:F, s?i, s:s, s:o, s:o, s:b!}",
                    "gbps", &seen->gbps, "alone", &seen->alone, "share", &seen->share, "ends",
                    &ends, "basis", &basis, "bound", &bound, several ? "rings" : "chain", &chains,
                    "harms", &harms) != 0 ||
        tccl_basis_parse(basis) < 0)
        return -1;
    seen->basis = (enum tccl_basis)tccl_basis_parse(basis);
    seen->harms = harms;
    seen->ends = (uint8_t)ends;
    seen->bound = json_is_null(bound) ? INFINITY : json_number_value(bound);
    if (!is_rate(seen->gbps) || !is_rate(seen->alone) || !(seen->alone >= seen->gbps) ||
        !is_share(seen->share) || !are_ends(ends) || !(seen->bound >= seen->gbps) ||
        !(json_is_null(bound) || (json_is_number(bound) && is_rate(seen->bound))))
        return -1;
    if (json_is_null(chains))
        return seen->gbps == 0 && !several ? 0 : -1;
    if (!json_is_string(chains) ||
        set_from_text(class, json_string_value(chains), &seen->set) != 0 ||
        (several ? seen->set.n < 2 || !(seen->gbps > 0) : seen->set.n != 1))
        return -1;
    if (tccl_expressible(NULL, seen->set.rings, seen->set.n, NULL) != 0)
        *seen = (struct tccl_seen){.bound = seen->bound, .share = 1};
    return 0;
}

/* The chain of a pair of NICs, or the ring, which is behind them. */
static int single_from_json(json_t *json, struct tccl_node_class *class, int i)
{
    const struct tccl_chain *chain = &class->seen[i].set.rings[0];
    bool ring = &class->seen[i] == tccl_class_ring(class);
    if (seen_from_json(json, class, false, &class->seen[i]) != 0)
        return -1;
    return class->seen[i].set.n == 0 ||
                   (ring ? chain->closed
                         : !chain->closed && chain->entry.nic == i / class->n_nics &&
                               chain->exit.nic == i % class->n_nics)
               ? 0
               : -1;
}

/* Without a list (a node that knows of no sets) nothing. */
static int sets_from_json(const json_t *json, struct tccl_node_class *class, struct tccl_error *err)
{
    if (json && (!json_is_array(json) || json_array_size(json) > TCCL_CLASS_SETS))
        return tccl_fail(err, "sets of a node class: a list of at most %d is expected",
                         TCCL_CLASS_SETS);
    for (size_t i = 0; i < json_array_size(json); i++) {
        struct tccl_seen set;
        if (seen_from_json(json_array_get(json, i), class, true, &set) != 0 ||
            (set.set.n > 0 && tccl_node_class_add_set(class, &set) != 0))
            return tccl_fail(err, "set %zu of a node class is wrong", i);
    }
    return 0;
}

static int nic_from_json(json_t *json, struct tccl_node_class *class, int i)
{
    const char *name, *fabric;
    if (json_unpack(json, "{s:s, s:s, s:F!}", "name", &name, "fabric", &fabric, "gbps",
                    &class->nics[i].gbps) != 0 ||
        !is_rate(class->nics[i].gbps) ||
        take_name(name, class->nics[i].name, TCCL_NAME, false) != 0)
        return -1;
    return take_name(fabric, class->nics[i].fabric, TCCL_NAME, true);
}

/* An array of count NICs in ascending order. */
static int nics_from_json(const json_t *json, int n_nics, size_t count, uint8_t *nics)
{
    json_int_t least = 0;
    if (!json_is_array(json) || json_array_size(json) != count)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const json_t *entry = json_array_get(json, i);
        json_int_t nic = json_is_integer(entry) ? json_integer_value(entry) : -1;
        if (nic < least || nic >= n_nics)
            return -1;
        nics[i] = (uint8_t)nic;
        least = nic;
    }
    return 0;
}

static int baseline_from_json(json_t *json, int n_nics, struct tccl_class_baseline *baseline)
{
    json_t *entries, *exits;
    int ends[2] = {0};
    if (json_unpack(json, "{s:F, s:F, s:F, s:F, s:i, s:i, s?i, s?i, s:o, s:o!}", "ring_gbps",
                    &baseline->gbps[1], "chain_gbps", &baseline->gbps[0], "ring_share",
                    &baseline->share[1], "chain_share", &baseline->share[0], "ring_bounces",
                    &baseline->bounces[1], "chain_bounces", &baseline->bounces[0], "ring_ends",
                    &ends[1], "chain_ends", &ends[0], "entry_nics", &entries, "exit_nics",
                    &exits) != 0)
        return -1;
    size_t count = json_array_size(entries);
    for (int closed = 0; closed < 2; closed++) {
        if (!is_rate(baseline->gbps[closed]) || !is_share(baseline->share[closed]) ||
            !are_ends(ends[closed]) || baseline->bounces[closed] < 0 ||
            baseline->bounces[closed] > TCCL_MAX_GPUS + 1)
            return -1;
        baseline->ends[closed] = (uint8_t)ends[closed];
    }
    if (count > TCCL_MAX_CHANNELS || (count == 0 && baseline->gbps[0] > 0))
        return -1;
    baseline->n_chains = (int)count;
    if (nics_from_json(entries, n_nics, count, baseline->entry_nics) != 0)
        return -1;
    return nics_from_json(exits, n_nics, count, baseline->exit_nics);
}

static int identity_from_json(json_t *json, struct tccl_node_class *class)
{
    const char *machine, *source, *worse = "";
    json_int_t gpus;
    int moved = 0;
    if (json_unpack(json, "{s:s, s:s, s:I, s?b, s:i, s?s}", "machine", &machine, "source", &source,
                    "gpus", &gpus, "moved", &moved, "neighbours", &class->neighbours, "worse",
                    &worse) != 0 ||
        take_name(worse, class->worse, sizeof(class->worse), true) != 0 || class->neighbours < 0 ||
        class->neighbours > TCCL_MAX_GPUS)
        return -1;
    if (strlen(machine) != TCCL_HASH_HEX - 1 ||
        strspn(machine, "0123456789abcdef") != TCCL_HASH_HEX - 1 || gpus < 1 ||
        gpus >= 1 << TCCL_MAX_GPUS)
        return -1;
    memcpy(class->machine, machine, TCCL_HASH_HEX);
    class->gpus = gpus;
    class->moved = moved;
    class->n_gpus = __builtin_popcount(class->gpus);
    return take_name(source, class->source, TCCL_NAME, true);
}

/* Returns 0, or -1: it is no such text, or too long. */
static int beside_from_json(const json_t *json, struct tccl_node_class *class)
{
    const char *text = json_string_value(json);
    if (!json)
        return 0;
    if (!text || strlen(text) > TCCL_BESIDE_TEXT)
        return -1;
    cleanup_free struct tccl_neighbour *list = calloc(TCCL_MAX_BESIDE, sizeof(*list));
    class->beside = list && tccl_beside_parse(text, list, NULL) >= 0 ? strdup(text) : NULL;
    return class->beside ? 0 : -1;
}

static int parts_from_json(const json_t *json, struct tccl_node_class *class,
                           struct tccl_error *err)
{
    json_t *object = (json_t *)json, *nics = json_object_get(json, "nics");
    const json_t *cells = json_object_get(json, "cells");
    if (identity_from_json(object, class) != 0)
        return tccl_fail(err, "machine, source or gpus of a node class is missing or wrong");
    const json_t *list = json_object_get(object, "baselines");
    if (json_unpack(object, "{s:F}", "noise", &class->noise) != 0 ||
        !(class->noise >= 0 && class->noise < 1) || json_array_size(list) != TCCL_GENERATIONS)
        return tccl_fail(err, "noise or baselines of a node class is missing or wrong");
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        json_t *own = json_array_get(list, (size_t)i);
        if (i > 0 && json_is_null(own))
            class->baselines[i] = class->baselines[i - 1];
        else if (baseline_from_json(own, class->n_nics, &class->baselines[i]) != 0)
            return tccl_fail(err, "noise or baselines of a node class is missing or wrong");
    }
    for (int i = 0; i < class->n_nics; i++)
        if (nic_from_json(json_array_get(nics, i), class, i) != 0)
            return tccl_fail(err, "NIC %d of a node class is wrong", i);
    for (int i = 0; i < tccl_class_pairs(class); i++)
        if (single_from_json(json_array_get(cells, i), class, i) != 0)
            return tccl_fail(err, "cell %d of a node class is wrong", i);
    if (single_from_json(json_object_get(json, "ring"), class, tccl_class_pairs(class)) != 0)
        return tccl_fail(err, "the ring of a node class is missing or wrong");
    if (beside_from_json(json_object_get(json, "beside"), class) != 0)
        return tccl_fail(err, "the neighbours of a node class are wrong");
    return sets_from_json(json_object_get(json, "sets"), class, err);
}

struct tccl_node_class *tccl_node_class_from_json(const json_t *json, struct tccl_error *err)
{
    const json_t *nics = json_object_get(json, "nics"), *cells = json_object_get(json, "cells");
    size_t n = json_array_size(nics);
    if (!json_is_array(nics) || n > TCCL_MAX_NICS || json_array_size(cells) != n * n)
        return tccl_fail_null(err, "nics and cells of a node class do not fit together");
    cleanup_class struct tccl_node_class *class = tccl_node_class_new((int)n);
    if (!class)
        return tccl_fail_null(err, "out of memory");
    return parts_from_json(json, class, err) != 0 ? NULL : tccl_steal(class);
}

/* ---- comparison ---- */

bool tccl_node_class_equal(const struct tccl_node_class *a, const struct tccl_node_class *b)
{
    if (strcmp(a->beside ? a->beside : "", b->beside ? b->beside : "") != 0 ||
        strcmp(a->worse, b->worse) != 0 || strcmp(a->machine, b->machine) != 0 ||
        strcmp(a->source, b->source) != 0 || a->gpus != b->gpus || a->moved != b->moved ||
        a->neighbours != b->neighbours || a->n_nics != b->n_nics || a->noise != b->noise ||
        a->n_seen != b->n_seen)
        return false;
    for (int i = 0; i < a->n_nics; i++)
        if (strcmp(a->nics[i].name, b->nics[i].name) != 0 ||
            strcmp(a->nics[i].fabric, b->nics[i].fabric) != 0 || a->nics[i].gbps != b->nics[i].gbps)
            return false;
    for (int i = 0; i < TCCL_GENERATIONS; i++)
        if (!baseline_equal(&a->baselines[i], &b->baselines[i]))
            return false;
    for (int i = 0; i < a->n_seen; i++) {
        const struct tccl_seen *x = &a->seen[i], *y = &b->seen[i];
        if (x->gbps != y->gbps || x->bound != y->bound || x->alone != y->alone ||
            x->share != y->share || x->harms != y->harms || x->basis != y->basis ||
            x->ends != y->ends || !tccl_ring_set_equal(&x->set, &y->set))
            return false;
    }
    return true;
}
