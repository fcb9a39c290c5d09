/* test-fileio.c: files read within a bound and written whole. */
#include <dirent.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/fileio.h"
#include "base/hash.h"
#include "check.h"

static int count_files(void)
{
    DIR *dir = opendir(check_folder());
    int count = 0;
    while (dir && readdir(dir))
        count++;
    closedir(dir);
    return count - 2;
}

static void check_content(const char *path, const char *expected)
{
    cleanup_free char *data = NULL;
    size_t size = 0;
    CHECK_INT(tccl_read_file(path, 1 << 20, &data, &size, ERR), 0);
    CHECK_INT(size, strlen(expected));
    CHECK_STR(data, expected);
}

TEST(write)
{
    struct stat status;
    const char *path = check_at("file");
    CHECK_OK(tccl_write_file(path, 0640, "first", 5, ERR));
    check_content(path, "first");
    CHECK_OK(tccl_write_file(path, 0604, "second one", 10, ERR));
    check_content(path, "second one");
    CHECK_INT(stat(path, &status), 0);
    CHECK_INT(status.st_mode & 07777, 0604);
    CHECK_OK(tccl_write_file(path, 0600, "", 0, ERR));
    check_content(path, "");
    CHECK_INT(count_files(), 1);
    CHECK_SAYS(tccl_write_file(check_at("no/such/folder"), 0600, "x", 1, ERR) == -1,
               "no/such/folder: can't be written: No such file");
    const char *fifo = check_at("fifo");
    CHECK_INT(mkfifo(fifo, 0600), 0);
    CHECK_SAYS(tccl_write_file(fifo, 0600, "x", 1, ERR) == -1,
               "fifo: can't be written: is not a regular file");
    CHECK_INT(stat(fifo, &status), 0);
    CHECK(S_ISFIFO(status.st_mode));
    CHECK_INT(unlink(fifo), 0);
}

/* A disk that is full half-way, by way of the file size limit: the old file stays. */
TEST(full_disk)
{
    struct rlimit old, small;
    cleanup_free char *big = calloc(1, 100000);
    const char *path = check_at("file");
    CHECK_INT(tccl_write_file(path, 0600, "old", 3, ERR), 0);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    small = old;
    small.rlim_cur = 1000;
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
    int result = tccl_write_file(path, 0600, big, 100000, ERR);
    int saved = errno;
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &old), 0);
    CHECK_INT(result, -1);
    CHECK_INT(saved, EFBIG);
    CHECK_HOLDS(check_err.text, "file: can't be written: File too large");
    check_content(path, "old");
    CHECK_INT(count_files(), 1);
}

static void check_read_refused(const char *path, size_t max, int number, const char *why)
{
    char *data = NULL;
    size_t size;
    errno = 0;
    CHECK_INT(tccl_read_file(path, max, &data, &size, ERR), -1);
    CHECK_INT(errno, number);
    CHECK(strncmp(check_err.text, path, strlen(path)) == 0);
    CHECK_STR(check_err.text + strlen(path), why);
    CHECK(data == NULL);
}

TEST(read)
{
    CHECK_INT(tccl_write_file(check_at("file"), 0600, "12345", 5, ERR), 0);
    check_read_refused(check_at("file"), 4, EFBIG, ": has 5 bytes, more than the 4 allowed");
    check_read_refused(check_at("none"), 4, ENOENT, ": can't be read: No such file or directory");
    check_read_refused(check_folder(), 4, EINVAL, ": is not a regular file");
    CHECK_INT(mkfifo(check_at("fifo"), 0600), 0);
    check_read_refused(check_at("fifo"), 4, EINVAL, ": is not a regular file");
    CHECK_INT(unlink(check_at("fifo")), 0);
}

/* In a process of its own, as a user who may not write the file that the link leads to. Returns its
 * exit status: 0 if it was refused. */
static int write_through(const char *link)
{
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setgid(65534) < 0 || setuid(65534) < 0))
            _exit(2);
        bool refused = tccl_write_output(link, "new", 3, ERR) < 0;
        _exit(refused && strstr(check_err.text, "link: can't be written: Permission denied") ? 0
                                                                                             : 1);
    }
    return check_exit(child);
}

