/* foretell.c: limits that transfers may share, what they carried, and what that says of others. */
#include "search/foretell.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "machine/links.h"
#include "search/setmap.h"

/* What limits are of. */
enum type {
    LINK,       /* one way: of a GPU, NIC or switch, between NUMA nodes, of a memory */
    BOTH_WAYS,  /* of a GPU, NIC or switch, or between two NUMA nodes */
    PASSAGE,    /* between a GPU or NIC and all of a NUMA node, one way */
    HALVES,     /* from one half of the NUMA nodes to the other, as sockets have them */
    SWITCHES,   /* from what is below one switch to what is below another one */
    ROOT_INTO,  /* what a NUMA node's root complex gets, */
    ROOT_OUT,   /* sends, */
    ROOT_BOTH,  /* or both; */
    ROOT_WITHIN /* and what stays in it */
};

/* Of each place some: which transfers count, and how much: to GPUs and to memory, writes and
 * reads. */
enum { FAMILIES = 9, OF_A_KIND = 6, MOST_PLACES = 24 };
static const double weights[FAMILIES][2][2] = {
    {{1, 1}, {1, 1}},     /* all */
    {{1, 1.1}, {1, 1.1}}, /* all, where reads cost more */
    {{1, 0}, {1, 0}},     /* writes */
    {{0, 1}, {0, 1}},     /* reads */
    {{1, 1}, {0, 0}},     /* P2P */
    {{1, 1.3}, {0, 0}},   /* P2P, where reads cost more */
    {{0, 0}, {1, 1.1}},   /* to and from memory: this one, and the next ones, make kinds */
    {{1, 0}, {0, 0}},     /* P2P writes */
    {{0, 1}, {0, 0}},     /* P2P reads */
};

static const double SURE = 2;         /* deviations that a value may be off by, */
static const double MARGIN = 2.5;     /* and what is foretold by the best of many */
static const double SLACK = 0.03;     /* what weights that nobody knows may be off by */
enum { TRIES = 2, WHICH_TRIED = 16 }; /* of each kind; and later one of so many */
enum { MOST_SURPRISES = 4 };          /* one of so many: nothing is foretold */

struct place {
    uint32_t key; /* its type, and of what */
    int class;    /* of those that are the same, the first one */
    int members;  /* transfers without NICs */
};

struct places {
    int n;
    int places[MOST_PLACES];
};

/* What a measured set has of one class of limits, at most. */
struct share {
    int limit;
    double weight;
};
struct evidence {
    double gbps, error;
    int count; /* of transfers; none: it is of several sides */
    tccl_transfer *transfers;
    uint64_t marks; /* of transfers: a set that lacks one of them does not have all */
    bool odd;       /* it has a part that a further transfer makes faster */
    int n;
    struct share *shares;
};

/* What sides share. */
struct kind {
    uint64_t what;
    int agreed, refuted;
};

struct tccl_foretell {
    double deviation;
    struct place *places;
    size_t n_places, places_room;
    struct places *passed; /* by each transfer; none: it is not possible */
    double *carried;       /* by the first limits of their classes, GB/s; a limit is a place and a
                            * family */
    struct evidence *evidence;
    size_t n_evidence, evidence_room;
    bool narrow; /* evidence names no limits that carried more */
    struct kind *kinds;
    size_t n_kinds, kinds_room;
    int agreed, refuted; /* of all kinds */
};

/* ---- limits ---- */

static int pass(struct tccl_foretell *foretell, tccl_transfer transfer, enum type type, int a,
                int b)
{
    struct places *passed = &foretell->passed[transfer];
    uint32_t key = (uint32_t)type << 28 | (uint32_t)a << 12 | (uint32_t)b;
    size_t at = 0;
    while (at < foretell->n_places && foretell->places[at].key != key)
        at++;
    if (at == foretell->n_places) {
        if (TCCL_GROW(foretell->places, foretell->n_places, foretell->places_room) != 0)
            return -1;
        foretell->places[foretell->n_places++] = (struct place){key, (int)at, 0};
    }
    foretell->places[at].members += tccl_transfer_initiator(transfer).kind != TCCL_NIC;
    if (passed->n < MOST_PLACES)
        passed->places[passed->n++] = (int)at;
    return 0;
}

static int top_switch(const struct tccl_machine *machine, struct tccl_device device)
{
    int top = tccl_machine_parent(machine, device);
    while (top >= 0 && machine->switches[top].parent >= 0)
        top = machine->switches[top].parent;
    return top;
}

