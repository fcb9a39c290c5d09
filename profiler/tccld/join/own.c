/* Node classes of this node, by GPU set, from its description and its profile. Both are read again
 * when they have changed on disk, so that neither needs a restart. */
#include "tccld/join/own.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "doctor/doctor.h"
#include "profile/cache.h"
#include "profile/stamp.h"
#include "profile/verdict.h"
#include "ring/neighbours.h"
#include "tccld/join/nic-links.h"

enum { KINDS = 64 /* GPU sets kept ready */, JUDGED = 16 /* of them, tables judged again */ };

/* The best of all sets of so many GPUs, found one table at a time. */
struct placed {
    uint32_t next; /* the set to be looked at; 0: nobody has asked */
    bool done;
    double gbps;
};

/* A table as the machine is now. */
struct judged {
    struct tccl_table *table;
    uint32_t felt; /* links that take something from it */
    bool wanting;  /* a search may find better ones, */
    bool asked;    /* and a step has asked */
};

struct own {
    struct tccl_machine machine;
    bool have_machine;
    char id[TCCL_HASH_HEX]; /* of that machine */
    char machine_path[PATH_MAX], cache_dir[PATH_MAX];
    struct tccl_stamp stamp; /* of the machine's description */
    struct tccl_profile *profile;
    struct shared_class *classes[KINDS];
    enum tccl_view views[KINDS];
    int n_classes, next; /* next: the one to be replaced */
    struct placed placed[TCCL_CHAIN_RINGS + 1][TCCL_MAX_GPUS + 1]; /* by rings at once, and GPUs */
    struct nic_links_down down;
    struct tccl_since since;
    unsigned n_since; /* how often that has changed, or the profile */
    struct judged judged[JUDGED];
    int next_judged; /* whose place is taken next */
    struct tccl_model
        *model; /* of the machine as it is now; NULL: not made yet, or the profile's */
    bool modelled;
    struct tccl_stamp checked; /* of what this node found out about its profile */
    struct tccl_verdict verdict;
    char node[TCCL_CONF_NAME]; /* this one */
};

struct own *own_new(void)
{
    return calloc(1, sizeof(struct own));
}

static void drop_classes(struct own *own)
{
    for (int i = 0; i < own->n_classes; i++)
        shared_class_drop(tccl_steal(own->classes[i]));
    own->n_classes = own->next = 0;
}

static void forget_classes(struct own *own)
{
    for (int i = 0; i < JUDGED; i++)
        tccl_table_free(tccl_steal(own->judged[i].table));
    drop_classes(own);
}

static void forget_profile(struct own *own)
{
    forget_classes(own);
    own->n_since++; /* what is searched now is of that profile */
    tccl_model_free(tccl_steal(own->model));
    own->modelled = false;
    tccl_profile_close(own->profile);
    own->profile = NULL;
    memset(own->placed, 0, sizeof(own->placed));
}

void own_free(struct own *own)
{
    if (!own)
        return;
    forget_profile(own);
    free(own);
}

const struct tccl_machine *own_machine(const struct own *own)
{
    return own->have_machine ? &own->machine : NULL;
}

static int refresh_machine(struct own *own, const struct tccl_conf *conf, struct tccl_error *err)
{
    struct tccl_stamp stamp = tccl_stamp_take(conf->machine);
    if (own->have_machine && tccl_stamp_equal(&stamp, &own->stamp) &&
        strcmp(own->machine_path, conf->machine) == 0 &&
        strcmp(own->cache_dir, conf->cache_dir) == 0)
        return 0;
    forget_profile(own);
    own->have_machine = false;
    if (!tccl_stamp_exists(&stamp))
        return tccl_fail_as(err, TCCL_REASON_NO_PROFILE,
                            "no description of this machine at %s: run tccl-profile init",
                            conf->machine);
    if (tccl_machine_read(conf->machine, &own->machine, err) != 0)
        return -1;
    tccl_machine_id(&own->machine, own->id);
    own->stamp = stamp;
    strcpy(own->machine_path, conf->machine);
    strcpy(own->cache_dir, conf->cache_dir);
    own->have_machine = true;
    return 0;
}

