/* class-message.c: node classes in messages between nodes, and compared, by one table of all of
 * their members. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "chain/beside-text.h"
#include "ring/node-class.h"

/* ---- the table ---- */

/* Whose member it is. */
enum {
    OF_CLASS = 1,
    OF_NOISE = 2, /* of the class, too, behind its nodes' lists */
    OF_NIC = 4,
    OF_BASELINE = 8,
    OF_CHAIN = 16, /* what is seen of a pair of NICs, */
    OF_RING = 32,  /* of the ring, which is no list, */
    OF_SET = 64,   /* or of several at once */
    OF_SINGLE = OF_CHAIN | OF_RING,
    OF_SEEN = OF_SINGLE | OF_SET,
};

struct member {
    const char *name;
    enum { TEXT, BESIDE, BOOL, WHOLE, BASIS, REAL, NICS, CHAINS } type;
    unsigned of;
    enum {
        OR_NULL /* infinite */,
        ALWAYS,
        NEWER /* older tcclds send none */,
        THERE /* left out where "" or 0 */
    } when;
    double min, max; /* min of texts: 1: not empty. NEWER: 0 will do, too */
    size_t at, size;
};

#define OF(type, member) offsetof(type, member), sizeof(((type *)0)->member)
#define CLASS(member) OF(struct tccl_node_class, member)
#define NIC(member) OF(struct tccl_class_nic, member)
#define BASELINE(member) OF(struct tccl_class_baseline, member)
#define SEEN(member) OF(struct tccl_seen, member)
#define GBPS 0, 1e6
#define BOUNCES 0, TCCL_MAX_GPUS + 1
#define ENDS TCCL_ENDS_LEAST, TCCL_ENDS_MOST

/* In the order of the message. */
/* clang-format off */
static const struct member members[] = {
    {"machine", TEXT, OF_CLASS, ALWAYS, 1, 0, CLASS(machine)},
    {"source", TEXT, OF_CLASS, ALWAYS, 0, 0, CLASS(source)},
    {"gpus", WHOLE, OF_CLASS, ALWAYS, 1, (1 << TCCL_MAX_GPUS) - 1, CLASS(gpus)},
    {"moved", BOOL, OF_CLASS, THERE, 0, 1, CLASS(moved)},
    {"neighbours", WHOLE, OF_CLASS, ALWAYS, 0, TCCL_MAX_GPUS, CLASS(neighbours)},
    {"beside", BESIDE, OF_CLASS, THERE, 0, TCCL_BESIDE_TEXT, CLASS(beside)},
    {"worse", TEXT, OF_CLASS, THERE, 0, 0, CLASS(worse)},
    {"noise", REAL, OF_NOISE, ALWAYS, 0, 1, CLASS(noise)},
    {"name", TEXT, OF_NIC, ALWAYS, 1, 0, NIC(name)},
    {"fabric", TEXT, OF_NIC, ALWAYS, 0, 0, NIC(fabric)},
    {"gbps", REAL, OF_NIC, ALWAYS, GBPS, NIC(gbps)},
    {"ring_gbps", REAL, OF_BASELINE, ALWAYS, GBPS, BASELINE(gbps[1])},
    {"chain_gbps", REAL, OF_BASELINE, ALWAYS, GBPS, BASELINE(gbps[0])},
    {"ring_share", REAL, OF_BASELINE, ALWAYS, 0, 1, BASELINE(share[1])},
    {"chain_share", REAL, OF_BASELINE, ALWAYS, 0, 1, BASELINE(share[0])},
    {"ring_bounces", WHOLE, OF_BASELINE, ALWAYS, BOUNCES, BASELINE(bounces[1])},
    {"chain_bounces", WHOLE, OF_BASELINE, ALWAYS, BOUNCES, BASELINE(bounces[0])},
    {"ring_ends", WHOLE, OF_BASELINE, NEWER, ENDS, BASELINE(ends[1])},
    {"chain_ends", WHOLE, OF_BASELINE, NEWER, ENDS, BASELINE(ends[0])},
    {"entry_nics", NICS, OF_BASELINE, ALWAYS, 0, 0, BASELINE(entry_nics)},
    {"exit_nics", NICS, OF_BASELINE, ALWAYS, 0, 0, BASELINE(exit_nics)},
    {"gbps", REAL, OF_SEEN, ALWAYS, GBPS, SEEN(gbps)},
    {"alone", REAL, OF_SEEN, ALWAYS, GBPS, SEEN(alone)},
    {"share", REAL, OF_SEEN, ALWAYS, 0, 1, SEEN(share)},
    {"ends", WHOLE, OF_SEEN, NEWER, ENDS, SEEN(ends)},
    {"basis", BASIS, OF_SEEN, ALWAYS, 0, 0, SEEN(basis)},
    {"bound", REAL, OF_SEEN, OR_NULL, GBPS, SEEN(bound)},
    {"chain", CHAINS, OF_SINGLE, ALWAYS, 0, 1, SEEN(set)}, /* null: none */
    {"rings", CHAINS, OF_SET, ALWAYS, 0, TCCL_CHAIN_RINGS, SEEN(set)},
    {"harms", BOOL, OF_SINGLE, ALWAYS, 0, 1, SEEN(harms)}, /* no set harms */
};
/* clang-format on */

