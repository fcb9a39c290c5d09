/* machines.h: the machine models of the testsuite, for tests. */
#pragma once

#include "check.h"
#include "machine/model.h"
#include "machine/sides.h"

static const char *const machine_names[] = {
    "amd-4gpu",          "intel-4gpu",        "dual-8gpu",       "epyc-8gpu",
    "dual-8gpu-unequal", "epyc-8gpu-unequal", "h100-8gpu",       "lopsided-8gpu",
    "quad-8gpu",         "g5-48xlarge",       "epyc-nps4-4a100",
};
enum { MACHINE_NAMES = COUNT(machine_names) };

/* Where testsuite/machines/NAME.json is. Static. */
static inline const char *machine_file(const char *name)
{
    static char path[PATH_MAX];
    const char *folder = getenv("TCCL_MACHINES");
    snprintf(path, sizeof(path), "%s/%s.json", folder ? folder : "testsuite/machines", name);
    return path;
}

/* The model of that file; without it the test ends. It is read once, and stays. */
static inline const struct tccl_model *load_machine(const char *name)
{
    static struct tccl_model *models[32];
    int i = 0;
    while (models[i] && strcmp(tccl_model_machine(models[i])->name, name) != 0)
        i++;
    if (!models[i])
        MUST(tccl_model_read(machine_file(name), &models[i], ERR));
    return models[i];
}

/* The transfers of a text, without which the test ends. */
static inline struct tccl_set parse_set(const char *text)
{
    struct tccl_set set;
    MUST(tccl_set_parse(text, &set, ERR));
    return set;
}

/* What a side has alone, GB/s. */
static inline double side_gbps(const struct tccl_model *model, const struct tccl_side *side)
{
    double gbps = 0;
    CHECK_INT(tccl_model_sides(model, &side, 1, &gbps, NULL), 0);
    return gbps;
}

static inline const struct tccl_machine *machine_of(const char *name)
{
    return tccl_model_machine(load_machine(name));
}

/* A transfer that the machine allows. */
static inline tccl_transfer random_transfer(const struct tccl_machine *machine)
{
    for (;;) {
        tccl_transfer transfer = (tccl_transfer)(rand() % TCCL_TRANSFERS);
        if (tccl_transfer_valid(transfer) && tccl_machine_allows(machine, transfer, NULL) == 0)
            return transfer;
    }
}
