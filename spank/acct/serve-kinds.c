/* serve-kinds.c: the kinds of machines whose profiles are in CacheDir. */
#include "acct/serve-kinds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "chain/chain-text.h"
#include "draw/svg.h"
#include "report/report.h"

enum { LEGEND_WIDTH = 600, MOST_CONGESTED = 200 };
static const double threshold = 0.9; /* as tccl-profile report's */

static int open_one(void *context, const char *id, const char *cache_dir)
{
    struct serve_kinds *kinds = context;
    struct tccl_profile *profile;
    if (kinds->count == SERVE_KINDS)
        return 1;
    if (tccl_profile_open(cache_dir, id, &profile, &kinds->reason) == 0)
        kinds->profiles[kinds->count++] = profile;
    else
        kinds->bad++;
    return 0;
}

struct opening {
    struct serve_kinds *kinds;
    const char *cache_dir;
};

static int open_each(void *context, const char *id)
{
    const struct opening *opening = context;
    return open_one(opening->kinds, id, opening->cache_dir);
}

/* Which of them this node is, by its own description. */
static int find_own(const struct tccl_conf *conf, const struct serve_kinds *kinds)
{
    struct tccl_machine machine;
    char id[TCCL_HASH_HEX];
    if (tccl_machine_read(conf->machine, &machine, NULL) != 0)
        return -1;
    tccl_machine_id(&machine, id);
    for (int i = 0; i < kinds->count; i++)
        if (strcmp(tccl_profile_id(kinds->profiles[i]), id) == 0)
            return i;
    return -1;
}

int serve_kinds_open(const struct tccl_conf *conf, struct serve_kinds *kinds,
                     struct tccl_error *err)
{
    struct opening opening = {kinds, conf->cache_dir};
    *kinds = (struct serve_kinds){.own = -1};
    if (tccl_cache_list(conf->cache_dir, open_each, &opening, err) < 0)
        return -1;
    kinds->own = find_own(conf, kinds);
    return 0;
}

void serve_kinds_close(struct serve_kinds *kinds)
{
    for (int i = 0; i < kinds->count; i++)
        tccl_profile_close(kinds->profiles[i]);
    kinds->count = 0;
}

json_t *serve_kinds_list(const struct tccl_conf *conf, struct tccl_error *err)
{
    struct serve_kinds kinds;
    json_t *list = json_array();
    if (serve_kinds_open(conf, &kinds, err) != 0) {
        serve_kinds_close(&kinds);
        json_decref(list);
        return NULL;
    }
    for (int i = 0; i < kinds.count; i++) {
        const struct tccl_machine *machine = tccl_profile_machine(kinds.profiles[i]);
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:i, s:b}", "id", tccl_profile_id(kinds.profiles[i]),
                            "name", machine->name, "source", tccl_profile_source(kinds.profiles[i]),
                            "gpus", machine->n_gpus, "own", i == kinds.own));
    }
    json_t *all = json_pack("{s:s, s:o, s:i, s:s}", "cache_dir", conf->cache_dir, "kinds", list,
                            "bad", kinds.bad, "bad_reason", kinds.bad ? kinds.reason.text : "");
    serve_kinds_close(&kinds);
    if (!all)
        tccl_fail(err, "CacheDir=%s: its name can't be shown", conf->cache_dir);
    return all;
}

/* Pictures */

/* The colours of a page that is dark, for those of tccl_svg_style. */
static const char dark[] =
    "<style>@media(prefers-color-scheme:dark){text{fill:#dfe3e8}.small{fill:#a4adb6}"
    ".step{fill:#fff}.node{fill:#1c2024;stroke:#555d66}.numa{fill:#23282d;stroke:#454d55}"
    ".switch{fill:#2e2b24;stroke:#5b5546}.memory{fill:#3a3220;stroke:#80703a}"
    ".gpu{fill:#20362a;stroke:#4d7d5a}.nic{fill:#2e2840;stroke:#6f5f97}"
    ".arrow{filter:brightness(1.5)}}</style>\n";

