/* key.c: the key of a step as JSON, for people, and as the name of a folder. */
#include "client/key.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "client/message.h"

json_t *tccl_key_to_json(const struct tccl_step_key *key)
{
    return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I}", "cluster", key->cluster, "job",
                     (json_int_t)key->job, "het_job", (json_int_t)key->het_job, "het_offset",
                     (json_int_t)key->het_offset, "step", (json_int_t)key->step, "restart",
                     (json_int_t)key->restart, "run", (json_int_t)key->run);
}

static int get_u32(const json_t *object, const char *name, uint32_t *value, struct tccl_error *err)
{
    json_int_t number;
    if (tccl_get_int(object, name, 0, UINT32_MAX, &number, err) != 0)
        return -1;
    *value = (uint32_t)number;
    return 0;
}

int tccl_key_from_json(const json_t *json, struct tccl_step_key *key, struct tccl_error *err)
{
    const char *cluster;
    json_int_t run;
    memset(key, 0, sizeof(*key));
    if (tccl_get_text(json, "cluster", sizeof(key->cluster) - 1, &cluster, err) != 0 ||
        get_u32(json, "job", &key->job, err) != 0 ||
        get_u32(json, "het_job", &key->het_job, err) != 0 ||
        get_u32(json, "het_offset", &key->het_offset, err) != 0 ||
        get_u32(json, "step", &key->step, err) != 0 ||
        get_u32(json, "restart", &key->restart, err) != 0 ||
        tccl_get_int(json, "run", 0, TCCL_MAX_RUN, &run, err) != 0)
        return tccl_fail_in(err, "key");
    snprintf(key->cluster, sizeof(key->cluster), "%s", cluster);
    key->run = (uint64_t)run;
    return 0;
}

bool tccl_key_equal(const struct tccl_step_key *a, const struct tccl_step_key *b)
{
    return strcmp(a->cluster, b->cluster) == 0 && a->job == b->job && a->het_job == b->het_job &&
           a->het_offset == b->het_offset && a->step == b->step && a->restart == b->restart &&
           a->run == b->run;
}

/* Slurm's numbers for steps that have none (slurm.h, SLURM_BATCH_SCRIPT and its neighbours). */
static void step_format(uint32_t step, char *text, size_t size)
{
    switch (step) {
    case 0xfffffffb:
        snprintf(text, size, "batch");
        break;
    case 0xfffffffc:
        snprintf(text, size, "extern");
        break;
    case 0xfffffffa:
        snprintf(text, size, "interactive");
        break;
    default:
        snprintf(text, size, "%u", step);
    }
}

void tccl_key_format(const struct tccl_step_key *key, char text[static TCCL_KEY_TEXT])
{
    char step[16], offset[16] = "", restart[24] = "";
    step_format(key->step, step, sizeof(step));
    if (key->het_job)
        snprintf(offset, sizeof(offset), "+%u", key->het_offset);
    if (key->restart)
        snprintf(restart, sizeof(restart), " restart %u", key->restart);
    snprintf(text, TCCL_KEY_TEXT, "%.24s%s%u%s.%s%s", key->cluster, *key->cluster ? ":" : "",
             key->het_job ? key->het_job : key->job, offset, step, restart);
}

void tccl_key_folder(const struct tccl_step_key *key, char text[static TCCL_KEY_TEXT])
{
    char all[256];
    int size =
        snprintf(all, sizeof(all), "%s/%u/%u/%u/%u/%u/%llu", key->cluster, key->job, key->het_job,
                 key->het_offset, key->step, key->restart, (unsigned long long)key->run);
    snprintf(text, TCCL_KEY_TEXT, "%u.%u.%u-%016llx", key->job, key->step, key->restart,
             (unsigned long long)tccl_hash64(all, (size_t)size));
}