/* A link is followed only as far as the kernel would let us write through it. */
TEST(links)
{
    cleanup_free char *link = strdup(check_at("link")), *data = NULL;
    struct stat status;
    size_t size;
    CHECK_INT(tccl_write_file(check_at("file"), 0644, "old", 3, ERR), 0);
    CHECK_INT(symlink("file", link), 0);
    CHECK_INT(tccl_write_output(link, "good", 4, ERR), 0);
    CHECK(lstat(link, &status) == 0 && S_ISLNK(status.st_mode));
    CHECK_INT(tccl_read_file(check_at("file"), 10, &data, &size, ERR), 0);
    CHECK(data && strcmp(data, "good") == 0);
    CHECK(chmod(check_at("file"), 0444) == 0 && chmod(check_folder(), 0777) == 0);
    CHECK_INT(write_through(link), 0);
    free(data);
    CHECK_INT(tccl_read_file(check_at("file"), 10, &data, &size, ERR), 0);
    CHECK(data && strcmp(data, "good") == 0);
    CHECK(chmod(check_folder(), 0700) == 0 && unlink(check_at("file")) == 0);
    CHECK_INT(tccl_write_output(link, "fresh", 5, ERR), 0); /* it led nowhere */
    CHECK(lstat(link, &status) == 0 && S_ISREG(status.st_mode));
    CHECK_INT(rename(link, check_at("file")), 0);
}

TEST(folders)
{
    struct stat status;
    CHECK_INT(tccl_make_folder(check_at("a/b//c/"), 0755, ERR), 0);
    CHECK_INT(tccl_make_folder(check_at("a/b/c"), 0755, ERR), 0);
    CHECK_INT(stat(check_at("a/b/c"), &status), 0);
    CHECK(S_ISDIR(status.st_mode));
    CHECK_SAYS(tccl_make_folder(check_at("file/x"), 0755, ERR) == -1,
               "file: the folder can't be made: Not a directory");
    rmdir(check_at("a/b/c"));
    rmdir(check_at("a/b"));
    rmdir(check_at("a"));
}

TEST(json)
{
    cleanup_json json_t *json = json_pack("{s:i, s:[f, s]}", "one", 1, "list", 12.1, "x");
    const char *path = check_at("file");
    CHECK_INT(tccl_write_json(path, 0600, json, ERR), 0);
    cleanup_json json_t *back = tccl_read_json(path, 1000, ERR);
    CHECK(back && json_equal(json, back));
    CHECK_INT(tccl_write_file(path, 0600, "{\n \"a\": 1,\n \"a\": 2}", 19, ERR), 0);
    CHECK_SAYS(tccl_read_json(path, 1000, ERR) == NULL, "file:3:");
    CHECK_INT(tccl_write_file(path, 0600, "[1, 2", 5, ERR), 0);
    CHECK_SAYS(tccl_read_json(path, 1000, ERR) == NULL, "file:1:");
    CHECK_HOLDS(check_err.text, "not JSON");
}

/* Published XXH3 values of the empty input. */
TEST(hash)
{
    char hex[TCCL_HASH_HEX];
    CHECK(tccl_hash64("", 0) == 0x2d06800538d394c2ULL);
    tccl_hash128_hex("", 0, hex);
    CHECK_STR(hex, "99aa06d3014798d86001c324468d497f");
}

static uid_t owner_of(const char *name)
{
    struct stat status;
    return stat(check_at("%s", name), &status) == 0 ? status.st_uid : (uid_t)-1;
}

enum { OTHER = 65534 };

/* A file, a folder or a link of OTHER's. */
static void give(const char *name)
{
    CHECK_INT(lchown(check_at("%s", name), OTHER, OTHER), 0);
}

static void link_to(const char *target, const char *name)
{
    CHECK_INT(symlink(target, check_at("%s", name)), 0);
}

