/* profile-run.c: tccl-profile run: measures, and searches chains, until it is done, stopped or out
 * of time. */
#include <math.h>
#include <signal.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "command/profile-command.h"
#include "discover/discover.h"
#include "fill/fill.h"

enum { EXIT_INTERRUPTED = 130, USUAL_BUDGET = 5000 };

static volatile sig_atomic_t interrupted;
static bool on_hardware;

static void interrupt(int number UNUSED)
{
    interrupted = 1;
}

bool profile_interrupted(void)
{
    return interrupted;
}

static int follow(void *context, const struct tccl_fill_progress *progress)
{
    struct tccl_progress_line *line = context;
    tccl_progress_show(line, progress);
    if (on_hardware)
        profile_watch_links(NULL);
    return interrupted;
}

static json_t *summary(const struct tccl_profile *profile, const struct tccl_fill_progress *end,
                       int rc, const struct tccl_error *err)
{
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, "
        "s:b}",
        "id", tccl_profile_id(profile), "folder", tccl_profile_folder(profile), "source",
        tccl_profile_source(profile), "conditions", tccl_profile_conditions(profile), "tables",
        end->done, "tables_total", end->total, "tables_before", end->kept, "proven", end->proven,
        "partial", end->partial, "measured", (json_int_t)end->measured, "measured_before",
        (json_int_t)end->known, "failed", (json_int_t)end->failed, "noisy", (json_int_t)end->noisy,
        "measured_for_rings", (json_int_t)end->sets, "shared", (json_int_t)end->shared, "pruned",
        (json_int_t)end->pruned, "interrupted", rc == TCCL_FILL_STOPPED, "time_over",
        rc == TCCL_FILL_TIME);
    if (json && end->phase == TCCL_FILL_TOGETHER) {
        json_object_set_new(json, "together", json_integer(end->together));
        json_object_set_new(json, "together_before", json_integer(end->together_before));
        json_object_set_new(json, "together_total", json_integer(end->together_total));
        json_object_set_new(json, "together_foretold", json_integer(end->foretold));
    }
    if (json && end->faster > 0) {
        json_object_set_new(json, "faster_with_more", json_integer(end->faster));
        json_object_set_new(json, "faster_most", json_string(end->most.text));
    }
    if (json && end->why.text[0])
        json_object_set_new(json, "failed_last", json_string(end->why.text));
    if (json && rc < 0)
        json_object_set_new(json, "error", json_string(err->text));
    return json;
}

/* Said before anything is measured: what won't be. */
static void note_nics(const struct profile_options *options, const struct tccl_backend *backend)
{
    const struct tccl_set nic = {1,
                                 {tccl_transfer_make((struct tccl_device){TCCL_NIC, 0}, false,
                                                     (struct tccl_device){TCCL_MEMORY, 0})}};
    struct tccl_error why = {0};
    if (options->quiet || backend->machine->n_nics == 0 ||
        tccl_backend_can(backend, &nic, &why) == 0)
        return;
    fprintf(stderr, "tccl: note: %s; chains are for jobs of one node only\n", why.text);
}