#define MEMBERS_END (&members[sizeof(members) / sizeof(*members)])
#define FOR_MEMBERS(member, whose)                                                                 \
    for (const struct member *member = members; member < MEMBERS_END; member++)                    \
        if (member->of & (whose))

/* The lists of a class. */
struct list {
    const char *name;
    unsigned of;
    void *first;
    size_t size;
    int n;
};
enum { N_LISTS = 5 };

static void lists_of(const struct tccl_node_class *class, struct list lists[static N_LISTS])
{
    int sets = tccl_class_first_set(class);
    lists[0] =
        (struct list){"nics", OF_NIC, (void *)class->nics, sizeof(*class->nics), class->n_nics};
    lists[1] = (struct list){"cells", OF_CHAIN, class->seen, sizeof(*class->seen), sets - 1};
    lists[2] = (struct list){"ring", OF_RING, tccl_class_ring(class), sizeof(*class->seen), 1};
    lists[3] = (struct list){"sets", OF_SET, class->seen + sets, sizeof(*class->seen),
                             class->n_seen - sets};
    lists[4] = (struct list){"baselines", OF_BASELINE, (void *)class->baselines,
                             sizeof(*class->baselines), TCCL_GENERATIONS};
}

static void *entry_of(const struct list *list, int i)
{
    return (char *)list->first + list->size * (size_t)i;
}

/* ---- comparison ---- */

static bool equal(unsigned of, const void *a, const void *b)
{
    const struct tccl_class_baseline *own = a, *its = b;
    bool same = of != OF_BASELINE || own->n_chains == its->n_chains;
    FOR_MEMBERS(member, of)
    {
        const void *x = (const char *)a + member->at, *y = (const char *)b + member->at;
        const char *const *text = x, *const *other = y;
        size_t size = member->type == NICS ? (size_t)own->n_chains : member->size;
        same = same &&
               (member->type == TEXT     ? strcmp(x, y) == 0
                : member->type == BESIDE ? strcmp(*text ? *text : "", *other ? *other : "") == 0
                : member->type == CHAINS ? tccl_ring_set_equal(x, y)
                : member->type == REAL   ? *(const double *)x == *(const double *)y
                                         : memcmp(x, y, size) == 0);
    }
    return same;
}

bool tccl_node_class_equal(const struct tccl_node_class *a, const struct tccl_node_class *b)
{
    struct list own[N_LISTS], its[N_LISTS];
    lists_of(a, own);
    lists_of(b, its);
    bool same = equal(OF_CLASS | OF_NOISE, a, b);
    for (int i = 0; i < N_LISTS && same; i++) {
        same = own[i].n == its[i].n;
        for (int k = 0; k < own[i].n && same; k++)
            same = equal(own[i].of == OF_SET ? OF_SEEN : own[i].of, entry_of(&own[i], k),
                         entry_of(&its[i], k));
    }
    return same;
}

/* ---- writing ---- */

/* NULL: out of memory, or left out. */
static json_t *value_to_json(const struct tccl_node_class *class, const struct member *member,
                             const void *object)
{
    const void *at = (const char *)object + member->at;
    bool there = member->when != THERE || *(const char *)at;
    char text[TCCL_RINGS_TEXT];
    json_t *nics;
    switch (member->type) {
    case TEXT:
        return there ? json_string(at) : NULL;
    case BESIDE:
        return json_string(*(char *const *)at);
    case BOOL:
        return there ? json_boolean(*(const bool *)at) : NULL;
    case WHOLE:
        return json_integer(member->size == 1 ? *(const uint8_t *)at : *(const int *)at);
    case BASIS:
        return json_string(tccl_basis_name(*(const enum tccl_basis *)at));
    case REAL:
        return isfinite(*(const double *)at) ? json_real(*(const double *)at) : json_null();
    case NICS:
        nics = json_array();
        for (int i = 0; i < ((const struct tccl_class_baseline *)object)->n_chains; i++)
            json_array_append_new(nics, json_integer(((const uint8_t *)at)[i]));
        return nics;
    default:
        tccl_class_format(class, at, text);
        return *text ? json_string(text) : json_null();
    }
}