/* Links: root's in root's folder is followed, the other's as the other. */
static void check_ways(const char *target)
{
    struct stat status;
    link_to(target, "roots-link");
    link_to("user/link", "roots-second");
    link_to(target, "user/link");
    give("user/link");
    CHECK_OK(tccl_write_file(check_at("roots-link/file"), 0644, "x", 1, ERR));
    CHECK_INT(owner_of("target/file"), 0);
    const char *const led[] = {"user/link/new", "roots-second/new", "user/link/../target/new"};
    for (size_t i = 0; i < COUNT(led); i++) {
        CHECK_SAYS(tccl_write_file(check_at("%s", led[i]), 0644, "x", 1, ERR) == -1,
                   "Permission denied (as uid 65534");
        CHECK_INT(tccl_remove_file(check_at("user/link/file"), NULL), -1);
        CHECK_INT(owner_of("target/new"), (uid_t)-1);
    }
    CHECK_INT(tccl_make_folder(check_at("user/link/made"), 0755, NULL), -1);
    CHECK_INT(tccl_make_folder(check_at("user/made"), 0755, NULL), 0);
    CHECK_INT(owner_of("user/made"), OTHER);
    CHECK_INT(tccl_make_folder(check_at("user/root/made"), 0755, NULL), 0);
    CHECK_INT(owner_of("user/root/made"), 0);
    /* The other's link to a folder of his own is as good as the folder. */
    link_to("made", "user/second");
    give("user/second");
    CHECK_INT(tccl_write_file(check_at("user/second/file"), 0644, "x", 1, NULL), 0);
    CHECK_INT(owner_of("user/made/file"), OTHER);
    /* A circle. */
    link_to("circle", "user/circle");
    CHECK_INT(tccl_write_file(check_at("user/circle/file"), 0644, "x", 1, NULL), -1);
    /* Root's link that the other has brought into a folder where he may write. */
    CHECK_INT(mkdir(check_at("shared"), 0755) | chmod(check_at("shared"), 01777), 0);
    cleanup_free char *from = strdup(check_at("roots-link"));
    CHECK_INT(link(from, check_at("shared/brought")), 0);
    CHECK_INT(tccl_write_file(check_at("shared/brought/new"), 0644, "x", 1, NULL), -1);
    CHECK_INT(owner_of("target/new"), (uid_t)-1);
    CHECK(stat(check_at("."), &status) == 0 && geteuid() == 0);
}

/* What is read: no link to what the other may not read, nothing that isn't a file. */
static void check_reading(const char *target)
{
    char *data = NULL;
    size_t size;
    cleanup_free char *secret = strdup(check_at("target/secret"));
    CHECK_INT(tccl_write_file(secret, 0600, "secret", 6, NULL), 0);
    link_to(secret, "user/secret");
    give("user/secret");
    CHECK_INT(tccl_read_file(check_at("user/secret"), 100, &data, &size, ERR), -1);
    CHECK_INT(errno, EACCES);
    CHECK_INT(chmod(target, 0700), 0);
    CHECK_INT(tccl_read_file(check_at("user/link/file"), 100, &data, &size, NULL), -1);
    CHECK_INT(chmod(target, 0755), 0);
    CHECK_INT(tccl_read_file(check_at("user/link/file"), 100, &data, &size, NULL), 0);
    free(data);
    CHECK_INT(tccl_read_file(check_at("roots-second/file"), 100, &data, &size, NULL), 0);
    free(data);
    CHECK_INT(tccl_read_file("/proc/self/status", 100, &data, &size, NULL), 0);
    free(data);
    link_to("/dev/zero", "user/device");
    CHECK_INT(tccl_read_file(check_at("user/device"), 100, &data, &size, NULL), -1);
    CHECK_INT(errno, EINVAL);
}

