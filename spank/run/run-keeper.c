/* run-keeper.c: the command is to be the process that the caller has started, with its parent, its
 * terminal and its signals. So what has to go on beside it is another process: an orphan in a
 * session of its own, which nobody waits for and no signal of the terminal reaches. Its files are
 * in a folder of its own in /tmp, locked as long as it lives. What a keeper that was killed has
 * left, and a record that could not be kept, is taken up by the next one, at its end. */
#include "run/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/command.h"
#include "base/fileio.h"
#include "client/client.h"
#include "client/frame.h"
#include "plugin/plugin.h"
#include "records/records.h"

#define PARENT "/tmp"
#define NAME "tccl-run."

enum {
    LOOK_MS = 250,    /* between two looks at the command, where there is no pidfd */
    LEAVE_MS = 2000,  /* for tccld to end the step, */
    STOP_MS = 5000,   /* and to end */
    COPY_MS = 10000,  /* for the file of records, which may be on another machine */
    OLD_S = 60,       /* a folder without a lock is nobody's by then */
    LOST_S = 2592000, /* the record in it is given up, */
    TAKEN_UP = 8,     /* and so many are tried at once */
    ENTRIES = 100000, /* of /tmp, that are looked at */
};

/* What the keeper says once. */
struct word {
    bool ready;
    char folder[RUN_FOLDER];
    char why[400];
};
_Static_assert(sizeof(struct word) <= PIPE_BUF, "it is written at once");

struct keeper {
    const struct run_keeping *keeping;
    pid_t command, tccld;
    int64_t started; /* of the command, as /proc has it */
    int pidfd;       /* of the command; -1: this kernel has none */
    char folder[RUN_FOLDER];
    int lock;
};

/* ---- files ---- */

static int remove_one(const char *path, const struct stat *stat UNUSED, int type UNUSED,
                      struct FTW *at UNUSED)
{
    remove(path);
    return 0;
}

/* What the shim shares below /dev/shm has the digits of the step's folder. */
static void remove_shared(const char *folder)
{
    char run[RUN_FOLDER + 8], path[96];
    snprintf(run, sizeof(run), "%s/run", folder);
    cleanup_dir DIR *steps = opendir(run);
    for (struct dirent *entry; steps && (entry = readdir(steps));) {
        const char *digits = strrchr(entry->d_name, '-');
        if (!digits || strspn(digits + 1, "0123456789abcdef") != 16 || digits[17])
            continue;
        snprintf(path, sizeof(path), "/dev/shm/tccl-%u-%s.0", geteuid(), digits + 1);
        unlink(path);
    }
}

static void remove_folder(const char *folder)
{
    remove_shared(folder);
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Returns how many seconds ago it was left by one that was killed, or by one that could not keep
 * the record; -1: it wasn't. */
static int64_t left_ago(const char *path)
{
    struct stat stat;
    cleanup_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &stat) != 0 || stat.st_uid != geteuid() ||
        stat.st_mtime + OLD_S >= time(NULL) || flock(fd, LOCK_EX | LOCK_NB) != 0)
        return -1;
    return time(NULL) - stat.st_mtime;
}