/* Returns 0, or not. */
static int put(json_t *json, const struct tccl_node_class *class, unsigned of, const void *object)
{
    int failed = 0;
    FOR_MEMBERS(member, of)
    {
        json_t *value = value_to_json(class, member, object);
        if (value || member->when != THERE)
            failed |= json_object_set_new(json, member->name, value);
    }
    return failed;
}

/* Most generations have the baseline of the one before: that is null. */
static json_t *entry_to_json(const struct tccl_node_class *class, const struct list *list, int i)
{
    const void *own = entry_of(list, i);
    if (list->of == OF_BASELINE && i > 0 && equal(OF_BASELINE, own, entry_of(list, i - 1)))
        return json_null();
    cleanup_json json_t *json = json_object();
    return put(json, class, list->of, own) != 0 ? NULL : tccl_steal(json);
}

json_t *tccl_node_class_to_json(const struct tccl_node_class *class)
{
    struct list lists[N_LISTS];
    lists_of(class, lists);
    cleanup_json json_t *json = json_object();
    int failed = put(json, class, OF_CLASS, class);
    for (const struct list *own = lists; own < lists + N_LISTS; own++) {
        json_t *list = own->of == OF_RING ? entry_to_json(class, own, 0) : json_array();
        for (int i = 0; i < own->n && own->of != OF_RING; i++)
            failed |= json_array_append_new(list, entry_to_json(class, own, i));
        failed |= json_object_set_new(json, own->name, list);
        if (own->of == OF_SET)
            failed |= put(json, class, OF_NOISE, class);
    }
    return failed ? NULL : tccl_steal(json);
}

/* ---- reading ---- */

/* The NIC of that name; -1: the class has none. */
static int find_nic(const struct tccl_node_class *class, const char *name)
{
    for (int i = 0; i < class->n_nics; i++)
        if (strcmp(class->nics[i].name, name) == 0)
            return i;
    return -1;
}

/* Chains over the GPUs of the class, by its NICs. Returns 0, or -1. */
static int set_from_text(const struct tccl_node_class *class, const char *text,
                         struct tccl_ring_set *set)
{
    struct tccl_named_rings named;
    if (!text || tccl_named_rings_parse(text, &named, NULL) != 0)
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

/* The NICs of all chains, in ascending order. Returns 0, or -1. */
static int nics_from_json(const json_t *json, int n_nics, const struct tccl_class_baseline *own,
                          uint8_t *nics)
{
    json_int_t least = 0;
    size_t n = json_array_size(json);
    if (!json_is_array(json) || n > TCCL_MAX_CHANNELS || n != (size_t)own->n_chains)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const json_t *entry = json_array_get(json, i);
        json_int_t nic = json_is_integer(entry) ? json_integer_value(entry) : -1;
        if (nic < least || nic >= n_nics)
            return -1;
        nics[i] = (uint8_t)nic;
        least = nic;
    }
    return 0;
}

static char *beside_from_text(const char *text)
{
    cleanup_free struct tccl_neighbour *list = calloc(TCCL_MAX_BESIDE, sizeof(*list));
    return text && strlen(text) <= TCCL_BESIDE_TEXT && list &&
                   tccl_beside_parse(text, list, NULL) >= 0
               ? strdup(text)
               : NULL;
}

/* Returns not 0 if it is wrong, with err or without. */
static int value_from_json(const json_t *json, const struct tccl_node_class *class,
                           const struct member *member, void *object, struct tccl_error *err)
{
    void *at = (char *)object + member->at;
    const json_t *value = json_object_get(json, member->name);
    const char *text = json_string_value(value);
    int number = 0;
    switch (member->type) {
    case TEXT:
        return tccl_field_text(json, member->name, member->min > 0, at, member->size, err);
    case BESIDE:
        return (*(char **)at = beside_from_text(text)) == NULL;
    case BOOL:
        *(bool *)at = json_is_true(value);
        return !json_is_boolean(value);
    case WHOLE:
        if ((json_integer_value(value) != 0 || !json_is_integer(value) || member->when != NEWER) &&
            tccl_field_int(json, member->name, true, (int)member->min, (int)member->max, &number,
                           err) != 0)
            return -1;
        memcpy(at, &(uint8_t){(uint8_t)number}, 1);
        if (member->size > 1)
            *(int *)at = number;
        return 0;
    case BASIS:
        number = text ? tccl_basis_parse(text) : -1;
        *(enum tccl_basis *)at = (enum tccl_basis)(number < 0 ? 0 : number);
        return number < 0;
    case REAL:
        *(double *)at = INFINITY;
        if (member->when == OR_NULL && json_is_null(value))
            return 0;
        return tccl_field_number(json, member->name, true, member->min, member->max, at, err);
    case NICS:
        return nics_from_json(value, class->n_nics, object, at);
    default:
        return json_is_null(value) ? 0 : set_from_text(class, text, at);
    }
}

