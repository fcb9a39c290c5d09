/* random-model.h: small random machine models for property tests. */
#pragma once

#include "check.h"
#include "machine/model.h"

/* 2.0 to 22.0, in steps of 0.25, so that values often tie. */
static inline double random_gbps(unsigned long *state)
{
    return 2 + random_below(state, 81) * 0.25;
}

static void random_pattern(unsigned long *state, int gpus, int memories, char text[static 32])
{
    static const char *const ends[] = {"g*", "m*", "*", "g@0", "@0"};
    char left[16], right[16];
    const char *ops[] = {">", "<", "->"};
    int op = random_below(state, 3);
    for (int side = 0; side < 2; side++) {
        char *end = side ? right : left;
        int pick = random_below(state, 8);
        if (pick < 4)
            snprintf(end, sizeof(left), "g%d", random_below(state, gpus));
        else if (pick == 4)
            snprintf(end, sizeof(left), "m%d", random_below(state, memories));
        else
            snprintf(end, sizeof(left), "%s", ends[random_below(state, 5)]);
    }
    snprintf(text, 32, "%s%s%s", left, ops[op], right);
}

static void random_machine(FILE *out, unsigned long *state, int gpus, int memories, int nics)
{
    fprintf(out, "\"machine\":{\"name\":\"random\",\"memories\":%d,\"switches\":[],\"gpus\":[",
            memories);
    for (int i = 0; i < gpus; i++)
        fprintf(out,
                "%s{\"busid\":\"0000:%02x:00.0\",\"model\":\"X\",\"numa\":%d,\"minor\":%d,"
                "\"sm\":%d,\"parent\":null}",
                i ? "," : "", 16 + i, random_below(state, memories), i,
                random_below(state, 2) ? 80 : 70);
    fprintf(out, "],\"nics\":[");
    for (int i = 0; i < nics; i++)
        fprintf(out,
                "%s{\"name\":\"nic%d\",\"busid\":\"0000:%02x:00.0\",\"numa\":%d,\"gbps\":12,"
                "\"fabric\":\"f\",\"parent\":null}",
                i ? "," : "", i, 64 + i, random_below(state, memories));
    fprintf(out, "],\"p2p\":%s", random_below(state, 4) ? "true" : "false");
    if (nics > 0)
        fprintf(out, ",\"gpudirect\":%s", random_below(state, 3) ? "true" : "false");
    fprintf(out, "}");
}

/* Every transfer is limited by each of its ends; like ends often have like limits. */
static void random_resources(FILE *out, unsigned long *state, int gpus, int memories, int nics)
{
    double all = random_gbps(state) + 6;
    bool equal = random_below(state, 2);
    fprintf(out, "\"resources\":[");
    for (int i = 0; i < gpus; i++)
        fprintf(out,
                "{\"name\":\"g%d out\",\"gbps\":%g,\"users\":[\"g%d->*\"]},"
                "{\"name\":\"g%d in\",\"gbps\":%g,\"users\":[\"*->g%d\"]},",
                i, equal ? all : random_gbps(state) + 4, i, i, equal ? all : random_gbps(state) + 4,
                i);
    for (int i = 0; i < memories; i++)
        fprintf(out,
                "{\"name\":\"m%d\",\"gbps\":%g,\"users\":[\"*>m%d\",{\"of\":\"*<m%d\","
                "\"weight\":1.5}]},",
                i, equal ? 2 * all : 2 * random_gbps(state) + 4, i, i);
    for (int i = 0; i < random_below(state, 6); i++) {
        char pattern[32];
        random_pattern(state, gpus, memories, pattern);
        fprintf(out, "{\"name\":\"r%d\",\"gbps\":%g,\"users\":[\"%s\"]},", i, random_gbps(state),
                pattern);
    }
    for (int i = 0; i < nics; i++)
        fprintf(out, "{\"name\":\"n%d\",\"gbps\":%g,\"users\":[\"n%d>*\",\"n%d<*\"]},", i,
                2 * random_gbps(state), i, i);
    fprintf(out, "{\"name\":\"all\",\"gbps\":200,\"users\":[\"*->*\"]}]");
}

static void random_rules(FILE *out, unsigned long *state, int gpus, int memories)
{
    int rules = random_below(state, 4);
    fprintf(out, ",\"rules\":[");
    for (int i = 0; i < rules; i++) {
        char first[32], second[32];
        random_pattern(state, gpus, memories, first);
        random_pattern(state, gpus, memories, second);
        fprintf(out, "%s{\"name\":\"rule%d\",\"when\":[\"%s\",\"%s\"],\"gbps\":%g}", i ? "," : "",
                i, first, second, random_gbps(state) / 2);
    }
    fprintf(out, "]");
}

/* The file of a model of a machine of this size. The caller frees. */
static inline char *random_model_text(unsigned long *state, int gpus, int memories, int nics)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "{\"format\":\"tccl-model\",\"version\":1,\"name\":\"random\",\"about\":\"\","
                 "\"sources\":[],");
    random_machine(out, state, gpus, memories, nics);
    fprintf(out, ",");
    random_resources(out, state, gpus, memories, nics);
    random_rules(out, state, gpus, memories);
    fprintf(out, "}");
    fclose(out);
    return text;
}

/* The model; ends the test if it can't be read. The caller frees. */
static inline struct tccl_model *random_model(unsigned long *state, int gpus, int memories,
                                              int nics)
{
    cleanup_free char *text = random_model_text(state, gpus, memories, nics);
    struct tccl_model *model = NULL;
    cleanup_json json_t *json = json_loads(text, 0, NULL);
    if (!json || tccl_model_from_json(json, &model, ERR) < 0) {
        fprintf(stderr, "random model: %s\n%s\n", check_err.text, text);
        exit(1);
    }
    return model;
}
