/* machines.h: the machine models of the testsuite, for tests. */
#ifndef TCCL_MACHINES_H
#define TCCL_MACHINES_H

#include "check.h"
#include "machine/model.h"

static const char *const machine_names[] = {
    "amd-4gpu",          "intel-4gpu",        "dual-8gpu",       "epyc-8gpu",
    "dual-8gpu-unequal", "epyc-8gpu-unequal", "h100-8gpu",       "lopsided-8gpu",
    "quad-8gpu",         "g5-48xlarge",       "epyc-nps4-4a100",
};
enum { MACHINE_NAMES = COUNT(machine_names) };

/* Reads testsuite/machines/NAME.json, or ends the test. */
static inline struct tccl_model *load_machine(const char *name)
{
    const char *folder = getenv("TCCL_MACHINES");
    struct tccl_model *model;
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s.json", folder ? folder : "testsuite/machines", name);
    MUST(tccl_model_read(path, &model, ERR));
    return model;
}

#endif