/* What root's groups alone may write, a user whose folder is of such a group does not. */
static void check_groups(void)
{
    const gid_t groups[] = {0, 4711};
    gid_t before[64], after[64];
    int n_before = getgroups(64, before);
    CHECK(n_before >= 0 && setgroups(2, groups) == 0);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(mkdir(check_at("group"), 0755) | chmod(check_at("group"), 0770), 0);
        CHECK_INT(chown(check_at("group"), 0, groups[i]), 0);
        link_to("../group", "user/group");
        CHECK_INT(lchown(check_at("user/group"), OTHER, groups[i]), 0);
        CHECK_INT(chown(check_at("user"), OTHER, groups[i]), 0);
        CHECK_INT(tccl_write_file(check_at("user/group/new"), 0644, "x", 1, NULL), -1);
        CHECK_INT(tccl_write_file(check_at("user/new"), 0644, "x", 1, NULL), 0);
        CHECK_INT(tccl_remove_file(check_at("user/new"), NULL), 0);
        CHECK(getgroups(64, after) == 2 && memcmp(after, groups, sizeof(groups)) == 0);
        CHECK_INT(unlink(check_at("user/group")) | rmdir(check_at("group")), 0);
    }
    CHECK_INT(setgroups((size_t)n_before, before), 0);
    give("user");
}

static void check_not_written(const char *name, const char *why)
{
    CHECK_SAYS(tccl_write_output(check_at("%s", name), "new", 3, ERR) == -1, why);
}

/* Root's output in a folder of root's in which all may write, such as /tmp: links and pipes there
 * may be traps. */
static void check_output(void)
{
    cleanup_free char *file = strdup(check_at("target/output"));
    CHECK_INT(tccl_write_file(file, 0666, "old", 3, NULL), 0);
    CHECK_INT(mkdir(check_at("tmp"), 0755) | chmod(check_at("tmp"), 01777), 0);
    const char *const theirs[] = {"tmp/link", "tmp/new", "tmp/device", "tmp/pipe"};
    link_to(file, theirs[0]);
    link_to("nothing", theirs[1]);
    link_to("/dev/null", theirs[2]);
    CHECK_INT(mkfifo(check_at("%s", theirs[3]), 0600), 0);
    for (size_t i = 0; i < COUNT(theirs); i++) {
        give(theirs[i]);
        check_not_written(theirs[i], "may be of somebody else (it belongs to uid 65534");
    }
    link_to(file, "tmp/roots");
    CHECK_INT(tccl_write_output(check_at("tmp/roots"), "good", 4, NULL), 0);
    check_content(file, "good");
    CHECK_INT(tccl_write_output("/dev/null", "x", 1, NULL), 0);
    CHECK_INT(chmod(check_at("tmp"), 0777), 0);
    check_not_written("tmp/roots", "may be of somebody else (it belongs to uid 0");
    check_content(file, "good");
    CHECK_INT(mkfifo(check_at("target/pipe"), 0600), 0);
    check_not_written("target/pipe", "nobody reads from this pipe");
    cleanup_close int reader = open(check_at("target/pipe"), O_RDONLY | O_NONBLOCK);
    char text[8] = "";
    CHECK_INT(tccl_write_output(check_at("target/pipe"), "piped", 5, NULL), 0);
    CHECK(read(reader, text, sizeof(text)) == 5 && strcmp(text, "piped") == 0);
}

/* What is added to: the folder's owner's file, under one name. */
static void check_own_files(void)
{
    cleanup_free char *file = strdup(check_at("target/file"));
    int fd = tccl_open_own(check_at("user/log"), O_RDWR | O_CREAT, 0644, ERR);
    CHECK(fd >= 0 && close(fd) == 0);
    CHECK_INT(owner_of("user/log"), OTHER);
    CHECK_INT(link(file, check_at("user/hard")), 0);
    CHECK_INT(chmod(file, 0666), 0);
    CHECK_SAYS(tccl_open_own(check_at("user/hard"), O_RDWR, 0, ERR) == -1, "belongs to uid 0");
    CHECK_SAYS(tccl_open_own(file, O_RDWR, 0, ERR) == -1, "another name");
    CHECK_INT(unlink(check_at("user/hard")), 0);
    fd = tccl_open_own(file, O_RDWR, 0, NULL);
    CHECK(fd >= 0 && close(fd) == 0);
    link_to(file, "user/link-to-file");
    CHECK_INT(tccl_open_own(check_at("user/link-to-file"), O_RDWR, 0, NULL), -1);
    CHECK_INT(tccl_folder_check_own(check_at("target"), 0, NULL), 0);
    CHECK_INT(tccl_folder_check_own(check_at("roots-link"), 0, NULL), 0);
    const char *const others[] = {"user", "user/root", "user/link", "roots-second"};
    for (size_t i = 0; i < COUNT(others); i++)
        CHECK_INT(tccl_folder_check_own(check_at("%s", others[i]), 0, NULL), -1);
    CHECK_INT(chmod(check_at("shared"), 0777) | mkdir(check_at("shared/mine"), 0755), 0);
    CHECK_INT(tccl_folder_check_own(check_at("shared/mine"), 0, NULL), -1);
}

