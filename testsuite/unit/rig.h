/* rig.h: a munged of our own in a temporary folder, and any number of real tccld on loopback. */
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>

#include "check.h"

enum { RIG_NODES = 40, RIG_PATIENCE_MS = 120000 };

static struct rig {
    char folder[64];
    char run[64]; /* before /nN/run, each node's RunDir: the folder */
    char munge_socket[96];
    pid_t munged;
    pid_t tccld[RIG_NODES + 1]; /* node n1 is tccld[1] */
    unsigned short port[RIG_NODES + 1];
} rig;

/* A path in a node's folder, or with 0 in that of all. Static. */
static inline char *rig_at(const char *name, int node)
{
    char path[256];
    snprintf(path, sizeof(path), node ? "%s/n%d/%s" : "%s/%.0d%s", rig.folder, node, name);
    return check_intern(path);
}

static inline void rig_write(const char *path, const void *data, size_t size, mode_t mode)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        perror(path);
        exit(1);
    }
}

static pid_t rig_spawn(char *const argv[], const char *log)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(fd, 1);
    dup2(fd, 2);
    execvp(argv[0], argv);
    perror(argv[0]);
    _exit(127);
}

/* Until somebody listens at the unix socket. Returns 0 or -1. */
static int rig_await(const char *socket_path, pid_t pid)
{
    for (int ms = 0; ms < RIG_PATIENCE_MS; ms += 5) {
        struct stat stat_;
        if (stat(socket_path, &stat_) == 0)
            return 0;
        if (waitpid(pid, NULL, WNOHANG) == pid)
            return -1;
        poll(NULL, 0, 5);
    }
    return -1;
}

static void rig_stop_munged(void)
{
    if (rig.munged <= 0)
        return;
    kill(rig.munged, SIGCONT);
    kill(rig.munged, SIGTERM);
    waitpid(rig.munged, NULL, 0);
    rig.munged = 0;
}

static inline int rig_stop_tccld(int node, int signal_)
{
    int status = -1;
    if (rig.tccld[node] <= 0)
        return -1;
    kill(rig.tccld[node], SIGCONT);
    kill(rig.tccld[node], signal_);
    waitpid(rig.tccld[node], &status, 0);
    rig.tccld[node] = 0;
    return status;
}

/* Ends all, and removes what is left of them: steps that had no end have a file of the shim's in
 * /dev/shm. */
static void rig_end(void)
{
    char command[512];
    for (int i = 1; i <= RIG_NODES; i++)
        rig_stop_tccld(i, SIGTERM);
    rig_stop_munged();
    if (getenv("TCCL_KEEP") || !*rig.folder)
        return;
    snprintf(command, sizeof(command),
             "for plan in %s/n*/run/*-*; do [ ! -d $plan ] || rm -f "
             "/dev/shm/tccl-*-\"${plan##*-}\".*; done; rm -rf %s %s",
             rig.run, rig.run, rig.folder);
    if (system(command) != 0)
        fprintf(stderr, "%s stays\n", rig.folder);
}

static void rig_start_munged(void)
{
    char *key = rig_at("munge.key", 0), *log = rig_at("munged.log", 0),
         *seed = rig_at("munged.seed", 0), *pid = rig_at("munged.pid", 0);
    char *argv[] = {"munged",     "--force",     "--foreground",
                    "--key-file", key,           "--log-file",
                    log,          "--seed-file", seed,
                    "--pid-file", pid,           "--num-threads",
                    "2",          "--socket",    rig.munge_socket,
                    NULL};
    char path[4096];
    snprintf(path, sizeof(path), "%s:/usr/sbin:/sbin", getenv("PATH") ? getenv("PATH") : "/bin");
    setenv("PATH", path, 1);
    rig.munged = rig_spawn(argv, log);
    if (rig_await(rig.munge_socket, rig.munged) != 0) {
        printf("skipped: munged does not start: see %s\n", log);
        exit(77);
    }
}

