/* slurmd.c: finds the running slurmd of this node among the processes, and asks its program for the
 * list of GPUs. The process tells which program it is, and which configuration it reads; a slurmd
 * that is found by PATH might be another one, of another version. A process can call itself what it
 * likes, and users can start programs of root's: so what is run or read has to be root's, and of
 * several processes those count for which slurmd's unit or pid file speaks. */
#include "gres/gres.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/command.h"
#include "base/fileio.h"
#include "client/hostlist.h"
#include "gres/slurm-conf.h"

/* Where slurmd links to what it has from slurmctld. */
#define SERVER_CONF "/run/slurm/conf/slurm.conf"

enum {
    ARGUMENTS = 8192,
    ENVIRONMENT = 65536,
    MOUNT_LINE = 8192,
    PLACE_TEXT = PATH_MAX + 320,
    PID_FILES = 16, /* looked at, where several processes could be slurmd */
    PID_TEXT = 32,
    FIRST_WITHOUT_CGROUPS = 2405,
};

/* ---- a process ---- */

static bool is_slurmd(int pid)
{
    char name[32];
    return tccl_process_text(pid, "comm", name, sizeof(name)) > 0 && strcmp(name, "slurmd\n") == 0;
}

/* Nobody else can have started it: a name is anybody's to give. All its uids are root's, or ours.
 */
static bool is_trusted(int pid)
{
    char text[4096];
    const char *line =
        tccl_process_text(pid, "status", text, sizeof(text)) > 0 ? strstr(text, "\nUid:") : NULL;
    unsigned real, effective, saved, files;
    if (!line || sscanf(line, " Uid: %u %u %u %u", &real, &effective, &saved, &files) != 4)
        return false;
    return real == effective && real == saved && real == files && (real == 0 || real == geteuid());
}

/* Which file of which file system the process has at that path, without links: "254:0 /etc/x". Of
 * its mounts, the last one above the path holds. Needs no right to look into the process. Returns
 * 0, or -1. */
static int place_of(const char *pid, const char *at, char place[static PLACE_TEXT])
{
    char path[64], line[MOUNT_LINE], device[32], folder[256], point[256];
    snprintf(path, sizeof(path), "/proc/%s/mountinfo", pid);
    cleanup_file FILE *file = fopen(path, "re");
    *place = '\0';
    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "%*d %*d %31s %255s %255s ", device, folder, point) != 3)
            continue;
        size_t folder_length = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
        size_t length = strcmp(point, "/") == 0 ? 0 : strlen(point);
        if (strncmp(at, point, length) == 0 && (at[length] == '/' || at[length] == '\0'))
            snprintf(place, PLACE_TEXT, "%s %.*s%.*s", device, (int)folder_length, folder,
                     PATH_MAX - 1, at + length);
    }
    return file ? 0 : -1;
}

/* A slurmd in a container, a chroot or a mount namespace may be another node's: what it calls its
 * files need not be here. */
static bool is_in_our_place(int pid, const char *path)
{
    char name[16], theirs[PLACE_TEXT], ours[PLACE_TEXT];
    snprintf(name, sizeof(name), "%d", pid);
    return place_of(name, path, theirs) == 0 && place_of("self", path, ours) == 0 &&
           strcmp(theirs, ours) == 0;
}

bool tccl_slurmd_in_unit(const char *cgroups)
{
    static const char begin[] = ":/system.slice/slurmd", end[] = ".service";
    for (const char *at = cgroups; (at = strstr(at, begin)); at++) {
        const char *unit = at + sizeof(begin) - 1;
        size_t length = strcspn(unit, "/\n");
        if (length >= sizeof(end) - 1 &&
            strncmp(unit + length - (sizeof(end) - 1), end, sizeof(end) - 1) == 0)
            return true;
    }
    return false;
}

static bool is_in_unit(int pid)
{
    char text[4096];
    return tccl_process_text(pid, "cgroup", text, sizeof(text)) > 0 && tccl_slurmd_in_unit(text);
}

/* ---- its command line ---- */

/* What slurmd was started with. */
struct arguments {
    const char *program, *node, *conf;
    bool server; /* --conf-server: its configuration is slurmctld's */
    bool says;   /* it prints something and ends */
};

static bool is_long(const char *word, const char *name)
{
    size_t length = strlen(name);
    return strncmp(word, name, length) == 0 && (word[length] == '\0' || word[length] == '=');
}

