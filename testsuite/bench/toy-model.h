/* toy-model.h: models of machines of any size whose like parts are alike, or nearly. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "machine/model.h"

struct toy {
    int gpus, memories, nics;
    unsigned long seed; /* 0: like parts are alike; else capacities are changed by up to 3 % */
};

/* The capacity as it is, or changed. */
static double toy_gbps(struct toy *toy, double gbps)
{
    if (toy->seed == 0)
        return gbps;
    toy->seed = toy->seed * 6364136223846793005UL + 1442695040888963407UL;
    return gbps * (0.97 + 0.06 * (double)(toy->seed >> 40) / (1 << 24));
}

/* GPUs and NICs are dealt out to the memories in turn. */
static void toy_machine(FILE *out, const struct toy *toy)
{
    fprintf(out, "\"machine\":{\"memories\":%d,\"p2p\":true,\"gpudirect\":true,\"gpus\":[",
            toy->memories);
    for (int i = 0; i < toy->gpus; i++)
        fprintf(out, "%s{\"busid\":\"0000:%02x:00.0\",\"model\":\"X\",\"numa\":%d,\"sm\":80}",
                i ? "," : "", 16 + i, i % toy->memories);
    fprintf(out, "],\"nics\":[");
    for (int i = 0; i < toy->nics; i++)
        fprintf(out,
                "%s{\"name\":\"nic%d\",\"busid\":\"0000:%02x:00.0\",\"numa\":%d,\"gbps\":24,"
                "\"fabric\":\"ib0\"}",
                i ? "," : "", i, 64 + i, i % toy->memories);
    fprintf(out, "]}");
}

/* Every link each way, every memory, every way between memories, and past each memory. */
static void toy_resources(FILE *out, struct toy *toy)
{
    fprintf(out, "\"resources\":[");
    for (int i = 0; i < toy->gpus; i++)
        fprintf(out,
                "{\"name\":\"g%d out\",\"gbps\":%g,\"users\":[\"g%d->*\",{\"of\":\"*<g%d\","
                "\"weight\":1.08}]},{\"name\":\"g%d in\",\"gbps\":%g,\"users\":[\"*->g%d\","
                "{\"of\":\"g%d<*\",\"weight\":1.08}]},",
                i, toy_gbps(toy, 24.6), i, i, i, toy_gbps(toy, 24.6), i, i);
    for (int i = 0; i < toy->nics; i++)
        fprintf(out,
                "{\"name\":\"n%d receive\",\"gbps\":%g,\"users\":[\"n%d->*\"]},"
                "{\"name\":\"n%d send\",\"gbps\":%g,\"users\":[\"*->n%d\"]},",
                i, toy_gbps(toy, 24), i, i, toy_gbps(toy, 24), i);
    for (int a = 0; a < toy->memories; a++)
        for (int b = 0; b < toy->memories; b++)
            if (a != b)
                fprintf(out, "{\"name\":\"fabric %d->%d\",\"gbps\":%g,\"users\":[\"@%d->@%d\"]},",
                        a, b, toy_gbps(toy, 34), a, b);
    for (int i = 0; i < toy->memories; i++)
        fprintf(out,
                "%s{\"name\":\"m%d\",\"gbps\":%g,\"users\":[\"*>m%d\",{\"of\":\"*<m%d\","
                "\"weight\":1.08}]},"
                "{\"name\":\"bridge %d\",\"gbps\":%g,\"users\":[\"g*->g@%d\",\"n*->g@%d\","
                "\"g@%d->n*\"]}",
                i ? "," : "", i, toy_gbps(toy, 44), i, i, i, toy_gbps(toy, 20), i, i, i);
    fprintf(out, "]");
}

/* A GPU that reads from the memory next to it while it writes to a GPU elsewhere is slow. */
static void toy_rules(FILE *out, const struct toy *toy)
{
    fprintf(out, "\"rules\":[");
    for (int i = 0; i < toy->gpus && toy->memories > 1; i++)
        fprintf(out,
                "%s{\"name\":\"g%d reads and writes away\",\"when\":[\"g%d<m%d\",\"g%d>g!@%d\"],"
                "\"gbps\":8.5}",
                i ? "," : "", i, i, i % toy->memories, i, i % toy->memories);
    fprintf(out, "]");
}

/* Freed by the caller; ends the program if the model can't be read. */
static struct tccl_model *toy_model(struct toy toy)
{
    char *text = NULL;
    size_t size;
    struct tccl_error err = {0};
    struct tccl_model *model = NULL;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "{\"format\":\"tccl-model\",\"version\":1,\"name\":\"toy\",");
    toy_machine(out, &toy);
    fprintf(out, ",");
    toy_resources(out, &toy);
    fprintf(out, ",");
    toy_rules(out, &toy);
    fprintf(out, "}");
    fclose(out);
    json_t *json = json_loads(text, 0, NULL);
    if (!json || tccl_model_from_json(json, &model, &err) < 0) {
        fprintf(stderr, "toy model: %s\n%s\n", err.text, text);
        exit(1);
    }
    json_decref(json);
    free(text);
    return model;
}
