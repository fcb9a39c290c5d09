/* since.c: a machine as it was profiled, and as it is. */
#include "doctor/since.h"

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
/* Less than this part of what it was counts. */
static const double WORSE = 0.95;

/* ---- devices ---- */

static int find(const struct tccl_doctor_facts *facts, const char *busid)
{
    const int at = tccl_doctor_find(facts, busid);
    return at >= 0 && facts->devices[at].lost ? -1 : at;
}

/* GPUs and NICs of the machine that are not there. Where none is, or not all could be listed,
 * nothing is known. Returns whether something is. */
static bool find_gone(const struct tccl_doctor_facts *facts, const char *root,
                      const struct tccl_machine *machine, struct tccl_since *since)
{
    uint32_t there = 0;
    for (int i = 0; i < machine->n_gpus; i++)
        if (find(facts, machine->gpus[i].busid) >= 0)
            there |= UINT32_C(1) << i;
    if (!there || facts->crowded)
        return false;
    since->gone = ~there & ((UINT32_C(1) << machine->n_gpus) - 1);
    for (int i = 0; i < machine->n_nics; i++)
        if (!tccl_sys_exists(root, "/sys/bus/pci/devices/%s", machine->nics[i].busid))
            since->gone_nics |= UINT32_C(1) << i;
    return true;
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

/* One that is worse goes to the list, not rated yet. */
static void look_at(const struct tccl_doctor_facts *facts, int device,
                    const struct tccl_machine *machine, struct tccl_since *since, double *now,
                    double *then)
{
    const struct tccl_doctor_device *own = &facts->devices[device];
    const struct tccl_doctor_rate rate = tccl_doctor_link(facts, device);
    struct tccl_narrow *narrow = &since->narrowed.links[since->narrowed.n];
    char what[64] = "", speed[2][32] = {"", ""};
    /* By width alone it is no less than it was: a GPU may be at rest. */
    const double gts = own->kind == TCCL_DOCTOR_GPU ? rate.gts_most : rate.gts;
    if (rate.state == TCCL_DOCTOR_LINK_UNKNOWN || tccl_doctor_leads_down(facts, device) ||
        own->lost || since->narrowed.n == TCCL_MAX_NARROWED)
        return;
    *now = tccl_doctor_carried(gts, rate.lanes);
    *then = rate.gbps_most;
    if (*now >= WORSE * *then)
        return;
    *narrow = (struct tccl_narrow){0};
    name(facts, device, machine, narrow, what);
    if (!narrow->gpus && !narrow->nics)
        return;
    if (gts != rate.gts_most) {
        snprintf(speed[0], sizeof(speed[0]), " at %g GT/s", gts);
        snprintf(speed[1], sizeof(speed[1]), " at %g", rate.gts_most);
    }
    snprintf(narrow->text, sizeof(narrow->text), "link of %s (%s) is x%d%s, not x%d%s as measured",
             what, own->busid, rate.lanes, speed[0], rate.lanes_most, speed[1]);
    since->narrowed.n++;
}

static double known(void *context, const struct tccl_set *set)
{
    struct tccl_measurement value;
    return tccl_measured_ask(context, set, &value) == TCCL_NO_ANSWER || value.failed ? 0
                                                                                     : value.gbps;
}

/* What the link leaves: of what the fastest transfer had over it as large a part as it has of what
 * it carried. Not more than it can carry, where what it carried at the time isn't known; and a NIC,
 * whose line may have been the slower one, has all that the link carries now. Returns whether that
 * takes something. */
static bool rate_link(struct tccl_narrow *narrow, const struct tccl_machine *machine,
                      struct tccl_measured *measured, double now, double then)
{
    bool worse = false;
    tccl_narrow_rate(narrow, machine, 1, known, measured);
    for (int way = 0; way < 2; way++) {
        const double most = narrow->gbps[way], part = most * now / then;
        narrow->gbps[way] = fmin(most, measured->model && narrow->gpus ? part : PAYLOAD * now);
        worse = worse || narrow->gbps[way] < WORSE * most;
    }
    return worse;
}

/* Those that take nothing are left out. */
static void rate_links(struct tccl_since *since, const struct tccl_machine *machine,
                       struct tccl_profile *profile, const double *now, const double *then)
{
    struct tccl_measured measured = {0};
    const int n = since->narrowed.n;
    since->narrowed.n = 0;
    if (tccl_measured_load(profile, &measured, NULL) == 0)
        for (int i = 0; i < n; i++) {
            struct tccl_narrow link = since->narrowed.links[i];
            if (rate_link(&link, machine, &measured, now[i], then[i]))
                since->narrowed.links[since->narrowed.n++] = link;
        }
    tccl_measured_clear(&measured);
}

void tccl_since_look(const char *root, const char *machine_path, const char *cache_dir,
                     struct tccl_since *since)
{
    double now[TCCL_MAX_NARROWED + 1], then[TCCL_MAX_NARROWED + 1];
    cleanup_free struct tccl_machine *machine = malloc(sizeof(*machine));
    cleanup_free struct tccl_doctor_facts *facts = malloc(sizeof(*facts));
    struct tccl_profile *profile;
    *since = (struct tccl_since){.machine = ""};
    if (!machine || !facts || tccl_machine_read(machine_path, machine, NULL) != 0)
        return;
    tccl_doctor_read(root, NULL, NULL, facts);
    if (!find_gone(facts, root, machine, since))
        return;
    tccl_machine_id(machine, since->machine);
    for (int i = 0; i < facts->n_devices && since->narrowed.n < TCCL_MAX_NARROWED; i++)
        look_at(facts, i, machine, since, &now[since->narrowed.n], &then[since->narrowed.n]);
    if (since->narrowed.n == 0)
        return;
    if (tccl_profile_open(cache_dir, since->machine, &profile, NULL) != 0) {
        since->narrowed.n = 0;
        return;
    }
    rate_links(since, machine, profile, now, then);
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
