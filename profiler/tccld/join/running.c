/* running.c: what runs on this node's GPUs. A step comes by its JOIN, whatever its mode, and goes
 * by its LEAVE; one whose slurmstepd was killed is left out once that is seen. All is written down
 * in RunDir for a tccld that is started again. Numbers of GPUs get a meaning only when somebody
 * asks: slurmd's list may come later than the step. */
#include "tccld/join/running.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fileio.h"
#include "chain/beside-text.h"
#include "ring/neighbours.h"
#include "tccld/join/outcome.h"
#include "tccld/join/script.h"
#include "tccld/join/stepd.h"
#include "tccld/main/log.h"
#include "tccld/main/run-dir.h"

enum {
    FILE_MOST = 4 << 20,
    SAVE_MS = 100,
    PLACE_MS = 10,
    SWEEP_MS = 100,
    SEEN = TCCL_MAX_SIDES - 1
};
#define FILE_NAME "running"
enum { VERSION = 2 }; /* of the list; 1: an array of its steps, without a version */

struct entry {
    TAILQ_ENTRY(entry) link;
    struct tccl_step_key key;
    int gres[TCCL_MAX_GRES], n_gres, n_nodes;
    char stepd[STEPD_TEXT];
    char rings[TCCL_RINGS_TEXT]; /* its chain, or those of a set; "": NCCL's own */
    double alone;                /* of all of them, GB/s */
    int built; /* so many of these, the first ones; 0: NCCL's own in their place */
    int nccl;  /* its version, 0: not known */
};

TAILQ_HEAD(entry_list, entry);

struct running {
    struct daemon *daemon;
    struct entry_list entries; /* the latest first */
    int count;
    int64_t swept; /* tccl_now_ms */
    struct event *save, *place;
    struct log_limit trouble;
};

static void remove_entry(struct running *running, struct entry *entry)
{
    TAILQ_REMOVE(&running->entries, entry, link);
    running->count--;
    free(entry);
}

static struct entry *find(const struct running *running, const struct tccl_step_key *key)
{
    struct entry *entry;
    TAILQ_FOREACH(entry, &running->entries, link)
    if (tccl_key_equal(&entry->key, key))
        return entry;
    return NULL;
}

/* The latest one, to be filled in; NULL without memory. */
static struct entry *add_entry(struct running *running)
{
    struct entry *entry = calloc(1, sizeof(*entry));
    if (!entry)
        return NULL;
    entry->built = TCCL_CHAIN_RINGS;
    if (running->count == RUNNING_MOST)
        remove_entry(running, TAILQ_LAST(&running->entries, entry_list));
    TAILQ_INSERT_HEAD(&running->entries, entry, link);
    running->count++;
    return entry;
}

/* ---- written down ---- */

static int name_file(const struct running *running, char path[static PATH_MAX])
{
    const char *run_dir = running->daemon->conf->run_dir;
    return snprintf(path, PATH_MAX, "%s/" FILE_NAME, run_dir) < PATH_MAX ? 0 : -1;
}

static json_t *entry_to_json(const struct entry *entry)
{
    json_t *gres = json_array();
    for (int i = 0; i < entry->n_gres; i++)
        json_array_append_new(gres, json_integer(entry->gres[i]));
    return json_pack("{s:o, s:o, s:i, s:s, s:s, s:f, s:i, s:i}", "key",
                     tccl_key_to_json(&entry->key), "gres", gres, "n_nodes", entry->n_nodes,
                     "stepd", entry->stepd, "rings", entry->rings, "alone_gbps", entry->alone,
                     "built", entry->built, "nccl", entry->nccl);
}

