/* check-site.c: finds the configuration files and this node's name, which all items need. */
#include "check/check-items.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/command.h"
#include "base/fields.h"
#include "base/fileio.h"
#include "client/client.h"
#include "client/users.h"

enum {
    ASK_MS = 3000, /* timeout of one of Slurm's programs */
};

char *check_site_run(const struct check_site *site, int ms, const char *const *words)
{
    cleanup_free struct tccl_command_output *output = calloc(1, sizeof(*output));
    if (!output || tccl_command_run(words, NULL, check_run_until(site->deadline, ms), output) != 0)
        return NULL;
    return strdup(output->out);
}

/* ---- this node's name ---- */

struct search {
    struct check_site *site;
    char first[256]; /* of those on this host */
    struct tccl_slurmd slurmd;
};

static int look_for_host(void *context, const struct tccl_slurm_node *node)
{
    struct search *search = context;
    char hostname[256];
    snprintf(hostname, sizeof(hostname), "%s", node->hostname);
    hostname[strcspn(hostname, ".")] = '\0';
    if (strcasecmp(hostname, search->site->hostname) != 0)
        return 0;
    if (!search->site->nodes_here++)
        snprintf(search->first, sizeof(search->first), "%s", node->name);
    return 0;
}

static int look_for_name(void *context, const struct tccl_slurm_node *node)
{
    struct check_site *site = context;
    if (strcmp(node->name, site->conf.node) != 0)
        return 0;
    site->known = true;
    site->gpus = node->gpus;
    return 1;
}

/* In this order: --node; within a job, SLURMD_NODENAME; the first node of slurm.conf on this host;
 * the -N of slurmd; NULL: the host name. */
static const char *choose_node(struct check_site *site, struct search *search)
{
    const char *here = getenv("SLURMD_NODENAME");
    const char *conf = *site->slurm.path ? site->slurm.path : NULL;
    tccl_slurm_nodes(&site->slurm, look_for_host, search);
    if (site->options.node)
        return site->options.node;
    if (here && *here)
        return here;
    if (site->nodes_here)
        return search->first;
    if (!conf || tccl_slurmd_find(NULL, conf, (uid_t)-1, &search->slurmd, NULL) != 0)
        return NULL;
    return *search->slurmd.node ? search->slurmd.node : NULL;
}

/* ---- files ---- */

/* The file named by --config or TCCL_CONF, else the default, else the one that the plugin reads. */
static void read_conf(struct check_site *site, const char *node)
{
    const char *path = tccl_conf_tool_path(site->options.config);
    const char *plugin = tccl_plugstack_config(&site->plugstack);
    if (!path && plugin && access(TCCL_SYSCONFDIR "/slurm/tccl.conf", F_OK) != 0)
        path = plugin;
    if (!path)
        path = TCCL_SYSCONFDIR "/slurm/tccl.conf";
    bool must = site->options.config || access(path, F_OK) == 0 || tccl_conf_tool_path(NULL);
    site->conf_good = tccl_conf_read_as(TCCL_CONF_CHECK, must ? path : NULL, node, &site->conf,
                                        &site->conf_error) == 0;
    site->conf_unread = !site->conf_good && access(path, R_OK) != 0;
    site->conf_closed = site->conf_unread && errno == EACCES;
    snprintf(site->conf.path, sizeof(site->conf.path), "%s", path);
}

/* Is the path in the directory in which a configless slurmd keeps the files sent by slurmctld? */
static bool is_cache(const char *path)
{
    char real[PATH_MAX];
    return *path && (strncmp(path, "/run/slurm/conf/", 16) == 0 || strstr(path, "/conf-cache/") ||
                     (realpath(path, real) && strstr(real, "/conf-cache/")));
}

/* With slurmctld's configuration, or with the slurm.conf that is read here. */
static void look_for_slurmd(const struct check_site *site, struct tccl_slurmd *slurmd)
{
    const char *node = site->conf.node, *conf = *site->slurm.path ? site->slurm.path : NULL;
    struct tccl_users users = {.slurm = (uid_t)-1};
    tccl_users_find(&site->conf, &users, NULL);
    if (tccl_slurmd_find(node, conf, users.slurm, slurmd, NULL) != 0 && conf &&
        (tccl_slurmd_find(node, NULL, users.slurm, slurmd, NULL) != 0 || !is_cache(slurmd->conf)))
        *slurmd = (struct tccl_slurmd){.pid = 0};
}

/* tccld's answer, for all items: each has a process of its own, and the first one asks. */
static struct told {
    bool asked;
    enum { ASKED, SILENT, ANSWERED } state;
    char text[256 * 1024];
} unshared, *told = &unshared;

void check_site_share(void)
{
    void *map =
        mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    told = map == MAP_FAILED ? &unshared : map;
}

