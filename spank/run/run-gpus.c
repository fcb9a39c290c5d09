/* run-gpus.c: NVML's GPUs, and those of them that CUDA will show. */
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "discover/discover.h"

/* Numbers of those that are meant, an index of NVML's list each. */
struct chosen {
    int n, at[TCCL_NVML_GPUS];
};

static int find_one(const struct tccl_nvml *nvml, const char *text)
{
    if (strncmp(text, "GPU-", 4) == 0) {
        /* Its beginning will do, if it is that of one GPU. */
        int found = -1;
        for (int i = 0; i < nvml->n_gpus; i++) {
            if (strncmp(nvml->gpus[i].uuid, text, strlen(text)) != 0)
                continue;
            if (found >= 0)
                return -1;
            found = i;
        }
        return found;
    }
    char *end;
    long number = strtol(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && number < nvml->n_gpus ? (int)number : -1;
}

/* Returns false: CUDA shows none, as it does where one is named twice. */
static bool add(struct chosen *chosen, int at)
{
    for (int i = 0; i < chosen->n; i++)
        if (chosen->at[i] == at)
            return false;
    chosen->at[chosen->n++] = at;
    return true;
}

static bool several_kinds(const struct tccl_nvml *nvml)
{
    for (int i = 1; i < nvml->n_gpus; i++)
        if (strcmp(nvml->gpus[i].name, nvml->gpus[0].name) != 0)
            return true;
    return false;
}

static void choose(const struct tccl_nvml *nvml, const char *visible, bool by_bus,
                   struct chosen *chosen, struct run_gpus *gpus)
{
    char copy[2048], *rest = copy, *text;
    if (!visible) {
        for (int i = 0; i < nvml->n_gpus; i++)
            add(chosen, i);
        return;
    }
    snprintf(copy, sizeof(copy), "%s", visible);
    while ((text = strsep(&rest, ","))) {
        text += strspn(text, " ");
        text[strcspn(text, " ")] = '\0';
        if (strncmp(text, "MIG", 3) == 0) {
            snprintf(gpus->why, sizeof(gpus->why),
                     "CUDA_VISIBLE_DEVICES names a MIG instance: rings over parts of a GPU don't "
                     "exist");
            return;
        }
        int at = find_one(nvml, text);
        if (at >= 0 && *text != 'G' && !by_bus && several_kinds(nvml)) {
            snprintf(gpus->why, sizeof(gpus->why),
                     "CUDA_VISIBLE_DEVICES has numbers, and CUDA orders GPUs of several kinds by "
                     "speed: set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name them by UUID");
            return;
        }
        if (at < 0)
            return;
        if (!add(chosen, at)) {
            chosen->n = 0;
            return;
        }
    }
}

void run_gpus_read(const char *visible, bool by_bus, struct run_gpus *gpus)
{
    cleanup_free struct tccl_nvml *nvml = calloc(1, sizeof(*nvml));
    struct tccl_error err = {0};
    struct chosen chosen = {.n = 0};
    *gpus = (struct run_gpus){.n = 0};
    int rc = nvml ? tccl_nvml_read(nvml, &err) : tccl_fail(&err, "out of memory");
    if (rc > 0)
        snprintf(gpus->why, sizeof(gpus->why),
                 "no libnvidia-ml.so.1, by which GPUs are known: install NVIDIA's driver");
    else if (rc < 0)
        snprintf(gpus->why, sizeof(gpus->why), "%.300s", err.text);
    if (rc != 0)
        return;
    choose(nvml, visible, by_bus, &chosen, gpus);
    if (!*gpus->why) {
        if (chosen.n > TCCL_MAX_GPUS)
            snprintf(gpus->why, sizeof(gpus->why), "%d GPUs: rings have at most %d on a machine",
                     chosen.n, TCCL_MAX_GPUS);
        for (int i = 0; i < chosen.n && !*gpus->why; i++) {
            const struct tccl_nvml_gpu *gpu = &nvml->gpus[chosen.at[i]];
            if (gpu->mig)
                snprintf(gpus->why, sizeof(gpus->why),
                         "GPU %s is cut into MIG instances: rings over parts of a GPU don't exist",
                         gpu->busid);
            strcpy(gpus->busids[i], gpu->busid);
            strcpy(gpus->models[i], gpu->name);
            gpus->n++;
        }
    }
}
