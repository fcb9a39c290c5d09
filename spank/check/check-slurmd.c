/* check-slurmd.c: finds this node's slurmd in /proc. */
#include "check/check-slurmd.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "gres/slurm-conf.h"

enum { WORDS = 64 };

/* When it was started, unix time; 0: not known. */
static time_t start_time(pid_t pid)
{
    struct tccl_process process;
    struct timespec up;
    long each = sysconf(_SC_CLK_TCK);
    if (each <= 0 || tccl_process_look(pid, &process) != 0 ||
        clock_gettime(CLOCK_BOOTTIME, &up) != 0)
        return 0;
    return time(NULL) - (up.tv_sec - (time_t)(process.started / each));
}

/* The value of an option at words[i]: "-Nn1", "-N n1", or NULL. */
static const char *value_of(char *const *words, int count, int i, const char *option)
{
    size_t length = strlen(option);
    if (strncmp(words[i], option, length) != 0)
        return NULL;
    if (words[i][length])
        return words[i] + length;
    return i + 1 < count ? words[i + 1] : NULL;
}

static void read_words(char *const *words, int count, struct check_slurmd *slurmd)
{
    for (int i = 1; i < count; i++) {
        const char *node = value_of(words, count, i, "-N");
        const char *conf = value_of(words, count, i, "-f");
        if (node)
            snprintf(slurmd->node, sizeof(slurmd->node), "%s", node);
        if (conf)
            snprintf(slurmd->conf, sizeof(slurmd->conf), "%s", conf);
        if (strncmp(words[i], "--conf-server", 13) == 0)
            slurmd->configless = true;
    }
}

/* Does it only print something (version, hardware) and exit? tccl-check itself runs slurmd -V. */
static bool only_says(char *const *words, int count)
{
    for (int i = 1; i < count; i++)
        if (!strcmp(words[i], "-V") || !strcmp(words[i], "-C") || !strcmp(words[i], "-h"))
            return true;
    return false;
}

/* Returns false for a process that is no daemon, or a zombie, whose command line is empty. */
static bool read_command(pid_t pid, struct check_slurmd *slurmd)
{
    char text[4096], *words[WORDS];
    int count = 0;
    ssize_t size = tccl_process_text(pid, "cmdline", text, sizeof(text));
    for (char *at = text; at < text + size && count < WORDS; at += strlen(at) + 1)
        words[count++] = at;
    read_words(words, count, slurmd);
    return count > 0 && !only_says(words, count);
}

/* slurm.conf without -f: SLURM_CONF of its environment, else the default paths. Only root and its
 * own user can read the environment; otherwise the name stays empty. Returns false if the process
 * has ended. */
static bool find_conf(pid_t pid, struct check_slurmd *slurmd)
{
    static char text[65536];
    static const char name[] = "SLURM_CONF=";
    const char *from;
    ssize_t size = tccl_process_text(pid, "environ", text, sizeof(text));
    if (*slurmd->conf || slurmd->configless || size < 0)
        return true;
    if (size == 0)
        return false;
    for (const char *at = text; at < text + size; at += strlen(at) + 1)
        if (strncmp(at, name, sizeof(name) - 1) == 0)
            snprintf(slurmd->conf, sizeof(slurmd->conf), "%s", at + sizeof(name) - 1);
    if (!*slurmd->conf)
        tccl_slurm_conf_usual(slurmd->conf, &from);
    if (!*slurmd->conf)
        strcpy(slurmd->conf, "/");
    return true;
}

/* Does it have another root directory, such as a container's? */
static bool is_elsewhere(pid_t pid)
{
    char path[64], root[PATH_MAX];
    snprintf(path, sizeof(path), "/proc/%d/root", pid);
    ssize_t length = readlink(path, root, sizeof(root));
    return length > 0 && (length != 1 || root[0] != '/');
}

static bool is_slurmd(pid_t pid)
{
    char name[32];
    return tccl_process_text(pid, "comm", name, sizeof(name)) > 0 && strcmp(name, "slurmd\n") == 0;
}

/* A child of slurmd is called slurmd until it executes slurmstepd. That may happen while we read,
 * so the name is checked again afterwards. */
static bool look_at(pid_t pid, struct check_slurmd *slurmd)
{
    char path[64], file[PATH_MAX];
    *slurmd = (struct check_slurmd){.pid = pid, .started = start_time(pid)};
    if (!read_command(pid, slurmd))
        return false;
    if (!find_conf(pid, slurmd) || !is_slurmd(pid))
        return false;
    snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    ssize_t length = readlink(path, file, sizeof(file) - 1);
    if (length > 0) {
        file[length] = '\0';
        slurmd->replaced = length > 10 && strcmp(file + length - 10, " (deleted)") == 0;
    }
    return true;
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return strcmp(a, b) == 0 ||
           (stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

/* How well the process matches node and slurm.conf: 0 if either differs, more for each that is
 * known to match. One whose slurm.conf cannot be seen is taken if no other matches better. */
static int likeness(const struct check_slurmd *slurmd, const char *node, const char *conf)
{
    bool named = node && *slurmd->node, configured = conf && *slurmd->conf;
    if ((named && strcasecmp(node, slurmd->node) != 0) ||
        (configured && !same_file(conf, slurmd->conf)))
        return 0;
    return 1 + named + 2 * configured;
}

bool check_slurmd_find(const char *node, const char *conf, struct check_slurmd *slurmd)
{
    struct check_slurmd each;
    struct dirent *entry;
    cleanup_dir DIR *proc = opendir("/proc");
    int best = 0;
    *slurmd = (struct check_slurmd){0};
    while (proc && (entry = readdir(proc))) {
        pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
        if (!pid || !is_slurmd(pid) || is_elsewhere(pid) || !look_at(pid, &each))
            continue;
        int like = likeness(&each, node, conf);
        if (like > best) {
            best = like;
            *slurmd = each;
        }
    }
    return best > 0;
}