static int gres_from_json(const json_t *gres, struct entry *entry)
{
    if (!json_is_array(gres) || json_array_size(gres) > TCCL_MAX_GRES)
        return -1;
    entry->n_gres = (int)json_array_size(gres);
    for (int i = 0; i < entry->n_gres; i++) {
        const json_t *number = json_array_get(gres, (size_t)i);
        if (!json_is_integer(number) || json_integer_value(number) < 0 ||
            json_integer_value(number) > INT_MAX)
            return -1;
        entry->gres[i] = (int)json_integer_value(number);
    }
    return 0;
}

/* Steps of a list without a version may lack what came later, and say "refused" where "built" is 0
 * now; "background" is what was once written. Returns 0, or -1: it is not an entry. */
static int entry_from_json(json_t *json, bool versioned, struct entry *entry)
{
    static const char now[] = "{s:o, s:o, s:i, s:s, s:s, s:F, s:i, s:i, s?s!}",
                      before[] = "{s:o, s:o, s:i, s:s, s:s, s:F, s?i, s?i, s?s, s?b!}";
    const char *stepd, *rings, *background = "";
    json_t *key, *gres;
    int refused = 0;
    if (json_unpack(json, versioned ? now : before, "key", &key, "gres", &gres, "n_nodes",
                    &entry->n_nodes, "stepd", &stepd, "rings", &rings, "alone_gbps", &entry->alone,
                    "built", &entry->built, "nccl", &entry->nccl, "background", &background,
                    "refused", &refused) != 0 ||
        entry->built < 0 || entry->built > TCCL_CHAIN_RINGS ||
        strlen(stepd) >= sizeof(entry->stepd) || strlen(rings) >= sizeof(entry->rings) ||
        gres_from_json(gres, entry) != 0 || tccl_key_from_json(key, &entry->key, NULL) != 0)
        return -1;
    if (refused)
        entry->built = 0;
    strcpy(entry->stepd, stepd);
    strcpy(entry->rings, rings);
    return 0;
}

/* What was measured together here; NULL: nothing, or it can't be read, which is said. */
static const struct tccl_together *read_together(struct running *running)
{
    struct tccl_error err = {""};
    const struct tccl_together *known = own_together(running->daemon->own, &err);
    if (err.text[0])
        log_limited(&running->trouble, "steps beside others are planned by bounds: %s", err.text);
    return known;
}

/* Steps that come beside those that run will ask for it; reading it takes some milliseconds, for
 * which none of them should wait. */
static void read_ahead(struct running *running)
{
    struct own *own = running->daemon->own;
    if (own && !TAILQ_EMPTY(&running->entries) && !own_model(own))
        read_together(running);
}

static void on_save(evutil_socket_t fd, short what, void *argument)
{
    struct running *running = argument;
    struct tccl_error err = {""};
    const struct entry *entry;
    char path[PATH_MAX];
    json_t *steps = json_array();
    (void)fd;
    TAILQ_FOREACH(entry, &running->entries, link)
    json_array_append_new(steps, entry_to_json(entry));
    cleanup_json json_t *json = json_pack("{s:i, s:o}", "version", VERSION, "steps", steps);
    if (name_file(running, path) != 0 ||
        run_dir_write_json(running->daemon->run_dir, path, json, &err) != 0)
        log_limited(&running->trouble,
                    "a tccld that is started again will not know what runs here: %s", err.text);
    if (what & EV_TIMEOUT) /* not at the end of all */
        read_ahead(running);
}

static void save_soon(struct running *running)
{
    struct timeval soon = daemon_in(SAVE_MS);
    if (!event_pending(running->save, EV_TIMEOUT, NULL))
        event_add(running->save, &soon);
}

/* What the best GPUs give is found out between the answers, one set of them after the other. */
static void on_place(evutil_socket_t fd, short what, void *argument)
{
    struct running *running = argument;
    struct timeval soon = daemon_in(PLACE_MS);
    (void)fd, (void)what;
    if (running->daemon->own && own_look_at_place(running->daemon->own))
        event_add(running->place, &soon);
}