static int refresh_profile(struct own *own, struct tccl_error *err)
{
    if (own->profile && !tccl_profile_changed(own->profile))
        return 0;
    forget_profile(own);
    struct tccl_error why = {0};
    errno = 0;
    if (tccl_profile_open(own->cache_dir, own->id, &own->profile, &why) == 0)
        return 0;
    own->profile = NULL;
    if (errno == ENOENT)
        return tccl_fail_as(err, TCCL_REASON_NO_PROFILE,
                            "no profile of this machine in %s (its id is %s): run tccl-profile run",
                            own->cache_dir, own->id);
    return tccl_fail_with(err, &why);
}

/* A profile that was found not to hold here gives no rings: they may be worse than NCCL's own. Nor
 * does one of another node's GPUs before it was checked here. */
static int refresh_verdict(struct own *own, struct tccl_error *err)
{
    char path[TCCL_VERDICT_PATH], day[32];
    tccl_verdict_path(own->cache_dir, own->node, path);
    struct tccl_stamp stamp = tccl_stamp_take(path);
    if (!tccl_stamp_equal(&stamp, &own->checked)) {
        own->checked = stamp;
        if (tccl_verdict_read(own->cache_dir, own->node, tccl_profile_id(own->profile),
                              &own->verdict) != 0)
            own->verdict = (struct tccl_verdict){.worst = 1};
    }
    if (strcmp(own->verdict.profile, tccl_profile_id(own->profile)) != 0 &&
        strcmp(tccl_profile_source(own->profile), "cuda") == 0)
        return tccl_fail_as(err, TCCL_REASON_NO_PROFILE,
                            "the profile was neither measured nor checked on this node (no %s): "
                            "tccl-profile verify --quick checks it in a minute",
                            path);
    /* Of this profile, and not measured anew since. */
    if (!tccl_verdict_refuses(&own->verdict) ||
        strcmp(own->verdict.profile, tccl_profile_id(own->profile)) != 0 ||
        (long long)tccl_profile_time(own->profile) > own->verdict.when)
        return 0;
    time_t when = (time_t)own->verdict.when;
    struct tm tm;
    if (!localtime_r(&when, &tm) || strftime(day, sizeof(day), "%Y-%m-%d", &tm) == 0)
        strcpy(day, "an unknown day");
    return tccl_fail(
        err,
        "the profile does not hold here: on %s a ring had %.2f of what it was measured "
        "at: look at tccl-check machine, then measure anew, or tccl-profile verify "
        "--quick",
        day, own->verdict.worst);
}

/* Position of a GPU by its number in slurmd's list (NULL: they are counted); -1 with err. */
static int position(const struct own *own, const struct tccl_gres *list, int number,
                    struct tccl_error *err)
{
    bool real = strcmp(tccl_profile_source(own->profile), "cuda") == 0;
    if (list)
        return tccl_gres_find(list, &own->machine, real, number, err);
    if (number < own->machine.n_gpus)
        return number;
    return tccl_fail(err, "GPU %d is not in the profile's machine, which has %d GPUs (%s)", number,
                     own->machine.n_gpus, own->machine_path);
}

/* ---- as the machine is now ---- */

/* Is what was found out about this machine? */
static const struct tccl_since *since_of(const struct own *own)
{
    return own->have_machine && strcmp(own->id, own->since.machine) == 0 ? &own->since : NULL;
}

static int find_gone(const struct own *own, uint32_t gpus, struct tccl_error *err)
{
    const struct tccl_since *since = since_of(own);
    const uint32_t gone = since ? since->gone & gpus : 0;
    if (!gone)
        return 0;
    return tccl_fail(err,
                     "GPU %s is not on the PCI bus any more: plans go on without it; if it was "
                     "taken out, run tccl-profile init and tccl-profile run",
                     own->machine.gpus[__builtin_ctz(gone)].busid);
}

/* The model with the links as they are; the profile's where it can't be made. */
const struct tccl_model *own_model(struct own *own)
{
    const struct tccl_since *since = since_of(own);
    const struct tccl_model *model = own->profile ? tccl_profile_model(own->profile, NULL) : NULL;
    if (!model || !since || since->narrowed.n == 0)
        return model;
    cleanup_json json_t *json = own->modelled ? NULL : tccl_profile_model_json(own->profile, NULL);
    if (json)
        tccl_narrowed_model(json, &own->machine, &since->narrowed, &own->model, NULL);
    own->modelled = true;
    return own->model ? own->model : model;
}

