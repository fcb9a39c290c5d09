/* profile-gres.c: tccl-profile gres: lines for gres.conf, by which Slurm chooses the GPUs of jobs
 * as their bandwidths were measured. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/command.h"
#include "command/profile-command.h"
#include "discover/discover-topology.h"
#include "report/report.h"

enum { ANSWER_MS = 5000 };

struct lines {
    const struct tccl_machine *machine;
    char version[16]; /* "22.05" */
    bool has_links;
    int links[TCCL_MAX_GPUS][TCCL_MAX_GPUS];
    bool has_cores;
    char cores[TCCL_MAX_GPUS][TCCL_CORES_TEXT];
};

static void remark(const char *what, const struct tccl_error *why)
{
    fprintf(stderr, "tccl: %s left out: %s\n", what, why->text);
}

/* "22.05", or more behind it. */
static int parse_version(const char *text, int *year, int *month)
{
    return sscanf(text, "%2d.%2d", year, month) == 2 && *year >= 20 && *month >= 1 && *month <= 12
               ? 0
               : -1;
}

/* The version that --slurm names, or that of the slurmd here. */
static int find_version(const struct profile_options *options, int *year, int *month,
                        struct tccl_error *err)
{
    static struct tccl_command_output output;
    const char *const ask[] = {"slurmd", "-V", NULL};
    if (options->slurm)
        return parse_version(options->slurm, year, month) == 0
                   ? 0
                   : tccl_fail(err, "--slurm %.40s: a version such as 22.05 is wanted",
                               options->slurm);
    if (tccl_command_run(ask, NULL, tccl_now_ms() + ANSWER_MS, &output) == 0) {
        const char *number = output.out + strcspn(output.out, "0123456789");
        if (parse_version(number, year, month) == 0)
            return 0;
    }
    return tccl_fail(err, "the version of Slurm is not known (slurmd -V): name it with --slurm");
}

/* Tables that the profile lacks are made by its model, which may take seconds. */
static void show_progress(void *context UNUSED, int done, int total)
{
    fprintf(stderr, "\rpairs of GPUs: %d of %d\033[K", done, total);
}

static int find_links(struct tccl_profile *profile, struct lines *lines, struct tccl_error *err)
{
    struct tccl_error why = {""};
    bool shown = isatty(STDERR_FILENO);
    int rc =
        tccl_links_from_profile(profile, shown ? show_progress : NULL, NULL, lines->links, &why);
    if (shown)
        fputs("\r\033[K", stderr);
    lines->has_links = rc == 0;
    if (rc > 0)
        remark("Links=", &why);
    return rc < 0 ? tccl_fail(err, "%s", why.text) : 0;
}

int profile_gres(const struct profile_options *options, struct tccl_profile *profile,
                 struct tccl_error *err)
{
    static struct lines lines;
    int year, month;
    lines = (struct lines){.machine = tccl_profile_machine(profile)};
    for (int i = 0; i < lines.machine->n_gpus; i++)
        if (lines.machine->gpus[i].minor < 0)
            return tccl_fail(err, "the device file of GPU %d is not known: profile this node again",
                             i);
    if (find_version(options, &year, &month, err) < 0)
        return -1;
    snprintf(lines.version, sizeof(lines.version), "%02d.%02d", year, month);
    bool serve = tccl_links_serve(year, month);
    if (serve && find_links(profile, &lines, err) < 0)
        return -1;
    /* All GPUs have cores, or none: Slurm wants it so. */
    struct tccl_error why = {""};
    hwloc_topology_t topology;
    int rc = options->topology ? tccl_topology_recorded(options->topology, &topology, &why)
                               : tccl_topology_live(&topology, &why);
    for (int i = 0; rc == 0 && i < lines.machine->n_gpus; i++)
        if (tccl_gpu_cores(topology, lines.machine, i, lines.cores[i], &why) < 0) {
            hwloc_topology_destroy(topology);
            rc = -1;
        }
    lines.has_cores = rc == 0;
    if (rc == 0)
        hwloc_topology_destroy(topology);
    else
        remark("Cores=", &why);
    printf("# %s, for Slurm %s, by tccl-profile gres. Add Type= as in slurm.conf, and NodeName=.\n"
           "# Not with AutoDetect=nvml, which drops GPUs whose Cores or Links are not its own.\n",
           lines.machine->name, lines.version);
    if (!serve)
        puts("# Without Links=: this Slurm takes the fewest for --gres=gpu:K, the most for "
             "--gpus=K.");
    for (int gpu = 0; gpu < lines.machine->n_gpus; gpu++) {
        printf("Name=gpu File=/dev/nvidia%d", lines.machine->gpus[gpu].minor);
        if (lines.has_cores)
            printf(" Cores=%s", lines.cores[gpu]);
        for (int i = 0; lines.has_links && i < lines.machine->n_gpus; i++)
            printf("%s%d", i == 0 ? " Links=" : ",", lines.links[gpu][i]);
        putchar('\n');
    }
    return 0;
}
