/* profile-show.c: tccl-profile show and list: profiles as tables. */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/numberset.h"
#include "chain/chain.h"
#include "command/profile-command.h"
#include "discover/discover.h"
#include "ring/node-class.h"

enum { GPUS_TEXT = 64, AGE_TEXT = 24 };

/* What a table comes to. */
struct row {
    char gpus[GPUS_TEXT];
    double ring, baseline_ring;   /* GB/s, 0: none */
    double chain, baseline_chain; /* best over all pairs of NICs */
    double ring_set, chain_set;   /* of several rings at once, as jobs get them */
    int ring_rings, chain_rings;  /* and how many; 0: there is none */
    double gap;                   /* of the best chain, or of the ring where there is no NIC */
    long measured, pairs, proven;
    char best[TCCL_CHAIN_TEXT];
};

/* Returns 0, or -1 if out of memory. */
static int describe(const struct tccl_table *table, const struct tccl_machine *machine,
                    struct row *row)
{
    const struct tccl_result *ring = tccl_table_ring(table), *best = tccl_table_best(table, -1, -1);
    struct tccl_seen sets[2];
    if (tccl_job_sets(table, machine, sets) != 0)
        return -1;
    if (!best || !(best->gbps > 0))
        best = ring;
    *row = (struct row){.ring = ring->gbps,
                        .baseline_ring = table->baselines[1][TCCL_NEWEST].gbps,
                        .chain = best == ring ? 0 : best->gbps,
                        .baseline_chain = table->baselines[0][TCCL_NEWEST].gbps,
                        .gap = best->gbps > 0 ? best->bound / best->gbps - 1 : 0,
                        .chain_set = sets[0].gbps,
                        .chain_rings = sets[0].set.n,
                        .ring_set = sets[1].gbps,
                        .ring_rings = sets[1].set.n,
                        .measured = (long)table->measured,
                        .pairs = tccl_table_pairs(table)};
    tccl_numberset_format(table->gpus, row->gpus, sizeof(row->gpus));
    for (long i = 0; i < row->pairs; i++)
        row->proven += table->results[i].bound <= table->results[i].gbps * 1.0300001;
    if (best->chain.n_gpus > 0)
        tccl_chain_format(&best->chain, machine, row->best);
    return 0;
}

static json_t *row_to_json(const struct row *row)
{
    return json_pack(
        "{s:s, s:f, s:f, s:f, s:f, s:f, s:i, s:f, s:i, s:f, s:I, s:I, s:I, s:s}", "gpus", row->gpus,
        "ring_gbps", row->ring, "baseline_ring_gbps", row->baseline_ring, "chain_gbps", row->chain,
        "baseline_chain_gbps", row->baseline_chain, "ring_set_gbps", row->ring_set,
        "ring_set_rings", row->ring_rings, "chain_set_gbps", row->chain_set, "chain_set_rings",
        row->chain_rings, "gap", row->gap, "measured", (json_int_t)row->measured, "pairs",
        (json_int_t)row->pairs, "proven", (json_int_t)row->proven, "best", row->best);
}

/* "23.65", or "23.65 (4)" by four rings at once. */
static void print_number(double gbps, int rings, int width)
{
    char text[32] = "-";
    if (rings > 0)
        snprintf(text, sizeof(text), "%.2f (%d)", gbps, rings);
    else if (gbps > 0)
        snprintf(text, sizeof(text), "%.2f", gbps);
    printf(" %*s", width, text);
}

/* Number of measured sets; where the log is bad, -1, and it is said. */
static long count_sets(const struct tccl_profile *profile)
{
    struct tccl_error err = {0};
    long sets = profile_count(profile, false, false, &err);
    if (sets < 0)
        profile_complain(&err);
    return sets;
}

