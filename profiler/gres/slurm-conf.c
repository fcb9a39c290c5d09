/* slurm-conf.c: finds and reads slurm.conf, as far as tccl-check needs it. */
#include "gres/slurm-conf.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "client/hostlist.h"

enum { FILE_MAX = 16 << 20, FILES_MOST = 1024, DEPTH = 8, NODES_MOST = 65536, GPUS_MOST = 65536 };

void tccl_slurm_conf_find(char path[static PATH_MAX], const char **from)
{
    static const char *const usual[] = {"/etc/slurm/slurm.conf", "/usr/local/etc/slurm.conf",
                                        "/etc/slurm-llnl/slurm.conf", "/opt/slurm/etc/slurm.conf"};
    static const char cached[] = "/run/slurm/conf/slurm.conf";
    const char *variable = getenv("SLURM_CONF");
    struct stat st;
    *from = "SLURM_CONF";
    if (variable && *variable) {
        snprintf(path, PATH_MAX, "%s", variable);
        return;
    }
    *from = "the usual place";
    for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++) {
        snprintf(path, PATH_MAX, "%s", usual[i]);
        if (stat(path, &st) == 0)
            return;
    }
    *from = "what slurmd got from slurmctld";
    snprintf(path, PATH_MAX, "%s", stat(cached, &st) == 0 ? cached : "");
}

/* ---- lines ---- */

/* Cuts a comment: a '#' that no backslash stands before. */
static void cut_comment(char *line)
{
    for (size_t i = 0; line[i]; i++)
        if (line[i] == '\\' && line[i + 1])
            i++;
        else if (line[i] == '#')
            line[i] = '\0';
}

/* Takes KEY=VALUE off the front of the text; a value ends at a blank outside of quotes. Returns
 * what is left, or NULL if there is no such thing. Both are cut out of text. */
static char *take_pair(char *text, char **key, char **value)
{
    text += strspn(text, " \t");
    size_t length = strcspn(text, "= \t");
    char *at = text + length + strspn(text + length, " \t");
    bool quoted = false;
    if (!length || (*at != '=' && strncmp(at, "+=", 2) != 0))
        return NULL;
    char *end = at + 1 + (*at == '+');
    end += strspn(end, " \t");
    *key = text;
    *value = end;
    for (; *end && (quoted || !isspace((unsigned char)*end)); end++)
        quoted ^= *end == '"';
    text[length] = '\0';
    if (length > 1 && text[length - 1] == '+')
        text[length - 1] = '\0';
    if (!*end)
        return end;
    *end = '\0';
    return end + 1;
}

/* Drops the quotes around a value. */
static void unquote(char *value)
{
    size_t length = strlen(value);
    if (length >= 2 && value[0] == '"' && value[length - 1] == '"') {
        memmove(value, value + 1, length - 2);
        value[length - 2] = '\0';
    }
}

static int add(struct tccl_slurm_conf *conf, const char *key, const char *value, const char *rest)
{
    if (conf->count >= TCCL_SLURM_ENTRIES)
        return 0;
    if ((conf->count & (conf->count - 1)) == 0) { /* full at powers of two */
        size_t room = conf->count ? 2 * conf->count : 1;
        void *entries = realloc(conf->entries, room * sizeof(*conf->entries));
        if (!entries)
            return -1;
        conf->entries = entries;
    }
    struct tccl_slurm_entry *entry = &conf->entries[conf->count++];
    *entry = (struct tccl_slurm_entry){strdup(key), strdup(value), strdup(rest)};
    return entry->key && entry->value && entry->rest ? 0 : -1;
}

static int read_file(struct tccl_slurm_conf *conf, const char *path, int depth,
                     struct tccl_error *err);

void tccl_slurm_beside(const char *conf, const char *name, char path[static PATH_MAX])
{
    const char *slash = strrchr(conf, '/');
    snprintf(path, PATH_MAX, "%.*s%s", slash ? (int)(slash + 1 - conf) : 0, conf, name);
}

