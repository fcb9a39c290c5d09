/* A file for each step, in a folder of its own in RunDir. The folder's name holds a hash of the
 * step's key and no text from outside; it must be ours, and what others have put in the file's
 * place goes. */
#include "tccld/join/planfile.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/key.h"

#define FILE_NAME "plan"
#define NEW_NAME "plan.new"

enum { RECORD_MOST = 512 * 1024 };

/* Hands an open file to the caller. */
static int keep(int *fd)
{
    int kept = *fd;
    *fd = -1;
    return kept;
}

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
    if (make && (stat.st_mode & 07777) != 0711 && fchmod(fd, 0711) != 0) /* whatever the umask */
        return -1;
    return keep(&fd);
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
    if (let_read(fd, uid) == 0 || uid == geteuid())
        return 0;
    return errno == EOPNOTSUPP && geteuid() == 0 && fchown(fd, 0, gid) == 0 ? fchmod(fd, 0640) : -1;
}

/* Opens the file in which the next one is written. Returns it, or -1 with errno. */
static int open_new(int folder)
{
    enum { HOW = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC };
    int fd = openat(folder, NEW_NAME, HOW, 0600);
    if (fd >= 0 || errno != EEXIST || unlinkat(folder, NEW_NAME, 0) != 0)
        return fd;
    return openat(folder, NEW_NAME, HOW, 0600);
}

/* The lines of a plan (size 0: there is none), and the record behind them. What is there is a whole
 * one, whenever we are killed. Returns 0, or -1 with errno. */
static int write_file(int folder, const char *plan, size_t size, uid_t uid, gid_t gid,
                      const char *record)
{
    cleanup_close int fd = open_new(folder);
    size_t all = size + strlen(record), done = 0;
    while (fd >= 0 && done < all) {
        bool behind = done >= size;
        const char *from = behind ? record + (done - size) : plan + done;
        ssize_t written = write(fd, from, behind ? all - done : size - done);
        if (written < 0 && errno != EINTR)
            return -1;
        done += written > 0 ? (size_t)written : 0;
    }
    if (fd < 0 || (size > 0 && let_job_read(fd, uid, gid) != 0))
        return -1;
    return renameat(folder, NEW_NAME, folder, FILE_NAME);
}

/* A regular file in the folder, or -1 with errno. */
static int open_in(int folder, const char *file)
{
    struct stat stat;
    cleanup_close int fd =
        folder < 0 ? -1 : openat(folder, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode))) {
        errno = EINVAL;
        return -1;
    }
    return fd < 0 ? -1 : keep(&fd);
}

/* The lines of the plan in an open file, and where its record begins. Returns their length; 0: it
 * has none. */
static size_t read_plan(int fd, char text[static TCCL_LINES_SIZE])
{
    ssize_t size = fd < 0 ? -1 : pread(fd, text, TCCL_LINES_SIZE, 0);
    return size < 0 ? 0 : tccl_lines_length(text, (size_t)size);
}

/* Whose it is; ours, where it does not say. */
static uid_t user_of(const char *text, size_t size)
{
    struct tccl_lines lines;
    int64_t uid;
    return tccl_lines_open(text, size, &lines, NULL) == 0 &&
                   tccl_line_integer(&lines, "uid", 0, UINT32_MAX, &uid) == 0
               ? (uid_t)uid
               : geteuid();
}

int planfile_record(const char *run_dir, const char *name, const char *record,
                    struct tccl_error *err)
{
    char text[TCCL_LINES_SIZE];
    struct stat stat = {0};
    cleanup_close int folder = open_folder(run_dir, name, true);
    cleanup_close int before = open_in(folder, FILE_NAME);
    size_t size = before >= 0 && fstat(before, &stat) == 0 ? read_plan(before, text) : 0;
    if (folder >= 0 &&
        write_file(folder, text, size, user_of(text, size), stat.st_gid, record) == 0)
        return 0;
    return tccl_fail(err, "%s/%s/" FILE_NAME " can't be written: %s", run_dir, name,
                     strerror(errno));
}

