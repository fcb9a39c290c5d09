/* path-measure.c: tccl-path measure: the bandwidth of any load. */

#include "base/cleanup.h"
#include "base/fields.h"
#include "command/path.h"

/* One set, measured; rates and limits only where a model knows them. */
struct measured {
    struct tccl_set set;
    double gbps;
    bool detailed;
    double rates[TCCL_MAX_SET];
    const char *limits[TCCL_MAX_SET];
};

static int check_members(const struct source *source, const struct tccl_set *set,
                         struct tccl_error *err)
{
    struct tccl_error why = {""};
    for (int i = 0; i < set->count; i++)
        if (tccl_machine_allows(&source->machine, set->transfers[i], &why) != 0) {
            char text[12];
            tccl_transfer_format(set->transfers[i], text);
            return tccl_fail(err, "--load: %s: %s", text, why.text);
        }
    return 0;
}

/* Measured values take precedence over those of the model. */
static int measure(struct source *source, const char *text, struct measured *out,
                   struct tccl_error *err)
{
    struct tccl_error why = {""};
    if (tccl_set_parse(text, &out->set, &why) < 0)
        return tccl_fail(err, "--load: %s", why.text);
    if (out->set.count == 0)
        return tccl_fail(err, "--load: no transfer; give some, such as \"g0>g1 g1<m0\"");
    if (check_members(source, &out->set, err) != 0 ||
        source_measure(source, &out->set, &out->gbps, err) != 0)
        return -1;
    double gbps;
    out->detailed = source->model != NULL;
    if (!out->detailed)
        return 0;
    return tccl_model_measure(source->model, &out->set, &gbps, out->rates, out->limits, err);
}

static json_t *measured_to_json(const struct source *source, const struct measured *measured)
{
    char text[TCCL_SET_TEXT], member[12];
    json_t *members = json_array();
    tccl_set_format(&measured->set, text);
    for (int i = 0; i < measured->set.count; i++) {
        tccl_transfer_format(measured->set.transfers[i], member);
        json_t *json = json_pack("{s:s}", "transfer", member);
        if (measured->detailed) {
            json_object_set_new(json, "gbps", json_real(measured->rates[i]));
            json_object_set_new(json, "limit",
                                measured->limits[i] ? json_string(measured->limits[i])
                                                    : json_null());
        }
        json_array_append_new(members, json);
    }
    return json_pack("{s:s, s:f, s:s, s:s, s:o}", "load", text, "gbps", measured->gbps, "machine",
                     source->machine.name, "source", source->name, "transfers", members);
}

static int measure_and_print(const struct options *options, struct source *source,
                             struct tccl_error *err)
{
    struct measured measured = {.gbps = 0};
    if (measure(source, options->load, &measured, err) < 0)
        return -1;
    cleanup_json json_t *json = measured_to_json(source, &measured);
    if (options->json || !json)
        return print_json(json, err);
    /* The text says what JSON has of each transfer, where a model knows it. */
    size_t i;
    const json_t *member, *limit;
    printf("%.3f GB/s\n", tccl_real_of(json, "gbps"));
    json_array_foreach(json_object_get(json, "transfers"), i,
                       member) if ((limit = json_object_get(member, "limit")))
        printf("  %-10s %8.3f GB/s  %s\n", json_string_value(json_object_get(member, "transfer")),
               tccl_real_of(member, "gbps"), json_is_string(limit) ? json_string_value(limit) : "");
    return 0;
}

int command_measure(const struct options *options, struct tccl_error *err)
{
    const char *path = options->model ? options->model : options->profile;
    if (source_check(path, options->profile != NULL, err) < 0)
        return -1;
    struct source *source = source_open(path, err);
    int rc = source ? measure_and_print(options, source, err) : -1;
    source_free(source);
    return rc;
}
