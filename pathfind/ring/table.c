/* table.c: chain tables in memory, and on disk: lines of text, the last one a checksum. The format
 * is described in pathfind/profile/README.md. */
#include "ring/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "base/grow.h"
#include "base/lines.h"

enum {
    VERSION = 11,
    SUM_SIZE = 4 + 16 + 1,
    MAX_PORTS = TCCL_MAX_NICS * (TCCL_MAX_GPUS + TCCL_MAX_MEMORIES),
    MAX_HOSTS = TCCL_MAX_NICS * TCCL_MAX_NICS,
    MAX_OTHERS = 512,
    MAX_SETS = 64,
    MAX_FILE = 64 << 20,
    KNOWN_NUMBERS = 128,
};

static const char *const part_names[] = {"best", "host", "other", "set"};

/* ---- in memory ---- */

static int add_ports(const struct tccl_machine *machine, uint32_t gpus, struct tccl_port *ports)
{
    int n = 0;
    for (int nic = 0; nic < machine->n_nics; nic++) {
        for (int gpu = 0; gpu < machine->n_gpus; gpu++)
            if ((gpus >> gpu & 1) && machine->gpudirect[nic][gpu])
                ports[n++] = (struct tccl_port){nic, {TCCL_GPU, gpu}};
        for (int memory = 0; memory < machine->n_memories; memory++)
            ports[n++] = (struct tccl_port){nic, {TCCL_MEMORY, memory}};
    }
    return n;
}

struct tccl_table *tccl_table_new(const struct tccl_machine *machine, uint32_t gpus)
{
    cleanup_table struct tccl_table *table = calloc(1, sizeof(*table));
    if (!table)
        return NULL;
    table->ports = calloc(MAX_PORTS, sizeof(*table->ports));
    table->n_ports = table->ports ? add_ports(machine, gpus, table->ports) : 0;
    table->n_results = tccl_table_pairs(table) + 2;
    table->room = (size_t)table->n_results;
    table->results = calloc(table->room, sizeof(*table->results));
    if (!table->ports || !table->results)
        return NULL;
    tccl_machine_id(machine, table->machine);
    table->gpus = gpus;
    for (int i = 0; i < table->n_results; i++)
        table->results[i].bound = INFINITY;
    tccl_table_host_ring(table)->part = TCCL_HOST;
    return tccl_steal(table);
}

void tccl_table_free(struct tccl_table *table)
{
    if (!table)
        return;
    for (int i = tccl_table_pairs(table); table->results && i < table->n_results; i++)
        free(table->results[i].set);
    free(table->results);
    free(table->ports);
    free(table);
}

size_t tccl_table_bytes(const struct tccl_table *table)
{
    size_t bytes = sizeof(*table) + MAX_PORTS * sizeof(*table->ports) +
                   (size_t)table->n_results * sizeof(*table->results);
    for (int i = tccl_table_pairs(table); i < table->n_results; i++)
        bytes += table->results[i].set ? sizeof(*table->results[i].set) : 0;
    return bytes;
}

struct tccl_result *tccl_table_place(const struct tccl_table *table, const struct tccl_chain *chain)
{
    int n = table->n_ports, entry = 0, exit = 0;
    if (chain->closed)
        return tccl_table_ring(table);
    while (entry < n && !tccl_port_equal(table->ports[entry], chain->entry))
        entry++;
    while (exit < n && !tccl_port_equal(table->ports[exit], chain->exit))
        exit++;
    return entry == n || exit == n ? NULL : &table->results[entry * n + exit];
}

struct tccl_result *tccl_table_next(const struct tccl_table *table, const struct tccl_result *at,
                                    unsigned parts)
{
    int first = parts & 1 << TCCL_BEST ? 0 : tccl_table_pairs(table);
    for (int i = at ? (int)(at - table->results) + 1 : first; i < table->n_results; i++)
        if (table->results[i].chain.n_gpus && (parts >> table->results[i].part & 1))
            return &table->results[i];
    return NULL;
}

struct tccl_result *tccl_table_best(const struct tccl_table *table, int entry, int exit)
{
    struct tccl_result *best = NULL;
    for (int i = 0; i < tccl_table_pairs(table); i++) {
        struct tccl_result *result = &table->results[i];
        if (result->chain.n_gpus && (entry < 0 || result->chain.entry.nic == entry) &&
            (exit < 0 || result->chain.exit.nic == exit) && (!best || result->gbps > best->gbps))
            best = result;
    }
    return best;
}

/* A new entry, which the next one may move; NULL without memory. */
static struct tccl_result *append(struct tccl_table *table, enum tccl_part part,
                                  const struct tccl_chain *chain)
{
    if (TCCL_GROW(table->results, (size_t)table->n_results, table->room) != 0)
        return NULL;
    struct tccl_result *own = &table->results[table->n_results++];
    *own = (struct tccl_result){.bound = INFINITY, .chain = *chain, .part = part};
    return own;
}