/* The steps of a list, borrowed; NULL with err: it is none, or of another version. */
static json_t *steps_of(json_t *list, const char *path, bool *versioned, struct tccl_error *err)
{
    json_t *steps;
    int version;
    *versioned = !json_is_array(list);
    if (!*versioned)
        return list;
    if (json_unpack(list, "{s:i, s:o!}", "version", &version, "steps", &steps) == 0 &&
        version == VERSION && json_is_array(steps))
        return steps;
    tccl_fail(err, "%s: is no list of version %d", path, VERSION);
    return NULL;
}

/* Returns how many of them can't be read. */
static int add_steps(struct running *running, const json_t *steps, bool versioned)
{
    int bad = 0;
    for (size_t i = json_array_size(steps); i-- > 0;) {
        struct entry *entry = add_entry(running);
        if (!entry || entry_from_json(json_array_get(steps, i), versioned, entry) == 0)
            continue;
        remove_entry(running, entry);
        bad++;
    }
    return bad;
}

/* RunDir is root's, or TccldUser's. */
static void load(struct running *running)
{
    struct tccl_error err = {""};
    char path[PATH_MAX];
    bool versioned = false;
    if (name_file(running, path) != 0 || access(path, F_OK) != 0)
        return;
    cleanup_json json_t *list = tccl_read_json(path, FILE_MOST, &err);
    json_t *steps = list ? steps_of(list, path, &versioned, &err) : NULL;
    int bad = add_steps(running, steps, versioned);
    if (bad > 0)
        tccl_fail(&err, "%s: %d steps can't be read", path, bad);
    if (err.text[0])
        log_line("steps that run here now do not count for those that begin: %s", err.text);
}

struct running *running_new(struct daemon *daemon)
{
    struct running *running = calloc(1, sizeof(*running));
    if (!running)
        return NULL;
    running->daemon = daemon;
    TAILQ_INIT(&running->entries);
    running->save = event_new(daemon->base, -1, 0, on_save, running);
    running->place = event_new(daemon->base, -1, 0, on_place, running);
    if (!running->save || !running->place) {
        running_free(running);
        return NULL;
    }
    load(running);
    return running;
}

void running_free(struct running *running)
{
    if (!running)
        return;
    if (running->save && event_pending(running->save, EV_TIMEOUT, NULL))
        on_save(-1, 0, running);
    while (!TAILQ_EMPTY(&running->entries))
        remove_entry(running, TAILQ_FIRST(&running->entries));
    if (running->save)
        event_free(running->save);
    if (running->place)
        event_free(running->place);
    free(running);
}

/* ---- what comes and goes ---- */

/* A job with many steps at once drives none of another job out. */
static void make_room(struct running *running, const struct tccl_step_key *key)
{
    struct entry *entry, *oldest = NULL;
    int count = 0;
    TAILQ_FOREACH(entry, &running->entries, link)
    if (entry->key.job == key->job && strcmp(entry->key.cluster, key->cluster) == 0) {
        oldest = entry;
        count++;
    }
    if (count >= RUNNING_JOB)
        remove_entry(running, oldest);
}

void running_begin(struct running *running, const struct tccl_step *join,
                   const struct connection *connection)
{
    struct entry *entry = find(running, &join->key);
    if (join->n_gres == 0)
        return;
    if (entry)
        remove_entry(running, entry);
    make_room(running, &join->key);
    entry = add_entry(running);
    if (!entry)
        return;
    entry->key = join->key;
    memcpy(entry->gres, join->gres, sizeof(entry->gres));
    entry->n_gres = join->n_gres;
    entry->n_nodes = join->n_nodes;
    stepd_name(connection_pid(connection), entry->stepd);
    save_soon(running);
}

