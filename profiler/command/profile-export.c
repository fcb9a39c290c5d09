/* tccl-profile export. */
#include "base/cleanup.h"
#include "base/fileio.h"
#include "base/numbers.h"
#include "command/profile-command.h"
#include "profile/exchange.h"

/* All of the profile. */
static int write_whole(struct tccl_profile *profile, FILE *out, struct tccl_error *err)
{
    int dropped = 0;

    if (tccl_exchange_write(profile, out, &dropped, err) < 0)
        return -1;
    if (dropped)
        fprintf(stderr, "tccl: %s/sets.jsonl: the last line is torn; it is dropped\n",
                tccl_profile_folder(profile));
    return 0;
}

/* The chains of one GPU set. */
static int write_table(struct tccl_profile *profile, const char *set, FILE *out,
                       struct tccl_error *err)
{
    const struct tccl_machine *machine = tccl_profile_machine(profile);
    uint32_t gpus = 0;

    if (tccl_numberset_parse(set, TCCL_MAX_GPUS, &gpus, err) < 0)
        return -1;
    const struct tccl_table *table = tccl_profile_table(profile, gpus, err);
    if (!table)
        return -1;
    cleanup_json json_t *json = tccl_table_to_json(table, machine);
    if (!json || json_dumpf(json, out, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) < 0)
        return tccl_fail(err, "out of memory");
    fputc('\n', out);
    return 0;
}

static int export(struct tccl_profile *profile, const struct profile_options *options,
                  struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return tccl_fail(err, "out of memory");
    int rc = options->gpus ? write_table(profile, options->gpus, out, err)
                           : write_whole(profile, out, err);
    if (fclose(out) != 0 && rc == 0)
        rc = tccl_fail(err, "out of memory");
    return rc < 0 ? -1 : tccl_write_output(options->output, text, size, err);
}

int profile_export(const struct profile_options *options)
{
    struct tccl_profile *profile;
    struct tccl_error err = {0};

    if (profile_choose(options, &profile, &err) < 0)
        return profile_complain(&err);
    int rc = export(profile, options, &err) < 0 ? profile_complain(&err) : 0;
    tccl_profile_close(profile);
    return rc;
}