json_t *planfile_read_record(const char *run_dir, const char *name)
{
    char text[TCCL_LINES_SIZE];
    cleanup_close int folder = open_folder(run_dir, name, false);
    cleanup_close int fd = open_in(folder, FILE_NAME);
    /* What is behind the plan. NULL: nothing whole. */
    size_t plan = read_plan(fd, text);
    struct stat stat;
    if (fd < 0 || fstat(fd, &stat) != 0 || stat.st_size > (off_t)plan + RECORD_MOST ||
        stat.st_size <= (off_t)plan || lseek(fd, (off_t)plan, SEEK_SET) < 0)
        return NULL;
    return json_loadfd(fd, JSON_REJECT_DUPLICATES, NULL);
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
                   const char *record, struct tccl_line_writer *plan, struct monitor *monitor,
                   char path[static PATH_MAX], struct tccl_error *err)
{
    char name[TCCL_KEY_TEXT];
    struct tccl_lines lines;
    struct shared_file shared = {.gid = gid};
    tccl_key_folder(key, name);
    int length = snprintf(path, PATH_MAX, "%s/%s/" FILE_NAME, run_dir, name);
    if (length >= PATH_MAX)
        return tccl_fail(err, "the plan can't be written: the path of RunDir is too long");
    if (tccl_lines_end(plan) != 0 || tccl_lines_open(plan->text, plan->length, &lines, err) != 0)
        return tccl_fail(err, "the plan can't be written: it is too long");
    cleanup_close int folder = open_folder(run_dir, name, true);
    if (folder < 0 || write_file(folder, plan->text, plan->length,
                                 user_of(plan->text, plan->length), gid, record) != 0) {
        tccl_fail(err, "the plan can't be written to %s: %s", path, strerror(errno));
        planfile_take_back(run_dir, key, monitor);
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

/* Removes it if it leads there. */
static void remove_link(const char *run_dir, const struct tccl_step_key *key)
{
    char path[PATH_MAX], folder[TCCL_KEY_TEXT], there[TCCL_KEY_TEXT] = "";
    tccl_key_folder(key, folder);
    if (name_link(run_dir, key, "", path) == 0 && readlink(path, there, sizeof(there) - 1) > 0 &&
        strcmp(there, folder) == 0)
        unlink(path);
}

bool planfile_lacks_plan(const char *run_dir, const char *name)
{
    char text[TCCL_LINES_SIZE];
    cleanup_close int folder = open_folder(run_dir, name, false);
    cleanup_close int fd = open_in(folder, FILE_NAME);
    return folder >= 0 && (fd >= 0 ? read_plan(fd, text) == 0 : errno == ENOENT);
}

/* The shim's file, too: it belongs to the job's user, so nothing is asked of it but its name.
 * Returns the folder, open, or -1: it is not there, or none of ours. */
static int remove_plan(const char *run_dir, const char *name, struct monitor *monitor)
{
    char text[TCCL_LINES_SIZE];
    struct tccl_lines plan;
    struct shared_file file = {0};
    int folder = open_folder(run_dir, name, false);
    cleanup_close int fd = open_in(folder, FILE_NAME);
    if (tccl_lines_open(text, read_plan(fd, text), &plan, NULL) == 0 &&
        tccl_lines_are(&plan, PLANFILE_NAME, PLANFILE_VERSION) &&
        find_shared(name, &plan, &file) == 0)
        monitor_remove(monitor, &file);
    if (folder >= 0)
        unlinkat(folder, FILE_NAME, 0);
    return folder;
}

void planfile_take_back(const char *run_dir, const struct tccl_step_key *key,
                        struct monitor *monitor)
{
    char name[TCCL_KEY_TEXT];
    tccl_key_folder(key, name);
    remove_link(run_dir, key);
    cleanup_close int folder = remove_plan(run_dir, name, monitor);
    (void)folder;
}

int planfile_remove_folder(const char *run_dir, const char *name, struct monitor *monitor)
{
    cleanup_close int folder = remove_plan(run_dir, name, monitor);
    cleanup_close int parent = open(run_dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (folder < 0 || parent < 0)
        return -1;
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0)
        return 0;
    unlinkat(folder, NEW_NAME, 0); /* of a tccld that was killed while it wrote */
    return unlinkat(parent, name, AT_REMOVEDIR);
}

void planfile_remove(const char *run_dir, const struct tccl_step_key *key, struct monitor *monitor)
{
    char name[TCCL_KEY_TEXT];
    tccl_key_folder(key, name);
    remove_link(run_dir, key);
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
