/* profile-odd.c: what tccl-profile run says of the machine when it has measured: figures that are
 * off among equals, and links that stay slow under load, which nobody sees on a machine at rest. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "command/profile-command.h"
#include "doctor/doctor.h"
#include "report/report.h"

enum { LEAST_LOOKS = 5 };        /* the first ones may be too early */
static const double EVERY = 1.0; /* seconds between looks at the links */

/* The fastest that each link was seen. */
static struct {
    double looked;
    int looks;
    struct tccl_doctor_facts now;
    int count;
    struct {
        char busid[TCCL_BUSID];
        struct tccl_doctor_rate best;
    } links[TCCL_DOCTOR_DEVICES];
} watch;

void profile_watch_links(const char *root)
{
    double now = tccl_seconds();
    if (watch.looked > 0 && now - watch.looked < EVERY)
        return;
    watch.looked = now;
    watch.looks++;
    tccl_doctor_read(root, NULL, "", &watch.now);
    for (int i = 0; i < watch.now.n_devices; i++) {
        const char *busid = watch.now.devices[i].busid;
        struct tccl_doctor_rate rate = tccl_doctor_link(&watch.now, i);
        int at = 0;
        while (at < watch.count && strcmp(watch.links[at].busid, busid) != 0)
            at++;
        if (at == TCCL_DOCTOR_DEVICES)
            return;
        if (at == watch.count)
            strcpy(watch.links[watch.count++].busid, busid);
        if (rate.gbps >= watch.links[at].best.gbps)
            watch.links[at].best = rate;
    }
}

void profile_keep_links(struct tccl_profile *profile)
{
    struct tccl_trained_links links = *tccl_profile_links(profile);
    struct tccl_error err = {0};
    for (int i = 0; i < watch.count; i++)
        tccl_trained_add(&links, watch.links[i].busid, watch.links[i].best.lanes,
                         watch.links[i].best.gts);
    if (links.n > 0 && tccl_profile_set_links(profile, &links, &err) != 0)
        fprintf(stderr, "tccl: note: how links were trained is not kept: %s\n", err.text);
}

void profile_say_links(const struct tccl_machine *machine, FILE *out)
{
    for (int i = 0; watch.looks >= LEAST_LOOKS && i < watch.count; i++) {
        const struct tccl_doctor_rate *best = &watch.links[i].best;
        int gpu = tccl_machine_find_gpu(machine, watch.links[i].busid);
        if (gpu >= 0 && best->rests && best->gts > 0)
            fprintf(out,
                    "tccl: note: GPU %d (%s): its link had %g GT/s under load, both ends can %g: "
                    "see link of tccl-check machine\n",
                    gpu, watch.links[i].busid, best->gts, best->gts_most);
    }
}

/* Nothing where nothing is off, or there is no memory to see it. */
void profile_say_odd(struct tccl_profile *profile, FILE *out)
{
    cleanup_free struct tccl_matrix *matrices = calloc(TCCL_MATRICES, sizeof(*matrices));
    struct tccl_measured measured = {0};
    struct tccl_odd odds[TCCL_ODDS];
    char text[TCCL_ODD_TEXT], advice[TCCL_ODDS][TCCL_ODD_TEXT];
    int count = -1;
    if (matrices && tccl_measured_load(profile, &measured, NULL) == 0)
        count = tccl_odd_advised(profile, &measured, matrices, odds, advice, NULL);
    tccl_measured_clear(&measured);
    for (int i = 0; i < count; i++) {
        tccl_odd_format(tccl_profile_machine(profile), &odds[i], text);
        fprintf(out, "tccl: note: %s: %s\n", text, advice[i]);
    }
}