static int count(const struct tccl_table *table, enum tccl_part part)
{
    int n = 0;
    for (int i = tccl_table_pairs(table) + 2; i < table->n_results; i++)
        n += table->results[i].part == part;
    return n;
}

void tccl_table_drop(struct tccl_table *table, enum tccl_part part)
{
    for (int i = table->n_results - 1; i >= tccl_table_pairs(table) + 2; i--)
        if (table->results[i].part == part) {
            free(table->results[i].set);
            table->n_results--;
            memmove(&table->results[i], &table->results[i + 1],
                    (size_t)(table->n_results - i) * sizeof(*table->results));
        }
}

static bool same_nics(const struct tccl_chain *a, const struct tccl_chain *b)
{
    return !a->closed && a->entry.nic == b->entry.nic && a->exit.nic == b->exit.nic;
}

void tccl_table_keep_host(struct tccl_table *table, const struct tccl_result *host)
{
    struct tccl_result *own = NULL;
    while ((own = tccl_table_next(table, own, TCCL_HOSTS)) && !same_nics(&own->chain, &host->chain))
        continue;
    if (!own && count(table, TCCL_HOST) < MAX_HOSTS)
        own = append(table, TCCL_HOST, &host->chain);
    if (!own || own->gbps >= host->gbps)
        return;
    *own = *host;
    own->part = TCCL_HOST;
}

bool tccl_table_reads(const struct tccl_table *table)
{
    const struct tccl_result *own = NULL;
    while ((own = tccl_table_next(table, own, TCCL_SINGLES)) && !tccl_chain_reads(&own->chain))
        continue;
    return own != NULL;
}

void tccl_table_keep_other(struct tccl_table *table, const struct tccl_chain *chain, double gbps)
{
    struct tccl_result *own = NULL;
    while ((own = tccl_table_next(table, own, TCCL_SINGLES)))
        if (tccl_chain_equal(&own->chain, chain))
            return;
    if (chain->n_gpus && count(table, TCCL_OTHER) < MAX_OTHERS &&
        (own = append(table, TCCL_OTHER, chain)))
        own->gbps = gbps;
}

static bool alike(const struct tccl_ring_set *a, const struct tccl_ring_set *b)
{
    return a->n == b->n && a->rings[0].closed == b->rings[0].closed &&
           tccl_ring_set_reads(a) == tccl_ring_set_reads(b);
}

/* In any order. */
static bool same_set_nics(const struct tccl_ring_set *a, const struct tccl_ring_set *b)
{
    int counts[TCCL_MAX_NICS][TCCL_MAX_NICS] = {{0}};
    if (!alike(a, b))
        return false;
    for (int i = 0; i < a->n && !a->rings[0].closed; i++) {
        counts[a->rings[i].entry.nic][a->rings[i].exit.nic]++;
        counts[b->rings[i].entry.nic][b->rings[i].exit.nic]--;
    }
    for (int i = 0; i < a->n && !a->rings[0].closed; i++)
        if (counts[a->rings[i].entry.nic][a->rings[i].exit.nic] != 0)
            return false;
    return true;
}

static struct tccl_result *append_set(struct tccl_table *table, const struct tccl_ring_set *set)
{
    struct tccl_ring_set *copy = malloc(sizeof(*copy));
    struct tccl_result *own = copy ? append(table, TCCL_SET, &set->rings[0]) : NULL;
    if (own) {
        *copy = *set;
        own->set = copy;
    } else {
        free(copy);
    }
    return own;
}

void tccl_table_keep_set(struct tccl_table *table, const struct tccl_ring_set *set, double gbps,
                         double bound)
{
    struct tccl_result *own = NULL, *slowest = NULL;
    double most = gbps;
    while ((own = tccl_table_next(table, own, TCCL_SETS)) && !same_set_nics(own->set, set))
        slowest = slowest && slowest->gbps <= own->gbps ? slowest : own;
    if (!own && count(table, TCCL_SET) == MAX_SETS)
        own = slowest;
    if (!own && !(own = append_set(table, set)))
        return;
    if (own->gbps < gbps) {
        own->gbps = gbps;
        own->chain = set->rings[0];
        *own->set = *set;
        own->bound = bound;
    }
    for (own = NULL; (own = tccl_table_next(table, own, TCCL_SETS));)
        if (alike(own->set, set)) {
            bound = fmin(bound, own->bound);
            most = fmax(most, own->gbps);
        }
    while ((own = tccl_table_next(table, own, TCCL_SETS)))
        if (alike(own->set, set))
            own->bound = fmax(bound, most);
}

static bool nominal_equal(const struct tccl_nominal *a, const struct tccl_nominal *b)
{
    return a->pattern == b->pattern && a->channels == b->channels && a->intra == b->intra &&
           a->inter == b->inter && a->far_intra == b->far_intra && a->far_inter == b->far_inter;
}

bool tccl_baseline_equal(const struct tccl_baseline *a, const struct tccl_baseline *b)
{
    return a->gbps == b->gbps && tccl_ring_set_equal(&a->set, &b->set) &&
           nominal_equal(&a->ring, &b->ring) && nominal_equal(&a->tree, &b->tree);
}

