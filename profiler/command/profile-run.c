/* profile-run.c: tccl-profile run: measures, and searches chains, until it is done, stopped or out
 * of time. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>

#include "base/cleanup.h"
#include "command/profile-command.h"
#include "fill/gpusets.h"
#include "fill/progress.h"

enum { EXIT_INTERRUPTED = 130, USUAL_BUDGET = 5000 };

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* The first signal ends the run in order, a second one at once. */
void profile_catch_signals(void)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESETHAND | SA_RESTART};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

bool profile_interrupted(void)
{
    return interrupted;
}

static int follow(void *context, const struct tccl_fill_progress *progress)
{
    tccl_progress_show(context, progress);
    return interrupted;
}

static json_t *summary(const struct tccl_profile *profile, const struct tccl_fill_progress *end,
                       int rc, const struct tccl_error *err)
{
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b}",
        "id", tccl_profile_id(profile), "folder", tccl_profile_folder(profile), "source",
        tccl_profile_source(profile), "conditions", tccl_profile_conditions(profile), "tables",
        end->done, "tables_total", end->total, "tables_before", end->kept, "proven", end->proven,
        "partial", end->partial, "measured", (json_int_t)end->measured, "measured_before",
        (json_int_t)end->known, "failed", (json_int_t)end->failed, "noisy", (json_int_t)end->noisy,
        "shared", (json_int_t)end->shared, "pruned", (json_int_t)end->pruned, "interrupted",
        rc == TCCL_FILL_STOPPED, "time_over", rc == TCCL_FILL_TIME);

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

    if (options->quiet || tccl_backend_machine(backend)->n_nics == 0 ||
        tccl_backend_can(backend, &nic, &why) == 0)
        return;
    fprintf(stderr, "tccl: note: %s; chains are for jobs of one node only\n", why.text);
}

/* Said behind the summary: chains that nobody gets. */
static void note_marks(unsigned marks, char *text, size_t size)
{
    char words[PROFILE_MARKS];

    text[0] = '\0';
    profile_marks_text(marks, words);
    if (words[0])
        snprintf(text, size, "; measured under %s: no chains are written", words);
}

static int fill(const struct profile_options *options, struct tccl_backend *backend,
                struct tccl_profile *profile, const uint32_t *sets, int n_sets,
                struct tccl_error *err)
{
    struct tccl_progress_line line;
    struct tccl_fill_progress end;
    char note[2 * PROFILE_MARKS];
    const struct tccl_fill_options what = {.sets = sets,
                                           .n_sets = n_sets,
                                           .gap = options->gap,
                                           .budget =
                                               options->budget < 0 ? USUAL_BUDGET : options->budget,
                                           .seconds = options->seconds,
                                           .pairs = options->pairs,
                                           .progress = follow,
                                           .context = &line};

    note_nics(options, backend);
    tccl_progress_begin(&line, options->quiet ? NULL : stderr, tccl_backend_machine(backend)->name);
    int rc = tccl_fill(backend, profile, &what, &end, err);
    note_marks(tccl_backend_marks(backend), note, sizeof(note));
    tccl_progress_end(&line, &end, rc, note);
    if (options->json && profile_print(summary(profile, &end, rc, err)) != 0)
        return tccl_fail(err, "the summary can't be written");
    return rc;
}

static int fill_sets(const struct profile_options *options, struct tccl_backend *backend,
                     struct tccl_profile *profile, struct tccl_error *err)
{
    cleanup_free uint32_t *sets = NULL;
    int n_sets = tccl_gpusets_parse(options->gpus ? options->gpus : "all",
                                    tccl_backend_machine(backend)->n_gpus, &sets, err);

    if (n_sets < 0 || tccl_profile_claim(profile, tccl_backend_conditions(backend), err) != 0)
        return -1;
    return fill(options, backend, profile, sets, n_sets, err);
}

static int run(const struct profile_options *options, struct tccl_error *err)
{
    struct tccl_backend *backend;
    struct tccl_profile *profile;

    if (profile_open_backend(options, NULL, &backend, err) != 0)
        return -1;
    int rc = tccl_profile_create(options->cache, tccl_backend_machine(backend),
                                 tccl_backend_source(backend), tccl_backend_model(backend),
                                 &profile, err);
    if (rc == 0) {
        rc = fill_sets(options, backend, profile, err);
        tccl_profile_close(profile);
    }
    tccl_backend_close(backend);
    return rc;
}

int profile_run(const struct profile_options *options)
{
    struct tccl_error err = {0};

    profile_catch_signals();
    if (options->check)
        return profile_check(options);
    int rc = run(options, &err);
    if (rc < 0)
        return profile_complain(&err);
    return rc == TCCL_FILL_STOPPED ? EXIT_INTERRUPTED : 0;
}
