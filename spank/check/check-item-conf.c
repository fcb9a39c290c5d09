/* check-item-conf.c: the items config and policy: tccl.conf, and the mode that it gives to steps.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check/check-items.h"
#include "client/policy.h"
#include "client/users.h"
#include "plugin/plugin.h"

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return strcmp(a, b) == 0 ||
           (stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

/* The plugin reads another file than the tools. path: NULL for the default, which may be missing.
 */
static void check_other(const struct check_site *site, const char *path,
                        struct check_result *result)
{
    const char *file = path ? path : TCCL_SYSCONFDIR "/slurm/tccl.conf";
    struct tccl_conf conf;
    struct tccl_error err = {0};
    check_say(result, CHECK_WARN,
              "the plugin reads %s%s (%s:%d), this and the tools %s: name one file for all", file,
              access(file, F_OK) != 0 ? ", which is not there" : "", site->plugstack.file,
              site->plugstack.line, site->conf.path);
    if (tccl_conf_read(path, site->conf.node, &conf, &err) != 0)
        check_say(result, CHECK_FAIL,
                  "the plugin (%s:%d) cannot use its configuration: %s: correct it",
                  site->plugstack.file, site->plugstack.line, err.text);
    else
        tccl_conf_clear(&conf);
}

/* Arguments in plugstack.conf that are not keys of tccl.conf, or give the plugin another socket. */
static void check_arguments(const struct check_site *site, struct check_result *result)
{
    const struct tccl_plugstack *stack = &site->plugstack;
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
        check_say(
            result, CHECK_WARN,
            "%s:%d overrides Socket=%s (%s in %s): set it only in tccl.conf, which tccld reads",
            stack->file, stack->line, conf.socket, site->conf.socket, site->conf.path);
    tccl_conf_clear(&conf);
}

void check_item_config(const struct check_site *site, struct check_result *result)
{
    const char *path = site->conf.path, *plugin = tccl_plugstack_config(&site->plugstack);
    bool there = access(path, F_OK) == 0;
    char closed[PATH_MAX];
    if (site->conf_closed) {
        check_say(
            result, CHECK_WARN,
            "%s: make it readable for all users (chmod 644): the plugin reads it as root, but "
            "tcclacct as the user",
            site->conf_error.text);
        return;
    }
    if (!site->conf_good) {
        check_say(result, CHECK_FAIL, "%s: %s", site->conf_error.text,
                  there ? "correct it, and reload tccld"
                        : "create the file, or name another with --config");
        return;
    }
    check_say(result, CHECK_OK, there ? "%s is valid" : "there is no %s: the defaults apply", path);
    if (there && !check_open_to_all(path, closed))
        check_say(
            result, CHECK_WARN,
            "%s is closed to other users, but tcclacct reads it as the user: make it readable for "
            "all (chmod a+rX)",
            closed);
    /* tccld does not start if a user is unknown. On a node without tccld that is only a warning. */
    bool runs = site->compute || site->accounting;
    struct tccl_users users;
    struct tccl_error err = {0};
    int line = tccl_conf_line(&site->conf, "SlurmUser");
    if (tccl_users_find(&site->conf, &users, &err) != 0)
        check_say(result, runs ? CHECK_FAIL : CHECK_WARN,
                  "%s: tccld does not start with an unknown user: correct it, or add the user",
                  err.text);
    else if (line && users.slurm == (uid_t)-1)
        check_say(result, CHECK_WARN,
                  "%s:%d: SlurmUser=%s: there is no such user here: set it as in slurm.conf",
                  site->conf.path, line, site->conf.slurm_user);
    if (plugin && !same_file(plugin, path))
        check_other(site, plugin, result);
    if (site->plugstack.found && !plugin && !same_file(path, TCCL_SYSCONFDIR "/slurm/tccl.conf"))
        check_other(site, NULL, result);
    if (site->plugstack.found)
        check_arguments(site, result);
}

static void say_policy(const struct tccl_conf *conf, struct check_result *result)
{
    const struct tccl_policy *policy = &conf->policy;
    struct policy_rule rule = policy_rule_of(conf, policy);
    if (rule.forbid)
        check_say(result, CHECK_OK,
                  "steps have no ring, whatever they ask for (Forbid=yes in [policy])");
    else if (rule.mode == TCCL_MODE_OFF)
        check_say(
            result, CHECK_OK,
            "steps get a ring only with --tccl or TCCL=on (Default=off): to give one to all steps, "
            "set Default=auto in [policy]");
    else
        check_say(result, CHECK_OK, "steps of %s%s have mode %s unless they ask for another",
                  policy->partitions ? "the partitions " : "all partitions",
                  policy->partitions ? policy->partitions : "", tccl_mode_name(rule.mode));
    if (!rule.forbid && rule.mode == TCCL_MODE_AUTO && (rule.min_nodes > 1 || rule.min_gpus > 2))
        check_say(result, CHECK_OK, "auto applies from %d nodes and %d GPUs on", rule.min_nodes,
                  rule.min_gpus);
    /* The sections [policy NAME], in the order in which they are matched. */
    char names[400] = "";
    size_t used = 0;
    for (int i = 0; i < conf->n_policies && used < sizeof(names) - 100; i++) {
        struct policy_rule named = policy_rule_of(conf, &conf->policies[i]);
        used +=
            (size_t)snprintf(names + used, sizeof(names) - used, "%s%s (%s)", used ? ", " : "",
                             named.name, named.forbid ? "forbidden" : tccl_mode_name(named.mode));
    }
    if (conf->n_policies)
        check_say(result, CHECK_OK, "before that, the first of %d policies that matches: %s%s",
                  conf->n_policies, names, used < sizeof(names) - 100 ? "" : " ...");
}

/* The plugin's line in plugstack.conf may name another file, and override keys. */
void check_item_policy(const struct check_site *site, struct check_result *result)
{
    const struct tccl_plugstack *stack = &site->plugstack;
    char *args[TCCL_PLUGIN_ARGS];
    const char *set = getenv("TCCL");
    struct tccl_conf conf;
    for (int i = 0; i < stack->n_args; i++)
        args[i] = (char *)stack->args[i];
    if (!stack->found) {
        say_policy(&site->conf, result);
    } else if (plugin_conf_read(stack->n_args, args, site->conf.node, &conf, NULL) == 0) {
        say_policy(&conf, result);
        tccl_conf_clear(&conf);
    } else {
        check_say(result, CHECK_OK, "no step gets a ring until the item config is ok");
        say_policy(&site->conf, result);
    }
    if (set && *set)
        check_say(result, CHECK_OK, "TCCL=%s in this shell overrides it", set);
}
