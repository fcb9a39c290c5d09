/* profile-peer.c: tccl-profile peer: the other end of another node's network transfers, until a
 * signal ends it. Each connection has a process of its own. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fields.h"
#include "client/credential.h"
#include "command/profile-command.h"
#include "discover/discover.h"
#include "measure/peer/peer.h"

enum {
    LISTENERS = TCCL_PEER_PLACES,
    WHERE = 1024, /* bytes of the text about them */
    CONNECTIONS = 64,
    PLACE = NI_MAXHOST + NI_MAXSERV,
    MUNGE_MS = 2000,
    HELLO_MS = 5000,
    TRAFFIC = 96,
    REST_MS = 250,        /* before the next try to accept, without descriptors or memory */
    HELLO_ALARM = 15,     /* seconds, should munged never answer */
    RDMA_BYTES = 8 << 20, /* of memory that a guest may reach */
};

static const struct tccl_peer_limits limits = {.idle_ms = 3600 * 1000, .stall_ms = 30 * 1000};
/* By RDMA nothing is said on the connection; when the guest is gone without a word, TCP's own
 * probes end it. */
static const struct tccl_peer_limits rdma_limits = {.idle_ms = -1, .stall_ms = 30 * 1000};

struct guest {
    pid_t pid; /* 0: none */
    char from[PLACE];
};

struct peer {
    const struct profile_options *options;
    struct tccl_trust trust;
    int listeners[LISTENERS], n_listeners, signals;
    char where[WHERE]; /* "10.0.0.2 (mlx5_0), 10.0.1.2 (mlx5_1)" */
    struct guest guests[CONNECTIONS];
    int64_t rests_until; /* tccl_now_ms */
    bool rested;         /* and it was said */
};

/* What there is to say of a connection. */
struct ending {
    uid_t user; /* (uid_t)-1: nobody has said */
    struct tccl_peer_count count;
    char device[TCCL_RDMA_NAME]; /* "": by TCP */
    double seconds;
};

static const struct ending nothing = {.user = (uid_t)-1};

/* ---- words ---- */

static void print_line(const struct peer *peer, json_t *json, const char *text)
{
    cleanup_json json_t *owned = json;
    if (peer->options->quiet)
        return;
    if (peer->options->json && owned)
        json_dumpf(owned, stdout, JSON_COMPACT | TCCL_JSON_SHOWN);
    else
        fputs(text, stdout);
    putchar('\n');
    fflush(stdout);
}

/* why: NULL for an end in order. */
static void print_end(const struct peer *peer, const char *from, const struct ending *ending,
                      const char *why)
{
    char text[PLACE + 256 + sizeof((struct tccl_error *)0)->text], user[32] = "", traffic[TRAFFIC];
    if (ending->user != (uid_t)-1)
        snprintf(user, sizeof(user), "user %u, ", (unsigned)ending->user);
    if (ending->device[0]) /* the guest does all, and this side sees nothing of it */
        snprintf(traffic, TRAFFIC, "RDMA with %s", ending->device);
    else
        snprintf(traffic, TRAFFIC, "received %.3f GB, sent %.3f GB",
                 (double)ending->count.received / 1e9, (double)ending->count.sent / 1e9);
    snprintf(text, sizeof(text), "%s: %s%s in %.1f s%s%s", from, user, traffic, ending->seconds,
             why ? ": " : "", why ? why : "");
    print_line(
        peer,
        json_pack("{s:s, s:s, s:o, s:I, s:I, s:s?, s:f, s:s?}", "event", "end", "from", from, "uid",
                  ending->user == (uid_t)-1 ? json_null() : json_integer(ending->user), "received",
                  (json_int_t)ending->count.received, "sent", (json_int_t)ending->count.sent,
                  "rdma", ending->device[0] ? ending->device : NULL, "seconds", ending->seconds,
                  "error", why),
        text);
}

/* ---- before ---- */

/* Without munge nobody can say who they are, and neither can we. */
static int check_munge(const struct peer *peer, struct tccl_error *err)
{
    struct tccl_error why = {0};
    cleanup_free char *cred = NULL;
    if (peer->trust.anybody) {
        fprintf(stderr, "tccl: --no-munge: anybody who reaches this port is served\n");
        return 0;
    }
    if (tccl_cred_encode(peer->trust.munge, geteuid(), "peer", 4, tccl_now_ms() + MUNGE_MS, &cred,
                         &why) == 0)
        return 0;
    return tccl_fail(err,
                     "%.300s: start munged, or use --no-munge, here and with run, where nobody "
                     "else can reach this port",
                     why.text);
}

/* Returns 0, or why not: a number of errno. */
static int open_listener(struct peer *peer, const struct sockaddr *address, socklen_t size,
                         const char *nic)
{
    cleanup_close int fd =
        socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind(fd, address, size) != 0 || listen(fd, CONNECTIONS) != 0)
        return errno;
    peer->listeners[peer->n_listeners++] = fd;
    fd = -1;
    size_t used = strlen(peer->where);
    char host[NI_MAXHOST];
    if (getnameinfo(address, size, host, sizeof(host), NULL, 0, NI_NUMERICHOST) == 0)
        snprintf(peer->where + used, WHERE - used, *nic ? "%s%.100s (%s)" : "%s%.100s",
                 used > 0 ? ", " : "", host, nic);
    return 0;
}

