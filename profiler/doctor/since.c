/* since.c: a machine as it was profiled, and as it is. */
#include "doctor/doctor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/numberset.h"
#include "profile/cache.h"
#include "profile/measured.h"

/* Of what a link carries at most (tccl_doctor_rate), headers of packets take a part: a GPU's link
 * is seldom measured with more than this. */
static const double PAYLOAD = 0.92;
/* Kernels that copy got so much of a link on an H200 (testsuite/bench/README.md, gpu). */
static const double COPIED = 0.7;
/* Less than this part of what it was counts. */
static const double WORSE = 0.95;

/* ---- devices ---- */

static int find(const struct tccl_doctor_facts *facts, const char *busid)
{
    const int at = tccl_doctor_find(facts, busid);
    return at >= 0 && facts->devices[at].lost ? -1 : at;
}

/* ---- links ---- */

/* The GPUs and NICs below it, and what people call it. */
static void name(const struct tccl_doctor_facts *facts, int device,
                 const struct tccl_machine *machine, struct tccl_narrow *narrow, char text[64])
{
    const struct tccl_doctor_device *own = &facts->devices[device];
    char gpus[32] = "";
    for (int i = 0; i < machine->n_gpus; i++)
        if (tccl_doctor_is_below(facts, find(facts, machine->gpus[i].busid), device))
            narrow->gpus |= UINT32_C(1) << i;
    for (int i = 0; i < machine->n_nics; i++)
        if (tccl_doctor_is_below(facts, find(facts, machine->nics[i].busid), device))
            narrow->nics |= UINT32_C(1) << i;
    tccl_numberset_format(narrow->gpus, gpus, sizeof(gpus));
    if (own->kind == TCCL_DOCTOR_BRIDGE && narrow->gpus)
        snprintf(text, 64, "the switch above GPU%s %s",
                 narrow->gpus & (narrow->gpus - 1) ? "s" : "", gpus);
    else if (own->kind == TCCL_DOCTOR_GPU)
        snprintf(text, 64, "GPU %s", gpus);
    else if (narrow->nics)
        snprintf(text, 64, "%.40s", machine->nics[__builtin_ctz(narrow->nics)].name);
}

/* What it carried: as it was while the profile was measured, where that is known; else all that
 * both ends can. Of a GPU only lanes count: its link is slow while it has nothing to do. */
struct was {
    int lanes;
    double gts;
    bool seen;
};

static struct was was_of(const struct tccl_doctor_device *device,
                         const struct tccl_doctor_rate *rate,
                         const struct tccl_trained_links *links)
{
    const struct tccl_trained_link *link = links ? tccl_trained_find(links, device->busid) : NULL;
    if (!link)
        return (struct was){rate->lanes_most, rate->gts_most, false};
    return (struct was){link->lanes, device->kind == TCCL_DOCTOR_GPU ? rate->gts_most : link->gts,
                        true};
}

/* What a link carries now, and what it carried, GB/s. */
struct change {
    double now, then;
};

/* Is it worse than it was? Whose link is not known is not. */
static bool is_worse(const struct tccl_doctor_facts *facts, int device, const struct was *was,
                     struct change *change)
{
    const struct tccl_doctor_device *own = &facts->devices[device];
    const struct tccl_doctor_rate rate = tccl_doctor_link(facts, device);
    if (rate.state == TCCL_DOCTOR_LINK_UNKNOWN || tccl_doctor_leads_down(facts, device) ||
        own->lost)
        return false;
    const double gts = own->kind == TCCL_DOCTOR_GPU ? rate.gts_most : rate.gts;
    *change = (struct change){tccl_doctor_carried(gts, rate.lanes),
                              tccl_doctor_carried(was->gts, was->lanes)};
    return change->now < WORSE * change->then;
}

static void describe(const struct tccl_doctor_facts *facts, int device, const struct was *was,
                     const char *what, char text[static TCCL_NARROWED_TEXT])
{
    const struct tccl_doctor_device *own = &facts->devices[device];
    const struct tccl_doctor_rate rate = tccl_doctor_link(facts, device);
    const int length =
        own->kind != TCCL_DOCTOR_GPU && rate.gts != was->gts
            ? snprintf(text, TCCL_NARROWED_TEXT,
                       "link of %s (%s) is x%d at %g GT/s, not x%d at %g as measured", what,
                       own->busid, rate.lanes, rate.gts, was->lanes, was->gts)
            : snprintf(text, TCCL_NARROWED_TEXT, "link of %s (%s) is x%d, not x%d as measured",
                       what, own->busid, rate.lanes, was->lanes);
    if (length >= TCCL_NARROWED_TEXT)
        strcpy(text + TCCL_NARROWED_TEXT - 4, "...");
}

static double known(void *context, const struct tccl_set *set)
{
    struct tccl_measurement value;
    return tccl_measured_ask(context, set, &value) == TCCL_NO_ANSWER || value.failed ? 0
                                                                                     : value.gbps;
}