static int pass_all(struct tccl_foretell *foretell, const struct tccl_machine *machine,
                    tccl_transfer transfer)
{
    struct tccl_device from = tccl_transfer_source(transfer), to = tccl_transfer_sink(transfer);
    int a = tccl_machine_numa(machine, from), b = tccl_machine_numa(machine, to), rc = 0;
    int above = top_switch(machine, from), below = top_switch(machine, to);
    struct tccl_links links;
    tccl_links_of(machine, transfer, &links);
    for (int i = 0; i < links.n; i++) {
        rc |= pass(foretell, transfer, LINK, links.links[i], 0);
        if (links.links[i] < TCCL_LINK_NUMA)
            rc |= pass(foretell, transfer, BOTH_WAYS, links.links[i] & ~1, 0);
        if (links.links[i] < TCCL_LINK_SWITCHES)
            rc |= pass(foretell, transfer, PASSAGE, links.links[i], links.links[i] & 1 ? b : a);
    }
    if (a != b)
        rc |= pass(foretell, transfer, BOTH_WAYS, TCCL_LINK_NUMA + (a < b ? a : b), a < b ? b : a);
    int half = machine->n_memories >= 4 ? machine->n_memories / 2 : TCCL_MAX_MEMORIES;
    if (a / half != b / half)
        rc |= pass(foretell, transfer, HALVES, a / half, b / half);
    if (above >= 0 && above == below)
        return rc;
    rc |= pass(foretell, transfer, SWITCHES, 1 + above, 1 + below);
    rc |= pass(foretell, transfer, ROOT_INTO, b, 0);
    rc |= pass(foretell, transfer, ROOT_OUT, a, 0);
    rc |= pass(foretell, transfer, ROOT_BOTH, a, 0);
    return rc | (a != b ? pass(foretell, transfer, ROOT_BOTH, b, 0)
                        : pass(foretell, transfer, ROOT_WITHIN, a, 0));
}

static bool passes(const struct tccl_foretell *foretell, tccl_transfer transfer, int place)
{
    const struct places *passed = &foretell->passed[transfer];
    for (int i = 0; i < passed->n; i++)
        if (passed->places[i] == place)
            return true;
    return false;
}

static int class_of(const struct tccl_foretell *foretell, int place)
{
    while (foretell->places[place].class != place)
        place = foretell->places[place].class;
    return place;
}

/* Are those that pass one the images of those that pass the other? */
static bool is_image(const struct tccl_foretell *foretell, const tccl_transfer *image, int place,
                     int other)
{
    if (foretell->places[place].members != foretell->places[other].members ||
        foretell->places[place].key >> 28 != foretell->places[other].key >> 28)
        return false;
    for (int i = 0; i < TCCL_TRANSFERS; i++)
        if (image[i] != TCCL_NO_TRANSFER && passes(foretell, (tccl_transfer)i, place) &&
            !passes(foretell, image[i], other))
            return false;
    return true;
}

/* Joins the places that an exchange turns into one another. */
static void join(struct tccl_foretell *foretell, const tccl_transfer *image)
{
    cleanup_free bool *done = calloc(foretell->n_places + 1, sizeof(*done));
    for (int i = 0; i < TCCL_TRANSFERS && done; i++)
        for (int k = 0; image[i] != TCCL_NO_TRANSFER && k < foretell->passed[i].n; k++) {
            int place = foretell->passed[i].places[k];
            const struct places *there = &foretell->passed[image[i]];
            for (int m = 0; m < there->n && !done[place]; m++) {
                int other = there->places[m];
                if (!is_image(foretell, image, place, other))
                    continue;
                int a = class_of(foretell, place), b = class_of(foretell, other);
                foretell->places[a > b ? a : b].class = a < b ? a : b;
                done[place] = true;
            }
            done[place] = true;
        }
}

