/* tccl-run.c: tccl-run: a command on one machine, without Slurm, with the ring that a step there
 * would get. Whatever is in the way of a ring, the command is run, and by exec: its process is the
 * one that the caller has started. See tccl-run.1. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <getopt.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fileio.h"
#include "base/options.h"
#include "chain/nccl-version.h"
#include "client/client.h"
#include "client/frame.h"
#include "client/policy.h"
#include "client/users.h"
#include "plugin/plugin.h"
#include "records/records.h"
#include "run/run.h"

enum {
    DRIVER_MS = 10000,  /* for NVML, which starts the driver where nothing keeps it */
    FINDINGS_MS = 3000, /* the driver is there by now */
    STORE_MS = 2000,    /* for the file of records, */
    START_MS = 5000,    /* for a tccld, */
    PLAN_MS = 3000,     /* and for its plan: tables are read, nothing is searched */
    LOOK_MS = 1000,     /* for the NCCL of the command's environment */
    EXIT_USAGE = 2,
    EXIT_CANT = 126,
    EXIT_NOT_FOUND = 127,
};

extern char **environ;

struct options {
    const char *config, *records, *tccld;
    bool quiet, no_records;
};

static const struct tccl_command commands[] = {
    {"",
     "Usage: tccl-run [OPTION]... COMMAND [ARGUMENT]...\n"
     "Run a program on this machine, without Slurm, with the ring that was measured as\n"
     "best for its GPUs: tccl-run torchrun train.py\n"
     "COMMAND starts the ranks of one machine. One line on stderr says which ring, or\n"
     "why none; COMMAND is run in any case, and its exit status is that of tccl-run.\n\n",
     "\nGPUs: CUDA_VISIBLE_DEVICES, else all. Measured once by the user:\n"
     "  tccl-profile init && tccl-profile run\n"
     "In the environment, TCCL=off: COMMAND as it is; TCCL=auto: a ring, or no line.\n"
     "Exit status 126, 127: COMMAND can't be run, is not found. See tccl-run(1).\n"}};

static const struct tccl_option option_table[] = {
    {"quiet", 'q', 0, TCCL_OPTION_FLAG, offsetof(struct options, quiet), NULL,
     "  -q, --quiet           no line\n"},
    {"records", 0, 0, TCCL_OPTION_TEXT, offsetof(struct options, records), "@file",
     "      --records FILE    keep the record in FILE (for tcclacct -f), instead of\n"
     "                        ~/.local/state/tccl/records.db\n"},
    {"no-records", 0, 0, TCCL_OPTION_FLAG, offsetof(struct options, no_records), NULL,
     "      --no-records      keep none\n"},
    {"config", 'f', 0, TCCL_OPTION_TEXT, offsetof(struct options, config), "@file",
     "  -f, --config FILE     the site's configuration, instead of\n"
     "                        " TCCL_SYSCONFDIR "/slurm/tccl.conf\n"},
    {"tccld", 0, 0, TCCL_OPTION_TEXT, offsetof(struct options, tccld), "@file",
     "      --tccld FILE      that program, instead of the installed one\n"},
    {"help", 'h', 0, TCCL_OPTION_HELP, 0, NULL,
     "  -h, --help            show this help and exit\n"},
    {"version", 'V', 0, TCCL_OPTION_VERSION, 0, NULL,
     "  -V, --version         show the version and exit\n"},
};

static const struct tccl_program program = {.name = "tccl-run",
                                            .commands = commands,
                                            .n_commands = 1,
                                            .options = option_table,
                                            .n_options =
                                                sizeof(option_table) / sizeof(*option_table),
                                            .stops = true};

/* What is known of the run, in the order in which it is found out. */
struct run {
    const struct options *options;
    char **command;
    enum tccl_mode mode;
    struct tccl_conf conf;
    struct run_gpus gpus;
    struct run_profile profile;
    const char *shim;       /* NULL: none that this user can read */
    char records[PATH_MAX]; /* "": none is kept */
    char folder[RUN_FOLDER];
    struct tccl_step step;
    struct tccl_outcome plan;
};

/* ---- words ---- */

static void say(const struct run *run, const char *line)
{
    if (!run->options->quiet)
        fprintf(stderr, "%s\n", line);
}

static int no_ring(const struct run *run, const char *why)
{
    char line[NOTICE_SIZE];
    snprintf(line, sizeof(line), "tccl: no ring: %.940s (NCCL's own choice is used)", why);
    notice_clean(line);
    if (run->mode >= TCCL_MODE_ON)
        say(run, line);
    return -1;
}