/* ---- is it right? ---- */

/* Does each visit all GPUs of the set, and are they open or closed as required? Possible on the
 * machine, unless that is NULL? Returns 0, or -1 with err. */
static int check_rings(const struct tccl_chain *rings, int n, uint32_t gpus, bool closed,
                       const struct tccl_machine *machine, struct tccl_error *err)
{
    for (int i = 0; i < n; i++) {
        uint32_t visited = 0;
        for (int k = 0; k < rings[i].n_gpus && k < TCCL_MAX_GPUS; k++)
            visited |= UINT32_C(1) << (rings[i].gpus[k] & 31);
        if (rings[i].n_gpus != __builtin_popcount(gpus) || visited != gpus ||
            rings[i].closed != closed)
            return tccl_fail(err, "a chain is not over the table's GPUs; make the table again");
        if (machine && tccl_chain_check(&rings[i], machine, err) != 0)
            return -1;
    }
    return 0;
}

/* What its part demands of an entry. Nothing else of the table has the same NICs as a chain without
 * P2P, or a set. */
static bool part_fits(const struct tccl_table *table, int i)
{
    const struct tccl_result *own = &table->results[i];
    const struct tccl_chain *chain = &own->chain;
    int pairs = tccl_table_pairs(table), n = table->n_ports;
    if ((own->part == TCCL_HOST && tccl_chain_has_p2p(chain)) ||
        (own->set != NULL) != (own->part == TCCL_SET))
        return false;
    if (i < pairs)
        return own->part == TCCL_BEST &&
               (!chain->n_gpus ||
                (!chain->closed && tccl_port_equal(chain->entry, table->ports[i / n]) &&
                 tccl_port_equal(chain->exit, table->ports[i % n])));
    if (i < pairs + 2)
        return own->part == (i == pairs ? TCCL_BEST : TCCL_HOST) &&
               (!chain->n_gpus || chain->closed);
    if (!chain->n_gpus || own->part == TCCL_BEST || (own->part == TCCL_HOST && chain->closed) ||
        (own->set && (own->set->n < 2 || own->set->n > TCCL_CHAIN_RINGS || !(own->gbps > 0))))
        return false;
    for (int k = pairs + 2; k < i && own->part != TCCL_OTHER; k++)
        if (table->results[k].part == own->part &&
            (own->set ? same_set_nics(table->results[k].set, own->set)
                      : same_nics(&table->results[k].chain, chain)))
            return false;
    return true;
}

static int check_table(const struct tccl_table *table, const struct tccl_machine *machine,
                       struct tccl_error *err)
{
    if (count(table, TCCL_HOST) > MAX_HOSTS || count(table, TCCL_OTHER) > MAX_OTHERS ||
        count(table, TCCL_SET) > MAX_SETS)
        return tccl_fail(err, "too many chains of one kind; make the table again");
    for (int i = 0, n; i < table->n_results; i++) {
        const struct tccl_result *result = &table->results[i];
        const struct tccl_chain *rings = tccl_result_rings(result, &n);
        if (!(result->gbps >= 0 && isfinite(result->gbps) && result->bound >= result->gbps) ||
            (n == 0 && result->gbps > 0) || !part_fits(table, i))
            return tccl_fail(err, "the chain table contradicts itself; make it again");
        if (!tccl_tree_fits(&result->tree, &result->chain,
                            machine ? machine->n_nics : TCCL_MAX_NICS))
            return tccl_fail(err, "a tree is not on this machine; make the table again");
        if (check_rings(rings, n, table->gpus, rings[0].closed, machine, err) != 0)
            return -1;
    }
    for (int k = 0; k < 2 * TCCL_GENERATIONS; k++) {
        bool closed = k >= TCCL_GENERATIONS;
        int i = k % TCCL_GENERATIONS;
        const struct tccl_baseline *own = &table->baselines[closed][i];
        const double rates[] = {own->gbps, own->ring.intra, own->ring.inter, own->tree.intra,
                                own->tree.inter};
        bool fits = own->set.n >= 0 && own->set.n <= TCCL_MAX_CHANNELS &&
                    (own->set.n > 0 || !(own->gbps > 0));
        for (size_t r = 0; r < sizeof(rates) / sizeof(*rates); r++)
            fits = fits && rates[r] >= 0 && isfinite(rates[r]);
        if (!fits)
            return tccl_fail(err, "the baseline of NCCL %s contradicts itself; make it again",
                             tccl_generation(i)->name);
        if (check_rings(own->set.rings, own->set.n, table->gpus, closed, machine, err) != 0)
            return -1;
    }
    return 0;
}

int tccl_table_check(const struct tccl_table *table, const struct tccl_machine *machine,
                     struct tccl_error *err)
{
    struct tccl_port ports[MAX_PORTS];
    int n = add_ports(machine, table->gpus, ports);
    bool same = n == table->n_ports;
    for (int i = 0; i < n && same; i++)
        same = tccl_port_equal(ports[i], table->ports[i]);
    return same ? check_table(table, machine, err)
                : tccl_fail(err, "its ports are not those of this machine; make the table again");
}