static int join_all(struct tccl_foretell *foretell, const struct tccl_symmetry *symmetry)
{
    cleanup_free tccl_transfer *image = calloc(TCCL_TRANSFERS, sizeof(*image));
    const struct tccl_set none = {0};
    if (!image)
        return -1;
    for (int k = 0; k < tccl_symmetry_exchanges(symmetry, &none, false); k++) {
        for (int i = 0; i < TCCL_TRANSFERS; i++) {
            const struct tccl_set one = {1, {(tccl_transfer)i}};
            struct tccl_set moved;
            image[i] = TCCL_NO_TRANSFER;
            if (foretell->passed[i].n == 0 ||
                tccl_transfer_initiator((tccl_transfer)i).kind == TCCL_NIC)
                continue;
            tccl_symmetry_exchange(symmetry, &one, false, k, &moved);
            image[i] = moved.transfers[0];
        }
        join(foretell, image);
    }
    for (size_t i = 0; i < foretell->n_places; i++)
        foretell->places[i].class = class_of(foretell, (int)i);
    return 0;
}

struct tccl_foretell *tccl_foretell_new(const struct tccl_machine *machine,
                                        const struct tccl_symmetry *symmetry, double deviation)
{
    struct tccl_foretell *foretell = calloc(1, sizeof(*foretell));
    int rc = -1;
    if (foretell && (foretell->passed = calloc(TCCL_TRANSFERS, sizeof(*foretell->passed)))) {
        foretell->deviation = deviation;
        rc = 0;
        for (int i = 0; i < TCCL_TRANSFERS; i++)
            if (tccl_transfer_valid((tccl_transfer)i) &&
                tccl_machine_allows(machine, (tccl_transfer)i, NULL) == 0)
                rc |= pass_all(foretell, machine, (tccl_transfer)i);
        rc |= join_all(foretell, symmetry);
        foretell->carried = calloc(foretell->n_places * FAMILIES + 1, sizeof(double));
    }
    if (rc == 0 && foretell->carried)
        return foretell;
    tccl_foretell_free(foretell);
    return NULL;
}

void tccl_foretell_free(struct tccl_foretell *foretell)
{
    if (!foretell)
        return;
    for (size_t i = 0; i < foretell->n_evidence; i++) {
        free(foretell->evidence[i].transfers);
        free(foretell->evidence[i].shares);
    }
    free(foretell->evidence);
    free(foretell->places);
    free(foretell->passed);
    free(foretell->carried);
    free(foretell->kinds);
    free(foretell);
}

/* ---- what was measured ---- */

/* How much some transfers have of each limit. */
static void weigh(const struct tccl_foretell *foretell, const tccl_transfer *transfers, int count,
                  double *weight)
{
    for (int i = 0; i < count; i++) {
        const struct places *passed = &foretell->passed[transfers[i]];
        bool memory = tccl_transfer_target(transfers[i]).kind == TCCL_MEMORY;
        for (int k = 0; k < passed->n; k++)
            for (int family = 0; family < FAMILIES; family++)
                weight[passed->places[k] * FAMILIES + family] +=
                    weights[family][memory][tccl_transfer_reads(transfers[i])];
    }
}

/* The first limit of those that are the same as this one. */
static size_t first_of(const struct tccl_foretell *foretell, size_t limit)
{
    return (size_t)foretell->places[limit / FAMILIES].class * FAMILIES + limit % FAMILIES;
}

/* Can it be this limit that made a set as slow? Not one that carried more elsewhere. */
static bool may_limit(const struct evidence *evidence, size_t limit, double weight,
                      const double *carried)
{
    return carried[limit] <= weight * evidence->gbps * (1 + evidence->error) * (1 + SLACK);
}

static uint64_t marks_of(const tccl_transfer *transfers, int count)
{
    uint64_t marks = 0;
    for (int i = 0; i < count; i++)
        marks |= UINT64_C(1) << (transfers[i] * UINT32_C(0x9e3779b1) >> 26);
    return marks;
}

/* Notes it: weight of each limit. Limits carry more and more, so those that can't be it are left
 * out at once. Returns 0, or -1 without memory. */