static void format_age(time_t when, char text[static AGE_TEXT])
{
    static const struct {
        long seconds;
        const char *unit;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    long age = (long)(time(NULL) - when);
    snprintf(text, AGE_TEXT, when > 0 ? "0 s" : "-");
    if (when == 0)
        return;
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (age >= units[i].seconds) {
            snprintf(text, AGE_TEXT, "%ld %s", age / units[i].seconds, units[i].unit);
            return;
        }
}

/* All tables as rows: printed, or added to the list. Bad ones are said. Returns how many are bad.
 */
static int each_row(struct tccl_profile *profile, json_t *list)
{
    struct tccl_error err = {0};
    cleanup_free uint32_t *masks = NULL;
    int n_bad = 0, count = tccl_profile_tables(profile, &masks, &err);
    if (count < 0)
        return profile_complain(&err);
    for (int i = 0; i < count; i++) {
        struct tccl_error why = {0};
        struct row row;
        const struct tccl_table *table = tccl_profile_table(profile, masks[i], &why);
        if (!table) {
            n_bad += profile_complain(&why);
            continue;
        }
        if (describe(table, tccl_profile_machine(profile), &row) != 0) {
            tccl_fail(&err, "out of memory");
            return n_bad + profile_complain(&err);
        }
        if (list)
            json_array_append_new(list, row_to_json(&row));
        else {
            printf("%-10s", row.gpus);
            print_number(row.ring, 0, 10);
            print_number(row.ring_set, row.ring_rings, 11);
            print_number(row.baseline_ring, 0, 10);
            print_number(row.chain, 0, 10);
            print_number(row.chain_set, row.chain_rings, 11);
            print_number(row.baseline_chain, 0, 10);
            printf(" %5.1f%% %9ld %5ld/%-5ld %s\n", row.gap * 100, row.measured, row.proven,
                   row.pairs, row.best);
        }
    }
    return n_bad;
}

static int show_json(struct tccl_profile *profile)
{
    json_t *rows = json_array();
    each_row(profile, rows);
    return profile_print(json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:o}", "id", tccl_profile_id(profile), "name",
        tccl_profile_machine(profile)->name, "source", tccl_profile_source(profile), "folder",
        tccl_profile_folder(profile), "loads", (json_int_t)count_sets(profile), "last_measured",
        (json_int_t)tccl_profile_time(profile), "machine",
        tccl_machine_to_json(tccl_profile_machine(profile)), "tables", rows));
}

static int show_text(struct tccl_profile *profile)
{
    const struct tccl_machine *machine = tccl_profile_machine(profile);
    long sets = count_sets(profile);
    char age[AGE_TEXT];
    format_age(tccl_profile_time(profile), age);
    printf("Machine  %s\nId       %s\nSource   %s\nFolder   %s\nLoads    %ld\nAge      %s\n",
           machine->name, tccl_profile_id(profile), tccl_profile_source(profile),
           tccl_profile_folder(profile), sets, age);
    tccl_print_machine(stdout, machine, NULL);
    printf("\n%-10s %10s %11s %10s %10s %11s %10s %6s %9s %11s %s\n", "GPUS", "RING GB/S",
           "RINGS (N)", "NCCL", "CHAIN", "RINGS (N)", "NCCL", "GAP", "MEASURED", "PROVEN", "BEST");
    each_row(profile, NULL);
    fputs("\nGB/s of the slowest transfer while all run. RING: of jobs on this node alone. CHAIN, "
          "from NIC to\n"
          "NIC: of jobs on several nodes. RINGS: several at once, and how many, where they are "
          "faster.\n"
          "NCCL: its own choice, in place of the ones before it. GAP: the best chain is at most so "
          "much\n"
          "faster than CHAIN. MEASURED: loads (transfers that run at once). PROVEN: pairs of ports "
          "within\n"
          "3 % of their best chain. BEST: CHAIN itself; -w> the GPU writes to the next one, -r> "
          "the next\n"
          "one reads, -mK> through memory K, -g> NIC and GPU directly.\n",
          stdout);
    return 0;
}

static int show_profile(const struct profile_options *options, struct tccl_profile *profile,
                        struct tccl_error *err UNUSED)
{
    return options->json ? show_json(profile) : show_text(profile);
}

static int count_profile(void *context, const char *id UNUSED)
{
    ++*(int *)context;
    return 0;
}

/* Has the cache a profile of this node; where it isn't known what this node is, any profile? An
 * error counts as yes: it is then said by whoever opens the profile. */
static bool has_profile(const struct profile_options *options)
{
    struct tccl_error ignored = {0};
    struct tccl_machine machine;
    char id[TCCL_HASH_HEX], path[PATH_MAX];
    int count = 0;
    if (tccl_machine_read(options->node, &machine, &ignored) != 0)
        return access(options->node, F_OK) == 0 ||
               tccl_cache_list(options->cache, count_profile, &count, &ignored) < 0 || count > 0;
    tccl_machine_id(&machine, id);
    snprintf(path, sizeof(path), "%s/%s", options->cache, id);
    return access(path, F_OK) == 0;
}

/* What is found now; where tccl-profile init wrote here that this node is another machine (cores
 * that stand for GPUs, say), that one. */
