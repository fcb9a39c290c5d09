/* check-item-slurm.c: the items slurm, node, plugstack, configless and isolation: how Slurm is set
 * up on this node. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check/check-items.h"

enum { FILE_MAX = 1 << 20 };

void check_item_slurm(const struct check_site *site, struct check_result *result)
{
    struct tccl_slurmd other;
    char client[CHECK_VERSION] = "", daemon[CHECK_VERSION] = "";
    unsigned of_client = check_site_version(site, "srun", client);
    unsigned of_daemon = check_site_version(site, "slurmd", daemon);
    if (!of_client && !of_daemon)
        check_say(result, CHECK_FAIL,
                  "neither srun nor slurmd reports its version: install Slurm, or add it to PATH");
    else if (of_client && of_daemon && of_client != of_daemon)
        check_say(result, CHECK_WARN,
                  "srun has version %s, slurmd %s: the plugin cannot fit both: install one version",
                  client, daemon);
    else
        check_say(result, CHECK_OK, "Slurm %s", of_client ? client : daemon);
    if (site->slurm_good)
        check_say(result, CHECK_OK, "%s (%s)", site->slurm.path, site->slurm_from);
    else if (*site->slurm.path)
        check_say(result, CHECK_FAIL, "%s: set SLURM_CONF, or make the file readable",
                  site->slurm_error.text);
    else if (check_site_fetched(site))
        check_say(result, CHECK_OK, "no slurm.conf here: slurmctld is asked");
    else if (tccl_slurmd_find(NULL, NULL, (uid_t)-1, &other, NULL) == 0 && *other.conf)
        check_say(result, CHECK_WARN,
                  "no slurm.conf in the usual places, but slurmd (pid %d) uses %s: export "
                  "SLURM_CONF=%s",
                  other.pid, other.conf, other.conf);
    else
        check_say(result, CHECK_WARN,
                  "no slurm.conf found: set SLURM_CONF, unless Slurm is configless");
}

void check_item_node(const struct check_site *site, struct check_result *result)
{
    const char *node = site->conf.node;
    bool guessed = site->nodes_here > 1 && !site->options.node && !getenv("SLURMD_NODENAME");
    if (guessed)
        check_say(result, CHECK_WARN,
                  "%d nodes of slurm.conf are on host %s; %s is checked: choose another with "
                  "--node",
                  site->nodes_here, site->hostname, node);
    else if (site->known)
        check_say(result, CHECK_OK, "%s in Slurm%s%s", node,
                  strcasecmp(node, site->hostname) ? ", host " : "",
                  strcasecmp(node, site->hostname) ? site->hostname : "");
    else if (site->options.node)
        check_say(result, CHECK_FAIL, "%s is not in %s: give a NodeName with --node", node,
                  *site->slurm.path ? site->slurm.path : "slurm.conf");
    else if (site->compute && site->slurm_good)
        check_say(result, CHECK_FAIL,
                  "a slurmd runs, but %s has no node on host %s: start tccld and tccl-check with "
                  "--node NAME",
                  site->slurm.path, site->hostname);
    else
        check_say(result, CHECK_OK, "%s is no compute node%s", site->hostname,
                  site->accounting ? ", but AccountingHost" : "");
}

/* ---- plugstack.conf ---- */

static void say_ignored(const struct tccl_plugstack *stack, enum check_level level,
                        struct check_result *result)
{
    if (*stack->wrong)
        check_say(result, level,
                  "%s is ignored by Slurm: begin it with required, optional or include",
                  stack->wrong);
}

void check_item_plugstack(const struct check_site *site, struct check_result *result)
{
    const struct tccl_plugstack *stack = &site->plugstack;
    if (!site->plugstack_good) {
        check_say(result, CHECK_FAIL, "%s: Slurm cannot read it either: make it readable",
                  site->plugstack_error.text);
        return;
    }
    if (*stack->closed)
        check_say(result, CHECK_FAIL,
                  "%s can't be read by this user, nor by the user's srun: make it "
                  "readable",
                  stack->closed);
    if (!stack->found && check_site_fetched(site)) {
        check_say(result, CHECK_OK,
                  "slurmctld sends it to each program: see the item loaded for whether it has the "
                  "line");
        return;
    }
    if (check_site_bare(site)) {
        check_say(result, CHECK_OK,
                  "not needed here: this is AccountingHost; where users call srun, install "
                  "tccl-slurm-plugin and add \"optional spank_tccl.so\"");
        return;
    }
    if (!stack->found) {
        check_say(result, CHECK_FAIL, "%s %s: add the line \"optional spank_tccl.so\"", stack->path,
                  stack->there ? "has no line for spank_tccl.so" : "is not there");
        say_ignored(stack, CHECK_FAIL, result);
        return;
    }
    check_say(result, CHECK_OK, "%s:%d: %s %s", stack->file, stack->line,
              stack->required ? "required" : "optional", stack->plugin);
    if (stack->required)
        check_say(
            result, CHECK_WARN,
            "%s:%d says required: if the plugin cannot be loaded, no job starts and nodes are "
            "drained: write optional",
            stack->file, stack->line);
    if (stack->times > 1)
        check_say(result, CHECK_WARN, "spank_tccl.so is listed %d times: keep one line",
                  stack->times);
    say_ignored(stack, CHECK_WARN, result);
}