static int note(struct tccl_foretell *foretell, const double *weight, double gbps, double error,
                const struct tccl_set *set)
{
    size_t n = foretell->n_places * FAMILIES;
    cleanup_free double *most = calloc(n + 1, sizeof(*most));
    struct evidence evidence = {.gbps = gbps, .error = error};
    if (!most || TCCL_GROW(foretell->evidence, foretell->n_evidence, foretell->evidence_room) != 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        size_t first = first_of(foretell, i);
        most[first] = fmax(most[first], weight[i]);
    }
    for (size_t i = 0; i < n; i++) {
        if (!may_limit(&evidence, i, most[i], foretell->carried))
            most[i] = 0;
        evidence.n += most[i] > 0;
    }
    evidence.shares = calloc((size_t)evidence.n + 1, sizeof(*evidence.shares));
    evidence.transfers = calloc(set ? (size_t)set->count + 1 : 1, sizeof(*evidence.transfers));
    if (!evidence.shares || !evidence.transfers) {
        free(evidence.shares);
        free(evidence.transfers);
        return -1;
    }
    evidence.n = 0;
    for (size_t i = 0; i < n; i++)
        if (most[i] > 0)
            evidence.shares[evidence.n++] = (struct share){(int)i, most[i]};
    if (set) {
        evidence.count = set->count;
        memcpy(evidence.transfers, set->transfers, set->count * sizeof(*set->transfers));
        evidence.marks = marks_of(set->transfers, set->count);
    }
    foretell->evidence[foretell->n_evidence++] = evidence;
    foretell->narrow = false;
    return 0;
}

static void carry(struct tccl_foretell *foretell, size_t limit, double gbps)
{
    double *carried = &foretell->carried[first_of(foretell, limit)];
    *carried = fmax(*carried, gbps);
}

/* What the set carried; with noted it is noted. Returns 0, or -1 without memory. */
static int take(struct tccl_foretell *foretell, const struct tccl_set *set, double gbps, int times,
                bool noted)
{
    size_t n = foretell->n_places * FAMILIES;
    cleanup_free double *weight = calloc(n + 1, sizeof(*weight));
    double error = SURE * foretell->deviation / sqrt(times);
    if (!weight)
        return -1;
    weigh(foretell, set->transfers, set->count, weight);
    for (size_t i = 0; i < n; i++)
        carry(foretell, i, weight[i] * gbps * (1 - error));
    return noted ? note(foretell, weight, gbps, error, set) : 0;
}

int tccl_foretell_set(struct tccl_foretell *foretell, const struct tccl_set *set, double gbps,
                      int times)
{
    return take(foretell, set, gbps, times, true);
}

struct tccl_foretell *tccl_foretell_of(const struct tccl_machine *machine,
                                       const struct tccl_symmetry *symmetry, double deviation,
                                       const struct tccl_setmap *sets,
                                       const struct tccl_bounds *bounds)
{
    struct tccl_foretell *foretell = tccl_foretell_new(machine, symmetry, deviation);
    /* At first what all of them carried, so that little is kept of each. */
    for (size_t i = 0; i < 2 * sets->count && foretell; i++) {
        const struct tccl_setmap_entry *entry = &sets->entries[i % sets->count];
        if (entry->measured == 0)
            continue;
        if (take(foretell, &entry->set, tccl_setmap_later(entry, 1),
                 entry->measured > 1 ? entry->measured - 1 : 1, i >= sets->count) != 0) {
            tccl_foretell_free(foretell);
            return NULL;
        }
        if (i >= sets->count && bounds)
            foretell->evidence[foretell->n_evidence - 1].odd =
                tccl_bounds_excepted(bounds, &entry->set);
    }
    return foretell;
}

/* Forgets the limits that a set wasn't made as slow by: they carried more elsewhere. */
static void narrow(struct evidence *evidence, const double *carried)
{
    int n = 0;
    for (int i = 0; i < evidence->n; i++) {
        const struct share *share = &evidence->shares[i];
        if (may_limit(evidence, (size_t)share->limit, share->weight, carried))
            evidence->shares[n++] = *share;
    }
    evidence->n = n;
}

static void narrow_all(struct tccl_foretell *foretell)
{
    for (size_t i = 0; i < foretell->n_evidence && !foretell->narrow; i++)
        narrow(&foretell->evidence[i], foretell->carried);
    foretell->narrow = true;
}

/* ---- what that says ---- */

struct question {
    const struct tccl_foretell *foretell;
    const struct tccl_joint *joint;
    size_t n; /* limits */
    double *total, *own[TCCL_MAX_SIDES];
    int *most[TCCL_MAX_SIDES]; /* of each class, by its first limit: the one of the side that has
                                  most users; -1: none */
    uint64_t kind;
    int count;
    tccl_transfer transfers[TCCL_MAX_RUNNING];                                  /* ascending */
    double alone[TCCL_MAX_SIDES], least[TCCL_MAX_SIDES], limit[TCCL_MAX_SIDES]; /* of a transfer */
};

