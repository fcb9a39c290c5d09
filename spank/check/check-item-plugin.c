/* check-item-plugin.c: the items plugin and loaded: the plugin's file, and whether Slurm loads it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if __has_include(<slurm/slurm_version.h>)
#include <slurm/slurm_version.h>
#else
#define SLURM_VERSION_NUMBER 0 /* there is no plugin in this build */
#endif

#include "base/cleanup.h"
#include "base/command.h"
#include "check/check-items.h"

/* Slurm refuses SPANK plugins built for another version; the last of the three numbers may differ.
 */
enum { COMPARED = 0xffff00 };
enum { HELP_MS = 5000, CLOCK_S = 2 /* accuracy of a process's start time */ };

/* The plugin and tccl-check are built together, so the plugin's version is that of tccl-check. */
static void check_file(const char *path, unsigned slurm, const char *written,
                       struct check_result *result)
{
    const unsigned built = SLURM_VERSION_NUMBER;
    char closed[PATH_MAX];
    if (access(path, R_OK) != 0)
        check_say(result, CHECK_FAIL, "%s: %s: %s", path, strerror(errno),
                  errno == ENOENT ? "install it, or correct the path in plugstack.conf"
                                  : "install it again, readable for all users");
    else if (!built)
        check_say(result, CHECK_WARN,
                  "%s: tccl-check is built without Slurm: which one the plugin fits is unknown",
                  path);
    else if (!slurm)
        check_say(result, CHECK_WARN,
                  "%s: tccl-check is built for Slurm %u.%02u; the version here is unknown", path,
                  built >> 16, built >> 8 & 0xff);
    else if ((built & COMPARED) != slurm)
        check_say(
            result, CHECK_FAIL,
            "%s: tccl-check is built for Slurm %u.%02u; a plugin built with it cannot be loaded "
            "by Slurm %s: install the slurm-tccl built for that version",
            path, built >> 16, built >> 8 & 0xff, written);
    else if (!check_open_to_all(path, closed))
        check_say(
            result, CHECK_FAIL,
            "%s is closed to other users, whose srun cannot load the plugin: make it readable for "
            "all (chmod a+rX)",
            closed);
    else
        check_say(result, CHECK_OK, "%s; tccl-check is built for Slurm %u.%02u.%u, fits %s", path,
                  built >> 16, built >> 8 & 0xff, built & 0xff, written);
}

void check_item_plugin(const struct check_site *site, struct check_result *result)
{
    const struct tccl_plugstack *stack = &site->plugstack;
    char path[PATH_MAX], folders[4096] = TCCL_PLUGINDIR, written[CHECK_VERSION];
    const char *name = stack->found ? stack->plugin : "spank_tccl.so";
    unsigned slurm = check_site_version(site, "srun", written);
    if (!slurm)
        slurm = check_site_version(site, "slurmd", written);
    snprintf(path, sizeof(path), "%s", name);
    if (check_site_bare(site)) {
        check_say(result, CHECK_OK, "not needed here: this is AccountingHost, no compute node");
        return;
    }
    if (*name != '/') {
        bool known = check_site_value(site, "PluginDir", folders, sizeof(folders));
        if (!known)
            snprintf(folders, sizeof(folders), "%s", TCCL_PLUGINDIR);
        bool there = tccl_plugstack_locate(name, folders, path);
        if (!there && !stack->found && check_site_fetched(site)) {
            check_say(result, CHECK_OK,
                      "none in PluginDir=%s; which file the plugstack.conf of "
                      "slurmctld names is unknown here",
                      folders);
            return;
        }
        if (!there) {
            check_say(result, CHECK_FAIL,
                      "no %s in PluginDir=%s: install it there, or give its "
                      "full path in plugstack.conf",
                      name, folders);
            return;
        }
    }
    check_file(path, slurm, written, result);
    if (!stack->found && result->level == CHECK_OK)
        check_say(result, CHECK_OK, "but plugstack.conf does not name it");
}

/* ---- loaded ---- */

/* The first line of a program's output that is about the plugin. */
static void find_complaint(const char *text, char *line, size_t size)
{
    *line = '\0';
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        int length = (int)strcspn(at, "\n");
        snprintf(line, size, "%.*s", length, at);
        if (strstr(line, "tccl") || strstr(line, "spank") || strstr(line, "plugin"))
            return;
    }
    *line = '\0';
}

static void ask_client(const struct check_site *site, struct check_result *result)
{
    static const char *const programs[] = {"srun", "sbatch", "salloc"};
    cleanup_free struct tccl_command_output *output = calloc(1, sizeof(*output));
    int64_t end = check_run_until(site->deadline, HELP_MS);
    char complaint[300];
    for (size_t i = 0; output && i < sizeof(programs) / sizeof(*programs); i++) {
        const char *const ask[] = {programs[i], "--help", NULL};
        if (!tccl_command_exists(programs[i]))
            continue;
        int status = tccl_command_run(ask, NULL, end, output);
        find_complaint(output->err, complaint, sizeof(complaint));
        if (status == TCCL_COMMAND_LATE)
            check_say(result, CHECK_WARN, "%s --help did not finish in time", programs[i]);
        else if (strstr(output->out, "--tccl"))
            check_say(result, CHECK_OK, "%s --help shows --tccl", programs[i]);
        else
            check_say(result, CHECK_FAIL, "%s --help does not show --tccl: %s%s", programs[i],
                      *complaint ? "it says: " : "see the items plugstack and plugin", complaint);
        return;
    }
    check_say(result, CHECK_WARN, "no srun, sbatch or salloc here to ask");
}

static void ask_slurmd(const struct check_site *site, struct check_result *result)
{
    struct tccl_slurmd slurmd;
    struct timespec up = {0};
    check_site_slurmd(site, &slurmd);
    clock_gettime(CLOCK_BOOTTIME, &up);
    time_t started = time(NULL) - (up.tv_sec - (time_t)(slurmd.started / sysconf(_SC_CLK_TCK)));
    if (!slurmd.pid) {
        if (site->known)
            check_say(result, CHECK_WARN, "no slurmd of this node was found%s: start it",
                      geteuid() ? " (as seen by this user)" : "");
        return;
    }
    if (slurmd.replaced)
        check_say(result, CHECK_WARN,
                  "the executable of slurmd (pid %d) was replaced after its start: "
                  "restart slurmd",
                  slurmd.pid);
    if (site->configless) /* each scontrol reconfigure rewrites the copies, so their times mean
                             nothing */
        check_say(result, CHECK_OK, "slurmd (pid %d) runs", slurmd.pid);
    else if (site->plugstack.changed > started + CLOCK_S)
        check_say(result, CHECK_WARN,
                  "plugstack.conf has changed since slurmd (pid %d) was started: restart slurmd",
                  slurmd.pid);
    else
        check_say(result, CHECK_OK,
                  "slurmd (pid %d) was started after the last change of plugstack.conf%s",
                  slurmd.pid,
                  geteuid() ? "; whether its executable was replaced, only root can see" : "");
}

void check_item_loaded(const struct check_site *site, struct check_result *result)
{
    if (check_site_bare(site)) {
        check_say(result, CHECK_OK, "not needed here: this is AccountingHost, no compute node");
        return;
    }
    ask_client(site, result);
    ask_slurmd(site, result);
}
