/* run-findings.c: the doctor's findings (tccl-check machine) in one sentence, and what NCCL builds.
 */
#include "run/run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "chain/nccl-version.h"
#include "discover/discover.h"
#include "doctor/doctor.h"
#include "nccl/baseline.h"

void run_findings_read(struct run_findings *said)
{
    struct seen {
        struct tccl_nvml nvml;
        struct tccl_doctor_facts facts;
        struct tccl_doctor_findings findings;
    };
    cleanup_free struct seen *seen = calloc(1, sizeof(*seen));
    struct tccl_error err = {0};
    char name[TCCL_NAME + 8] = "";
    *said = (struct run_findings){.count = 0};
    if (!seen)
        return;
    int rc = tccl_nvml_read(&seen->nvml, &err);
    tccl_doctor_read(NULL, rc == 0 ? &seen->nvml : NULL, err.text, &seen->facts);
    tccl_doctor_examine(&seen->facts, &seen->findings);
    const struct tccl_doctor_finding *worst = seen->findings.list;
    for (int i = 0; i < seen->findings.count; i++)
        said->count += seen->findings.list[i].level >= TCCL_DOCTOR_WARN;
    if (said->count == 0)
        return;
    if (worst->device >= 0)
        tccl_doctor_name(&seen->facts.devices[worst->device], name);
    snprintf(said->worst, sizeof(said->worst), "%s%s%s", name, *name ? ": " : "", worst->what);
}

/* Is the topology set, or are the rings, in the environment or where else NCCL reads settings? */
static bool are_set(void)
{
    enum { CONF = 8192 };
    static const char *const names[] = {"NCCL_TOPO_FILE=", "NCCL_GRAPH_FILE="};
    const char *named = getenv("NCCL_CONF_FILE"), *home = getenv("HOME");
    char own[PATH_MAX];
    snprintf(own, sizeof(own), "%s/.nccl.conf", home ? home : "");
    const char *const files[] = {named && *named ? named : own, "/etc/nccl.conf"};
    for (int i = 0; i < 2; i++) {
        cleanup_free char *text = NULL;
        size_t size;
        if (tccl_read_file(files[i], CONF, &text, &size, NULL) != 0 && errno == EFBIG)
            return true;
        for (const char *line = text; line && *line; line = strchr(line, '\n')) {
            line += *line == '\n';
            for (int n = 0; n < 2; n++)
                if (strncmp(line, names[n], strlen(names[n])) == 0)
                    return true;
        }
    }
    return getenv("NCCL_TOPO_FILE") || getenv("NCCL_GRAPH_FILE");
}

void run_own_read(const struct run_gpus *gpus, int64_t version, char text[static RUN_OWN])
{
    const struct tccl_discover_options options = {.host = false};
    cleanup_free struct tccl_found *found = calloc(1, sizeof(*found));
    struct tccl_baseline baseline;
    char ring[TCCL_CHAIN_TEXT];
    uint32_t set = 0;
    *text = '\0';
    if (are_set() || !found || tccl_discover(&options, found, NULL) != 0 || found->unforetold)
        return;
    const struct tccl_machine *machine = &found->site.machine;
    for (int i = 0; i < gpus->n; i++) {
        int gpu = tccl_machine_find_gpu(machine, gpus->busids[i]);
        if (gpu < 0)
            return;
        set |= UINT32_C(1) << gpu;
    }
    int generation = version ? tccl_generation_of(version) : TCCL_NEWEST;
    if (tccl_baseline_find(machine, set, true, generation, &baseline, NULL) != 0 ||
        baseline.set.n == 0)
        return;
    tccl_chain_format(&baseline.set.rings[0], machine, ring);
    int length = baseline.set.n == 1
                     ? snprintf(text, RUN_OWN, "%s", ring)
                     : snprintf(text, RUN_OWN, "%d rings, the first is %s", baseline.set.n, ring);
    if (length >= RUN_OWN)
        *text = '\0';
}