/* What needs no GPUs is asked for alone in the end, where slurmd -G is slow. */
json_t *check_site_ask(const struct check_site *site, bool gpus, int ms, struct tccl_error *err)
{
    int64_t now = tccl_now_ms(), end = check_run_until(site->deadline, ms);
    int64_t half = gpus ? end : now + (end - now) / 2;
    cleanup_json json_t *all = json_pack("{s:b, s:b}", "gpus", true, "evidence", true);
    if (!__atomic_exchange_n(&told->asked, true, __ATOMIC_SEQ_CST)) {
        json_t *answer = tccl_client_node(&site->conf, NULL, all, tccl_left_ms(half), err);
        size_t size = answer ? json_dumpb(answer, told->text, sizeof(told->text), 0) : 0;
        bool whole = size > 0 && size < sizeof(told->text);
        __atomic_store_n(&told->state, whole ? ANSWERED : SILENT, __ATOMIC_SEQ_CST);
        if (answer || gpus)
            return answer;
    }
    while (__atomic_load_n(&told->state, __ATOMIC_SEQ_CST) == ASKED && tccl_now_ms() < half)
        poll(NULL, 0, 5);
    if (__atomic_load_n(&told->state, __ATOMIC_SEQ_CST) == ANSWERED)
        return json_loads(told->text, 0, NULL);
    return tccl_client_node(&site->conf, NULL, gpus ? all : NULL, tccl_left_ms(end), err);
}

void check_site_slurmd(const struct check_site *site, struct tccl_slurmd *slurmd)
{
    cleanup_json json_t *answer = check_site_ask(site, false, ASK_MS, NULL);
    const json_t *told = json_object_get(answer, "slurmd");
    *slurmd = (struct tccl_slurmd){.pid = (pid_t)tccl_number_of(told, "pid"),
                                   .started = tccl_number_of(told, "started"),
                                   .replaced = json_is_true(json_object_get(told, "replaced"))};
    if (!slurmd->pid)
        look_for_slurmd(site, slurmd);
}

void check_site_read(const struct check_options *options, int64_t deadline, struct check_site *site)
{
    struct search search = {.site = site};
    *site = (struct check_site){.options = *options, .deadline = deadline, .gpus = -1};
    if (gethostname(site->hostname, sizeof(site->hostname) - 1) != 0)
        site->hostname[0] = '\0';
    site->hostname[strcspn(site->hostname, ".")] = '\0';
    char path[PATH_MAX];
    tccl_slurm_conf_find(path, &site->slurm_from);
    if (*path)
        site->slurm_good = tccl_slurm_conf_read(path, &site->slurm, &site->slurm_error) == 0;
    else
        tccl_fail(&site->slurm_error, "no slurm.conf");
    tccl_plugstack_path(&site->slurm, path);
    site->plugstack_good = tccl_plugstack_read(path, &site->plugstack, &site->plugstack_error) == 0;
    read_conf(site, choose_node(site, &search));
    tccl_slurm_nodes(&site->slurm, look_for_name, site);
    look_for_slurmd(site, &search.slurmd);
    site->compute = site->known || search.slurmd.pid;
    site->accounting = strcmp(site->conf.accounting_host, site->conf.node) == 0;
    site->configless = is_cache(search.slurmd.conf) || is_cache(site->slurm.path) ||
                       (!*site->slurm.path && getenv("SLURM_CONF_SERVER"));
}

/* ---- what Slurm's programs say ---- */

/* "Key   = value" of scontrol show config. */
static bool find_value(const char *text, const char *key, char *value, size_t size)
{
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *at = line + length;
        if (strncasecmp(line, key, length) != 0)
            continue;
        at += strspn(at, " ");
        if (*at++ != '=')
            continue;
        at += strspn(at, " ");
        snprintf(value, size, "%.*s", (int)strcspn(at, "\n"), at);
        return *value && strcmp(value, "(null)") != 0;
    }
    return false;
}

bool check_site_value(const struct check_site *site, const char *key, char *text, size_t size)
{
    static const char *const ask[] = {"scontrol", "show", "config", NULL};
    const char *set = tccl_slurm_get(&site->slurm, key);
    if (set) {
        snprintf(text, size, "%s", set);
        return true;
    }
    cleanup_free char *output = check_site_run(site, ASK_MS, ask);
    return output && find_value(output, key, text, size);
}

unsigned check_site_version(const struct check_site *site, const char *program,
                            char text[static CHECK_VERSION])
{
    const char *const ask[] = {program, "-V", NULL};
    unsigned major, minor;
    cleanup_free char *output = check_site_run(site, ASK_MS, ask);
    const char *blank = output ? strchr(output, ' ') : NULL;
    *text = '\0';
    if (!blank || sscanf(blank, " %u.%u", &major, &minor) != 2 || major > 0xffff || minor > 0xff)
        return 0;
    snprintf(text, CHECK_VERSION, "%.*s", (int)strcspn(blank + 1, " \n"), blank + 1);
    return major << 16 | minor << 8;
}

bool check_site_bare(const struct check_site *site)
{
    char folders[4096], path[PATH_MAX];
    if (!site->accounting || site->compute || site->plugstack.found || !site->plugstack_good)
        return false;
    if (!check_site_value(site, "PluginDir", folders, sizeof(folders)))
        snprintf(folders, sizeof(folders), "%s", TCCL_PLUGINDIR);
    return !tccl_plugstack_locate("spank_tccl.so", folders, path);
}

bool check_site_fetched(const struct check_site *site)
{
    char text[CHECK_VERSION];
    return !*site->slurm.path && check_site_version(site, "srun", text) != 0;
}