/* The table of a GPU set as the machine is now; *judged has it where links carry less. */
static const struct tccl_table *judge(struct own *own, uint32_t gpus, struct judged *judged,
                                      struct tccl_error *err)
{
    const struct tccl_since *since = since_of(own);
    const struct tccl_table *table = tccl_profile_table(own->profile, gpus, err);
    *judged = (struct judged){.felt = 0};
    if (!table || !since || since->narrowed.n == 0)
        return table;
    judged->table =
        tccl_narrowed_table(table, &own->machine, &since->narrowed, own_model(own), &judged->felt);
    if (!judged->table)
        return table;
    judged->wanting = (own->model || !tccl_profile_model(own->profile, NULL)) &&
                      !tccl_narrowed_suffices(table, judged->table, !own->model, 0.95);
    return judged->table;
}

static struct judged *find_judged(struct own *own, uint32_t gpus)
{
    for (int i = 0; i < JUDGED; i++)
        if (own->judged[i].table && own->judged[i].table->gpus == gpus)
            return &own->judged[i];
    return NULL;
}

static bool is_wanted(const struct judged *judged)
{
    return judged->table && judged->wanting && judged->asked;
}

/* The oldest that isn't wanted, where there is such. */
static struct judged *next_place(struct own *own)
{
    for (int i = 0; i < JUDGED && is_wanted(&own->judged[own->next_judged]); i++)
        own->next_judged = (own->next_judged + 1) % JUDGED;
    struct judged *place = &own->judged[own->next_judged];
    own->next_judged = (own->next_judged + 1) % JUDGED;
    return place;
}

/* The same, kept: valid until the next question. asked: by a step. *felt: which of its links that
 * feels. */
static const struct tccl_table *table_of(struct own *own, uint32_t gpus, bool asked, uint32_t *felt,
                                         struct tccl_error *err)
{
    struct judged *kept = find_judged(own, gpus), judged;
    const struct tccl_table *table = kept ? kept->table : judge(own, gpus, &judged, err);
    *felt = 0;
    if (!kept && !(table && judged.table))
        return table;
    if (!kept) {
        kept = next_place(own);
        tccl_table_free(kept->table);
        *kept = judged;
    }
    kept->asked = kept->asked || asked;
    *felt = kept->felt;
    return table;
}

bool own_wants(struct own *own, struct own_wanted *wanted)
{
    const struct tccl_since *since = since_of(own);
    struct judged *judged = own->judged;
    while (judged < own->judged + JUDGED && !is_wanted(judged))
        judged++;
    if (judged == own->judged + JUDGED || !since || !own->profile)
        return false;
    *wanted = (struct own_wanted){.gpus = judged->table->gpus,
                                  .model = tccl_profile_model_json(own->profile, NULL),
                                  .machine = own->machine,
                                  .narrowed = since->narrowed,
                                  .since = own->n_since};
    strcpy(wanted->cache_dir, own->cache_dir);
    judged->wanting = false;
    return wanted->model || !tccl_profile_model(own->profile, NULL);
}

bool own_is_wanted(struct own *own, const struct own_wanted *wanted)
{
    return find_judged(own, wanted->gpus) && wanted->since == own->n_since;
}

void own_found(struct own *own, const struct own_wanted *wanted, const struct tccl_table *found)
{
    struct judged *judged = find_judged(own, wanted->gpus);
    if (!found || !own_is_wanted(own, wanted) ||
        strcmp(judged->table->machine, found->machine) != 0)
        return;
    tccl_narrowed_add(judged->table, found, wanted->model ? own->model : NULL);
    drop_classes(own);
}

static int find_gpus(const struct own *own, const struct slurm_gpus *slurm, const int *gres,
                     int n_gres, uint32_t *gpus, struct tccl_error *err)
{
    struct tccl_error why = {""};
    const struct tccl_gres *list;
    int rc = slurm_gpus_get(slurm, &list, &why);
    *gpus = 0;
    /* A model has no devices; where no slurmd runs that would number them, they are counted. */
    if (rc < 0 || (rc == 1 && strcmp(tccl_profile_source(own->profile), "model") != 0))
        return tccl_fail(err, "%s", why.text);
    for (int i = 0; i < n_gres; i++) {
        int gpu = position(own, rc == 0 ? list : NULL, gres[i], err);
        if (gpu < 0)
            return -1;
        if (*gpus & 1u << gpu)
            return tccl_fail(err, "GPU %d is listed twice: rings over parts of a GPU don't exist",
                             gres[i]);
        *gpus |= 1u << gpu;
    }
    return find_gone(own, *gpus, err);
}