/* The first reason, or that the port is taken. */
static void note_why(int *why, int failed)
{
    if (*why == 0 || failed == EADDRINUSE)
        *why = failed;
}

static int no_port(const char *where, uint16_t port, int why, struct tccl_error *err)
{
    return tccl_fail(err, "%s port %u: %s%s", where, port, strerror(why),
                     why == EADDRINUSE ? ": see who listens there (ss -ltnp), or take another port "
                                         "by --listen"
                                       : "");
}

/* On the addresses that a name has, one at least. */
static int listen_on_name(struct peer *peer, const char *host, uint16_t port,
                          struct tccl_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
    char number[8];
    int why = 0;
    snprintf(number, sizeof(number), "%u", port);
    int code = getaddrinfo(host, number, &hints, &found);
    if (code != 0)
        return tccl_fail(err, "--listen %s: %s", host, gai_strerror(code));
    for (struct addrinfo *each = found; each && peer->n_listeners < LISTENERS; each = each->ai_next)
        note_why(&why, open_listener(peer, each->ai_addr, each->ai_addrlen, ""));
    freeaddrinfo(found);
    if (peer->n_listeners > 0 && why != EADDRINUSE)
        return 0;
    return no_port(host, port, why, err);
}

/* This node's NICs: of the description that tccl-profile init has written, else as it would find
 * them. */
static int find_nics(const struct peer *peer, struct tccl_machine *machine, struct tccl_error *err)
{
    const struct profile_options *options = peer->options;
    struct tccl_found found;
    if (tccl_machine_read(options->machine ? options->machine : options->node, machine, NULL) == 0)
        return 0;
    if (profile_machine(options, &found, err) < 0)
        return tccl_fail_in(err,
                            "which NICs to serve is not known (say where to listen by --listen)");
    *machine = found.site.machine;
    return 0;
}

/* On the addresses of the NICs: those of other networks are none of its business. */
static int listen_on_nics(struct peer *peer, uint16_t port, struct tccl_error *err)
{
    struct tccl_peer_place places[TCCL_PEER_PLACES];
    struct tccl_machine machine;
    int why = 0;
    if (find_nics(peer, &machine, err) != 0)
        return -1;
    int count = tccl_peer_places(&machine, port, places, err);
    for (int i = 0; i < count; i++)
        note_why(&why, open_listener(peer, &places[i].address.any, sizeof(places[i].address),
                                     places[i].nic));
    if (count < 0 || (peer->n_listeners > 0 && why != EADDRINUSE))
        return count < 0 ? -1 : 0;
    return no_port("the NICs' addresses,", port, why, err);
}

static int open_signals(struct peer *peer, struct tccl_error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    peer->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return peer->signals < 0 ? tccl_fail(err, "signalfd: %s", strerror(errno)) : 0;
}

/* ---- a connection ---- */

/* Lends memory to a guest who wants RDMA, agrees, and serves until the end. */
static int serve_traffic(const struct peer *peer, int fd, const struct tccl_peer_guest *guest,
                         int64_t deadline, struct ending *ending, struct tccl_error *err)
{
    cleanup_free void *memory = guest->rdma ? calloc(1, RDMA_BYTES) : NULL;
    struct tccl_error why = {0};
    struct tccl_rdma_end ours;
    struct tccl_rdma *rdma =
        memory ? tccl_rdma_lend(&guest->end, memory, RDMA_BYTES, &ours, &why) : NULL;
    if (guest->rdma && !rdma) {
        tccl_peer_refuse(fd, why.text);
        return tccl_fail(err, "%s", why.text);
    }
    if (rdma)
        memcpy(ending->device, ours.device, sizeof(ending->device));
    int rc = tccl_peer_agree(fd, &peer->trust, guest, rdma ? &ours : NULL, deadline, err);
    alarm(0);
    if (rc == 0)
        rc = tccl_peer_serve(fd, rdma ? &rdma_limits : &limits, &ending->count, err);
    tccl_rdma_close(rdma);
    return rc;
}

/* In the new process: never outlives the one that made it, which alone hears of signals. */
static void be_guest(const struct peer *peer, pid_t parent, int fd, const char *from)
{
    sigset_t none;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    for (int i = 0; i < peer->n_listeners; i++)
        close(peer->listeners[i]);
    close(peer->signals);
    signal(SIGINT, SIG_IGN); /* a terminal sends it to all */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    struct ending ending = nothing;
    struct tccl_error err = {0};
    struct tccl_peer_guest guest;
    int64_t begun = tccl_now_ms(), deadline = begun + HELLO_MS;
    tccl_peer_tune(fd);
    alarm(HELLO_ALARM); /* until both have agreed */
    int rc = tccl_peer_hear(fd, &peer->trust, deadline, &guest, &err);
    ending.user = guest.user;
    if (rc == 0)
        rc = serve_traffic(peer, fd, &guest, deadline + (guest.rdma ? HELLO_MS : 0), &ending, &err);
    alarm(0);
    close(fd);
    ending.seconds = (double)(tccl_now_ms() - begun) / 1e3;
    print_end(peer, from, &ending, rc < 0 ? err.text : NULL);
    _exit(0);
}