void running_ring(struct running *running, const struct tccl_outcome *outcome,
                  const struct tccl_step *join, const struct tccl_node_class *class)
{
    struct entry *entry = find(running, &join->key);
    struct tccl_named_rings named;
    struct outcome_part part;
    if (!entry || outcome_part(outcome, join, class, &part) != 0)
        return;
    named.n = part.set.n;
    for (int i = 0; i < part.set.n; i++)
        tccl_chain_name(&part.set.rings[i], own_machine(running->daemon->own), false,
                        &named.chains[i]);
    tccl_named_rings_format(&named, entry->rings);
    entry->alone = part.alone;
    save_soon(running);
}

void running_built(struct running *running, const struct tccl_step_key *key, int rings, int nccl)
{
    struct entry *entry = find(running, key);
    if (!entry || (entry->built == rings && entry->nccl == nccl))
        return;
    entry->built = rings;
    entry->nccl = nccl;
    save_soon(running);
}

void running_end(struct running *running, const struct tccl_step_key *key)
{
    struct entry *entry = find(running, key);
    if (!entry)
        return;
    remove_entry(running, entry);
    save_soon(running);
}

/* Not at each of a flood of questions: it looks at a process for each step. */
void running_sweep(struct running *running)
{
    struct entry *entry = TAILQ_FIRST(&running->entries), *next;
    int64_t now = tccl_now_ms();
    if (now - running->swept < SWEEP_MS)
        return;
    running->swept = now;
    for (; entry; entry = next) {
        next = TAILQ_NEXT(entry, link);
        if (stepd_look(entry->stepd) != STEPD_GONE)
            continue;
        remove_entry(running, entry);
        save_soon(running);
    }
}

/* ---- seen beside them ---- */

/* The others that run, each with GPUs of its own. */
struct seen {
    struct tccl_side sides[SEEN];
    uint32_t gpus; /* of all of them, and the step's own */
    int steps;     /* of which anything counts */
    struct tccl_beside beside;
    struct tccl_neighbour *named; /* of each, what the record says; NULL: nobody asks */
};

static int put_side(struct seen *seen, double alone)
{
    struct tccl_beside *beside = &seen->beside;
    if (seen->sides[beside->n].count == 0 || !(alone > 0))
        return 0;
    seen->sides[beside->n].alone = alone;
    beside->others[beside->n] = &seen->sides[beside->n];
    beside->alone[beside->n++] = alone;
    return 1;
}

/* NCCL's own, by GPU numbers, each once, as many as one text takes. */
static void name_chains(const struct tccl_machine *machine, const struct tccl_chain *chains, int n,
                        struct tccl_neighbour *neighbour)
{
    struct tccl_named_rings *rings = &neighbour->rings;
    neighbour->nccl = true;
    rings->n = 0;
    for (int i = 0; i < n && rings->n < TCCL_CHAIN_RINGS; i++) {
        bool again = false;
        for (int k = 0; k < i && !again; k++)
            again = tccl_chain_equal(&chains[k], &chains[i]);
        if (!again)
            tccl_chain_name(&chains[i], machine, true, &rings->chains[rings->n++]);
    }
}

/* All rings of a set, those that are alike too. */
static void name_set(const struct tccl_machine *machine, const struct tccl_ring_set *set,
                     struct tccl_neighbour *neighbour)
{
    neighbour->nccl = false;
    neighbour->rings.n = set->n;
    for (int i = 0; i < set->n; i++)
        tccl_chain_name(&set->rings[i], machine, true, &neighbour->rings.chains[i]);
}

/* What the first rings of a set have alone: as the model says; else each what it has beside the
 * rest, at least. */
static double alone_of_first(struct running *running, const struct entry *entry, int planned,
                             const struct tccl_side *side)
{
    const struct tccl_rates rates = {.model = own_model(running->daemon->own)};
    enum tccl_basis basis;
    double gbps;
    if (rates.model && tccl_rates_sides(&rates, &side, 1, &gbps, &basis, NULL) == 0)
        return gbps;
    return entry->alone * side->rings / planned;
}