static void clear(struct question *question)
{
    free(question->total);
    for (int i = 0; i < question->joint->n; i++) {
        free(question->own[i]);
        free(question->most[i]);
    }
}

static int prepare(const struct tccl_foretell *foretell, const struct tccl_joint *joint,
                   struct question *question)
{
    *question =
        (struct question){.foretell = foretell, .joint = joint, .n = foretell->n_places * FAMILIES};
    question->total = calloc(question->n + 1, sizeof(double));
    bool fine = question->total;
    for (int i = 0; i < joint->n; i++) {
        const struct tccl_side *side = &joint->sides[i];
        question->own[i] = calloc(question->n + 1, sizeof(double));
        question->most[i] = malloc((question->n + 1) * sizeof(int));
        question->alone[i] = side->alone / side->rings;
        fine = fine && question->own[i] && question->most[i];
        if (fine) {
            weigh(foretell, side->transfers, side->count, question->own[i]);
            fine = question->count + side->count <= TCCL_MAX_RUNNING;
        }
        if (fine) {
            memcpy(question->transfers + question->count, side->transfers,
                   (size_t)side->count * sizeof(*side->transfers));
            question->count += side->count;
            memset(question->most[i], 0xff, question->n * sizeof(int));
        }
        for (size_t k = 0; fine && k < question->n; k++)
            question->total[k] += question->own[i][k];
    }
    tccl_transfers_sort(question->transfers, question->count);
    for (int i = 0; fine && i < joint->n; i++)
        for (size_t k = 0; k < question->n; k++) {
            int *most = &question->most[i][first_of(foretell, k)];
            if (question->own[i][k] > 0 &&
                (*most < 0 || question->total[k] > question->total[*most]))
                *most = (int)k;
        }
    if (!fine)
        clear(question);
    return fine ? 0 : -1;
}

/* By its type, and whether it is of memory, P2P writes or P2P reads. */
static uint64_t kind_of(const struct tccl_foretell *foretell, size_t limit)
{
    const size_t family = limit % FAMILIES, kinds = FAMILIES - OF_A_KIND;
    size_t type = foretell->places[limit / FAMILIES].key >> 28;
    return family < OF_A_KIND ? 0 : UINT64_C(1) << (type * kinds + family - OF_A_KIND);
}

/* What each has at least, and what is shared. */
static void find_least(struct question *question)
{
    const struct tccl_foretell *foretell = question->foretell;
    double time = 0;
    for (int i = 0; i < question->joint->n; i++)
        time += 1 / question->alone[i];
    for (int i = 0; i < question->joint->n; i++) {
        double *least = &question->least[i];
        *least = question->alone[i];
        for (size_t k = 0; k < question->n; k++)
            if (question->own[i][k] > 0 && question->total[k] > question->own[i][k] * (1 + 1e-9)) {
                *least =
                    fmin(*least, foretell->carried[first_of(foretell, k)] / question->total[k]);
                question->kind |= kind_of(foretell, k);
            }
        *least = fmax(*least, 1 / time);
    }
}

/* What the side has at most if this limits it. */
static double most_by(const struct question *question, int side, size_t limit, double gbps)
{
    for (int i = 0; i < question->joint->n; i++)
        if (i != side)
            gbps -= question->own[i][limit] * question->least[i];
    return gbps / question->own[side][limit];
}

static double most_of(const struct question *question, int side, const struct evidence *evidence,
                      double best)
{
    double most = 0;
    for (int i = 0; i < evidence->n; i++) {
        const struct share *share = &evidence->shares[i];
        int limit = question->most[side][share->limit];
        if (limit < 0)
            return INFINITY;
        most = fmax(most, most_by(question, side, (size_t)limit,
                                  share->weight * evidence->gbps * (1 + evidence->error)));
        if (most >= best)
            return INFINITY;
    }
    return most > 0 ? most : INFINITY;
}

static struct kind *find_kind(const struct tccl_foretell *foretell, uint64_t what)
{
    for (size_t i = 0; i < foretell->n_kinds; i++)
        if (foretell->kinds[i].what == what)
            return &foretell->kinds[i];
    return NULL;
}

/* As often as it does. */
static bool holds(const struct question *question, const struct evidence *evidence)
{
    return evidence->count > 0 && tccl_transfers_contain(question->transfers, question->count,
                                                         evidence->transfers, evidence->count);
}