/* ---- writing ---- */

/* So that the same number is read back. */
static void put_number(FILE *out, double number)
{
    char text[32];
    snprintf(text, sizeof(text), " %.9g", number);
    if (strtod(text, NULL) == number)
        fputs(text, out);
    else
        fprintf(out, " %.17g", number);
}

static void put_arrow(FILE *out, bool memory, int number, char direct)
{
    if (memory)
        fprintf(out, "-m%d>", number);
    else
        fprintf(out, "-%c>", direct);
}

static void put_edge(FILE *out, const struct tccl_edge *edge)
{
    if (edge->kind != TCCL_BY_NICS) {
        put_arrow(out, edge->kind == TCCL_BOUNCE, edge->memory, "wr"[edge->kind & 1]);
        return;
    }
    fputc('-', out);
    if (edge->from.via.kind == TCCL_MEMORY)
        fprintf(out, "m%d", edge->from.via.index);
    fprintf(out, "n%dn%d", edge->from.nic, edge->to.nic);
    if (edge->to.via.kind == TCCL_MEMORY)
        fprintf(out, "m%d", edge->to.via.index);
    fputc('>', out);
}

/* Without blanks; GPUs and NICs by number, as in sets. ports: with those of an open chain. */
static void put_chain(FILE *out, const struct tccl_chain *chain, bool ports)
{
    ports = ports && !chain->closed;
    if (ports) {
        fprintf(out, "n%d", chain->entry.nic);
        put_arrow(out, chain->entry.via.kind == TCCL_MEMORY, chain->entry.via.index, 'g');
    }
    for (int i = 0; i < chain->n_gpus; i++) {
        fprintf(out, "%d", chain->gpus[i]);
        if (i < tccl_chain_edges(chain))
            put_edge(out, &chain->edges[i]);
    }
    if (chain->closed)
        fprintf(out, "%d", chain->gpus[0]);
    if (ports) {
        put_arrow(out, chain->exit.via.kind == TCCL_MEMORY, chain->exit.via.index, 'g');
        fprintf(out, "n%d", chain->exit.nic);
    }
}

static void put_rings(FILE *out, const struct tccl_chain *rings, int n)
{
    for (int i = 0; i < n; i++) {
        fputs(i ? " | " : " ", out);
        put_chain(out, &rings[i], true);
    }
    putc('\n', out);
}

static void put_nominal(FILE *out, const struct tccl_nominal *nominal)
{
    fprintf(out, " %u %u %.9g %.9g %u %u", nominal->pattern, nominal->channels,
            (double)nominal->intra, (double)nominal->inter, nominal->far_intra, nominal->far_inter);
}

/* Holds for all that follow. */
static void put_ends(FILE *out, uint8_t ends, uint8_t *now)
{
    if (ends != *now)
        fprintf(out, "ends %d\n", ends);
    *now = ends;
}

/* Most generations have that of the one before. */
static void put_baselines(FILE *out, const char *word, const struct tccl_baseline *baselines,
                          uint8_t *ends)
{
    for (int i = 0; i < TCCL_GENERATIONS; i++) {
        const struct tccl_baseline *own = &baselines[i];
        if (i > 0 && tccl_baseline_equal(own, own - 1))
            continue;
        put_ends(out, own->ends, ends);
        fprintf(out, "%s %d", word, i);
        put_number(out, own->gbps);
        put_nominal(out, &own->ring);
        put_nominal(out, &own->tree);
        put_rings(out, own->set.rings, own->set.n);
    }
}

/* One line for those without a chain that stand behind each other and have the same bound. Returns
 * how many. */
static int put_none(FILE *out, const struct tccl_table *table, int i)
{
    const struct tccl_result *own = &table->results[i];
    int n = 1;
    while (i + n < tccl_table_pairs(table) + 2 && own[n].chain.n_gpus == 0 &&
           own[n].bound == own->bound)
        n++;
    fprintf(out, "none %d", n);
    put_number(out, own->bound);
    putc('\n', out);
    return n;
}

/* "=": a bandwidth as of the entry before it; a bound as the bandwidth. Of those that are always
 * there most have both, and then nothing but the way through the GPUs: numbers take longer to be
 * read than all the rest, and their ports follow from their place. */