static int see_ring(struct running *running, const struct entry *entry, struct seen *seen)
{
    const struct tccl_machine *machine = own_machine(running->daemon->own);
    struct tccl_side *side = &seen->sides[seen->beside.n];
    struct tccl_ring_set set;
    if (tccl_ring_set_parse(entry->rings, machine, &set, NULL) != 0)
        return 0;
    int planned = set.n;
    if (entry->built < planned)
        set.n = entry->built;
    tccl_ring_set_side(&set, side);
    if (seen->named)
        name_set(machine, &set, &seen->named[seen->beside.n]);
    return put_side(seen,
                    set.n < planned ? alone_of_first(running, entry, planned, side) : entry->alone);
}

static int see_nccl(struct running *running, const struct entry *entry, uint32_t gpus,
                    struct seen *seen)
{
    struct own *own = running->daemon->own;
    const struct tccl_table *table = own_table(own, gpus);
    const struct tccl_baseline *baseline;
    int generation = entry->nccl > 0 ? tccl_generation_of(entry->nccl) : TCCL_NEWEST;
    if (!table)
        return 0;
    baseline = entry->n_nodes == 1 ? &table->baseline_ring[generation]
                                   : &table->baseline_chain[generation];
    if (seen->named)
        name_chains(own_machine(running->daemon->own), baseline->chains, baseline->n_chains,
                    &seen->named[seen->beside.n]);
    return tccl_side_add_baseline(&seen->sides[seen->beside.n], baseline) == 0
               ? put_side(seen, baseline->gbps)
               : 0;
}

/* GPUs that an entry before this one has, in part at least, are not seen twice. */
static void see_entry(struct running *running, const struct entry *entry, struct seen *seen)
{
    struct daemon *daemon = running->daemon;
    uint32_t gpus;
    if (seen->beside.n == SEEN ||
        own_gpus(daemon->own, daemon->gpus, entry->gres, entry->n_gres, &gpus) != 0 ||
        (gpus & seen->gpus))
        return;
    seen->gpus |= gpus;
    seen->sides[seen->beside.n] = (struct tccl_side){0};
    if (*entry->rings && entry->built > 0 && see_ring(running, entry, seen)) {
        seen->steps++;
    } else {
        seen->sides[seen->beside.n] = (struct tccl_side){0};
        seen->steps += see_nccl(running, entry, gpus, seen);
    }
}

/* Steps of one job may have the same GPUs (--overlap), and those of its script: one with a ring
 * counts, rather than a shell or a monitor beside it; else the latest one; last of all a script. */
enum { RINGS, OTHERS, SCRIPTS, RANKS };

static int rank_of(const struct entry *entry)
{
    if (script_is(&entry->key))
        return SCRIPTS;
    return *entry->rings && entry->built > 0 ? RINGS : OTHERS;
}

static void see_all(struct running *running, const struct tccl_step_key *key, struct seen *seen)
{
    const struct entry *entry;
    for (int rank = 0; rank < RANKS; rank++) {
        TAILQ_FOREACH(entry, &running->entries, link)
        if (rank_of(entry) == rank && !tccl_key_equal(&entry->key, key))
            see_entry(running, entry, seen);
    }
}

/* What was measured together here, as it was read last; NULL: nothing. */
static const struct tccl_together *together(struct running *running)
{
    bool stale;
    const struct tccl_together *known = own_together_read(running->daemon->own, &stale);
    if (known && stale)
        save_soon(running); /* and read it then */
    return known || !stale ? known : read_together(running);
}

/* What a model says of them, or what was measured. */
static void know(struct running *running, struct tccl_beside *beside)
{
    struct own *own = running->daemon->own;
    beside->model = own_model(own);
    if (beside->model)
        return;
    beside->machine = own_machine(own);
    beside->together = together(running);
}

/* Those that run, with what each has alone. */
static char *name_all(struct seen *seen)
{
    for (int i = 0; i < seen->beside.n && seen->named; i++)
        seen->named[i].gbps = seen->named[i].alone = seen->beside.alone[i];
    return seen->named && seen->beside.n > 0 ? tccl_beside_format(seen->named, seen->beside.n)
                                             : NULL;
}

