/* What the plugin goes by while it waits for tccld: who waits for slurmstepd, which accepts
 * connections on a socket of its own, and the note that a tccld hung. */
#include <sys/socket.h>
#include <sys/un.h>

#include "base/fileio.h"
#include "check.h"
#include "plugin/plugin.h"

enum { NOBODY = 65534 };

static struct sockaddr_un address_of(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", check_at("%s", name));
    return address;
}

static int listen_at(const char *name)
{
    struct sockaddr_un address = address_of(name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(chmod(address.sun_path, 0777) == 0 && listen(fd, 8) == 0);
    return fd;
}

/* Somebody connects, and holds the connection until he is ended; *accepted: its end here. */
static pid_t connect_as(uid_t uid, const char *name, int listener, int *accepted)
{
    struct sockaddr_un address = address_of(name);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if ((uid != getuid() && setresuid(uid, uid, uid) != 0) ||
            connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
            _exit(1);
        pause();
        _exit(0);
    }
    *accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK(pid > 0 && *accepted >= 0);
    return pid;
}

static void hang_up(pid_t pid, int accepted)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(accepted);
}

TEST(signals)
{
    struct signal_watch watch;
    int early, brief, signal, other;
    cleanup_close int step = listen_at("n1_7.0"), near = listen_at("n1_7.01"),
                      far = listen_at("n11_7.0");
    CHECK(far >= 0);
    pid_t first = connect_as(getuid(), "n1_7.0", step, &early);
    signal_watch_begin(&watch, "n1", 7, 0);
    CHECK_INT(watch.n_first, 1);
    pid_t near_one = connect_as(getuid(), "n1_7.01", near, &other);
    CHECK(!signal_watch_look(&watch, 1000));
    pid_t second = connect_as(getuid(), "n1_7.0", step, &brief);
    CHECK(!signal_watch_look(&watch, 1300)); /* it has just come */
    hang_up(second, brief);
    pid_t third = connect_as(getuid(), "n1_7.0", step, &signal);
    CHECK(!signal_watch_look(&watch, 1599)); /* too short a while ago */
    CHECK(!signal_watch_look(&watch, 1600)); /* that one was answered, another has come */
    CHECK(signal_watch_look(&watch, 1900));
    hang_up(third, signal);
    CHECK(!signal_watch_look(&watch, 2200));
    hang_up(first, early);
    hang_up(near_one, other);
}

/* Slurm lets everybody connect to that socket. */
TEST(strangers)
{
    struct signal_watch watch;
    int held[SIGNAL_PEERS], signal;
    pid_t pids[SIGNAL_PEERS];
    if (getuid() != 0)
        return;
    CHECK(unlink(address_of("n1_7.0").sun_path) == 0);
    cleanup_close int step = listen_at("n1_7.0");
    for (int i = 0; i < SIGNAL_PEERS; i++)
        pids[i] = connect_as(NOBODY, "n1_7.0", step, &held[i]);
    signal_watch_begin(&watch, "n1", 7, 0);
    CHECK_INT(watch.n_first, 0);
    CHECK(!signal_watch_look(&watch, 1000) && !signal_watch_look(&watch, 1300));
    pid_t real = connect_as(0, "n1_7.0", step, &signal);
    CHECK(!signal_watch_look(&watch, 1600) && signal_watch_look(&watch, 1900));
    hang_up(real, signal);
    for (int i = 0; i < SIGNAL_PEERS; i++)
        hang_up(pids[i], held[i]);
}

TEST(stamp)
{
    const char *folder = check_folder(), *path = check_at("hung");
    CHECK_INT(hung_stamp_age(folder, 100000), -1);
    hung_stamp_put(folder, 100000);
    CHECK_INT(hung_stamp_age(folder, 100000), 0);
    CHECK_INT(hung_stamp_age(folder, 100000 + HUNG_MS - 1), HUNG_MS - 1);
    CHECK_INT(hung_stamp_age(folder, 100000 + HUNG_MS), -1);
    CHECK_INT(hung_stamp_age(folder, 99999), -1); /* the machine was started again */
    CHECK_INT(unlink(path), 0);
    CHECK_INT(symlink("/proc/uptime", path), 0);
    CHECK_INT(hung_stamp_age(folder, 0), -1);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(mkfifo(path, 0600), 0);
    CHECK_INT(hung_stamp_age(folder, 0), -1);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(tccl_write_file(path, 0644, "soon\n", 5, NULL), 0);
    CHECK_INT(hung_stamp_age(folder, 0), -1);
}