static void put_result(FILE *out, const struct tccl_result *result, bool always,
                       const struct tccl_result **last, uint8_t *ends)
{
    bool same = *last && (*last)->gbps == result->gbps, tight = result->bound == result->gbps;
    int n;
    const struct tccl_chain *rings = tccl_result_rings(result, &n);
    *last = result;
    put_ends(out, result->ends, ends);
    if (!always || !same || !tight) {
        fputs(always ? "best" : part_names[result->part], out);
        if (same)
            fputs(" =", out);
        else
            put_number(out, result->gbps);
        if (tight)
            fputs(" =", out);
        else
            put_number(out, result->bound);
        if (always)
            putc(' ', out);
    }
    if (always) {
        put_chain(out, rings, false);
        putc('\n', out);
    } else {
        put_rings(out, rings, n);
    }
    if (!(result->tree.gbps > 0))
        return;
    fputs("tree", out);
    put_number(out, result->tree.gbps);
    put_number(out, result->tree.along);
    fprintf(out, " n%d", result->tree.nic);
    for (int k = 0; k < result->chain.n_gpus; k++)
        fprintf(out, " %d", result->tree.gpus[k]);
    putc('\n', out);
}

int tccl_table_write(const struct tccl_table *table, const char *path, struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    size_t size = 0;
    if (check_table(table, NULL, NULL) != 0)
        return tccl_fail(err, "%s: the chain table is inconsistent and is not written", path);
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return tccl_fail(err, "%s: out of memory", path);
    fprintf(out, "tccl-chains %d\nmachine %s\nsource %s\ngpus %08" PRIx32 "\nmeasured %" PRIu32,
            VERSION, table->machine, *table->source ? table->source : "?", table->gpus,
            table->measured);
    fputs("\nnoise", out);
    put_number(out, table->noise);
    fputs("\nnccl", out);
    for (int i = 0; i < TCCL_GENERATIONS; i++)
        fprintf(out, " %d", tccl_generation(i)->first);
    putc('\n', out);
    uint8_t ends = 0;
    put_baselines(out, "nccl-ring", table->baselines[1], &ends);
    put_baselines(out, "nccl-chain", table->baselines[0], &ends);
    const struct tccl_result *last = NULL;
    for (int i = 0; i < tccl_table_pairs(table) + 2;)
        if (table->results[i].chain.n_gpus > 0)
            put_result(out, &table->results[i++], true, &last, &ends);
        else
            i += put_none(out, table, i);
    for (int part = TCCL_HOST; part <= TCCL_SET; part++) /* in this order, however they came */
        for (int i = tccl_table_pairs(table) + 2; i < table->n_results; i++)
            if (table->results[i].part == (enum tccl_part)part)
                put_result(out, &table->results[i], false, &last, &ends);
    if (fflush(out) == 0) {
        uint64_t sum = tccl_hash64(text, size);
        fprintf(out, "sum %016" PRIx64 "\n", sum);
    }
    if (fclose(out) != 0)
        return tccl_fail(err, "%s: out of memory", path);
    return tccl_write_file(path, 0644, text, size, err);
}

/* ---- reading ---- */

/* The next word of a line, or what stands there as a number; false: there is none. Most have few
 * digits, and strtod takes ten times as long. */
static bool take_number(char **at, double *number)
{
    char *from = *at + strspn(*at, " ");
    int digits;
    char *end = from + (tccl_word_decimal(from, number, &digits) - from);
    if (digits == 0 || digits > TCCL_EXACT_DIGITS || (*end && *end != ' '))
        *number = strtod(*at, &end);
    bool is = end != *at && (*end == ' ' || *end == '\0');
    *at = end;
    return is;
}

static bool take_byte(char **at, uint8_t *byte)
{
    double number;
    bool is = take_number(at, &number) && number >= 0 && number <= UINT8_MAX;
    *byte = is ? (uint8_t)number : 0;
    return is;
}

/* A number below 16; NULL: there is none. */
static char *take_index(char *at, uint8_t *index)
{
    unsigned number = (unsigned)(*at - '0'), second = number <= 9 ? (unsigned)(at[1] - '0') : 10;
    if (second <= 9)
        number = 10 * number + second;
    *index = (uint8_t)number;
    return number < 16 ? at + 1 + (second <= 9) : NULL;
}

/* "-w>", or "-m3>": kind and memory. */
static char *take_arrow(char *at, char *kind, uint8_t *memory)
{
    *memory = 0;
    *kind = at[0] == '-' ? at[1] : '\0';
    if (*kind == 'm')
        at = take_index(at + 2, memory);
    else
        at = *kind == 'w' || *kind == 'r' || *kind == 'g' ? at + 2 : NULL;
    return at && *at == '>' ? at + 1 : NULL;
}

/* Between NIC and GPU. */
static char *take_port(char *at, struct tccl_device *via)
{
    char kind;
    at = take_arrow(at, &kind, &via->index);
    via->kind = kind == 'g' ? TCCL_GPU : TCCL_MEMORY;
    return at && (kind == 'g' || kind == 'm') ? at : NULL;
}

/* "m0", if a memory stands there, or else the GPU. */
static char *take_via(char *at, int gpu, struct tccl_device *via)
{
    *via = (struct tccl_device){*at == 'm' ? TCCL_MEMORY : TCCL_GPU, (uint8_t)gpu};
    return *at == 'm' ? take_index(at + 1, &via->index) : at;
}