struct shared_class *running_see(struct running *running, const struct tccl_step_key *key,
                                 struct shared_class *class, bool closed, bool hidden)
{
    struct own *own = running->daemon->own;
    struct tccl_error err = {""};
    cleanup_free struct tccl_neighbour *named = calloc(SEEN, sizeof(*named));
    struct seen seen = {.gpus = class->class->gpus, .named = named};
    running_sweep(running);
    see_all(running, key, &seen);
    if (seen.steps == 0)
        return class;
    know(running, &seen.beside);
    const struct tccl_table *table = own_table(own, class->class->gpus);
    struct tccl_node_class *beside =
        table ? tccl_beside_class(&seen.beside, table, closed, hidden, &err) : NULL;
    if (beside) {
        beside->neighbours = seen.steps;
        beside->beside = name_all(&seen);
    }
    struct shared_class *shared = beside ? shared_class_new(beside) : NULL;
    if (!shared) {
        log_limited(&running->trouble, "a step is planned as if it were alone: %s",
                    err.text[0] ? err.text : "out of memory");
        return class;
    }
    shared_class_drop(class);
    return shared;
}

/* Tables one after the other: the next question may take the place of the one before. */
static struct tccl_groups *gather_groups(struct running *running, const uint32_t *groups, int n,
                                         bool closed, bool hidden, struct tccl_error *err)
{
    struct own *own = running->daemon->own;
    struct tccl_groups *list = tccl_groups_new(own_machine(own), closed, hidden);
    for (int i = 0; list && i < n; i++) {
        const struct tccl_table *table = own_table(own, groups[i]);
        if (!table || tccl_groups_add(list, table, err) != 0) {
            tccl_groups_free(list);
            return NULL;
        }
    }
    return list;
}

int running_choose(struct running *running, const struct tccl_step_key *key, const uint32_t *groups,
                   int n, bool closed, bool hidden, struct tccl_group_choice *choices)
{
    struct tccl_error err = {""};
    struct seen seen = {0};
    for (int i = 0; i < n; i++)
        seen.gpus |= groups[i];
    running_sweep(running);
    see_all(running, key, &seen);
    know(running, &seen.beside);
    struct tccl_groups *list = gather_groups(running, groups, n, closed, hidden, &err);
    int status = list ? tccl_groups_choose(list, &seen.beside, choices, &err) : -1;
    tccl_groups_free(list);
    if (status != 0 && err.text[0])
        log_limited(&running->trouble, "groups of a step are planned each by itself: %s", err.text);
    return status;
}

/* ---- on record ---- */

_Static_assert((int)TCCL_OUTCOME_BESIDE == (int)TCCL_BESIDE_TEXT, "a record takes the whole text");

/* What each reaches while all run. Returns 0, or -1: it can't be told. */
static int rate_named(struct seen *seen, const struct outcome_part *part)
{
    const struct tccl_beside *beside = &seen->beside;
    const struct tccl_rates rates = {.model = beside->model, .together = beside->together};
    const struct tccl_side *sides[TCCL_MAX_SIDES];
    struct tccl_side own = {.alone = part->alone};
    double gbps[TCCL_MAX_SIDES];
    enum tccl_basis basis;
    sides[0] = &own;
    for (int i = 0; i < beside->n; i++)
        sides[i + 1] = beside->others[i];
    tccl_ring_set_side(&part->set, &own);
    if (tccl_rates_sides(&rates, sides, beside->n + 1, gbps, &basis, NULL) != 0)
        return -1;
    for (int i = 0; i < beside->n; i++) {
        seen->named[i].alone = beside->alone[i];
        seen->named[i].gbps = fmin(gbps[i + 1], beside->alone[i]);
    }
    return 0;
}