static int reads(const char *name, struct tccl_error *err)
{
    cleanup_free char *data = NULL;
    size_t size;
    return tccl_read_file(check_at("%s", name), 100, &data, &size, err);
}

/* For root that may not become others. */
static bool reads_right(void)
{
    static const char *const not [] = {"user/secret", "user/link/file", "user/roots"};
    for (size_t i = 0; i < sizeof(not ) / sizeof(*not ); i++) {
        if (reads(not [i], ERR) == 0 || !strstr(check_err.text, "CAP_SETUID"))
            return false;
    }
    return reads("user/file", NULL) == 0 && reads("user/private", NULL) == 0 &&
           reads("target/secret", NULL) == 0;
}

/* Root that may not become others writes nothing where it would have to, and says so; and reads
 * there what the other may. */
static void check_denied(void)
{
    CHECK_INT(tccl_write_file(check_at("user/private"), 0600, "x", 1, NULL), 0);
    cleanup_close int fd = open(check_at("user/roots"), O_WRONLY | O_CREAT, 0600);
    CHECK(fd >= 0);
    pid_t child = fork();
    if (child == 0) {
        struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct caps[2];
        if (syscall(SYS_capget, &head, caps) != 0)
            _exit(2);
        caps[0].effective &= ~(1U << CAP_SETUID);
        caps[0].permitted &= ~(1U << CAP_SETUID);
        if (syscall(SYS_capset, &head, caps) != 0)
            _exit(3);
        bool refused = tccl_write_file(check_at("user/denied"), 0644, "x", 1, ERR) < 0 &&
                       strstr(check_err.text, "CAP_SETUID") &&
                       tccl_make_folder(check_at("user/denied"), 0755, NULL) < 0 &&
                       tccl_open_own(check_at("user/denied"), O_RDWR | O_CREAT, 0644, NULL) < 0;
        bool own = tccl_write_file(check_at("target/denied"), 0644, "x", 1, NULL) == 0;
        _exit(!refused ? 4 : !own ? 5 : !reads_right() ? 6 : 0);
    }
    CHECK_INT(check_exit(child), 0);
    CHECK_INT(owner_of("user/denied"), (uid_t)-1);
}

/* Below a folder of another user's, a folder of root's stays one, and links lead nowhere. */
TEST(others)
{
    cleanup_free char *target = strdup(check_at("target")), *command = NULL;
    if (getuid() != 0) {
        printf("not as root: nothing is written as somebody else\n");
        return;
    }
    CHECK_INT(chmod(check_folder(), 0755) | mkdir(check_at("user"), 0755) | mkdir(target, 0755), 0);
    give("user");
    CHECK_INT(mkdir(check_at("user/root"), 0755), 0);
    CHECK_OK(tccl_write_file(check_at("user/root/file"), 0644, "x", 1, ERR));
    CHECK_INT(owner_of("user/root/file"), 0);
    CHECK_OK(tccl_write_file(check_at("user/file"), 0644, "x", 1, ERR));
    CHECK_INT(owner_of("user/file"), OTHER);
    check_ways(target);
    check_reading(target);
    check_groups();
    check_output();
    check_own_files();
    check_denied();
    CHECK_INT(tccl_remove_file(check_at("target/file"), NULL), 0);
    CHECK_INT(tccl_remove_file(check_at("user/root/file"), NULL), 0);
    CHECK_INT(tccl_remove_file(check_at("user/file"), NULL), 0);
    CHECK(asprintf(&command, "cd '%s' && rm -r user target shared tmp roots-link roots-second",
                   check_folder()) > 0);
    CHECK_INT(system(command), 0);
}

TEARDOWN
{
    unlink(check_at("file"));
    check_nothing_left();
}