/* Does what is seen fit together, and into its place? What NCCL can't be made to build is left out:
 * n = 0. */
static bool fits(const struct tccl_node_class *class, unsigned of, struct tccl_seen *seen)
{
    const struct tccl_chain *chain = &seen->set.rings[0];
    if (!(seen->alone >= seen->gbps) || !(seen->bound >= seen->gbps) ||
        (of == OF_SET ? seen->set.n < 2 || !(seen->gbps > 0)
                      : seen->set.n > 1 || (seen->set.n == 0 && seen->gbps > 0)))
        return false;
    if (seen->set.n > 0 && tccl_expressible(NULL, seen->set.rings, seen->set.n, NULL) != 0)
        *seen = (struct tccl_seen){.bound = seen->bound, .share = 1};
    if (seen->set.n == 0 || of != OF_CHAIN)
        return seen->set.n == 0 || of == OF_SET || chain->closed;
    return !chain->closed &&
           seen - class->seen == chain->entry.nic * class->n_nics + chain->exit.nic;
}

/* Takes all members of an object, which has no others unless it is a class. */
static int get(const json_t *json, const struct tccl_node_class *class, unsigned of, void *object,
               struct tccl_error *err)
{
    struct tccl_class_baseline *baseline = object;
    size_t found = 0;
    if (of == OF_BASELINE)
        baseline->n_chains = (int)json_array_size(json_object_get(json, "entry_nics"));
    FOR_MEMBERS(member, of)
    {
        bool has = json_object_get(json, member->name);
        found += has;
        if (has ? value_from_json(json, class, member, object, err) != 0 : member->when <= ALWAYS)
            return tccl_fail(err, "\"%s\" is missing or wrong", member->name);
    }
    if ((!(of & OF_CLASS) && found < json_object_size(json)) ||
        (of & OF_SEEN && !fits(class, of, object)) ||
        (of == OF_BASELINE && baseline->n_chains == 0 && baseline->gbps[0] > 0))
        return tccl_fail(err, "its members do not fit together");
    return 0;
}

static int list_from_json(const json_t *json, struct tccl_node_class *class,
                          const struct list *list, struct tccl_error *err)
{
    bool sets = list->of == OF_SET, ring = list->of == OF_RING;
    size_t found = json_array_size(json), n = sets ? found : (size_t)list->n;
    if (!ring && (!json_is_array(json) || found != n || (sets && n > TCCL_CLASS_SETS)))
        return tccl_fail(err, "a list of %d is expected", sets ? TCCL_CLASS_SETS : list->n);
    for (size_t i = 0; i < n; i++) {
        const json_t *entry = ring ? json : json_array_get(json, i);
        struct tccl_seen set = {0};
        if (list->of == OF_BASELINE && i > 0 && json_is_null(entry))
            class->baselines[i] = class->baselines[i - 1];
        else if (get(entry, class, list->of, sets ? &set : entry_of(list, (int)i), err) != 0)
            return tccl_fail_in(err, "%zu", i);
        if (set.set.n > 0 && tccl_node_class_add_set(class, &set) != 0)
            return tccl_fail(err, "out of memory");
    }
    return 0;
}

struct tccl_node_class *tccl_node_class_from_json(const json_t *json, struct tccl_error *err)
{
    struct list lists[N_LISTS];
    size_t n = json_array_size(json_object_get(json, "nics"));
    cleanup_class struct tccl_node_class *class =
        n <= TCCL_MAX_NICS ? tccl_node_class_new((int)n) : NULL;
    if (!class)
        return tccl_fail_null(err, "more than %d NICs of a node class, or out of memory",
                              TCCL_MAX_NICS);
    if (get(json, class, OF_CLASS | OF_NOISE, class, err) != 0)
        return tccl_fail_in(err, "a node class"), NULL;
    class->n_gpus = __builtin_popcount(class->gpus);
    if (strspn(class->machine, "0123456789abcdef") != TCCL_HASH_HEX - 1 || !(class->noise < 1))
        return tccl_fail_null(err, "machine or noise of a node class is wrong");
    lists_of(class, lists);
    for (int i = 0; i < N_LISTS; i++) {
        const json_t *list = json_object_get(json, lists[i].name);
        if ((list || lists[i].of != OF_SET) && list_from_json(list, class, &lists[i], err) != 0)
            return tccl_fail_in(err, "%s of a node class", lists[i].name), NULL;
    }
    return tccl_steal(class);
}
