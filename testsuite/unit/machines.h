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
enum { MACHINE_NAMES = sizeof(machine_names) / sizeof(machine_names[0]) };

/* Reads testsuite/machines/NAME.json, or ends the test. */
__attribute__((unused)) static struct tccl_model *load_machine(const char *name)
{
    const char *folder = getenv("TCCL_MACHINES");
    struct tccl_error err = {0};
    struct tccl_model *model;
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s.json", folder ? folder : "testsuite/machines", name);
    if (tccl_model_read(path, &model, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    return model;
}

#endif