/* One word with short options; next: the word after it. Returns whether next belongs to it. */
static bool read_short(const char *word, const char *next, struct arguments *arguments)
{
    for (const char *at = word + 1; *at; at++) {
        if (*at == 'F')
            return false; /* its value can only be in the same word */
        arguments->says = arguments->says || strchr("CGhV", *at);
        if (!strchr("dfLnN", *at))
            continue;
        const char *value = at[1] ? at + 1 : next;
        if (*at == 'N')
            arguments->node = value;
        else if (*at == 'f')
            arguments->conf = value;
        return !at[1];
    }
    return false;
}

/* text: NUL-separated words, with one more NUL behind. */
static void read_arguments(const char *text, size_t size, struct arguments *arguments)
{
    const char *end = text + size;
    *arguments = (struct arguments){.program = text};
    for (const char *word = text + strlen(text) + 1; word < end; word += strlen(word) + 1) {
        const char *next = word + strlen(word) + 1;
        next = next < end ? next : "";
        if (is_long(word, "--conf-server"))
            arguments->server = true;
        if (word[0] == '-' && word[1] == '-') {
            if (is_long(word, "--conf") || (is_long(word, "--conf-server") && !strchr(word, '=')))
                word = strchr(word, '=') || next == end ? word : next;
        } else if (word[0] == '-' && read_short(word, next, arguments) && *next) {
            word = next;
        }
    }
}

/* ---- which one ---- */

static const char *variable(const char *text, size_t size, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = text; at < text + size; at += strlen(at) + 1)
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    return NULL;
}

/* The file that runs; after an update (*replaced) the one in its place. Without CAP_SYS_PTRACE that
 * can't be seen: then what slurmd was called by, and the usual places. Returns 1 if it was seen, 0
 * if not, or -1: it is another program. */
static int find_program(int pid, const struct arguments *arguments, char program[static PATH_MAX],
                        bool *replaced)
{
    static const char gone[] = " (deleted)";
    static const char *const usual[] = {"/usr/sbin/slurmd", "/usr/sbin/slurmd",
                                        "/usr/local/sbin/slurmd", "/opt/slurm/sbin/slurmd"};
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    ssize_t length = readlink(path, program, PATH_MAX - 1);
    program[length > 0 ? length : 0] = '\0';
    char *mark = strstr(program, gone);
    *replaced = mark && mark[sizeof(gone) - 1] == '\0';
    if (*replaced)
        *mark = '\0';
    for (size_t i = 0; access(program, X_OK) != 0 && i < sizeof(usual) / sizeof(*usual); i++)
        snprintf(program, PATH_MAX, "%.*s", PATH_MAX - 1,
                 i == 0 && arguments->program[0] == '/' ? arguments->program : usual[i]);
    const char *slash = strrchr(program, '/');
    if (strncmp(slash ? slash + 1 : program, "slurmd", strlen("slurmd")) != 0)
        return -1;
    return length > 0;
}

/* Of a slurmd that was built with a prefix of its own, then the usual ones. Returns the first that
 * is there, or NULL. */
static const char *usual_conf(const char *program, char path[static PATH_MAX])
{
    static const char *const usual[] = {"%.*s/etc/slurm.conf",       "%.*s/etc/slurm/slurm.conf",
                                        "/etc/slurm/slurm.conf",     "/etc/slurm-llnl/slurm.conf",
                                        "/usr/local/etc/slurm.conf", SERVER_CONF};
    const char *slash = strstr(program, "/sbin/");
    for (size_t i = slash ? 0 : 2; i < sizeof(usual) / sizeof(*usual); i++) {
        int length = i < 2 ? snprintf(path, PATH_MAX, usual[i], (int)(slash - program), program)
                           : snprintf(path, PATH_MAX, "%s", usual[i]);
        if (length < PATH_MAX && access(path, F_OK) == 0)
            return path;
    }
    return NULL;
}

/* As slurmd(8) looks for it. Where it is in a place that only the build knows, "". */
static void find_conf(int pid, const struct arguments *arguments, const char *program,
                      char conf[static PATH_MAX])
{
    cleanup_free char *text = malloc(ENVIRONMENT);
    ssize_t size = text ? tccl_process_text(pid, "environ", text, ENVIRONMENT) : -1;
    const char *named = arguments->server ? SERVER_CONF : arguments->conf;
    char path[PATH_MAX];
    *conf = '\0';
    if (!named && size > 0)
        named = variable(text, (size_t)size, "SLURM_CONF");
    if (!named)
        named = usual_conf(program, path);
    if (named && *named == '/' && strlen(named) < PATH_MAX && access(named, F_OK) == 0)
        strcpy(conf, named);
}

