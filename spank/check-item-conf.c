/* check-item-conf.c: tccl.conf. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check-items.h"
#include "cleanup.h"

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return strcmp(a, b) == 0 ||
           (stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

/* The plugin's own file, where it is another one. */
static void check_other(const struct check_site *site, const char *path,
                        struct check_result *result)
{
    struct tccl_conf conf;
    struct tccl_error err = {0};
    check_say(result, CHECK_WARN,
              "the plugin reads %s (%s:%d), this and the tools %s: name one file for all", path,
              site->plugstack.file, site->plugstack.line, site->conf.path);
    if (tccl_conf_read(path, site->conf.node, &conf, &err) != 0)
        check_say(result, CHECK_FAIL, "%s, which the plugin reads: correct it", err.text);
    else
        tccl_conf_clear(&conf);
}

/* Arguments of plugstack.conf that are no key of tccl.conf, or put the plugin elsewhere. */
static void check_arguments(const struct check_site *site, struct check_result *result)
{
    const struct check_plugstack *stack = &site->plugstack;
    struct tccl_conf conf;
    if (tccl_conf_read(site->conf.path, site->conf.node, &conf, NULL) != 0 &&
        tccl_conf_read(NULL, site->conf.node, &conf, NULL) != 0)
        return;
    for (int i = 0; i < stack->n_args; i++) {
        struct tccl_error err = {0};
        if (strncmp(stack->args[i], "config=", 7) != 0 &&
            tccl_conf_override(&conf, stack->args[i], &err) != 0)
            check_say(result, CHECK_FAIL, "%s:%d: %s", stack->file, stack->line, err.text);
    }
    if (strcmp(conf.socket, site->conf.socket) != 0)
        check_say(result, CHECK_WARN,
                  "%s:%d puts Socket=%s over %s of %s: set it in the file alone, tccld reads that",
                  stack->file, stack->line, conf.socket, site->conf.socket, site->conf.path);
    tccl_conf_clear(&conf);
}

void check_item_config(const struct check_site *site, struct check_result *result)
{
    const char *path = site->conf.path, *plugin = check_plugstack_config(&site->plugstack);
    bool there = access(path, F_OK) == 0;
    if (!site->conf_good) {
        check_say(result, CHECK_FAIL, "%s: %s", site->conf_error.text,
                  !there ? "make the file, or name another with --config"
                  : access(path, R_OK) != 0
                      ? "let everybody read it (chmod 644): the plugin reads it as the user, too"
                      : "correct it, and reload tccld");
        return;
    }
    check_say(result, CHECK_OK, there ? "%s is good" : "there is no %s: the built-in values hold",
              path);
    if (plugin && !same_file(plugin, path))
        check_other(site, plugin, result);
    if (site->plugstack.found && !plugin && !same_file(path, TCCL_SYSCONFDIR "/slurm/tccl.conf"))
        check_other(site, TCCL_SYSCONFDIR "/slurm/tccl.conf", result);
    if (site->plugstack.found)
        check_arguments(site, result);
}

/* [policy NAME] sections, in the order in which they are tried. */
static void say_policies(const struct tccl_conf *conf, struct check_result *result)
{
    char names[400] = "";
    size_t used = 0;
    for (int i = 0; i < conf->n_policies && used < sizeof(names) - 100; i++) {
        const struct tccl_policy *policy = &conf->policies[i];
        const char *mode = policy->forbid == 1 ? "forbidden"
                           : policy->mode >= 0 ? tccl_mode_name((enum tccl_mode)policy->mode)
                                               : "as [policy]";
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s (%s)", used ? ", " : "",
                                 policy->name, mode);
    }
    if (conf->n_policies)
        check_say(result, CHECK_OK, "before that, the first that fits of %d: %s%s",
                  conf->n_policies, names, used < sizeof(names) - 100 ? "" : " ...");
}

void check_item_policy(const struct check_site *site, struct check_result *result)
{
    const struct tccl_policy *policy = &site->conf.policy;
    const char *set = getenv("TCCL");
    if (policy->mode == TCCL_MODE_OFF)
        check_say(result, CHECK_OK,
                  "steps have a ring only with --tccl or TCCL=on (Default=off): [policy] "
                  "Default=auto gives it to all");
    else
        check_say(result, CHECK_OK, "steps %s%s have mode %s unless they ask for another",
                  policy->partitions ? "of the partitions " : "of all partitions",
                  policy->partitions ? policy->partitions : "",
                  tccl_mode_name((enum tccl_mode)policy->mode));
    if (policy->mode == TCCL_MODE_AUTO && (policy->min_nodes > 1 || policy->min_gpus > 2))
        check_say(result, CHECK_OK, "auto begins at %d nodes, %d GPUs", policy->min_nodes,
                  policy->min_gpus);
    say_policies(&site->conf, result);
    if (set && *set)
        check_say(result, CHECK_OK, "in this shell TCCL=%s goes before it", set);
}