/* "-n0n1>", "-m0n0n1m1>": from that GPU to the next one, which is not known yet. */
static char *take_nics(char *at, int gpu, struct tccl_edge *edge)
{
    *edge = (struct tccl_edge){.kind = TCCL_BY_NICS};
    at = *at == '-' ? take_via(at + 1, gpu, &edge->from.via) : NULL;
    at = at && *at == 'n' ? take_index(at + 1, &edge->from.nic) : NULL;
    at = at && *at == 'n' ? take_index(at + 1, &edge->to.nic) : NULL;
    at = at ? take_via(at, 0, &edge->to.via) : NULL;
    return at && *at == '>' ? at + 1 : NULL;
}

/* A chain as put_chain writes it: the text of chain-text.h without names and blanks, thousands of
 * which are read while a job starts. An open one may have no ports. Whether it is possible is
 * checked later. Returns what is behind it; NULL: it is no chain. */
static char *take_chain(char *at, struct tccl_chain *chain)
{
    *chain = (struct tccl_chain){0};
    bool ports = *at == 'n';
    if (ports &&
        (!(at = take_index(at + 1, &chain->entry.nic)) || !(at = take_port(at, &chain->entry.via))))
        return NULL;
    while (chain->n_gpus < TCCL_MAX_GPUS) {
        struct tccl_edge *edge = &chain->edges[chain->n_gpus];
        uint8_t *gpu = &chain->gpus[chain->n_gpus++];
        char kind;
        at = take_index(at, gpu);
        if (chain->n_gpus == 1 && ports && chain->entry.via.kind == TCCL_GPU)
            chain->entry.via.index = *gpu;
        if (!at || (!ports && *at != '-'))
            return at;
        char *next = take_arrow(at, &kind, &edge->memory);
        if (ports && next && *next == 'n') {
            edge->memory = 0;
            at = take_port(at, &chain->exit.via);
            if (at && chain->exit.via.kind == TCCL_GPU)
                chain->exit.via.index = *gpu;
            return at ? take_index(at + 1, &chain->exit.nic) : NULL;
        }
        edge->kind = kind == 'w' ? TCCL_P2P_WRITE : kind == 'r' ? TCCL_P2P_READ : TCCL_BOUNCE;
        if (!next)
            next = take_nics(at, *gpu, edge);
        if (!next || kind == 'g')
            return NULL;
        at = next;
        uint8_t back;
        next = take_index(at, &back);
        if (edge->kind == TCCL_BY_NICS && edge->to.via.kind == TCCL_GPU)
            edge->to.via.index = back;
        chain->closed = !ports && next && back == chain->gpus[0];
        if (chain->closed)
            return next;
    }
    return NULL;
}

/* Up to most rings, "chain | chain". Returns how many, or -1 with err. */
static int take_rings(char *at, struct tccl_chain *rings, int most, struct tccl_error *err)
{
    for (int n = 0; *at; n++) {
        if (strncmp(at, n ? " | " : " ", n ? 3 : 1) != 0)
            return tccl_fail(err, "no chain: %.40s", at);
        if (n == 0 && !at[1])
            return 0;
        if (n == most)
            return tccl_fail(err, "more than %d rings", most);
        char *text = at + (n ? 3 : 1);
        if (!(at = take_chain(text, &rings[n])))
            return tccl_fail(err, "no chain: %.40s", text);
        if (!*at)
            return n + 1;
    }
    return 0;
}

static bool take_nominal(char **at, struct tccl_nominal *nominal)
{
    double intra, inter;
    if (!take_byte(at, &nominal->pattern) || !take_byte(at, &nominal->channels) ||
        !take_number(at, &intra) || !take_number(at, &inter) ||
        !take_byte(at, &nominal->far_intra) || !take_byte(at, &nominal->far_inter))
        return false;
    nominal->intra = (float)intra;
    nominal->inter = (float)inter;
    return true;
}

static int take_baseline(char *at, uint8_t ends, struct tccl_baseline *baselines,
                         struct tccl_error *err)
{
    struct tccl_baseline own = {.ends = ends};
    uint8_t generation;
    if (!take_byte(&at, &generation) || generation >= TCCL_GENERATIONS ||
        !take_number(&at, &own.gbps) || !take_nominal(&at, &own.ring) ||
        !take_nominal(&at, &own.tree))
        return tccl_fail(err, "a baseline is not complete");
    own.set.n = take_rings(at, own.set.rings, TCCL_MAX_CHANNELS, err);
    for (int i = generation; i < TCCL_GENERATIONS; i++)
        baselines[i] = own;
    return own.set.n < 0 ? -1 : 0;
}

/* Numbers that take strtod, by their text: thousands of entries have some dozens of them. */
struct known_number {
    char text[24];
    double number;
};

/* A table while it is read. */
struct reading {
    struct tccl_table *table;
    struct known_number known[KNOWN_NUMBERS];
    struct tccl_result *last; /* the entry of the line before this one; NULL: none */
    int next;                 /* of those that are always there, which stand in their order */
    uint8_t ends;             /* as all that follow have it */
};