/* Only root, or SlurmUser, can write that file and put another in its place. */
static int check_file(const char *path, uid_t slurm_user, struct tccl_error *err)
{
    char folder[PATH_MAX], target[PATH_MAX];
    struct stat status;
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof(folder), "%.*s/", slash ? (int)(slash - path) : 0, path);
    if (lstat(path, &status) != 0)
        return tccl_fail(err, "%s: %s", path, strerror(errno));
    bool link = S_ISLNK(status.st_mode);
    if ((status.st_uid != 0 && status.st_uid != slurm_user) ||
        (!link && (status.st_mode & S_IWOTH)))
        return tccl_fail(err, "%s: others than root and SlurmUser may change it: chown or chmod it",
                         path);
    if (tccl_folder_check_roots(folder, slurm_user, err) != 0)
        return -1;
    if (!link)
        return 0;
    return realpath(path, target) ? check_file(target, slurm_user, err)
                                  : tccl_fail(err, "%s: %s", path, strerror(errno));
}

/* Fills slurmd if this process is the slurmd of the node. What a process was called by anybody may
 * have written who can make a program of root's wait, such as sudo: where the program can't be
 * seen, what it names must be root's. why: it is refused for that. */
static bool is_ours(int pid, const char *node, const char *conf, uid_t slurm_user,
                    struct tccl_slurmd *slurmd, struct tccl_error *why)
{
    struct arguments arguments;
    char text[ARGUMENTS];
    ssize_t size = is_slurmd(pid) && is_trusted(pid) && is_in_our_place(pid, "/")
                       ? tccl_process_text(pid, "cmdline", text, sizeof(text))
                       : -1;
    if (size <= 0)
        return false;
    read_arguments(text, (size_t)size, &arguments);
    *slurmd = (struct tccl_slurmd){.pid = pid};
    if (arguments.says || (arguments.node && node && strcmp(arguments.node, node) != 0))
        return false;
    if (arguments.node)
        snprintf(slurmd->node, sizeof(slurmd->node), "%s", arguments.node);
    int seen = find_program(pid, &arguments, slurmd->program, &slurmd->replaced);
    find_conf(pid, &arguments, slurmd->program, slurmd->conf);
    if ((conf && strcmp(conf, slurmd->conf) != 0) ||
        (*slurmd->conf && !is_in_our_place(pid, slurmd->conf)))
        return false;
    return seen > 0 || (seen == 0 && check_file(slurmd->program, slurm_user, why) == 0 &&
                        (!*slurmd->conf || check_file(slurmd->conf, slurm_user, why) == 0));
}

/* ---- of several ---- */

struct candidate {
    struct tccl_slurmd slurmd; /* pid 0: none */
    pid_t parent;
    int vouched; /* -1: not known yet; 2: its pid file names it, 1: its unit has it, 3: both */
};

struct choice {
    const char *node;
    uid_t slurm_user;
    int pid_files; /* looked at */
    struct candidate best;
};

/* As slurmd has it: %n is the node, %h the host. */
static void name_pid_file(const char *value, const char *node, char path[static PATH_MAX])
{
    char host[TCCL_HOST_NAME + 1] = "";
    size_t used = 0;
    gethostname(host, sizeof(host) - 1);
    host[strcspn(host, ".")] = '\0';
    for (const char *at = value; *at && used < PATH_MAX - 1; at++) {
        const char *named = at[0] != '%' ? NULL : at[1] == 'n' ? node : at[1] == 'h' ? host : NULL;
        int length = named ? snprintf(path + used, PATH_MAX - used, "%s", named)
                           : snprintf(path + used, PATH_MAX - used, "%c", *at);
        used += (size_t)length;
        at += named != NULL;
    }
}

/* Does the pid file that its slurm.conf names speak of this process? */
static bool has_pid_file(struct choice *choice, const struct tccl_slurmd *slurmd)
{
    struct tccl_slurm_conf conf = {.count = 0};
    char path[PATH_MAX];
    cleanup_free char *text = NULL;
    size_t size;
    if (!*slurmd->conf || choice->pid_files++ >= PID_FILES)
        return false;
    bool read = tccl_slurm_conf_read(slurmd->conf, &conf, NULL) == 0;
    const char *value = read ? tccl_slurm_get(&conf, "SlurmdPidFile") : NULL;
    name_pid_file(value ? value : "/var/run/slurmd.pid", choice->node ? choice->node : slurmd->node,
                  path);
    tccl_slurm_conf_clear(&conf);
    return read && check_file(path, choice->slurm_user, NULL) == 0 &&
           tccl_read_file(path, PID_TEXT, &text, &size, NULL) == 0 && atoi(text) == slurmd->pid;
}