bool tccl_slurm_include(const char *beside, const char *pattern, char whole[static PATH_MAX],
                        glob_t *found)
{
    const char *slash = *pattern == '/' ? NULL : strrchr(beside, '/');
    int size =
        snprintf(whole, PATH_MAX, "%.*s%s", slash ? (int)(slash + 1 - beside) : 0, beside, pattern);
    return size < PATH_MAX && glob(whole, 0, NULL, found) == 0;
}

static int include(struct tccl_slurm_conf *conf, const char *name, int depth,
                   struct tccl_error *err)
{
    char whole[PATH_MAX];
    glob_t found;
    int rc = 0;
    if (depth >= DEPTH || !tccl_slurm_include(conf->path, name, whole, &found))
        return 0;
    for (size_t i = 0; i < found.gl_pathc && rc == 0; i++)
        rc = read_file(conf, found.gl_pathv[i], depth + 1, err);
    globfree(&found);
    return rc;
}

static int read_line(struct tccl_slurm_conf *conf, char *line, int depth, struct tccl_error *err)
{
    char *key, *value;
    line += strspn(line, " \t\r");
    line[strcspn(line, "\r")] = '\0';
    if (strncasecmp(line, "include", 7) == 0 && isspace((unsigned char)line[7])) {
        char *name = line + 7 + strspn(line + 7, " \t");
        name[strcspn(name, " \t")] = '\0';
        return include(conf, name, depth, err);
    }
    char *rest = take_pair(line, &key, &value);
    if (!rest)
        return 0;
    unquote(value);
    return add(conf, key, value, rest) == 0 ? 0 : tccl_fail(err, "out of memory");
}

/* A line that ends in a backslash goes on in the next one. */
static char *take_line(char **text)
{
    char *line = *text, *end;
    if (!line || !*line)
        return NULL;
    for (end = strchr(line, '\n'); end && end > line && end[-1] == '\\'; end = strchr(end, '\n'))
        end[-1] = end[0] = ' ';
    *text = end ? end + 1 : NULL;
    if (end)
        *end = '\0';
    return line;
}

static int read_file(struct tccl_slurm_conf *conf, const char *path, int depth,
                     struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    size_t size;
    char *rest, *line;
    if (conf->files++ >= FILES_MOST)
        return tccl_fail(err, "%s: includes more than %d files: do they include each other?",
                         conf->path, FILES_MOST);
    if (tccl_read_file(path, FILE_MAX, &text, &size, err) != 0)
        return -1;
    rest = text;
    while ((line = take_line(&rest))) {
        cut_comment(line);
        if (read_line(conf, line, depth, err) != 0)
            return -1;
    }
    return 0;
}

int tccl_slurm_conf_read(const char *path, struct tccl_slurm_conf *conf, struct tccl_error *err)
{
    *conf = (struct tccl_slurm_conf){0};
    snprintf(conf->path, sizeof(conf->path), "%s", path);
    return read_file(conf, path, 0, err);
}

void tccl_slurm_conf_clear(struct tccl_slurm_conf *conf)
{
    for (size_t i = 0; i < conf->count; i++) {
        free(conf->entries[i].key);
        free(conf->entries[i].value);
        free(conf->entries[i].rest);
    }
    free(conf->entries);
    conf->entries = NULL;
    conf->count = 0;
}

const char *tccl_slurm_get(const struct tccl_slurm_conf *conf, const char *key)
{
    for (size_t i = conf->count; i-- > 0;)
        if (strcasecmp(conf->entries[i].key, key) == 0)
            return conf->entries[i].value;
    return NULL;
}

bool tccl_slurm_constrains(const char *conf, bool *seen)
{
    struct tccl_slurm_conf cgroup;
    char path[PATH_MAX];
    tccl_slurm_beside(conf, "cgroup.conf", path);
    *seen = tccl_slurm_conf_read(path, &cgroup, NULL) == 0;
    const char *value = tccl_slurm_get(&cgroup, "ConstrainDevices");
    bool yes = value && strcasecmp(value, "yes") == 0;
    tccl_slurm_conf_clear(&cgroup);
    return yes;
}