static int take_none(struct reading *reading, char *at, struct tccl_error *err)
{
    double n, bound;
    int most = tccl_table_pairs(reading->table) + 2 - reading->next;
    if (!take_number(&at, &n) || !take_number(&at, &bound) || *at || !(n >= 1 && n <= most))
        return tccl_fail(err, "a bound belongs to no pair of ports");
    for (int left = (int)n; left > 0; left--)
        reading->table->results[reading->next++].bound = bound;
    return 0;
}

static int take_tree(const struct reading *reading, char *at, struct tccl_error *err)
{
    struct tccl_tree tree = {0};
    bool is = reading->last && take_number(&at, &tree.gbps) && take_number(&at, &tree.along) &&
              at[0] == ' ' && at[1] == 'n' && (at = take_index(at + 2, &tree.nic));
    for (int i = 0; is && i < reading->last->chain.n_gpus; i++)
        is = take_byte(&at, &tree.gpus[i]);
    if (!is || *at)
        return tccl_fail(err, "a tree belongs to no chain");
    reading->last->tree = tree;
    return 0;
}

/* The way through the GPUs of the next entry that is always there. */
static int take_way(struct reading *reading, char *at, double gbps, double bound,
                    struct tccl_error *err)
{
    const struct tccl_table *table = reading->table;
    int i = reading->next++, pairs = tccl_table_pairs(table);
    struct tccl_result *own = &table->results[i];
    if (i >= pairs + 2)
        return tccl_fail(err, "a chain belongs to no pair of ports");
    at = take_chain(at, &own->chain);
    if (!at || *at)
        return tccl_fail(err, "the chain of pair %d can't be read", i);
    if (i < pairs && !own->chain.closed) {
        own->chain.entry = table->ports[i / table->n_ports];
        own->chain.exit = table->ports[i % table->n_ports];
    }
    own->gbps = gbps;
    own->bound = bound;
    own->ends = reading->ends;
    reading->last = own;
    return 0;
}

/* Rings that are not always there. */
static int take_more(struct reading *reading, enum tccl_part part, char *at, double gbps,
                     double bound, struct tccl_error *err)
{
    struct tccl_table *table = reading->table;
    struct tccl_ring_set set;
    set.n = take_rings(at, set.rings, part == TCCL_SET ? TCCL_CHAIN_RINGS : 1, err);
    if (set.n < 1)
        return tccl_fail(err, "a bandwidth has no chain");
    if (table->n_results - tccl_table_pairs(table) - 2 > MAX_HOSTS + MAX_OTHERS + MAX_SETS)
        return tccl_fail(err, "too many chains; make the table again");
    struct tccl_result *own =
        part == TCCL_SET ? append_set(table, &set) : append(table, part, &set.rings[0]);
    if (!own)
        return tccl_fail(err, "out of memory");
    own->gbps = gbps;
    own->bound = bound;
    own->ends = reading->ends;
    reading->last = own;
    return 0;
}

/* The same, or "=": as this one, if there is one. */
static bool take_or_same(struct reading *reading, char **at, const double *as, double *number)
{
    if (strncmp(*at, " = ", 3) == 0 && as) {
        *at += 2;
        *number = *as;
        return true;
    }
    const char *text = *at + 1;
    const size_t length = **at ? strcspn(text, " ") : 0;
    if (length <= TCCL_EXACT_DIGITS || length >= sizeof(reading->known->text))
        return take_number(at, number);
    struct known_number *known =
        &reading
             ->known[(10u * (uint8_t)text[length - 2] + (uint8_t)text[length - 1]) % KNOWN_NUMBERS];
    if (strncmp(known->text, text, length) == 0 && known->text[length] == '\0') {
        *at += 1 + length;
        *number = known->number;
        return true;
    }
    if (!take_number(at, number))
        return false;
    snprintf(known->text, sizeof(known->text), "%.*s", (int)length, text);
    known->number = *number;
    return true;
}

static int take_result(struct reading *reading, enum tccl_part part, char *at,
                       struct tccl_error *err)
{
    const double *before = reading->last ? &reading->last->gbps : NULL;
    double gbps, bound;
    if (!take_or_same(reading, &at, before, &gbps) || !take_or_same(reading, &at, &gbps, &bound) ||
        *at != ' ')
        return tccl_fail(err, "a chain has no bandwidth");
    return part == TCCL_BEST ? take_way(reading, at + 1, gbps, bound, err)
                             : take_more(reading, part, at, gbps, bound, err);
}