/* ---- programs and folders beside this one ---- */

/* FOLDER/NAME, seen from the folder that this program is in. Returns whether it is there. */
static bool find_beside(const char *name, char path[static PATH_MAX])
{
    char own[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", own, sizeof(own) - 1);
    char *slash = size > 0 ? memrchr(own, '/', (size_t)size) : NULL;
    if (!slash)
        return false;
    *slash = '\0';
    return snprintf(path, PATH_MAX, "%s/%s", own, name) < PATH_MAX && access(path, R_OK) == 0;
}

/* The installed one, or that of a tar, which may be unpacked anywhere. */
static int find_shim(struct run *run)
{
    char path[PATH_MAX], text[PATH_MAX + 128];
    const char *why;
    preload_simplify(&run->conf, PRELOAD_LOADERS);
    if (!preload_readable(run->conf.shim) && find_beside("../lib/tccl/libtccl-nccl.so", path) &&
        realpath(path, run->conf.shim) == NULL)
        return 0;
    run->shim = preload_choose(&run->conf, environ, false, &why);
    if (run->shim || !preload_cut(run->conf.shim))
        return 0;
    snprintf(text, sizeof(text),
             "%s: its path has a space or a colon, which LD_PRELOAD can't have: move it",
             run->conf.shim);
    return no_ring(run, text);
}

/* ---- what is there ---- */

static void look_at_gpus(const void *what UNUSED, void *word)
{
    const char *order = getenv("CUDA_DEVICE_ORDER");
    run_gpus_read(getenv("CUDA_VISIBLE_DEVICES"), order && strcmp(order, "PCI_BUS_ID") == 0, word);
}

static int find_gpus(struct run *run)
{
    struct tccl_error err = {0};
    int rc = child_word(look_at_gpus, NULL, &run->gpus, sizeof(run->gpus), DRIVER_MS, &err);
    if (rc != 0)
        return no_ring(run, rc < 0 ? err.text : "NVIDIA's driver doesn't answer (see dmesg)");
    if (*run->gpus.why)
        return no_ring(run, run->gpus.why);
    if (run->gpus.n == 0)
        return no_ring(run, getenv("CUDA_VISIBLE_DEVICES") ? "CUDA_VISIBLE_DEVICES shows no GPU"
                                                           : "no GPU on this machine");
    if (run->gpus.n > 1)
        return 0;
    if (run->mode >= TCCL_MODE_ON)
        say(run, "tccl: nothing to do: one GPU");
    return -1;
}

struct unmeasured {
    struct run_findings found;
    int64_t version; /* of the NCCL that the command will load; 0: not known */
    char rings[RUN_OWN];
};
_Static_assert(sizeof(struct unmeasured) <= PIPE_BUF, "it is a child's word");

static void look_at_machine(const void *what, void *word)
{
    const struct run *run = what;
    struct unmeasured *own = word;
    struct nccl_look look;
    run_findings_read(&own->found);
    nccl_look(run->command[0], environ, &look);
    own->version = look.n > 0 ? look.found[0].version : 0;
    run_own_read(&run->gpus, own->version, own->rings);
}

static int unmeasured(const struct run *run)
{
    struct unmeasured own = {.version = 0};
    char text[NOTICE_SIZE + 160], more[400] = "", version[TCCL_NCCL_TEXT] = "NCCL", rings[660] = "";
    if (run->mode < TCCL_MODE_ON || run->options->quiet)
        return -1; /* nobody would read it */
    child_word(look_at_machine, run, &own, sizeof(own), FINDINGS_MS, NULL);
    if (own.found.count > 0)
        snprintf(more, sizeof(more), "; tccl-check machine has %d finding%s: %s", own.found.count,
                 own.found.count == 1 ? "" : "s", own.found.worst);
    if (own.version)
        tccl_nccl_format(own.version, version);
    if (*own.rings)
        snprintf(rings, sizeof(rings), "; without NVLink %s by itself builds %s", version,
                 own.rings);
    snprintf(text, sizeof(text),
             "nothing was measured on this machine with these GPUs: tccl-profile init && "
             "tccl-profile run --budget 10m does%s%s",
             rings, more);
    return no_ring(run, text);
}

static int find_profile(struct run *run)
{
    char own[PATH_MAX];
    const char *caches[] = {run->conf.cache_dir, NULL, NULL};
    if (tccl_user_cache(own) == 0) {
        caches[0] = own;
        caches[1] = run->conf.cache_dir;
    }
    if (run_profile_find(caches, &run->gpus, &run->profile) == 0)
        return 0;
    return unmeasured(run);
}

/* Can the record be kept? Made here, so that who has run the command hears of it. */
static void try_store(const void *what, void *word)
{
    const struct run *run = what;
    struct tccl_error *err = word;
    struct tccl_records *records;
    char folder[PATH_MAX];
    strcpy(folder, run->records);
    *strrchr(folder, '/') = '\0';
    if (!run->options->records && tccl_make_folder(folder, 0700, err) != 0)
        return;
    if (tccl_records_open(run->records, NULL, &records, err) == 0)
        tccl_records_close(records);
}

/* Of a name relative to the current folder, which the keeper leaves. */
static int name_records(struct run *run)
{
    const char *given = run->options->records;
    char folder[PATH_MAX];
    if (!given)
        return tccl_user_state(folder) == 0 &&
                       snprintf(run->records, PATH_MAX, "%s/records.db", folder) < PATH_MAX
                   ? 0
                   : -1;
    if (*given == '/')
        return snprintf(run->records, PATH_MAX, "%s", given) < PATH_MAX ? 0 : -1;
    return getcwd(folder, sizeof(folder)) &&
                   snprintf(run->records, PATH_MAX, "%s/%s", folder, given) < PATH_MAX
               ? 0
               : -1;
}

static void find_records(struct run *run)
{
    struct tccl_error err = {0}, why = {0};
    char line[NOTICE_SIZE];
    if (run->options->no_records)
        return;
    if (name_records(run) != 0)
        tccl_fail(&why, "no home folder, and no --records FILE");
    else if (child_word(try_store, run, &why, sizeof(why), STORE_MS, &err) > 0)
        tccl_fail(&why, "%s: its file system does not answer: give another file with --records",
                  run->records);
    else if (*err.text)
        why = err;
    if (!*why.text)
        return;
    run->records[0] = '\0';
    snprintf(line, sizeof(line), "tccl: no record of this run: %s", why.text);
    notice_clean(line);
    say(run, line);
}

/* ---- the step ---- */

/* "Key=PATH" with what tccl.conf takes for more than it is. Returns 0, or -1: it can't be written
 * there. */
static int put_path(FILE *out, const char *key, const char *path)
{
    if (strpbrk(path, "\n\r") || strstr(path, " #") || strstr(path, " ;"))
        return -1;
    fprintf(out, "%s=", key);
    for (; *path; path++)
        fprintf(out, *path == '%' ? "%%%%" : "%c", *path);
    fputc('\n', out);
    return 0;
}

static char *lines_of_conf(const struct run *run)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    int rc = put_path(out, "CacheDir", run->profile.cache) |
             put_path(out, "Machine", run->profile.machine);
    fprintf(out, "MaxRings=%d\nAchieved=%s\n", run->conf.max_rings,
            run->conf.achieved ? "on" : "off");
    if (fclose(out) == 0 && rc == 0)
        return text;
    free(text);
    return NULL;
}

