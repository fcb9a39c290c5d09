/* run-findings.c: the doctor's findings (tccl-check machine) in one sentence. */
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "doctor/doctor.h"

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