static int vouched(struct choice *choice, struct candidate *candidate)
{
    if (candidate->vouched < 0)
        candidate->vouched =
            2 * has_pid_file(choice, &candidate->slurmd) + is_in_unit(candidate->slurmd.pid);
    return candidate->vouched;
}

/* Slurmd itself and not what it has just forked; for which more speaks; which names this node;
 * which is older: jobs of a slurmd are younger. */
static bool is_better(struct choice *choice, struct candidate *a)
{
    struct candidate *b = &choice->best;
    if (!b->slurmd.pid || b->parent == a->slurmd.pid)
        return true;
    if (a->parent == b->slurmd.pid)
        return false;
    if (vouched(choice, a) != vouched(choice, b))
        return a->vouched > b->vouched;
    if (!*a->slurmd.node != !*b->slurmd.node)
        return *a->slurmd.node;
    return a->slurmd.started < b->slurmd.started;
}

int tccl_slurmd_find(const char *node, const char *conf, uid_t slurm_user,
                     struct tccl_slurmd *slurmd, struct tccl_error *err)
{
    struct tccl_error why = {""};
    cleanup_dir DIR *folder = opendir("/proc");
    const struct dirent *entry;
    struct tccl_process process;
    struct timespec now;
    struct choice choice = {.node = node, .slurm_user = slurm_user};
    *slurmd = (struct tccl_slurmd){.pid = 0};
    if (!folder)
        return tccl_fail(err, "/proc: %s", strerror(errno));
    while ((entry = readdir(folder))) {
        struct candidate found = {.vouched = -1};
        int pid = atoi(entry->d_name);
        if (pid <= 0 || !is_ours(pid, node, conf, slurm_user, &found.slurmd, &why) ||
            tccl_process_look(pid, &process) != 0)
            continue;
        found.slurmd.started = process.started;
        found.parent = process.parent;
        if (is_better(&choice, &found))
            choice.best = found;
    }
    *slurmd = choice.best.slurmd;
    clock_gettime(CLOCK_BOOTTIME, &now);
    slurmd->age_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 -
                     slurmd->started * (1000000 / sysconf(_SC_CLK_TCK));
    if (!slurmd->pid && *why.text)
        return tccl_fail(err, "slurmd -G is not run: %s", why.text);
    return slurmd->pid ? 0 : 1;
}

bool tccl_slurmd_runs(const struct tccl_slurmd *slurmd)
{
    struct tccl_process now;
    return slurmd->pid && tccl_process_look(slurmd->pid, &now) == 0 &&
           now.started == slurmd->started;
}

/* ---- its list ---- */

static int put_link(const char *folder, const char *name, const char *target,
                    struct tccl_error *err)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    unlink(path);
    return symlink(target, path) == 0 ? 0 : tccl_fail(err, "%s: %s", path, strerror(errno));
}

static int put_file(const char *folder, const char *name, const char *text, struct tccl_error *err)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return tccl_write_file(path, 0600, text, strlen(text), err);
}

/* Links to all files beside slurm.conf, but a slurm.conf and a cgroup.conf of our own. With
 * cgroup/v2, slurmd -G moves itself into another cgroup and lifts the limits of the one that it
 * finds itself in, which is tccld's. Slurm before 24.05 has no "disabled"; its cgroup/v1 does
 * nothing then. */