int own_gpus(const struct own *own, const struct slurm_gpus *slurm, const int *gres, int n_gres,
             uint32_t *gpus)
{
    return own->profile ? find_gpus(own, slurm, gres, n_gres, gpus, NULL) : -1;
}

const struct tccl_table *own_table(struct own *own, uint32_t gpus)
{
    uint32_t felt;
    return own->profile ? table_of(own, gpus, false, &felt, NULL) : NULL;
}

const struct tccl_together *own_together(struct own *own, struct tccl_error *err)
{
    return own->profile ? tccl_profile_together(own->profile, err) : NULL;
}

const struct tccl_together *own_together_read(struct own *own, bool *stale)
{
    *stale = false;
    return own->profile ? tccl_profile_together_read(own->profile, stale) : NULL;
}

/* Looks at one set. A set without a table may be the best one: then none is known to be. What no
 * step has is not kept. */
static void look_at_place(struct own *own, int rings, struct placed *placed)
{
    const struct tccl_since *since = since_of(own);
    bool first = since && since->narrowed.n
                     ? true /* none is like another one */
                     : tccl_profile_first(own->profile, placed->next) == placed->next;
    first = first && !(since && placed->next & since->gone);
    struct judged *kept = find_judged(own, placed->next), judged = {NULL};
    const struct tccl_table *table = !first ? NULL
                                     : kept ? kept->table
                                            : judge(own, placed->next, &judged, NULL);
    struct tccl_beside nobody = {.machine = &own->machine};
    struct tccl_launched step = {.gbps = 0}; /* others are as good as their first one */
    const bool known = table && tccl_launch_choose(&nobody, table, rings, &step, NULL) == 0;
    tccl_table_free(judged.table);
    if (first && !known) {
        *placed = (struct placed){.done = true};
        return;
    }
    placed->gbps = fmax(placed->gbps, step.gbps);
    /* The next larger mask with as many bits (Gosper's hack). */
    uint32_t low = placed->next & -placed->next, high = placed->next + low;
    placed->next = high | (placed->next ^ high) / low >> 2;
    placed->done = placed->next >> own->machine.n_gpus != 0;
}

double own_placed(struct own *own, int n_gpus, int rings)
{
    if (!own->profile || n_gpus < 2 || n_gpus > own->machine.n_gpus || rings < 1 ||
        rings > TCCL_CHAIN_RINGS)
        return 0;
    struct placed *placed = &own->placed[rings][n_gpus];
    if (placed->next == 0)
        placed->next = (UINT32_C(1) << n_gpus) - 1;
    return placed->done ? placed->gbps : 0;
}

bool own_look_at_place(struct own *own)
{
    for (int rings = 1; rings <= TCCL_CHAIN_RINGS; rings++)
        for (int n_gpus = 2; n_gpus <= TCCL_MAX_GPUS; n_gpus++) {
            struct placed *placed = &own->placed[rings][n_gpus];
            if (placed->next == 0 || placed->done)
                continue;
            look_at_place(own, rings, placed);
            return true;
        }
    return false;
}

void own_links(struct own *own, const struct nic_links_down *down)
{
    if (down->n == own->down.n &&
        memcmp(down->busids, own->down.busids, (size_t)down->n * sizeof(*down->busids)) == 0)
        return;
    own->down = *down;
    forget_classes(own);
}

void own_since(struct own *own, const struct tccl_since *since)
{
    own->since = *since;
    own->n_since++;
    forget_classes(own);
    tccl_model_free(tccl_steal(own->model));
    own->modelled = false;
    memset(own->placed, 0, sizeof(own->placed));
}

/* The first of those links, and how many more. */
static void say_worse(const struct own *own, uint32_t felt, struct tccl_node_class *class)
{
    const int more = __builtin_popcount(felt) - 1;
    if (!felt)
        return;
    int end = snprintf(class->worse, sizeof(class->worse), "%s",
                       own->since.narrowed.links[__builtin_ctz(felt)].text);
    if (more > 0)
        snprintf(class->worse + end, sizeof(class->worse) - (size_t)end, " (and %d more)", more);
}

