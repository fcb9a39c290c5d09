/* plugstack.c: reads plugstack.conf with its includes, as Slurm does. */
#include "gres/slurm-conf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fileio.h"

enum { FILE_MAX = 1 << 20, FILES_MOST = 1024, DEPTH = 8 };

static const char blanks[] = " \t\n";

static int read_file(struct tccl_plugstack *stack, const char *path, int depth,
                     struct tccl_error *err);

static bool is_ours(const char *plugin)
{
    const char *slash = strrchr(plugin, '/');
    return strcmp(slash ? slash + 1 : plugin, "spank_tccl.so") == 0;
}

static void take_plugin(struct tccl_plugstack *stack, const char *path, int line, bool required,
                        const char *plugin, char *rest)
{
    char *word, *state;
    if (!is_ours(plugin) || stack->times++)
        return;
    stack->found = true;
    stack->required = required;
    stack->line = line;
    snprintf(stack->file, sizeof(stack->file), "%s", path);
    snprintf(stack->plugin, sizeof(stack->plugin), "%s", plugin);
    for (word = strtok_r(rest, blanks, &state); word && stack->n_args < TCCL_PLUGIN_ARGS;
         word = strtok_r(NULL, blanks, &state))
        snprintf(stack->args[stack->n_args++], TCCL_PLUGIN_ARG, "%s", word);
}

static void include(struct tccl_plugstack *stack, const char *path, const char *pattern, int depth)
{
    char whole[PATH_MAX];
    glob_t found;
    if (depth >= DEPTH)
        return;
    if (!tccl_slurm_include(path, pattern, whole, &found)) {
        if (!*stack->empty)
            strcpy(stack->empty, whole);
        return;
    }
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (read_file(stack, found.gl_pathv[i], depth + 1, NULL) != 0 && !*stack->closed)
            snprintf(stack->closed, sizeof(stack->closed), "%s", found.gl_pathv[i]);
    globfree(&found);
}

static void read_line(struct tccl_plugstack *stack, const char *path, int number, char *line,
                      int depth)
{
    char *state = NULL, *word, *name;
    line[strcspn(line, "#")] = '\0';
    if (!(word = strtok_r(line, blanks, &state)))
        return;
    name = strtok_r(NULL, blanks, &state);
    bool required = strcmp(word, "required") == 0;
    if (name && strcmp(word, "include") == 0)
        include(stack, path, name, depth);
    else if (name && (required || strcmp(word, "optional") == 0))
        take_plugin(stack, path, number, required, name, state);
    else if (!*stack->wrong)
        snprintf(stack->wrong, sizeof(stack->wrong), "line %d of %.40s", number,
                 strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
}

static int read_file(struct tccl_plugstack *stack, const char *path, int depth,
                     struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    struct stat st;
    size_t size;
    if (stack->files++ >= FILES_MOST)
        return tccl_fail(err, "%s: more than %d files", path, FILES_MOST);
    if (tccl_read_file(path, FILE_MAX, &text, &size, err) != 0)
        return -1;
    if (stat(path, &st) == 0 && st.st_mtime > stack->changed)
        stack->changed = st.st_mtime;
    char *rest = text, *line;
    for (int number = 1; (line = strsep(&rest, "\n")); number++)
        read_line(stack, path, number, line, depth);
    return 0;
}

void tccl_plugstack_path(const struct tccl_slurm_conf *conf, char path[static PATH_MAX])
{
    const char *set = tccl_slurm_get(conf, "PlugStackConfig");
    if (set)
        snprintf(path, PATH_MAX, "%s", set);
    else
        tccl_slurm_beside(*conf->path ? conf->path : "/etc/slurm/", "plugstack.conf", path);
}

int tccl_plugstack_read(const char *path, struct tccl_plugstack *stack, struct tccl_error *err)
{
    memset(stack, 0, sizeof(*stack));
    snprintf(stack->path, sizeof(stack->path), "%s", path);
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return 0;
    if (read_file(stack, path, 0, err) != 0)
        return -1;
    stack->there = true;
    return 0;
}

bool tccl_plugstack_locate(const char *plugin, const char *folders, char path[static PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s", plugin);
    if (*plugin == '/')
        return access(path, F_OK) == 0;
    for (const char *at = folders; *at; at += strspn(at, ":")) {
        int each = (int)strcspn(at, ":");
        if (snprintf(path, PATH_MAX, "%.*s/%s", each, at, plugin) < PATH_MAX &&
            access(path, F_OK) == 0)
            return true;
        at += each;
    }
    snprintf(path, PATH_MAX, "%s", plugin);
    return false;
}

const char *tccl_plugstack_config(const struct tccl_plugstack *stack)
{
    const char *config = NULL;
    for (int i = 0; i < stack->n_args; i++)
        if (strncmp(stack->args[i], "config=", 7) == 0)
            config = stack->args[i] + 7;
    return config;
}
