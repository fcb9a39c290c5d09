/* Plan files, each in a folder of its own in RunDir. The folder's name holds a hash of the step's
 * key and no text from outside; it must be ours, and what others have put in the plan's place goes.
 */
#include "tccld/join/planfile.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/key.h"

#define PLAN_NAME "plan"
#define NEW_NAME "plan.new"
#define NOTE_NAME "built"

/* Opens the step's folder, which must be a real folder of our own. Returns -1 with errno. */
static int open_folder(const char *run_dir, const char *name, bool make)
{
    cleanup_close int parent = open(run_dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    struct stat stat;
    if (parent < 0 || (make && mkdirat(parent, name, 0711) != 0 && errno != EEXIST))
        return -1;
    cleanup_close int fd = openat(parent, name, O_DIRECTORY | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &stat) != 0)
        return -1;
    if (stat.st_uid != geteuid()) {
        errno = EPERM;
        return -1;
    }
    if (make && fchmod(fd, 0711) != 0) /* whatever the umask */
        return -1;
    int opened = fd;
    fd = -1;
    return opened;
}

/* Lets this user read a file that is otherwise the owner's alone: what a file's mode can't say. In
 * the kernel's form (linux/posix_acl_xattr.h). Returns 0, or -1 with errno. */
static int let_read(int fd, uid_t uid)
{
    enum { USER_OBJ = 1, USER = 2, GROUP_OBJ = 4, MASK = 16, OTHER = 32, READ = 4, WRITE = 2 };
    const struct {
        uint32_t version;
        struct {
            uint16_t tag, permissions;
            uint32_t id;
        } entries[5];
    } list = {htole32(2),
              {{htole16(USER_OBJ), htole16(READ | WRITE), UINT32_MAX},
               {htole16(USER), htole16(READ), htole32(uid)},
               {htole16(GROUP_OBJ), 0, UINT32_MAX},
               {htole16(MASK), htole16(READ), UINT32_MAX},
               {htole16(OTHER), 0, UINT32_MAX}}};
    return fsetxattr(fd, "system.posix_acl_access", &list, sizeof(list), 0);
}

/* Where the file system has no ACLs, root can let the group of the job read it. Returns 0, or -1
 * with errno. */
static int let_job_read(int fd, uid_t uid, gid_t gid)
{
    if (let_read(fd, uid) == 0)
        return 0;
    return errno == EOPNOTSUPP && geteuid() == 0 && fchown(fd, 0, gid) == 0 ? fchmod(fd, 0640) : -1;
}

/* A plan that is there is a whole one, whenever we are killed. */
static int write_text(int folder, uid_t uid, gid_t gid, const char *text, size_t size)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    unlinkat(folder, NOTE_NAME, 0);
    if (unlinkat(folder, NEW_NAME, 0) != 0 && errno != ENOENT)
        return -1;
    cleanup_close int fd = openat(folder, NEW_NAME, flags, 0600);
    if (fd < 0)
        return -1;
    while (size > 0) {
        ssize_t done = write(fd, text, size);
        if (done < 0 && errno != EINTR)
            return -1;
        if (done > 0) {
            text += done;
            size -= (size_t)done;
        }
    }
    return let_job_read(fd, uid, gid) == 0 ? renameat(folder, NEW_NAME, folder, PLAN_NAME) : -1;
}

/* Where the runtime shim keeps its file. Returns 0, or -1: the plan does not say. */
static int find_shared(const char *name, const struct tccl_lines *plan, struct shared_file *file)
{
    const char *digits = strrchr(name, '-');
    int64_t owner, index;
    if (!digits || sscanf(digits, "-%16" SCNx64, &file->hash) != 1 ||
        tccl_line_integer(plan, "uid", 0, UINT32_MAX, &owner) != 0 ||
        tccl_line_integer(plan, "index", 0, INT32_MAX, &index) != 0)
        return -1;
    file->uid = (uid_t)owner;
    file->index = (int32_t)index;
    return 0;
}

void planfile_begin(struct tccl_line_writer *plan, char text[static TCCL_LINES_SIZE])
{
    tccl_lines_begin(plan, text, TCCL_LINES_SIZE, PLANFILE_NAME, PLANFILE_VERSION);
}

int planfile_write(const char *run_dir, const struct tccl_step_key *key, gid_t gid,
                   struct tccl_line_writer *plan, struct monitor *monitor,
                   char path[static PATH_MAX], struct tccl_error *err)
{
    char name[TCCL_KEY_TEXT];
    struct tccl_lines lines;
    struct shared_file shared = {.gid = gid};
    tccl_key_folder(key, name);
    int length = snprintf(path, PATH_MAX, "%s/%s/" PLAN_NAME, run_dir, name);
    if (length >= PATH_MAX)
        return tccl_fail(err, "the plan can't be written: the path of RunDir is too long");
    if (tccl_lines_end(plan) != 0 || tccl_lines_open(plan->text, plan->length, &lines, err) != 0)
        return tccl_fail(err, "the plan can't be written: it is too long");
    int64_t uid;
    if (tccl_line_integer(&lines, "uid", 0, UINT32_MAX, &uid) != 0)
        uid = geteuid(); /* it does not say whose it is */
    cleanup_close int folder = open_folder(run_dir, name, true);
    if (folder < 0 || write_text(folder, (uid_t)uid, gid, plan->text, plan->length) != 0) {
        tccl_fail(err, "the plan can't be written to %s: %s", path, strerror(errno));
        planfile_remove(run_dir, key, monitor);
        *path = '\0';
        return -1;
    }
    if (find_shared(name, &lines, &shared) == 0)
        monitor_make(monitor, &shared);
    return 0;
}