static struct shared_class *make_class(struct own *own, uint32_t gpus, enum tccl_view view,
                                       struct tccl_error *err)
{
    uint32_t felt;
    const struct tccl_table *table = table_of(own, gpus, true, &felt, err);
    struct tccl_machine machine = own->machine;
    if (!table)
        return NULL;
    /* NICs without a link meet nobody, not even those of another node. */
    const struct tccl_since *since = since_of(own);
    for (int i = 0; i < machine.n_nics; i++)
        if (nic_links_has(&own->down, machine.nics[i].busid) ||
            (since && since->gone_nics >> i & 1))
            snprintf(machine.nics[i].fabric, sizeof(machine.nics[i].fabric), OWN_NO_LINK "%.50s",
                     own->node);
    struct tccl_node_class *class = tccl_node_class_from_table(table, &machine, view);
    if (class)
        say_worse(own, felt, class);
    struct shared_class *shared = class ? shared_class_new(class) : NULL;
    if (!shared) {
        tccl_fail_as(err, TCCL_REASON_OVERLOAD, "out of memory");
        return NULL;
    }
    int at = own->n_classes < KINDS ? own->n_classes++ : own->next;
    if (at == own->next && own->classes[at])
        own->next = (own->next + 1) % KINDS;
    shared_class_drop(own->classes[at]);
    own->classes[at] = shared;
    own->views[at] = view;
    return shared;
}

int own_check(struct own *own, const struct tccl_conf *conf, struct tccl_error *err)
{
    strcpy(own->node, conf->node);
    if (refresh_machine(own, conf, err) != 0 || refresh_profile(own, err) != 0)
        return -1;
    return refresh_verdict(own, err);
}

static struct shared_class *class_of(struct own *own, uint32_t gpus, enum tccl_view view,
                                     struct tccl_error *err)
{
    if (tccl_profile_table_changed(own->profile, gpus))
        forget_classes(own);
    for (int i = 0; i < own->n_classes; i++)
        if (own->classes[i]->class->gpus == gpus && own->views[i] == view)
            return shared_class_hold(own->classes[i]);
    struct shared_class *shared = make_class(own, gpus, view, err);
    return shared ? shared_class_hold(shared) : NULL;
}

struct shared_class *own_class(struct own *own, const struct tccl_conf *conf,
                               const struct slurm_gpus *slurm, const int *gres, int n_gres,
                               enum tccl_view view, struct tccl_error *err)
{
    uint32_t gpus;
    if (n_gres == 0) {
        tccl_fail_as(err, TCCL_REASON_NO_GPU, "no GPU in this step");
        return NULL;
    }
    struct shared_class *class = NULL;
    if (own_check(own, conf, err) == 0) {
        if (find_gpus(own, slurm, gres, n_gres, &gpus, err) != 0)
            tccl_fail_because(err, TCCL_REASON_UNKNOWN_GPU);
        else
            class = class_of(own, gpus, view, err);
    }
    if (!class)
        tccl_fail_because(err, TCCL_REASON_BAD_PROFILE);
    return class;
}

static int find_busids(const struct own *own, const tccl_bus *buses, int count, uint32_t *gpus,
                       struct tccl_error *err)
{
    *gpus = 0;
    for (int i = 0; i < count; i++) {
        char busid[TCCL_BUS_TEXT];
        tccl_bus_format(buses[i], busid);
        int gpu = tccl_machine_find_gpu(&own->machine, busid);
        if (gpu < 0)
            return tccl_fail(err, "GPU %s is not in %s", busid, own->machine_path);
        *gpus |= 1u << gpu;
    }
    return find_gone(own, *gpus, err);
}

int own_mask(const struct own *own, const tccl_bus *buses, int count, uint32_t *gpus)
{
    return own->have_machine ? find_busids(own, buses, count, gpus, NULL) : -1;
}

struct shared_class *own_kind_busids(struct own *own, const struct tccl_conf *conf,
                                     const tccl_bus *buses, int count, enum tccl_view view,
                                     struct tccl_error *err)
{
    uint32_t gpus;
    if (own_check(own, conf, err) != 0 || find_busids(own, buses, count, &gpus, err) != 0)
        return NULL;
    return class_of(own, gpus, view, err);
}