static int make_folder(struct keeper *keeper, struct tccl_error *err)
{
    strcpy(keeper->folder, PARENT "/" NAME "XXXXXX");
    if (!mkdtemp(keeper->folder)) {
        int code = errno;
        keeper->folder[0] = '\0';
        return tccl_fail(err, PARENT ": no folder can be made: %s", strerror(code));
    }
    keeper->lock = open(keeper->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return keeper->lock >= 0 && flock(keeper->lock, LOCK_EX | LOCK_NB) == 0
               ? 0
               : tccl_fail(err, "%s: %s", keeper->folder, strerror(errno));
}

static int write_conf(const struct keeper *keeper, struct tccl_error *err)
{
    const char *folder = keeper->folder;
    cleanup_free char *text = NULL;
    char path[RUN_FOLDER + 16];
    int size =
        asprintf(&text,
                 "[tccl]\nSocket=%s/socket\nRunDir=%s/run\nStateDir=%s/state\n"
                 "MungeSocket=%s/munge\nAccountingHost=%s\nSqueue=none\n%s",
                 folder, folder, folder, folder, keeper->keeping->node, keeper->keeping->conf);
    snprintf(path, sizeof(path), "%s/conf", folder);
    return size > 0 ? tccl_write_file(path, 0600, text, (size_t)size, err)
                    : tccl_fail(err, "out of memory");
}

/* ---- the command ---- */

static bool has_ended(const struct keeper *keeper)
{
    struct tccl_process now;
    if (kill(keeper->command, 0) != 0 && errno == ESRCH)
        return true;
    return tccl_process_look(keeper->command, &now) == 0 &&
           (now.started != keeper->started || now.state == 'Z' || now.state == 'X');
}

/* ---- tccld ---- */

/* The last line of what tccld has logged. */
static int fail_by_log(const struct keeper *keeper, struct tccl_error *err)
{
    char path[RUN_FOLDER + 8];
    cleanup_free char *text = NULL;
    size_t size;
    snprintf(path, sizeof(path), "%s/log", keeper->folder);
    if (tccl_read_file(path, 1 << 20, &text, &size, NULL) != 0)
        return tccl_fail(err, "tccld has ended");
    while (size > 0 && text[size - 1] == '\n')
        text[--size] = '\0';
    const char *line = strrchr(text, '\n');
    line = line ? line + 1 : text;
    const char *prefix = strstr(line, "tccl: ");
    return tccl_fail(err, "tccld: %.300s", prefix ? prefix + 6 : line);
}

static void stop_tccld(struct keeper *keeper)
{
    int64_t end = tccl_now_ms() + STOP_MS;
    if (keeper->tccld <= 0)
        return;
    kill(keeper->tccld, SIGTERM);
    while (waitpid(keeper->tccld, NULL, WNOHANG) == 0) {
        if (tccl_now_ms() >= end)
            kill(keeper->tccld, SIGKILL);
        poll(NULL, 0, 2);
    }
}

/* ---- records ---- */

struct copying {
    const char *to;
    char from[RUN_FOLDER + 32];
};

static void copy_record(const void *what, void *word)
{
    const struct copying *copying = what;
    struct tccl_records *records;
    if (tccl_records_open(copying->to, NULL, &records, NULL) != 0)
        return;
    *(bool *)word = tccl_records_copy(records, copying->from, NULL) == 0;
    tccl_records_close(records);
}

/* Removes the folder, if the record in it is kept, where there is one and one is wanted. */
static void clear_folder(const char *folder, const char *records)
{
    struct copying copying = {.to = records};
    bool kept = false;
    snprintf(copying.from, sizeof(copying.from), "%s/state/records.db", folder);
    if (!records || access(copying.from, F_OK) != 0 ||
        (child_word(copy_record, &copying, &kept, sizeof(kept), COPY_MS, NULL) == 0 && kept))
        remove_folder(folder);
}

static void sweep(const char *records)
{
    char path[RUN_FOLDER];
    cleanup_dir DIR *parent = opendir(PARENT);
    struct dirent *entry;
    int taken_up = 0;
    for (int i = 0; parent && i < ENTRIES && (entry = readdir(parent)); i++) {
        if (strncmp(entry->d_name, NAME, strlen(NAME)) != 0 ||
            snprintf(path, sizeof(path), PARENT "/%s", entry->d_name) >= (int)sizeof(path))
            continue;
        int64_t ago = left_ago(path);
        if (ago > LOST_S)
            remove_folder(path);
        else if (ago >= 0 && taken_up++ < TAKEN_UP)
            clear_folder(path, records);
    }
}

/* ---- the keeper ---- */

/* Whatever the caller has open is not held open by us. */
static void let_go(int kept)
{
    cleanup_dir DIR *open_ones = opendir("/proc/self/fd");
    for (struct dirent *entry; open_ones && (entry = readdir(open_ones));) {
        int fd = atoi(entry->d_name);
        if (fd > 2 && fd != kept && fd != dirfd(open_ones))
            close(fd);
    }
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= 2; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
    if (chdir("/") != 0)
        _exit(1);
}

static int begin(struct keeper *keeper, int64_t deadline, struct tccl_error *err)
{
    if (make_folder(keeper, err) != 0 || write_conf(keeper, err) != 0)
        return -1;
    keeper->tccld = fork();
    if (keeper->tccld == 0) {
        char conf[RUN_FOLDER + 8], log[RUN_FOLDER + 8];
        snprintf(conf, sizeof(conf), "%s/conf", keeper->folder);
        snprintf(log, sizeof(log), "%s/log", keeper->folder);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
            _exit(1);
        unsetenv("LD_PRELOAD");
        unsetenv("TCCL_CONF");
        execl(keeper->keeping->tccld, "tccld", "--alone", "--config", conf, "--node",
              keeper->keeping->node, (char *)NULL);
        dprintf(2, "tccl: %s: %s\n", keeper->keeping->tccld, strerror(errno));
        _exit(1);
    }
    if (keeper->tccld < 0)
        return tccl_fail(err, "fork: %s", strerror(errno));
    char path[RUN_FOLDER + 8];
    snprintf(path, sizeof(path), "%s/socket", keeper->folder);
    while (tccl_now_ms() < deadline && !has_ended(keeper)) {
        cleanup_close int fd =
            access(path, F_OK) == 0 ? tccl_frame_connect(path, tccl_now_ms() + 100, NULL) : -1;
        if (fd >= 0)
            return 0;
        if (waitpid(keeper->tccld, NULL, WNOHANG) != 0) {
            keeper->tccld = -1;
            return fail_by_log(keeper, err);
        }
        poll(NULL, 0, 2);
    }
    return tccl_fail(err, "the tccld that was started beside the command does not answer in time");
}

static void keep(const struct run_keeping *keeping, pid_t command, int say, int ms)
{
    static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2};
    struct keeper keeper = {.keeping = keeping, .command = command, .tccld = -1, .lock = -1};
    struct tccl_process started;
    struct tccl_error err = {0};
    struct word word = {.ready = false};
    char path[RUN_FOLDER + 8];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
        signal(ignored[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN);
    prctl(PR_SET_NAME, "tccl-run-keep");
    umask(077);
    if (tccl_process_look(command, &started) != 0)
        _exit(1);
    keeper.started = started.started;
    let_go(say);
    keeper.pidfd = (int)syscall(SYS_pidfd_open, command, 0);
    word.ready = begin(&keeper, tccl_now_ms() + ms, &err) == 0;
    strcpy(word.folder, keeper.folder);
    snprintf(word.why, sizeof(word.why), "%.390s", err.text);
    bool heard = word.ready && write(say, &word, sizeof(word)) == (ssize_t)sizeof(word);
    if (heard) {
        close(say);
        struct pollfd end = {.fd = keeper.pidfd, .events = POLLIN};
        while (!has_ended(&keeper))
            poll(&end, 1, keeper.pidfd >= 0 ? -1 : LOOK_MS);
        snprintf(path, sizeof(path), "%s/socket", keeper.folder);
        cleanup_close int fd = tccl_frame_connect(path, tccl_now_ms() + LEAVE_MS, NULL);
        if (fd >= 0)
            tccl_client_leave(fd, &keeping->key, LEAVE_MS, NULL);
    }
    stop_tccld(&keeper);
    if (*keeper.folder)
        clear_folder(keeper.folder, heard ? keeping->records : NULL);
    sweep(keeping->records);
    if (!word.ready && write(say, &word, sizeof(word)) < 0)
        _exit(1);
    _exit(0);
}

int run_keeper_start(const struct run_keeping *keeping, int ms, char folder[static RUN_FOLDER],
                     struct tccl_error *err)
{
    struct word word = {.ready = false};
    pid_t command = getpid();
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return tccl_fail(err, "pipe: %s", strerror(errno));
    cleanup_close int mine = ends[0];
    pid_t child = fork();
    if (child == 0) {
        setsid();
        if (fork() == 0)
            keep(keeping, command, ends[1], ms);
        _exit(0);
    }
    close(ends[1]);
    if (child < 0)
        return tccl_fail(err, "fork: %s", strerror(errno));
    waitpid(child, NULL, 0);
    if (child_hear(mine, tccl_now_ms() + ms + STOP_MS, &word, sizeof(word)) != 0)
        return tccl_fail(
            err, "can't start a tccld beside the command: the process that starts it was killed");
    if (!word.ready)
        return tccl_fail(err, "%s", word.why);
    strcpy(folder, word.folder);
    return 0;
}