static int this_machine(const struct profile_options *options, struct tccl_found *found,
                        struct tccl_error *err)
{
    struct tccl_error ignored = {0};
    struct tccl_machine machine;
    char id[TCCL_HASH_HEX], now[TCCL_HASH_HEX] = "";
    if (tccl_machine_read(options->node, &machine, &ignored) != 0)
        return profile_machine(options, found, err);
    tccl_machine_id(&machine, id);
    if (profile_machine(options, found, &ignored) == 0)
        tccl_machine_id(&found->site.machine, now);
    if (strcmp(id, now) == 0)
        return 0;
    profile_machine_only(&machine, found);
    snprintf(found->notes[found->n_notes++], sizeof(found->notes[0]),
             "this is what tccl-profile init wrote; %s",
             now[0] ? "what is found now differs: see tccl-profile show --backend cuda"
                    : "no GPU is found now");
    return 0;
}

int profile_show(const struct profile_options *options, struct tccl_error *err)
{
    bool named = options->topology || options->model || options->backend;
    struct tccl_found found;
    if (options->profile && named)
        return tccl_fail(err, "show: a profile, or --topology, --model or --backend; not both");
    if (options->profile || (!named && has_profile(options)))
        return profile_with(options, show_profile, err);
    if ((named ? profile_machine : this_machine)(options, &found, err) < 0)
        return -1;
    /* A machine of which there is no profile, or that is only looked at. */
    const char *hint =
        named ? NULL : "No profile of this machine yet: make one with tccl-profile run";
    const struct tccl_machine *machine = &found.site.machine;
    char id[TCCL_HASH_HEX], marks[TCCL_MARKS_TEXT];
    if (options->json)
        return profile_print(tccl_found_to_json(&found));
    tccl_machine_id(machine, id);
    tccl_format_marks(found.marks, marks);
    printf("Machine  %s\nId       %s\n", machine->name, id);
    if (found.driver[0])
        printf("Driver   %s\n", found.driver);
    if (marks[0])
        printf("Marks    %s: what is measured now is not served to jobs\n", marks);
    tccl_print_machine(stdout, machine, &found);
    for (int i = 0; i < found.n_notes; i++)
        printf("%s%s\n", i == 0 ? "\nNotes\n  " : "  ", found.notes[i]);
    if (hint)
        printf("\n%s\n", hint);
    return 0;
}

struct listing {
    const struct profile_options *options;
    json_t *list;
    int n_bad;
};

static void list_profile(struct listing *listing, const struct tccl_profile *profile)
{
    struct tccl_error ignored = {0};
    cleanup_free uint32_t *masks = NULL;
    char age[AGE_TEXT];
    long sets = count_sets(profile);
    int tables = tccl_profile_tables(profile, &masks, &ignored);
    format_age(tccl_profile_time(profile), age);
    if (listing->options->json)
        json_array_append_new(
            listing->list,
            json_pack("{s:s, s:s, s:s, s:I, s:i, s:I}", "id", tccl_profile_id(profile), "name",
                      tccl_profile_machine(profile)->name, "source", tccl_profile_source(profile),
                      "loads", (json_int_t)sets, "tables", tables, "last_measured",
                      (json_int_t)tccl_profile_time(profile)));
    else
        printf("%-32s %-24s %-13s %8ld %6d %8s\n", tccl_profile_id(profile),
               tccl_profile_machine(profile)->name, tccl_profile_source(profile), sets, tables,
               age);
}

static int list_one(void *context, const char *id)
{
    struct listing *listing = context;
    struct tccl_profile *profile;
    struct tccl_error err = {0};
    if (tccl_profile_open(listing->options->cache, id, &profile, &err) != 0) {
        listing->n_bad += profile_complain(&err);
        return 0;
    }
    list_profile(listing, profile);
    tccl_profile_close(profile);
    return 0;
}

int profile_list(const struct profile_options *options, struct tccl_error *err)
{
    struct listing listing = {.options = options, .list = json_array()};
    if (!options->json)
        printf("%-32s %-24s %-13s %8s %6s %8s\n", "ID", "NAME", "SOURCE", "SETS", "TABLES", "AGE");
    if (tccl_cache_list(options->cache, list_one, &listing, err) < 0)
        listing.n_bad += profile_complain(err);
    if (options->json)
        profile_print(json_pack("{s:o}", "profiles", listing.list));
    else
        json_decref(listing.list);
    return listing.n_bad > 0 ? 1 : 0;
}