/* Does it hold a set that is slower than its limits explain? */
static bool is_odd(const struct question *question)
{
    double least = INFINITY;
    for (int i = 0; i < question->joint->n; i++)
        least = fmin(least, question->least[i]);
    for (size_t k = 0; k < question->foretell->n_evidence; k++) {
        const struct evidence *evidence = &question->foretell->evidence[k];
        if (evidence->gbps * (1 + evidence->error) < least * (1 - SLACK) &&
            holds(question, evidence))
            return true;
    }
    return false;
}

static void find_most(struct question *question)
{
    const struct tccl_foretell *foretell = question->foretell;
    for (int i = 0; i < question->joint->n; i++) {
        question->limit[i] = question->alone[i];
        for (size_t k = 0; k < foretell->n_evidence; k++)
            question->limit[i] =
                fmin(question->limit[i],
                     most_of(question, i, &foretell->evidence[k], question->limit[i]));
    }
}

/* Returns the error. */
static double rate(struct question *question, double *gbps)
{
    double error = 0;
    find_least(question);
    find_most(question);
    for (int i = 0; i < question->joint->n; i++) {
        double least = question->least[i], most = fmax(question->limit[i], 1e-3 * least);
        gbps[i] = fmin(sqrt(least * most), question->alone[i]);
        error = fmax(error, fmax(most / least, least / most));
    }
    return sqrt(error) - 1 + MARGIN * question->foretell->deviation;
}