static void describe_others(struct running *running, const struct tccl_step *join,
                            const struct tccl_node_class *class, struct tccl_outcome *outcome)
{
    struct outcome_part part;
    cleanup_free struct tccl_neighbour *named = calloc(TCCL_MAX_BESIDE, sizeof(*named));
    cleanup_free struct tccl_neighbour *others = calloc(TCCL_MAX_BESIDE, sizeof(*others));
    struct seen seen = {.gpus = class->gpus, .named = named};
    if (!named || !others || outcome_part(outcome, join, class, &part) != 0)
        return;
    see_all(running, &join->key, &seen);
    know(running, &seen.beside);
    int n = seen.beside.n;
    if (n == 0 || rate_named(&seen, &part) != 0)
        return;
    int more = outcome->beside ? tccl_beside_parse(outcome->beside, others, NULL) : 0;
    for (int i = 0; i < more && n < TCCL_MAX_BESIDE; i++)
        named[n++] = others[i];
    free(outcome->beside);
    outcome->beside = tccl_beside_format(named, n);
}

/* All of its chains, also those that are equal: each carries its part. */
static char *baseline_text(const struct tccl_baseline *baseline, const struct tccl_machine *machine)
{
    struct tccl_named_rings rings = {.n = baseline->n_chains};
    char text[TCCL_RINGS_TEXT];
    for (int i = 0; i < rings.n; i++)
        tccl_chain_name(&baseline->chains[i], machine, true, &rings.chains[i]);
    tccl_named_rings_format(&rings, text);
    return rings.n > 0 && strlen(text) <= TCCL_OUTCOME_BASELINE ? strdup(text) : NULL;
}

static void describe_baseline(struct running *running, const struct tccl_step *join,
                              const struct tccl_node_class *class, struct tccl_outcome *outcome)
{
    const struct tccl_table *table = own_table(running->daemon->own, class->gpus);
    if (!table || !(outcome->baseline_gbps > 0) || outcome->baseline_rings)
        return;
    outcome->baseline_rings =
        baseline_text(join->n_nodes == 1 ? &table->baseline_ring[TCCL_NEWEST]
                                         : &table->baseline_chain[TCCL_NEWEST],
                      own_machine(running->daemon->own));
}

/* 0: not known yet. */
static double placed_by(struct running *running, int n_gpus, int max_rings)
{
    struct timeval soon = daemon_in(PLACE_MS);
    double gbps = own_placed(running->daemon->own, n_gpus,
                             max_rings ? max_rings : running->daemon->conf->max_rings);
    if (!(gbps > 0) && !event_pending(running->place, EV_TIMEOUT, NULL))
        event_add(running->place, &soon);
    return gbps;
}

/* What NCCL's own have on this node while nobody else runs, of a step that has these. */
static void describe_alone(struct running *running, const struct tccl_node_class *class,
                           struct tccl_outcome *outcome)
{
    const struct tccl_table *table = own_table(running->daemon->own, class->gpus);
    if (table && outcome->neighbours > 0 && outcome->baseline_gbps > 0)
        outcome->alone_gbps = fmax(outcome->baseline_gbps, table->baseline_ring[TCCL_NEWEST].gbps);
}

void running_describe(struct running *running, const struct tccl_step *join,
                      const struct tccl_node_class *class, struct tccl_outcome *outcome)
{
    bool ring = outcome->state == TCCL_STATE_APPLIED && outcome->choices;
    bool own = outcome->state == TCCL_STATE_NOTHING && join->n_nodes == 1 && class->n_gpus > 1;
    if (ring)
        describe_baseline(running, join, class, outcome);
    if ((ring || own) && join->n_nodes == 1 && !join->hidden)
        outcome->placed_gbps = placed_by(running, class->n_gpus, join->max_rings);
    if (ring && class->neighbours > 0)
        describe_others(running, join, class, outcome);
    if (own)
        describe_alone(running, class, outcome);
}