static struct guest *find_guest(struct peer *peer, pid_t pid)
{
    for (int i = 0; i < CONNECTIONS; i++)
        if (peer->guests[i].pid == pid)
            return &peer->guests[i];
    return NULL;
}

static void turn_away(const struct peer *peer, int fd, const char *from, const char *why)
{
    tccl_peer_refuse(fd, why);
    print_end(peer, from, &nothing, why);
}

/* A connection that can't be accepted stays ready: trying at once again would spin. */
static void rest(struct peer *peer)
{
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM)
        return;
    if (!peer->rested)
        fprintf(stderr, "tccl: new connections wait: accept: %s\n", strerror(errno));
    peer->rested = true;
    peer->rests_until = tccl_now_ms() + REST_MS;
}

static void take_guest(struct peer *peer, int listener)
{
    cleanup_close int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct guest *guest = find_guest(peer, 0);
    char from[PLACE];
    pid_t self = getpid();
    if (fd < 0) {
        rest(peer);
        return;
    }
    peer->rested = false;
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);
    char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
    if (getpeername(fd, (struct sockaddr *)&address, &size) == 0)
        getnameinfo((struct sockaddr *)&address, size, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(from, PLACE, strchr(host, ':') ? "[%.900s]:%.30s" : "%.900s:%.30s", host, port);
    if (!guest) {
        turn_away(peer, fd, from, "64 connections are served already");
        return;
    }
    pid_t pid = fork();
    if (pid == 0)
        be_guest(peer, self, fd, from);
    if (pid < 0) {
        turn_away(peer, fd, from, "no process for it");
        return;
    }
    guest->pid = pid;
    memcpy(guest->from, from, sizeof(from));
}

/* ---- all of them ---- */

/* Returns whether to go on. */
static bool hear_signals(struct peer *peer)
{
    struct signalfd_siginfo heard;
    while (read(peer->signals, &heard, sizeof(heard)) == sizeof(heard))
        if (heard.ssi_signo != SIGCHLD)
            return false;
    char why[32];
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        struct guest *guest = find_guest(peer, pid);
        snprintf(why, sizeof(why), "ended by signal %d", WTERMSIG(status));
        if (guest && WIFSIGNALED(status))
            print_end(peer, guest->from, &nothing, why);
        if (guest)
            guest->pid = 0;
    }
    return true;
}

static void end(struct peer *peer)
{
    for (int i = 0; i < CONNECTIONS; i++)
        if (peer->guests[i].pid > 0)
            kill(peer->guests[i].pid, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    for (int i = 0; i < peer->n_listeners; i++)
        close(peer->listeners[i]);
    if (peer->signals >= 0)
        close(peer->signals);
}

static int run(struct peer *peer, struct tccl_error *err)
{
    const char *listen = peer->options->listen ? peer->options->listen : "";
    char host[TCCL_PEER_HOST], text[WHERE + 80];
    uint16_t port;
    if (tccl_peer_address(listen, true, host, &port, err) != 0)
        return tccl_fail_in(err, "--listen");
    if (profile_trust(peer->options, &peer->trust, err) != 0 || check_munge(peer, err) != 0 ||
        (*host ? listen_on_name(peer, host, port, err) : listen_on_nics(peer, port, err)) != 0 ||
        open_signals(peer, err) != 0)
        return -1;
    snprintf(text, sizeof(text), "listening on %s port %u, for %s", peer->where, port,
             peer->trust.anybody ? "anybody" : "root and MungeUser");
    print_line(peer,
               json_pack("{s:s, s:s, s:i, s:b}", "event", "listening", "address", peer->where,
                         "port", (int)port, "munge", !peer->trust.anybody),
               text);
    struct pollfd ready[LISTENERS + 1] = {{.fd = peer->signals, .events = POLLIN}};
    for (int i = 0; i < peer->n_listeners; i++)
        ready[i + 1] = (struct pollfd){.fd = peer->listeners[i], .events = POLLIN};
    do {
        int64_t left = peer->rests_until - tccl_now_ms();
        bool rests = left > 0;
        poll(ready, rests ? 1 : (nfds_t)peer->n_listeners + 1, rests ? (int)left : -1);
        for (int i = 0; i < peer->n_listeners; i++)
            if (!rests && ready[i + 1].revents)
                take_guest(peer, peer->listeners[i]);
    } while (!ready[0].revents || hear_signals(peer));
    return 0;
}

int profile_peer(const struct profile_options *options, struct tccl_error *err)
{
    struct peer peer = {.options = options, .signals = -1};
    int rc = run(&peer, err);
    end(&peer);
    return rc;
}
