/* Writes a profile folder as a measuring back end would: machine.json, profile.json, sets.jsonl and
 * the chain table of one GPU set, measured from a model that the folder then does not hold.
 * make-profile MODEL GPUS FOLDER [OTHERS | model]; OTHERS: the rings of these GPUs, which have a
 * table there, and of GPUS are measured together as well; model: the folder has the model, too, and
 * says so */
#include <stdio.h>

#include "base/fileio.h"
#include "base/numberset.h"
#include "owned.h"
#include "profile/cache-internal.h"
#include "ring/neighbours.h"
#include "search/setlog.h"

static struct tccl_error err;

static void check(int rc)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "make-profile: %s\n", err.text);
    exit(1);
}

struct recorder {
    struct tccl_meter model;
    struct tccl_setlog *log;
};

static int measure(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                   struct tccl_error *why)
{
    struct recorder *recorder = context;
    if (recorder->model.measure(recorder->model.context, set, out, why) < 0)
        return -1;
    return tccl_setlog_append(recorder->log, set, out, why);
}

static void append_together(const struct tccl_model *model, struct tccl_setlog *log,
                            struct tccl_joint *joint)
{
    const struct tccl_side *sides[] = {&joint->sides[0], &joint->sides[1]};
    check(tccl_model_sides(model, sides, joint->n, joint->gbps, &err));
    check(tccl_setlog_append_joint(log, joint, &err));
}

/* The best ring, and what NCCL builds, each beside the best ring of the others. */
static void measure_together(const struct tccl_model *model, const char *folder,
                             const struct tccl_table *table, const char *others)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    struct tccl_joint joint = {.n = 2}, nccl = {.n = 2};
    owned(table) struct tccl_table *other;
    char path[4096];
    uint32_t gpus;
    check(tccl_numberset_parse(others, machine->n_gpus, &gpus, &err));
    snprintf(path, sizeof(path), "%s/chains/%08x.chains", folder, gpus);
    check(tccl_table_read(path, machine, &other, &err));
    tccl_side_add_chain(&joint.sides[0], &tccl_table_ring(table)->chain);
    tccl_side_add_chain(&joint.sides[1], &tccl_table_ring(other)->chain);
    tccl_ring_set_side(&table->baselines[1][TCCL_NEWEST].set, &nccl.sides[0]);
    nccl.sides[1] = joint.sides[1];
    snprintf(path, sizeof(path), "%s/together.jsonl", folder);
    struct tccl_setlog *log = tccl_setlog_open(path, "host", &err);
    check(log ? 0 : -1);
    append_together(model, log, &joint);
    append_together(model, log, &nccl);
    tccl_setlog_close(log);
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc > 5)
        return 2;
    owned(model) struct tccl_model *model = NULL;
    char path[4096];
    uint32_t gpus;
    check(tccl_model_read(argv[1], &model, &err));
    const struct tccl_machine *machine = tccl_model_machine(model);
    check(tccl_numberset_parse(argv[2], machine->n_gpus, &gpus, &err));
    snprintf(path, sizeof(path), "%s/chains", argv[3]);
    check(tccl_make_folder(path, 0755, &err));
    snprintf(path, sizeof(path), "%s/machine.json", argv[3]);
    cleanup_json json_t *json = tccl_machine_to_json(machine);
    check(tccl_write_json(path, 0644, json, &err));
    bool modelled = argc == 5 && strcmp(argv[4], "model") == 0;
    struct tccl_provenance from = {0};
    tccl_machine_id(machine, from.machine);
    snprintf(from.source, sizeof(from.source), modelled ? "model" : "host");
    cleanup_json json_t *copy = tccl_read_json(argv[1], MODEL_BYTES, &err);
    check(copy ? 0 : -1);
    if (modelled) {
        check(tccl_json_hash(copy, from.model));
        snprintf(path, sizeof(path), "%s/model.json", argv[3]);
        check(tccl_write_json(path, 0644, copy, &err));
    }
    check(tccl_provenance_write(argv[3], &from, &err));
    snprintf(path, sizeof(path), "%s/sets.jsonl", argv[3]);
    struct recorder recorder = {tccl_model_meter(model), tccl_setlog_open(path, from.source, &err)};
    check(recorder.log ? 0 : -1);
    struct tccl_meter meter = {.measure = measure, .context = &recorder};
    owned(search) struct tccl_search *search = tccl_search_new(machine, meter, NULL);
    owned(table) struct tccl_table *table = tccl_table_new(machine, gpus);
    struct tccl_search_options options = {.gap = 0};
    check(tccl_search_table(search, table, &options, &err));
    snprintf(table->source, sizeof(table->source), "%s", from.source);
    snprintf(path, sizeof(path), "%s/chains/%08x.chains", argv[3], gpus);
    check(tccl_table_write(table, path, &err));
    if (argc == 5 && !modelled)
        measure_together(model, argv[3], table, argv[4]);
    tccl_setlog_close(recorder.log);
    return 0;
}