void check_item_configless(const struct check_site *site, struct check_result *result)
{
    const struct tccl_plugstack *stack = &site->plugstack;
    char enabled[1024] = "";
    if (check_site_fetched(site)) {
        check_say(result, CHECK_OK,
                  "slurmctld sends plugstack.conf to each program, but not what it includes: the "
                  "line must be in it");
        return;
    }
    if (!site->configless) {
        const char *set = tccl_slurm_get(&site->slurm, "SlurmctldParameters");
        snprintf(enabled, sizeof(enabled), "%s", set ? set : "");
        check_say(result, CHECK_OK, "this node has its own configuration files");
        if (tccl_slurm_lists(enabled, "enable_configless") && *stack->empty && !stack->found)
            check_say(result, CHECK_WARN,
                      "nodes that get their configuration from slurmctld do not get %s",
                      stack->empty);
        return;
    }
    if (stack->found && strcmp(stack->file, stack->path) == 0)
        check_say(result, CHECK_OK, "slurmctld hands out %s with the line in it", stack->path);
    else if (*stack->empty)
        check_say(result, CHECK_FAIL,
                  "slurmctld hands out plugstack.conf, but not what it includes (%s): write the "
                  "line \"optional spank_tccl.so\" into plugstack.conf itself on slurmctld's host, "
                  "then scontrol reconfigure",
                  stack->empty);
    else if (!stack->there)
        check_say(result, CHECK_FAIL,
                  "slurmctld sends no plugstack.conf: create one beside its slurm.conf, "
                  "then scontrol reconfigure");
    else if (stack->found)
        check_say(result, CHECK_OK, "the line is in %s, a file of this node", stack->file);
    else
        check_say(result, CHECK_FAIL,
                  "the plugstack.conf that slurmctld hands out has no line for spank_tccl.so: add "
                  "it on slurmctld's host, then scontrol reconfigure");
}

/* ---- isolation ---- */

void check_item_isolation(const struct check_site *site, struct check_result *result)
{
    char plugins[1024] = "";
    const char *conf = *site->slurm.path ? site->slurm.path : "/etc/slurm/";
    bool seen, devices = tccl_slurm_constrains(conf, &seen);
    bool known = check_site_value(site, "TaskPlugin", plugins, sizeof(plugins));
    bool cgroup = tccl_slurm_lists(plugins, "task/cgroup") || tccl_slurm_lists(plugins, "cgroup");
    if (devices && cgroup)
        check_say(
            result, CHECK_OK,
            "cgroups hide the GPUs of other jobs, and with --gpus-per-task or --gpu-bind "
            "those of the step's other tasks: NCCL then has no P2P between them. Recommended for "
            "jobs: --gpus-per-node");
    else if (devices)
        check_say(result, CHECK_WARN,
                  "ConstrainDevices=yes has no effect without TaskPlugin=task/cgroup: tasks are "
                  "isolated by CUDA_VISIBLE_DEVICES alone");
    else
        check_say(
            result, CHECK_OK,
            "GPUs are not hidden by cgroups (%s, TaskPlugin %s). --gpus-per-task and --gpu-bind "
            "hide them by CUDA_VISIBLE_DEVICES alone",
            seen ? "ConstrainDevices is not set" : "no readable cgroup.conf",
            known ? plugins : "unknown");
    /* In a task: are there GPUs of the step that it cannot see? */
    const char *all = getenv("SLURM_GPUS_ON_NODE"), *own = getenv("CUDA_VISIBLE_DEVICES");
    int count = all ? atoi(all) : 0, n_own = own && *own;
    for (const char *at = own; at && *at; at++)
        n_own += *at == ',';
    if (getenv("SLURM_PROCID") && own && n_own < count)
        check_say(result, CHECK_WARN,
                  "this task sees %d of the step's %d GPUs here: NCCL has no P2P between tasks: "
                  "use --gpus-per-node instead of --gpus-per-task, without --gpu-bind",
                  n_own, count);
    /* Variables that isolate GPUs without any option on the command line. */
    static const char *const names[] = {"SLURM_GPUS_PER_TASK",  "SBATCH_GPUS_PER_TASK",
                                        "SALLOC_GPUS_PER_TASK", "SLURM_GPU_BIND",
                                        "SBATCH_GPU_BIND",      "SALLOC_GPU_BIND"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value && strcmp(value, "none") != 0)
            check_say(result, CHECK_WARN,
                      "%s=%s is set here: each task sees only some of the step's GPUs, and NCCL "
                      "has no P2P between them: unset it, use --gpus-per-node",
                      names[i], value);
    }
}