/* So that a kind goes on to be tried. */
static bool is_sample(const struct tccl_joint *joint)
{
    uint64_t sum = 0;
    for (int i = 0; i < joint->n; i++)
        for (int k = 0; k < joint->sides[i].count; k++)
            sum += (joint->sides[i].transfers[k] + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return (sum >> 40) % WHICH_TRIED == 0;
}

enum tccl_foretelling tccl_foretell_rates(struct tccl_foretell *foretell, struct tccl_joint *joint,
                                          double *error)
{
    struct question question;
    *error = INFINITY;
    for (int i = 0; i < joint->n; i++)
        if (!(joint->sides[i].alone > 0))
            return TCCL_UNKNOWN;
    if (prepare(foretell, joint, &question) != 0)
        return TCCL_UNKNOWN;
    narrow_all(foretell);
    *error = rate(&question, joint->gbps);
    const struct kind *kind = find_kind(foretell, question.kind);
    bool odd = is_odd(&question);
    clear(&question);
    if (odd || *error > TCCL_FORETOLD_WITHIN)
        return TCCL_UNKNOWN;
    if ((kind && kind->refuted > 0) || MOST_SURPRISES * foretell->refuted > foretell->agreed)
        return TCCL_SURPRISING;
    return !kind || kind->agreed < TRIES || is_sample(joint) ? TCCL_UNTRIED : TCCL_FORETOLD;
}

/* Was it what would have been foretold? */
static int judge(struct tccl_foretell *foretell, struct question *question)
{
    const struct tccl_joint *joint = question->joint;
    const double off = TCCL_FORETOLD_WITHIN + SURE * foretell->deviation;
    narrow_all(foretell);
    double gbps[TCCL_MAX_SIDES], error = rate(question, gbps), slowest = INFINITY, least = INFINITY;
    bool known = error <= TCCL_FORETOLD_WITHIN, agrees = true;
    struct kind *kind = find_kind(foretell, question->kind);
    for (int i = 0; i < joint->n; i++) {
        agrees =
            agrees && joint->gbps[i] < gbps[i] * (1 + off) && joint->gbps[i] > gbps[i] * (1 - off);
        slowest = fmin(slowest, joint->gbps[i]);
        least = fmin(least, question->least[i]);
    }
    if (!kind) {
        if (TCCL_GROW(foretell->kinds, foretell->n_kinds, foretell->kinds_room) != 0)
            return -1;
        kind = &foretell->kinds[foretell->n_kinds++];
        *kind = (struct kind){.what = question->kind};
    }
    if (is_odd(question))
        return 0;
    bool refuted = (known && !agrees) || slowest < least * (1 - off);
    kind->agreed += known && agrees;
    kind->refuted += refuted;
    foretell->agreed += known && agrees;
    foretell->refuted += refuted;
    return 0;
}

int tccl_foretell_joint(struct tccl_foretell *foretell, const struct tccl_joint *joint)
{
    struct question question;
    double error = SURE * foretell->deviation, slowest = INFINITY;
    for (int i = 0; i < joint->n; i++)
        if (!(joint->sides[i].alone > 0))
            return 0;
    if (prepare(foretell, joint, &question) != 0)
        return -1;
    int rc = judge(foretell, &question);
    for (int i = 0; i < joint->n; i++)
        slowest = fmin(slowest, joint->gbps[i]);
    for (size_t k = 0; k < question.n && rc == 0; k++) {
        double sum = 0;
        for (int i = 0; i < joint->n; i++)
            sum += question.own[i][k] * joint->gbps[i];
        carry(foretell, k, sum * (1 - error));
    }
    if (rc == 0)
        rc = note(foretell, question.total, slowest, error, NULL);
    clear(&question);
    return rc;
}

/* What is asked for has no more than most, nor than one of the limits leaves to it that may have
 * made a set as slow as it was. */
static double most_alone(const struct evidence *evidence, const double *asked, double most)
{
    double gbps = 0;
    for (int i = 0; i < evidence->n && gbps < most; i++) {
        const struct share *share = &evidence->shares[i];
        if (asked[share->limit] <= 0)
            return most;
        gbps = fmax(gbps,
                    share->weight * evidence->gbps * (1 + evidence->error) / asked[share->limit]);
    }
    return gbps > 0 ? fmin(gbps, most) : most;
}

int tccl_foretell_alone(struct tccl_foretell *foretell, const struct tccl_set *set, double *least,
                        double *most)
{
    const size_t n = foretell->n_places * FAMILIES;
    cleanup_free double *weight = calloc(2 * n + 2, sizeof(*weight));
    double *asked = weight + n + 1; /* of each class, by its first limit, at most */
    tccl_transfer transfers[TCCL_MAX_SET];
    if (!weight)
        return -1;
    memcpy(transfers, set->transfers, set->count * sizeof(*transfers));
    tccl_transfers_sort(transfers, set->count);
    const uint64_t marks = marks_of(transfers, set->count);
    narrow_all(foretell);
    weigh(foretell, transfers, set->count, weight);
    *least = INFINITY;
    for (size_t place = 0; place < n; place += FAMILIES)
        for (size_t k = place; k < place + FAMILIES && weight[place] > 0; k++) /* it is of all */
            if (weight[k] > 0) {
                const size_t first = first_of(foretell, k);
                *least = fmin(*least, foretell->carried[first] / weight[k]);
                asked[first] = fmax(asked[first], weight[k]);
            }
    for (size_t k = 0; k < foretell->n_evidence; k++) {
        const struct evidence *evidence = &foretell->evidence[k];
        const double gbps = evidence->gbps * (1 - evidence->error);
        if (gbps > *least && !evidence->odd && !(marks & ~evidence->marks) &&
            tccl_transfers_contain(evidence->transfers, evidence->count, transfers, set->count))
            *least = gbps;
    }
    *most = *least;
    for (size_t k = 0; k < foretell->n_evidence; k++) {
        const struct evidence *evidence = &foretell->evidence[k];
        const double gbps = evidence->gbps * (1 + evidence->error);
        if (evidence->odd)
            continue;
        *most = most_alone(evidence, asked, *most);
        if (gbps < *most && evidence->count > 0 && !(evidence->marks & ~marks) &&
            tccl_transfers_contain(transfers, set->count, evidence->transfers, evidence->count))
            *most = gbps;
    }
    return 0;
}

int tccl_foretell_each(const struct tccl_foretell *foretell, const tccl_transfer *transfers,
                       int count, double *gbps)
{
    cleanup_free double *weight = calloc(foretell->n_places * FAMILIES + 1, sizeof(*weight));
    if (!weight)
        return -1;
    weigh(foretell, transfers, count, weight);
    for (int i = 0; i < count; i++) {
        const struct places *passed = &foretell->passed[transfers[i]];
        const bool memory = tccl_transfer_target(transfers[i]).kind == TCCL_MEMORY,
                   reads = tccl_transfer_reads(transfers[i]);
        gbps[i] = INFINITY;
        for (int k = 0; k < passed->n * FAMILIES; k++) {
            const size_t limit =
                (size_t)passed->places[k / FAMILIES] * FAMILIES + (size_t)(k % FAMILIES);
            if (weights[k % FAMILIES][memory][reads] > 0)
                gbps[i] =
                    fmin(gbps[i], foretell->carried[first_of(foretell, limit)] / weight[limit]);
        }
    }
    return 0;
}