static int start_keeper(struct run *run)
{
    char tccld[PATH_MAX];
    struct tccl_error err = {0};
    cleanup_free char *lines = lines_of_conf(run);
    struct run_keeping keeping = {.tccld = tccld,
                                  .conf = lines,
                                  .node = run->conf.node,
                                  .records = *run->records ? run->records : NULL,
                                  .key = run->step.key};
    if (!lines)
        return no_ring(run, "the path of the profile has characters that tccl.conf can't have");
    if (run->options->tccld ? !realpath(run->options->tccld, tccld)
                            : !find_beside("../sbin/tccld", tccld) && !find_beside("tccld", tccld))
        return no_ring(run, "the program tccld is not installed beside tccl-run");
    if (run_keeper_start(&keeping, START_MS, run->folder, &err) != 0)
        return no_ring(run, err.text);
    return 0;
}

/* JOIN and PLAN, as Slurm's plugin does. The connection shows tccld this process, which becomes the
 * command. */
static int join(struct run *run)
{
    struct tccl_error err = {0};
    char path[RUN_FOLDER + 8];
    const char *node = run->conf.node;
    int64_t deadline = tccl_now_ms() + PLAN_MS;
    snprintf(path, sizeof(path), "%s/socket", run->folder);
    cleanup_close int fd = tccl_frame_connect(path, deadline, &err);
    int rc = fd >= 0 ? tccl_step_set_nodes(&run->step, &node, 1) : -1;
    if (rc == 0)
        rc = tccl_client_join(fd, &run->step, PLAN_MS, &err);
    if (rc == 0)
        rc = tccl_client_wait_plan(fd, tccl_left_ms(deadline), &run->plan, &err);
    if (rc > 0)
        tccl_fail(&err, "tccld gave no answer within %d ms", PLAN_MS);
    tccl_fail(&err, "out of memory");
    return rc == 0 ? 0 : no_ring(run, err.text);
}