static int fill(const struct profile_options *options, struct tccl_backend *backend,
                struct tccl_profile *profile, struct tccl_fill_options *what,
                struct tccl_error *err)
{
    struct tccl_progress_line line;
    struct tccl_fill_progress end;
    char note[256 + 2 * TCCL_MARKS_TEXT];
    what->context = &line;
    note_nics(options, backend);
    tccl_progress_begin(&line, options->quiet ? NULL : stderr, backend->machine->name);
    on_hardware = strcmp(backend->name, "cuda") == 0;
    int rc = tccl_fill(backend, profile, what, &end, err);
    if (rc == TCCL_FILL_DONE && what->splits) { /* with the time that the chains left */
        if (what->seconds > 0)
            what->seconds = fmax(what->seconds - (tccl_seconds() - line.begun), 1e-3);
        rc = tccl_fill_together(backend, profile, what, &end, err);
    }
    /* Said behind the summary: what was measured together, and chains that nobody gets. */
    size_t size = sizeof(note);
    char words[TCCL_MARKS_TEXT];
    size_t used = 0;
    note[0] = '\0';
    if (end.phase == TCCL_FILL_TOGETHER)
        used = (size_t)snprintf(
            note, size,
            "; %d of %d loads of neighbours measured (%d before), %d foretold, %d unknown",
            end.together, end.together_total, end.together_before, end.foretold,
            end.together_total - end.together - end.foretold);
    tccl_format_marks(backend->marks, words);
    if (words[0] && used < size)
        snprintf(note + used, size - used,
                 "; what is measured here is marked (%s): no chains are written", words);
    tccl_progress_end(&line, &end, rc, note);
    if (on_hardware && backend->marks == 0 && rc >= 0)
        profile_note_verdict(options, profile, "measured", 1);
    if (on_hardware && end.measured > 0)
        profile_keep_links(profile);
    if (!options->quiet && rc >= 0) {
        profile_say_links(backend->machine, stderr);
        profile_say_odd(profile, stderr);
    }
    if (options->json && profile_print(summary(profile, &end, rc, err)) != 0)
        return tccl_fail(err, "the summary can't be written");
    return rc;
}

/* What to measure: the chains of sets of GPUs, and what runs side by side. */
static int fill_sets(const struct profile_options *options, struct tccl_backend *backend,
                     struct tccl_profile *profile, struct tccl_error *err)
{
    struct tccl_fill_options what = {.gap = options->gap,
                                     .budget = options->budget < 0 ? USUAL_BUDGET : options->budget,
                                     .seconds = options->seconds,
                                     .pairs = options->pairs,
                                     .progress = follow};
    cleanup_free uint32_t *sets = NULL;
    cleanup_free struct tccl_split *splits = NULL;
    int n_gpus = backend->machine->n_gpus;
    if (options->neighbours) {
        what.n_splits = tccl_splits_parse(options->splits, n_gpus, &splits, err);
        if (what.n_splits < 0)
            return -1;
        what.n_sets = tccl_splits_sets(splits, what.n_splits, &sets);
        if (what.n_sets < 0)
            return tccl_fail(err, "out of memory");
    } else {
        what.n_sets = tccl_gpusets_parse(options->gpus ? options->gpus : "all", n_gpus, &sets, err);
        if (what.n_sets < 0)
            return -1;
        what.all = !options->gpus || strcmp(options->gpus, "all") == 0;
    }
    what.sets = sets;
    what.splits = splits;
    if (tccl_profile_claim(profile, backend->conditions, err) != 0)
        return -1;
    return fill(options, backend, profile, &what, err);
}

int profile_run(const struct profile_options *options, struct tccl_error *err)
{
    struct tccl_backend *backend;
    struct tccl_profile *profile;
    /* The first signal ends the run in order, a second one at once. */
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESETHAND | SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    if (options->splits && !options->neighbours)
        return tccl_fail(err, "--splits goes with run --neighbours");
    if (options->neighbours && (options->check || options->gpus))
        return tccl_fail(err,
                         "--neighbours doesn't go with %s: the sets of GPUs are those of "
                         "--splits",
                         options->check ? "--check" : "--gpus");
    if (options->check)
        return profile_with(options, profile_check, err);
    if (profile_open_backend(options, NULL, &backend, err) != 0)
        return -1;
    int rc = tccl_profile_create(options->cache, backend->machine, backend->name, backend->model,
                                 &profile, err);
    if (rc == 0) {
        rc = fill_sets(options, backend, profile, err);
        tccl_profile_close(profile);
    }
    tccl_backend_close(backend);
    return rc < 0 ? -1 : rc == TCCL_FILL_STOPPED ? EXIT_INTERRUPTED : 0;
}