json_t *serve_picture(const struct tccl_machine *machine, uint32_t gpus,
                      const struct tccl_chain *chain)
{
    struct tccl_picture picture;
    cleanup_free char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    tccl_picture_make(machine, gpus, chain, &picture);
    double width = picture.width + 2, height = picture.height + 2;
    if (chain) {
        width = fmax(width, LEGEND_WIDTH);
        height += TCCL_SVG_LEGEND;
    }
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"-1 -1 %.0f %.0f\">\n",
            width, height, width, height);
    tccl_svg_style(out);
    fputs(dark, out);
    tccl_svg_markers(out);
    tccl_svg_picture(&picture, out);
    if (chain)
        tccl_svg_legend(4, picture.height + 16, tccl_picture_kinds(&picture), out);
    fputs("</svg>\n", out);
    return fclose(out) == 0 ? json_stringn(text, size) : NULL;
}

static void add_picture(json_t *list, const struct tccl_machine *machine, const char *what,
                        uint32_t gpus, const struct tccl_result *result,
                        const struct tccl_result *own)
{
    char chain[TCCL_CHAIN_TEXT], title[200];
    if (result->chain.n_gpus == 0 || result->gbps <= 0)
        return;
    tccl_chain_format(&result->chain, machine, chain);
    if (own->gbps > 0)
        snprintf(title, sizeof(title), "%s: %.2f GB/s, %.2f times NCCL's own choice (%.2f)", what,
                 result->gbps, result->gbps / own->gbps, own->gbps);
    else
        snprintf(title, sizeof(title), "%s: %.2f GB/s", what, result->gbps);
    json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "title", title, "chain", chain, "svg",
                                          serve_picture(machine, gpus, &result->chain)));
}

static json_t *pictures_of(const struct tccl_report *report)
{
    json_t *list = json_array();
    if (report->n_rings > 0) {
        const struct tccl_found_rings *all = &report->rings[0];
        add_picture(list, report->machine, "Best ring on this kind of node alone", all->gpus,
                    &all->ring, &all->default_ring);
        add_picture(list, report->machine, "Best chain of one node among several", all->gpus,
                    &all->chain, &all->default_chain);
    }
    if (json_array_size(list) == 0)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:o}", "title", "The machine", "chain", "",
                                        "svg", serve_picture(report->machine, UINT32_MAX, NULL)));
    return list;
}

/* Causes only: what is like one before it is counted there. */
static json_t *congested_of(const struct tccl_report *report)
{
    json_t *list = json_array();
    for (long i = 0; i < report->n_congested && json_array_size(list) < MOST_CONGESTED; i++) {
        const struct tccl_congested *one = &report->congested[i];
        if (one->repeats)
            continue;
        json_t *json = tccl_congestion_to_json(one, report->machine);
        json_object_set_new(json, "alike", json_integer(one->alike));
        json_array_append_new(list, json);
    }
    return list;
}

static json_t *report_on(struct tccl_profile *profile, struct tccl_error *err)
{
    struct tccl_report report;
    json_t *json = NULL;
    if (tccl_report_make(profile, threshold, &report, err) == 0) {
        json = tccl_report_to_json(&report);
        json_object_set_new(json, "congested", congested_of(&report));
        json_object_set_new(json, "congested_in_all", json_integer(report.n_congested));
        json_object_set_new(json, "pictures", pictures_of(&report));
        json_object_set_new(json, "gpus", json_integer(report.machine->n_gpus));
        json_object_set_new(
            json, "gpu_model",
            json_string(report.machine->n_gpus ? report.machine->gpus[0].model : ""));
        json_object_set_new(json, "nics", json_integer(report.machine->n_nics));
        json_object_set_new(json, "memories", json_integer(report.machine->n_memories));
        if (!json)
            tccl_fail(err, "%s: its texts can't be shown", tccl_profile_folder(profile));
    }
    tccl_report_free(&report);
    return json;
}

/* The id is looked for in the list, so it never becomes part of a path unchecked. */
json_t *serve_kind(const struct tccl_conf *conf, const char *id, bool *missing,
                   struct tccl_error *err)
{
    struct serve_kinds kinds;
    json_t *json = NULL;
    *missing = false;
    if (serve_kinds_open(conf, &kinds, err) == 0) {
        int i = 0;
        while (i < kinds.count && strcmp(tccl_profile_id(kinds.profiles[i]), id) != 0)
            i++;
        *missing = i == kinds.count;
        if (*missing)
            tccl_fail(err, "there is no such kind of machine in %s", conf->cache_dir);
        else
            json = report_on(kinds.profiles[i], err);
    }
    serve_kinds_close(&kinds);
    return json;
}