/* What the link leaves: of what the fastest transfer had over it as large a part as it has of what
 * it carried. But a transfer that had far less than copies get of a link was held up elsewhere: the
 * link carries what it can now. So it is, too, where nobody knows what it carried at the time; and
 * for a NIC, whose line may have been the slower one. Returns whether that takes something. */
static bool rate_link(struct tccl_narrow *narrow, const struct tccl_machine *machine,
                      struct tccl_measured *measured, const struct change *change, bool seen)
{
    bool worse = false;
    tccl_narrow_rate(narrow, machine, 1, known, measured);
    for (int way = 0; way < 2; way++) {
        const double most = narrow->gbps[way];
        const double part = measured->model ? most / change->then
                            : seen          ? fmax(most / change->then, COPIED)
                                            : PAYLOAD;
        narrow->gbps[way] = fmin(most, (narrow->gpus ? part : PAYLOAD) * change->now);
        worse = worse || narrow->gbps[way] < WORSE * most;
    }
    return worse;
}

static void rate_links(const struct tccl_doctor_facts *facts, const struct tccl_machine *machine,
                       struct tccl_profile *profile, struct tccl_since *since)
{
    struct tccl_measured measured = {0};
    if (tccl_measured_load(profile, &measured, NULL) != 0)
        return;
    for (int i = 0; i < facts->n_devices && since->narrowed.n < TCCL_MAX_NARROWED; i++) {
        const struct tccl_doctor_rate rate = tccl_doctor_link(facts, i);
        const struct was was = was_of(&facts->devices[i], &rate, tccl_profile_links(profile));
        struct tccl_narrow link = {0};
        struct change change;
        char what[64] = "";
        if (!is_worse(facts, i, &was, &change))
            continue;
        name(facts, i, machine, &link, what);
        if ((!link.gpus && !link.nics) || !rate_link(&link, machine, &measured, &change, was.seen))
            continue;
        describe(facts, i, &was, what, link.text);
        since->narrowed.links[since->narrowed.n++] = link;
    }
    tccl_measured_clear(&measured);
}

static bool has_slow_link(const struct tccl_doctor_facts *facts)
{
    for (int i = 0; i < facts->n_devices; i++) {
        const struct tccl_doctor_rate rate = tccl_doctor_link(facts, i);
        const struct was best = was_of(&facts->devices[i], &rate, NULL);
        struct change change;
        if (is_worse(facts, i, &best, &change))
            return true;
    }
    return false;
}

void tccl_since_look(const char *root, const char *machine_path, const char *cache_dir,
                     struct tccl_since *since)
{
    cleanup_free struct tccl_machine *machine = malloc(sizeof(*machine));
    cleanup_free struct tccl_doctor_facts *facts = malloc(sizeof(*facts));
    struct tccl_profile *profile;
    *since = (struct tccl_since){.machine = ""};
    if (!machine || !facts || tccl_machine_read(machine_path, machine, NULL) != 0)
        return;
    tccl_doctor_read(root, NULL, NULL, facts);
    /* GPUs and NICs of the machine that are not there. Where none is, or not all could be listed,
     * nothing is known. */
    uint32_t there = 0;
    for (int i = 0; i < machine->n_gpus; i++)
        if (find(facts, machine->gpus[i].busid) >= 0)
            there |= UINT32_C(1) << i;
    if (!there || facts->crowded)
        return;
    since->gone = ~there & ((UINT32_C(1) << machine->n_gpus) - 1);
    for (int i = 0; i < machine->n_nics; i++)
        if (!tccl_sys_exists(root, "/sys/bus/pci/devices/%s", machine->nics[i].busid))
            since->gone_nics |= UINT32_C(1) << i;
    tccl_machine_id(machine, since->machine);
    if (!has_slow_link(facts) || tccl_profile_open(cache_dir, since->machine, &profile, NULL) != 0)
        return;
    rate_links(facts, machine, profile, since);
    tccl_profile_close(profile);
}

/* ---- compared ---- */

static bool has(const struct tccl_narrowed *narrowed, const struct tccl_narrow *link, double least)
{
    for (int i = 0; i < narrowed->n; i++) {
        const struct tccl_narrow *own = &narrowed->links[i];
        if (own->gpus == link->gpus && own->nics == link->nics && own->gbps[0] <= link->gbps[0] &&
            own->gbps[0] >= link->gbps[0] * least)
            return true;
    }
    return false;
}

bool tccl_since_no_worse(const struct tccl_since *a, const struct tccl_since *b)
{
    for (int i = 0; i < a->narrowed.n; i++)
        if (!has(&b->narrowed, &a->narrowed.links[i], 0))
            return false;
    return (strcmp(a->machine, b->machine) == 0 || (!a->narrowed.n && !a->gone && !a->gone_nics)) &&
           !(a->gone & ~b->gone) && !(a->gone_nics & ~b->gone_nics);
}

bool tccl_since_equal(const struct tccl_since *a, const struct tccl_since *b)
{
    return tccl_since_no_worse(a, b) && tccl_since_no_worse(b, a);
}