bool tccl_slurm_lists(const char *value, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = value; at && *at; at += *at == ',') {
        size_t next = strcspn(at, ",");
        if (next == length && strncasecmp(at, word, length) == 0)
            return true;
        at += next;
    }
    return false;
}

/* ---- nodes ---- */

int tccl_slurm_gpus(const char *gres)
{
    int gpus = 0;
    for (const char *at = gres; at && *at; at += *at == ',') {
        const char *end = at;
        for (int depth = 0; *end && (depth || *end != ','); end++)
            depth += (*end == '(') - (*end == ')');
        if (strncmp(at, "gpu", 3) == 0 && strchr(":(,", at[3])) {
            const char *stop = memchr(at, '(', (size_t)(end - at));
            const char *digits = stop ? stop : end;
            while (digits > at && isdigit((unsigned char)digits[-1]))
                digits--;
            bool counted = digits > at && digits[-1] == ':' && isdigit((unsigned char)*digits);
            long more = counted ? strtol(digits, NULL, 10) : 1;
            gpus = more < GPUS_MOST - gpus ? gpus + (int)more : GPUS_MOST;
        }
        at = end;
    }
    return gpus;
}

/* The value of a key in the rest of a node's line. It points into copy, which is modified. */
static const char *find_in(char *copy, const char *wanted)
{
    char *key, *value;
    while (copy && (copy = take_pair(copy, &key, &value)))
        if (strcasecmp(key, wanted) == 0) {
            unquote(value);
            return value;
        }
    return NULL;
}

struct node_line {
    struct tccl_hosts names, hostnames;
    int gpus; /* -1: as in the line NodeName=DEFAULT */
};

static void read_node_line(const struct tccl_slurm_entry *entry, struct node_line *line)
{
    cleanup_free char *first = strdup(entry->rest), *second = strdup(entry->rest);
    const char *hostnames = find_in(first, "NodeHostname"), *gres = find_in(second, "Gres");
    *line = (struct node_line){.gpus = gres ? tccl_slurm_gpus(gres) : -1};
    if (tccl_hosts_expand(entry->value, NODES_MOST, &line->names, NULL) != 0)
        line->names = (struct tccl_hosts){0};
    if (hostnames && tccl_hosts_expand(hostnames, NODES_MOST, &line->hostnames, NULL) != 0)
        line->hostnames = (struct tccl_hosts){0};
}

static int tell_nodes(const struct node_line *line, int gpus, size_t *count,
                      int (*each)(void *context, const struct tccl_slurm_node *node), void *context)
{
    for (size_t i = 0; i < line->names.count; i++) {
        struct tccl_slurm_node node = {.gpus = gpus};
        const char *hostname = line->hostnames.count == line->names.count ? line->hostnames.names[i]
                               : line->hostnames.count                    ? line->hostnames.names[0]
                                                                          : line->names.names[i];
        snprintf(node.name, sizeof(node.name), "%s", line->names.names[i]);
        snprintf(node.hostname, sizeof(node.hostname), "%s", hostname);
        ++*count;
        if (each(context, &node))
            return 1;
    }
    return 0;
}

size_t tccl_slurm_nodes(const struct tccl_slurm_conf *conf,
                        int (*each)(void *context, const struct tccl_slurm_node *node),
                        void *context)
{
    size_t count = 0;
    int usual = 0, stop = 0;
    for (size_t i = 0; i < conf->count && !stop && count < NODES_MOST; i++) {
        struct node_line line;
        if (strcasecmp(conf->entries[i].key, "NodeName") != 0)
            continue;
        read_node_line(&conf->entries[i], &line);
        if (strcasecmp(conf->entries[i].value, "DEFAULT") == 0)
            usual = line.gpus >= 0 ? line.gpus : usual;
        else
            stop = tell_nodes(&line, line.gpus >= 0 ? line.gpus : usual, &count, each, context);
        tccl_hosts_clear(&line.names);
        tccl_hosts_clear(&line.hostnames);
    }
    return count;
}