/* Returns 0, or -1: the path is too long. */
static int name_link(const char *run_dir, const struct tccl_step_key *key, const char *end,
                     char path[static PATH_MAX])
{
    int length = snprintf(path, PATH_MAX, "%s/%u" PLANFILE_LAUNCHER "%s", run_dir, key->job, end);
    return length < PATH_MAX ? 0 : -1;
}

/* As far as the disk allows: without, these ranks have no ring, and say so. */
void planfile_link(const char *run_dir, const struct tccl_step_key *key)
{
    char path[PATH_MAX], new[PATH_MAX], folder[TCCL_KEY_TEXT];
    tccl_key_folder(key, folder);
    if (name_link(run_dir, key, "", path) != 0 || name_link(run_dir, key, ".new", new) != 0)
        return;
    unlink(new);
    if (symlink(folder, new) == 0 && rename(new, path) != 0)
        unlink(new);
}

void planfile_unlink(const char *run_dir, const struct tccl_step_key *key)
{
    char path[PATH_MAX], folder[TCCL_KEY_TEXT], there[TCCL_KEY_TEXT] = "";
    tccl_key_folder(key, folder);
    if (name_link(run_dir, key, "", path) == 0 && readlink(path, there, sizeof(there) - 1) > 0 &&
        strcmp(there, folder) == 0)
        unlink(path);
}

static int open_plan(const char *run_dir, const char *name, const char *file)
{
    cleanup_close int folder = open_folder(run_dir, name, false);
    return folder < 0 ? -1 : openat(folder, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

int planfile_read_folder(const char *run_dir, const char *name, char text[static TCCL_LINES_SIZE],
                         struct tccl_lines *plan)
{
    struct stat stat;
    cleanup_close int fd = open_plan(run_dir, name, PLAN_NAME);
    if (fd < 0 || fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode))
        return -1;
    ssize_t size = read(fd, text, TCCL_LINES_SIZE);
    if (size <= 0 || tccl_lines_open(text, (size_t)size, plan, NULL) != 0 ||
        !tccl_lines_are(plan, PLANFILE_NAME, PLANFILE_VERSION))
        return -1;
    return 0;
}

int planfile_read(const char *run_dir, const struct tccl_step_key *key,
                  char text[static TCCL_LINES_SIZE], struct tccl_lines *plan)
{
    char name[TCCL_KEY_TEXT];
    tccl_key_folder(key, name);
    return planfile_read_folder(run_dir, name, text, plan);
}

void planfile_note(const char *run_dir, const struct tccl_step_key *key, const char *text)
{
    char name[TCCL_KEY_TEXT];
    tccl_key_folder(key, name);
    cleanup_close int folder = open_folder(run_dir, name, false);
    if (folder < 0)
        return;
    unlinkat(folder, NOTE_NAME, 0);
    cleanup_close int fd =
        openat(folder, NOTE_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        dprintf(fd, "%s\n", text);
}

char *planfile_noted(const char *run_dir, const struct tccl_step_key *key)
{
    char name[TCCL_KEY_TEXT];
    tccl_key_folder(key, name);
    cleanup_close int fd = open_plan(run_dir, name, NOTE_NAME);
    char *text = fd < 0 ? NULL : malloc(PLANFILE_NOTE + 1);
    ssize_t size = text ? read(fd, text, PLANFILE_NOTE) : -1;
    if (size < 0) {
        free(text);
        return NULL;
    }
    text[size] = '\0';
    return text;
}

/* It belongs to the job's user, so nothing is asked of it but its name. */
static void remove_shared(const char *run_dir, const char *name, struct monitor *monitor)
{
    char text[TCCL_LINES_SIZE];
    struct tccl_lines plan;
    struct shared_file file = {0};
    if (planfile_read_folder(run_dir, name, text, &plan) == 0 &&
        find_shared(name, &plan, &file) == 0)
        monitor_remove(monitor, &file);
}

bool planfile_lacks_plan(const char *run_dir, const char *name)
{
    struct stat stat;
    cleanup_close int folder = open_folder(run_dir, name, false);
    return folder >= 0 && fstatat(folder, PLAN_NAME, &stat, AT_SYMLINK_NOFOLLOW) != 0 &&
           errno == ENOENT;
}

int planfile_remove_folder(const char *run_dir, const char *name, struct monitor *monitor)
{
    remove_shared(run_dir, name, monitor);
    cleanup_close int folder = open_folder(run_dir, name, false);
    cleanup_close int parent = open(run_dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (folder < 0 || parent < 0)
        return -1;
    unlinkat(folder, PLAN_NAME, 0);
    unlinkat(folder, NEW_NAME, 0);
    unlinkat(folder, NOTE_NAME, 0);
    return unlinkat(parent, name, AT_REMOVEDIR);
}

void planfile_remove(const char *run_dir, const struct tccl_step_key *key, struct monitor *monitor)
{
    char name[TCCL_KEY_TEXT];
    tccl_key_folder(key, name);
    planfile_remove_folder(run_dir, name, monitor);
}

/* "7.0.0-0123456789abcdef" */
bool planfile_is_folder(const char *name)
{
    unsigned job, step, restart;
    unsigned long long hash;
    int end = -1;
    return isdigit((unsigned char)*name) &&
           sscanf(name, "%u.%u.%u-%16llx%n", &job, &step, &restart, &hash, &end) == 4 && end > 0 &&
           name[end] == '\0';
}