static int take_line(struct reading *reading, char *line, struct tccl_error *err)
{
    if (*line >= '0' && *line <= '9' && reading->last)
        return take_way(reading, line, reading->last->gbps, reading->last->gbps, err);
    for (int part = TCCL_BEST; part <= TCCL_SET; part++) {
        size_t length = strlen(part_names[part]);
        if (strncmp(line, part_names[part], length) == 0 && line[length] == ' ')
            return take_result(reading, (enum tccl_part)part, line + length, err);
    }
    char *at = line + strcspn(line, " ");
    if (strncmp(line, "tree ", 5) == 0)
        return take_tree(reading, at, err);
    if (strncmp(line, "none ", 5) == 0)
        return take_none(reading, at, err);
    if (strncmp(line, "ends ", 5) == 0) {
        /* Digits alone: thousands may stand between entries. */
        int ends = 0, n = 0;
        while (n < 3 && at[1 + n] >= '0' && at[1 + n] <= '9')
            ends = 10 * ends + at[1 + n++] - '0';
        if (n == 0 || at[1 + n] || (ends != 0 && (ends < TCCL_ENDS_LEAST || ends > TCCL_ENDS_MOST)))
            return tccl_fail(err, "the ends of a round are 100 to 200 hundredths");
        reading->ends = (uint8_t)ends;
        return 0;
    }
    if (strncmp(line, "nccl-ring ", 10) == 0)
        return take_baseline(at, reading->ends, reading->table->baselines[1], err);
    if (strncmp(line, "nccl-chain ", 11) == 0)
        return take_baseline(at, reading->ends, reading->table->baselines[0], err);
    return tccl_fail(err, "unknown line: %.20s", line);
}

/* The lines up to "nccl", with which the table is made. *text: behind them. NULL with err. */
static struct tccl_table *take_header(char **text, const struct tccl_machine *machine,
                                      struct tccl_error *err)
{
    char id[TCCL_HASH_HEX] = "", source[TCCL_NAME] = "", own[TCCL_HASH_HEX];
    uint32_t gpus = 0, measured = 0;
    double noise = -1;
    int length = 0;
    bool same = true;
    sscanf(*text,
           "tccl-chains %*u\nmachine %32[0-9a-f]\nsource %63[^\n]\ngpus %" SCNx32
           "\nmeasured %" SCNu32 "\nnoise %lf\nnccl%n",
           id, source, &gpus, &measured, &noise, &length);
    char *at = *text + length;
    for (int i = 0; i < TCCL_GENERATIONS && length; i++)
        same = strtol(at, &at, 10) == tccl_generation(i)->first && same;
    tccl_machine_id(machine, own);
    struct tccl_table *table = NULL;
    if (!length || !(noise >= 0 && noise < 1) || !gpus || gpus >> machine->n_gpus)
        tccl_fail(err, "its first lines are wrong; make the table again");
    else if (strcmp(id, own) != 0)
        tccl_fail(err, "made for another machine: %s, this one is %s", id, own);
    else if (!same || *at != '\n')
        tccl_fail(err, "made for other versions of NCCL; make the table again");
    else if (!(table = tccl_table_new(machine, gpus)))
        tccl_fail(err, "out of memory");
    if (!table)
        return NULL;
    *text = at + 1;
    if (strcmp(source, "?") != 0)
        memcpy(table->source, source, sizeof(source));
    table->measured = measured;
    table->noise = noise;
    return table;
}

/* Is it a table of this version, complete and unaltered? Its checksum is cut off. */
static int check_whole(char *text, size_t size, struct tccl_error *err)
{
    unsigned version = 0;
    char sum[SUM_SIZE + 1];
    if (size <= SUM_SIZE || sscanf(text, "tccl-chains %u\n", &version) != 1)
        return tccl_fail(err, "not a chain table, or truncated; make it again");
    if (version != VERSION)
        return tccl_fail(err,
                         "version %u, this program reads version %d; make it again (tccl-profile "
                         "run: what was measured stays)",
                         version, VERSION);
    snprintf(sum, sizeof(sum), "sum %016" PRIx64 "\n", tccl_hash64(text, size - SUM_SIZE));
    if (memcmp(text + size - SUM_SIZE, sum, SUM_SIZE) != 0 || memchr(text, '\0', size))
        return tccl_fail(err, "checksum does not match (altered or truncated); make it again");
    text[size - SUM_SIZE] = '\0';
    return 0;
}

static struct tccl_table *table_decode(char *text, size_t size, const struct tccl_machine *machine,
                                       struct tccl_error *err)
{
    if (check_whole(text, size, err) != 0)
        return NULL;
    cleanup_table struct tccl_table *table = take_header(&text, machine, err);
    if (!table)
        return NULL;
    struct reading reading = {.table = table};
    for (char *line; (line = strsep(&text, "\n")) && *line;)
        if (take_line(&reading, line, err) != 0)
            return NULL;
    if ((text && *text) || reading.next != tccl_table_pairs(table) + 2)
        return tccl_fail_null(err,
                              "an empty line, or too few pairs of ports; make the table again");
    return check_table(table, machine, err) == 0 ? tccl_steal(table) : NULL;
}

int tccl_table_read(const char *path, const struct tccl_machine *machine, struct tccl_table **table,
                    struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    size_t size = 0;
    if (tccl_read_file(path, MAX_FILE, &text, &size, err) != 0)
        return -1;
    struct tccl_error why = {""};
    *table = table_decode(text, size, machine, &why);
    return *table ? 0 : tccl_fail(err, "%s: %s", path, why.text);
}