static int copy_conf(const char *conf, int version, const char *scratch, struct tccl_error *err)
{
    const char *no_cgroups =
        version >= FIRST_WITHOUT_CGROUPS ? "CgroupPlugin=disabled\n" : "CgroupPlugin=cgroup/v1\n";
    char from[PATH_MAX], target[2 * PATH_MAX];
    int rc = 0;
    snprintf(from, sizeof(from), "%s", conf);
    *strrchr(from, '/') = '\0';
    cleanup_dir DIR *folder = opendir(from);
    const struct dirent *entry;
    if (!folder)
        return tccl_fail(err, "%s: %s", from, strerror(errno));
    while (rc == 0 && (entry = readdir(folder))) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "cgroup.conf") == 0 ||
            strcmp(entry->d_name, "slurm.conf") == 0 || strcmp(entry->d_name, "slurmd") == 0)
            continue;
        snprintf(target, sizeof(target), "%s/%s", from, entry->d_name);
        rc = put_link(scratch, entry->d_name, target, err);
    }
    if (rc != 0 || put_file(scratch, "cgroup.conf", no_cgroups, err) != 0)
        return -1;
    /* slurmd -G has every slurmstepd in SlurmdSpoolDir open its log again (user_init's messages of
     * that go to the step's user), and writes into slurmd's log: it is shown other places. Of two
     * values, Slurm takes the latter. */
    char text[3 * PATH_MAX];
    if (snprintf(text, sizeof(text), "include %s\nSlurmdSpoolDir=%s\nSlurmdLogFile=/dev/null\n",
                 conf, scratch) >= (int)sizeof(text))
        return tccl_fail(err, "%.200s: its name is too long", conf);
    return put_file(scratch, "slurm.conf", text, err);
}

/* What is meant for the daemon, of tccld's environment. */
static const char *const not_passed[] = {"SLURM", "NOTIFY_SOCKET=", "INVOCATION_ID=", NULL};

/* "slurm 24.11.5", "slurm-wlm 22.05.8": 2411, 2205; 0 if it says something else. */
static int version_of(const struct tccl_slurmd *slurmd, int64_t deadline,
                      struct tccl_command_output *output)
{
    const char *const ask[] = {slurmd->program, "-V", NULL};
    int major, minor;
    if (tccl_command_run(ask, not_passed, deadline, output) != 0 ||
        sscanf(output->out, "%*s %d.%d", &major, &minor) != 2)
        return 0;
    return major * 100 + minor;
}

static int say_failure(const struct tccl_slurmd *slurmd, int status,
                       const struct tccl_command_output *output, struct tccl_error *err)
{
    const char *fatal = strstr(output->err, "fatal: ");
    const char *line = fatal ? fatal : output->err;
    if (status == TCCL_COMMAND_LATE)
        return tccl_fail(err, "%s -G has not ended in time", slurmd->program);
    if (status == TCCL_COMMAND_NONE)
        return tccl_fail(err, "%s can't be run", slurmd->program);
    return tccl_fail(err, "%s -G has ended with status %d: %.*s", slurmd->program, status,
                     (int)strcspn(line, "\n"), line);
}

static int ask(const struct tccl_slurmd *slurmd, const char *node, const char *scratch,
               int64_t deadline, struct tccl_command_output *output, struct tccl_error *err)
{
    char conf[PATH_MAX + 32], program[PATH_MAX], named[TCCL_HOST_NAME + 3];
    const char *const words[] = {"env", conf, program, "-G", *slurmd->node ? named : NULL, NULL};
    if (!*slurmd->conf)
        return tccl_fail(err,
                         "the slurm.conf of slurmd (process %d, %s) isn't in a usual place: set "
                         "SLURM_CONF where slurmd is started",
                         slurmd->pid, slurmd->program);
    snprintf(named, sizeof(named), "-N%s", node);
    snprintf(conf, sizeof(conf), "SLURM_CONF=%s/slurm.conf", scratch);
    snprintf(program, sizeof(program), "%.*s/slurmd", PATH_MAX - 16, scratch);
    /* By another name, such as Debian's slurmd-wlm, it would not know that it is slurmd. */
    if (put_link(scratch, "slurmd", slurmd->program, err) != 0 ||
        copy_conf(slurmd->conf, version_of(slurmd, deadline, output), scratch, err) != 0)
        return -1;
    int status = tccl_command_run(words, not_passed, deadline, output);
    return status == 0 ? 0 : say_failure(slurmd, status, output, err);
}

int tccl_slurmd_list(const struct tccl_slurmd *slurmd, const char *node, const char *scratch,
                     int64_t deadline, struct tccl_command_output *output, struct tccl_error *err)
{
    if (tccl_make_folder(scratch, 0700, err) != 0 || tccl_folder_check_own(scratch, 0, err) != 0)
        return -1;
    int rc = ask(slurmd, node, scratch, deadline, output, err);
    char path[2 * PATH_MAX];
    cleanup_dir DIR *folder = opendir(scratch);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        snprintf(path, sizeof(path), "%s/%s", scratch, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    rmdir(scratch);
    return rc;
}