/* ---- the command ---- */

static void set_environment(struct run *run)
{
    struct job_env_edits edits = {.count = 0};
    const char *shim = run->shim;
    if (!shim && (run->plan.state == TCCL_STATE_PLANNED || run->plan.path)) {
        no_ring(run, "this user can't read the shim, the file of Shim= in tccl.conf");
        return;
    }
    if (job_env_announce(environ, &run->plan, shim, &edits) == 0 && shim)
        job_env_contain(environ, run->conf.container_shim, &edits);
    for (int i = 0; i < edits.count && !edits.failed; i++)
        if (edits.list[i].value)
            setenv(edits.list[i].name, edits.list[i].value, 1);
    char line[NOTICE_SIZE];
    if (edits.failed)
        no_ring(run, "out of memory");
    else if (notice_of_plan(run->mode, &run->plan, 1, line))
        say(run, line);
    job_env_edits_clear(&edits);
}

static void prepare(struct run *run)
{
    char why[256];
    bool silent;
    struct tccl_error err = {0};
    if (run_place_refuse(environ, run->command, why, sizeof(why), &silent)) {
        if (!silent)
            no_ring(run, why);
        return;
    }
    if (tccl_conf_read(tccl_conf_tool_path(run->options->config), NULL, &run->conf, &err) != 0) {
        no_ring(run, err.text);
        return;
    }
    if (find_gpus(run) != 0 || find_profile(run) != 0 || find_shim(run) != 0)
        return;
    struct tccl_step *step = &run->step;
    const char *name = strrchr(run->command[0], '/');
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    step->key = (struct tccl_step_key){
        .job = job_env_number(environ, "SLURM_JOB_ID", (uint32_t)getpid()),
        .step = job_env_number(environ, "SLURM_STEP_ID", 0),
        .restart = job_env_number(environ, "SLURM_RESTART_COUNT", 0),
        .run = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000};
    snprintf(step->job_name, sizeof(step->job_name), "%s", name ? name + 1 : run->command[0]);
    step->uid = geteuid();
    step->gid = getegid();
    step->mode = run->mode;
    step->timeout_ms = PLAN_MS;
    for (int i = 0; i < run->gpus.n; i++)
        step->gres[step->n_gres++] = run->profile.numbers[i];
    struct nccl_task task = {
        .program = run->command[0], .env = environ, .uid = step->uid, .gid = step->gid};
    nccl_foresee(&task, LOOK_MS, step->foreseen, sizeof(step->foreseen));
    find_records(run);
    if (start_keeper(run) == 0 && join(run) == 0)
        set_environment(run);
}

int main(int argc, char **argv)
{
    struct options options = {0};
    struct tccl_error err = {0};
    int status = tccl_options_read(&program, 0, argc, argv, &options, &err);
    if (status == 0 && optind >= argc)
        status = tccl_usage_fail(&program, 0, &err, "no command");
    if (status < 0)
        fprintf(stderr, "tccl: %s\n", err.text);
    if (status != 0)
        return status < 0 ? EXIT_USAGE : tccl_end_output(0);
    /* What is closed stays so for the command, and no pipe of ours takes its place. */
    for (int fd = 0; fd >= 0 && fd <= STDERR_FILENO;)
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct run *run = calloc(1, sizeof(*run));
    if (run) {
        run->options = &options;
        run->command = argv + optind;
        /* The mode that TCCL= asks for; of a command that starts in any case nothing is required.
         */
        const char *text = getenv("TCCL");
        int mode = text && *text ? tccl_mode_parse(text, NULL) : -1;
        run->mode = mode < 0 || mode == TCCL_MODE_REQUIRE ? TCCL_MODE_ON : (enum tccl_mode)mode;
        if (run->mode != TCCL_MODE_OFF)
            prepare(run);
    }
    execvp(argv[optind], argv + optind);
    int code = errno;
    fprintf(stderr, "tccl: %s: %s\n", argv[optind], code == ENOENT ? "not found" : strerror(code));
    return code == ENOENT ? EXIT_NOT_FOUND : EXIT_CANT;
}