/* The folder, readable for all, and munged in it; all goes when the test ends. */
static void rig_begin(void)
{
    char key[128];
    strcpy(rig.folder, "/tmp/tccl-rig-XXXXXX");
    if (!mkdtemp(rig.folder) || chmod(rig.folder, 0755) != 0) {
        perror(rig.folder);
        exit(1);
    }
    strcpy(rig.run, rig.folder);
    atexit(rig_end);
    setenv("SLURM_CONF", rig_at("slurm.conf", 0), 1); /* no slurmd is tccld's, whatever runs here */
    snprintf(rig.munge_socket, sizeof(rig.munge_socket), "%s/munge.socket", rig.folder);
    for (size_t i = 0; i < sizeof(key); i++)
        key[i] = (char)(i * 37 + getpid());
    rig_write(rig_at("munge.key", 0), key, sizeof(key), 0600);
    rig_start_munged();
}

/* RunDir in memory, as sites have it; before there are nodes. */
static inline void rig_run_in_memory(void)
{
    char path[sizeof(rig.run) + 8];
    snprintf(rig.run, sizeof(rig.run), "/dev/shm%.50s", strrchr(rig.folder, '/'));
    for (int i = 0; i <= RIG_NODES; i++) {
        snprintf(path, sizeof(path), i ? "%s/n%d" : "%s", rig.run, i);
        mkdir(path, 0755);
    }
}

/* A port that nobody listens at, below those that outgoing connections get. */
static inline unsigned short rig_port(void)
{
    static unsigned next;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    for (int tries = 0; tries < 10000; tries++) {
        unsigned port = 12000 + ((unsigned)getpid() * 61 + next++) % 20000;
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        address.sin_port = htons((unsigned short)port);
        int failed = bind(fd, (struct sockaddr *)&address, sizeof(address));
        close(fd);
        if (!failed)
            return (unsigned short)port;
    }
    fprintf(stderr, "no free port\n");
    exit(1);
}

/* tccl.conf of nodes n1 to nN, at the ports of the rig. accounting: a node's name; "": none. */
static inline void rig_write_conf(int nodes, const char *accounting)
{
    char text[8192];
    int size =
        snprintf(text, sizeof(text),
                 "[tccl]\nSocket=%s/%%n/tccld.sock\nRunDir=%s/%%n/run\nCacheDir=%s/%%n/cache\n"
                 "StateDir=%s/%%n/state\nMachine=%s/%%n/machine.json\nMungeSocket=%s\n"
                 "Squeue=none\nMetricsFile=%s/%%n/metrics.prom\n"
                 "BindAddr=127.0.0.1\nTccldUser=%s\nMungeUser=%s\nAccountingHost=%s\nAliveTimeout="
                 "10s\n[peers]\n",
                 rig.folder, rig.run, rig.folder, rig.folder, rig.folder, rig.munge_socket,
                 rig.folder, getpwuid(getuid())->pw_name, getpwuid(getuid())->pw_name, accounting);
    for (int i = 1; i <= nodes; i++)
        size += snprintf(text + size, sizeof(text) - (size_t)size, "n%d=127.0.0.1:%u\n", i,
                         rig.port[i]);
    rig_write(rig_at("tccl.conf", 0), text, (size_t)size, 0644);
}

/* A tccld of that node, that logs there. Returns its pid. */
static inline pid_t rig_spawn_tccld(int node, const char *log)
{
    char name[16];
    snprintf(name, sizeof(name), "n%d", node);
    char *argv[] = {getenv("TCCL_TCCLD"), "-N", name, "-f", rig_at("tccl.conf", 0), NULL};
    if (!argv[0]) {
        printf("skipped: TCCL_TCCLD does not say where tccld is\n");
        exit(77);
    }
    return rig_spawn(argv, log);
}

static inline void rig_start_tccld(int node)
{
    const char *log = rig_at("tccld.log", node), *socket_path = rig_at("tccld.sock", node);
    unlink(socket_path);
    rig.tccld[node] = rig_spawn_tccld(node, log);
    if (rig_await(socket_path, rig.tccld[node]) != 0) {
        fprintf(stderr, "tccld %d does not start: see %s\n", node, log);
        setenv("TCCL_KEEP", "1", 1);
        exit(1);
    }
}
