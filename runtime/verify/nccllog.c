/* nccllog.c: NCCL's own log: where it is, and notes of what was read from it. */
#include "verify/verify.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "chain/nccl-version.h"

enum {
    MEMBERS = 64,       /* communicators of the process that are remembered */
    NICS = 32,          /* NCCL's most */
    LONGEST_LINE = 4096 /* NCCL's buffer has 1,024 bytes */
};
/* The memory file never grows beyond: a process can go on logging for weeks with nobody reading. */
#define MOST_LOG (32L << 20)
#define MOST_AT_ONCE (8L << 20)

/* Of the kernel's headers, which may be older than this code. */
enum { CLOEXEC_SEALING = 1 | 2, ADD_SEALS = 1033, SEAL_GROW = 4, HOLE_KEEP_SIZE = 2 | 1 };

/* ---- one thread at a time ---- */

static shim_lock reading;
static int reader; /* a process id: a lock that was held at a fork is nobody's */

static bool lock(void)
{
    if (shim_forked(&reader))
        shim_lock_release(&reading);
    return shim_lock_take(&reading) == 0;
}

static void unlock(void)
{
    shim_lock_release(&reading);
}

/* ---- notes ---- */

struct member {
    uint64_t comm, order; /* order: rising; 0: not used */
    int tid;              /* that is at it; 0: none */
    int rank, ranks;      /* -1: not said so far */
    tccl_bus gpu;
    bool complete, done;
    int expected; /* the thread that has begun a collective; 0: none is under way */
    int connects; /* the thread that connects it, after the init; 0: none */
    bool trees, unclear;
    bool by_edges;           /* the log has no lines of its rings: they are known by their edges */
    bool rings, trees_first; /* which of them were connected */
    int in_init;             /* SHIM_CONNECTED_…, by the init's own thread */
    int n_channels;
    struct shim_part channels[SHIM_CHANNELS];
};

static struct notes {
    struct member members[MEMBERS];
    uint64_t order;
    bool nics_said, nics_unclear, nics_fused;
    int connected; /* SHIM_CONNECTED_…, of all */
    int n_nics;
    struct {
        int number;
        char name[SHIM_NAME];
    } nics[NICS];
    char network[SHIM_NAME];
} notes;

static struct member *of_thread(int tid)
{
    for (int i = 0; i < MEMBERS; i++)
        if (notes.members[i].order && notes.members[i].tid == tid)
            return &notes.members[i];
    return NULL;
}

static void forget_edges(struct member *member)
{
    for (int i = 0; i < SHIM_CHANNELS; i++)
        member->channels[i] =
            (struct shim_part){.prev = -1, .next = -1, .send = {.nic = -1}, .receive = {.nic = -1}};
}

/* In place of the oldest. */
static struct member *add_member(int tid)
{
    struct member *member = &notes.members[0];
    for (int i = 1; i < MEMBERS; i++)
        if (notes.members[i].order < member->order)
            member = &notes.members[i];
    memset(member, 0, sizeof(*member));
    member->order = ++notes.order;
    member->tid = tid;
    member->rank = member->ranks = -1;
    member->gpu = SHIM_NO_BUS;
    forget_edges(member);
    return member;
}

static void note_init(const struct shim_line *line)
{
    struct member *member = of_thread(line->tid);
    if (line->kind == SHIM_LINE_START && member) {
        member->tid = 0;
        member = NULL;
    }
    if (!member)
        member = add_member(line->tid);
    member->comm = line->comm;
    member->rank = line->rank;
    member->ranks = line->ranks;
    member->gpu = line->gpu;
    if (line->kind == SHIM_LINE_COMPLETE) {
        member->complete = true;
        member->tid = 0;
    }
}

static void note_ring(const struct shim_line *line)
{
    struct member *member = of_thread(line->tid);
    if (!member)
        member = add_member(line->tid);
    if (line->channel >= SHIM_CHANNELS || (member->rank >= 0 && member->rank != line->rank))
        return;
    member->rank = line->rank;
    member->by_edges = false;
    member->channels[line->channel].prev = line->prev;
    member->channels[line->channel].next = line->next;
    if (line->channel >= member->n_channels)
        member->n_channels = line->channel + 1;
}

/* Before the first edge. */
static void note_channels(const struct shim_line *line)
{
    struct member *member = of_thread(line->tid);
    if (!member || member->n_channels > 0 || line->channel > SHIM_CHANNELS)
        return;
    member->by_edges = true;
    member->n_channels = line->channel;
}

static bool starts(const struct shim_line *line, const char *text)
{
    size_t length = strlen(text);
    return (size_t)(line->end - line->text) >= length && memcmp(line->text, text, length) == 0;
}

static bool has(const struct shim_line *line, const char *text)
{
    return memmem(line->text, (size_t)(line->end - line->text), text, strlen(text));
}

/* "P2P/IPC/read", "SHM/direct/direct", "NET/IB/0(3)/GDRDMA(PCI)/Shared". */
static struct shim_reach reach_of(const struct shim_line *line)
{
    struct shim_reach reach = {.way = SHIM_WAY_UNKNOWN, .nic = -1};
    const char *slash, *at;
    if (starts(line, "P2P/"))
        reach.way = SHIM_WAY_P2P;
    else if (starts(line, "SHM/"))
        reach.way = SHIM_WAY_SHM;
    reach.read = reach.way == SHIM_WAY_P2P && has(line, "/read");
    if (!starts(line, "NET/"))
        return reach;
    reach.way = SHIM_WAY_NET;
    reach.gdr = has(line, "/GDRDMA");
    slash = memchr(line->text + 4, '/', (size_t)(line->end - line->text - 4));
    for (at = slash ? slash + 1 : line->end;
         at < line->end && *at >= '0' && *at <= '9' && reach.nic < 1000; at++)
        reach.nic = (reach.nic < 0 ? 0 : reach.nic * 10) + (*at - '0');
    reach.pxn = at < line->end && *at == '(';
    return reach;
}

/* Where an edge of the ring that is not known so far is noted; NULL: it is none of the member's.
 * The same is said of trees, whose edges may lead to the same neighbour: then over the connection
 * that the ring has, too. */
static struct shim_reach *place_of(struct member *member, const struct shim_line *line)
{
    struct shim_part *channel = &member->channels[line->channel];
    bool any = member->by_edges && !member->rings; /* what is connected first are rings */
    bool sends = !line->receive && line->from == member->rank &&
                 (line->to == channel->next || (any && channel->next < 0));
    bool receives = line->receive && line->to == member->rank &&
                    (line->from == channel->prev || (any && channel->prev < 0));
    struct shim_reach *place = sends ? &channel->send : receives ? &channel->receive : NULL;
    return place && place->way == SHIM_WAY_UNKNOWN ? place : NULL;
}

/* Whose edge a thread without an init connects: the only one that fits, or that fits and has a
 * collective under way. */
static struct member *connected_by(const struct shim_line *line)
{
    struct member *fits[MEMBERS], *expected = NULL;
    int n = 0, n_expected = 0;
    for (int i = 0; i < MEMBERS; i++) {
        struct member *member = &notes.members[i];
        if (!member->order || !member->complete || member->done || !place_of(member, line))
            continue;
        fits[n++] = member;
        expected = member->expected ? member : expected;
        n_expected += member->expected != 0;
    }
    if (n_expected <= 1)
        return n_expected ? expected : n == 1 ? fits[0] : NULL;
    for (int i = 0; i < n; i++)
        fits[i]->unclear |= fits[i]->expected != 0;
    return NULL;
}

static void note_edge(const struct shim_line *line)
{
    struct member *member = of_thread(line->tid);
    if (line->p2p || line->channel >= SHIM_CHANNELS)
        return;
    if (!member && (member = connected_by(line))) {
        /* What another thread has connected was not the ring. */
        if (member->by_edges && !member->rings && member->connects != line->tid)
            forget_edges(member);
        member->connects = line->tid;
    }
    struct shim_reach *place = member ? place_of(member, line) : NULL;
    if (place)
        *place = reach_of(line);
    if (!place || !member->by_edges || member->rings)
        return;
    if (line->receive)
        member->channels[line->channel].prev = line->from;
    else
        member->channels[line->channel].next = line->to;
}

/* Of the member that the thread has begun, or connects. */
static void note_rings(const struct shim_line *line)
{
    struct member *member = of_thread(line->tid);
    if (member)
        member->in_init |= SHIM_CONNECTED_RINGS;
    for (int i = 0; !member && i < MEMBERS; i++)
        if (notes.members[i].order && !notes.members[i].done &&
            notes.members[i].connects == line->tid)
            member = &notes.members[i];
    if (!member)
        return;
    member->rings = true;
    member->unclear |= member->trees_first;
}

/* Trees may have no edge of their own: then it is that of the only collective under way. */
static void note_trees(const struct shim_line *line)
{
    struct member *member = of_thread(line->tid), *expected = NULL;
    int n = 0;
    if (member)
        member->in_init |= SHIM_CONNECTED_TREES;
    for (int i = 0; !member && i < MEMBERS; i++) {
        struct member *one = &notes.members[i];
        if (!one->order || !one->complete || one->done)
            continue;
        if (one->connects == line->tid)
            member = one;
        if (one->expected) {
            expected = one;
            n++;
        }
    }
    if (!member && n == 1)
        member = expected;
    if (!member)
        return;
    member->trees = true;
    if (!member->by_edges || member->rings)
        return;
    /* Its edges so far are theirs, and are not told again when the ring has them, too. */
    forget_edges(member);
    member->rings = member->trees_first = true;
}

static void note_nics(const struct shim_line *line)
{
    const char *at = line->text;
    int more = 1;
    notes.nics_said = true;
    notes.n_nics = 0;
    while (notes.n_nics < NICS &&
           (more = shim_line_nic(&at, line->end, &notes.nics[notes.n_nics].number,
                                 notes.nics[notes.n_nics].name)) > 0)
        notes.n_nics++;
    notes.nics_unclear = more != 0;
}

static void note(const struct shim_line *line)
{
    switch (line->kind) {
    case SHIM_LINE_START:
    case SHIM_LINE_COMPLETE:
        note_init(line);
        break;
    case SHIM_LINE_RING:
        note_ring(line);
        break;
    case SHIM_LINE_EDGE:
        note_edge(line);
        break;
    case SHIM_LINE_TREES:
        notes.connected |= SHIM_CONNECTED_TREES;
        note_trees(line);
        break;
    case SHIM_LINE_NICS:
        note_nics(line);
        break;
    case SHIM_LINE_NETWORK:
        snprintf(notes.network, sizeof(notes.network), "%.*s", (int)(line->end - line->text),
                 line->text);
        break;
    case SHIM_LINE_VIRTUAL:
        notes.nics_fused |= line->devices > 1;
        break;
    case SHIM_LINE_CHANNELS:
        note_channels(line);
        break;
    case SHIM_LINE_RINGS:
        notes.connected |= SHIM_CONNECTED_RINGS;
        note_rings(line);
        break;
    case SHIM_LINE_OTHER:
        break;
    }
}

size_t shim_nccllog_take(const char *text, size_t size, int pid)
{
    const char *at = text, *end = text + size, *newline;
    struct shim_line line;
    for (; (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1)
        if (newline - at < LONGEST_LINE && shim_line_read(at, newline, &line) && line.pid == pid)
            note(&line);
    return (size_t)(at - text);
}

/* ---- where the log is ---- */

enum place { NOT_ASKED, NOWHERE, MEMORY, USERS };

static struct {
    int pid;
    enum place place;
    const char *why;   /* it is nowhere */
    int fd;            /* for reading; -1 */
    int spare;         /* held until NCCL opens its own; -1 */
    bool handed, done; /* the name was given, or NCCL has opened the user's; no more can come */
    bool subsystems;   /* were given */
    off_t offset;
    char path[SHIM_PATH];
} file; /* of the process pid; find_place begins it */

static bool user_has_set(void)
{
    return shim_env("NCCL_DEBUG") || shim_env("NCCL_DEBUG_LEVELS") ||
           shim_env("NCCL_DEBUG_SUBSYS") || shim_env("NCCL_DEBUG_FILE");
}

/* Is a subsystem in the list, as NCCL understands it: "INIT,GRAPH", "ALL", "^ENV"? */
static bool is_listed(const char *list, const char *name)
{
    bool invert = list[0] == '^', found = false;
    for (const char *at = list + invert; *at; at += strspn(at, ",")) {
        size_t length = strcspn(at, ",");
        if ((length == strlen(name) && strncasecmp(at, name, length) == 0) ||
            (length == 3 && strncasecmp(at, "ALL", 3) == 0))
            found = true;
        at += length;
    }
    return found != invert;
}

static const char memory_name[] = "tccl-nccl-log";

static void nowhere(const char *why)
{
    if (file.fd >= 0 && shim_is_memory_file(file.fd, memory_name))
        close(file.fd);
    if (file.spare >= 0)
        close(file.spare);
    file.fd = file.spare = -1;
    file.place = NOWHERE;
    file.why = why;
}

/* No file has such a name: NCCL that opens it otherwise than by our fopen goes on to log to the
 * standard output. */
static const char users_output[] = "/dev/null/tccl-nccl-log";

static void users_log(void)
{
    struct shim_text path = {.at = file.path, .size = sizeof(file.path)};
    const char *name = shim_env("NCCL_DEBUG_FILE");
    nowhere("with the user's NCCL_DEBUG NCCL does not log what it connects (INFO, INIT)");
    /* Does the user have NCCL say what it connects? NCCL_DEBUG_LEVELS (2.32) adds levels to those
     * of NCCL_DEBUG, each by itself. */
    const char *level = shim_env("NCCL_DEBUG"), *list = shim_env("NCCL_DEBUG_SUBSYS");
    const char *more = shim_env("NCCL_DEBUG_LEVELS");
    bool info = level && (strcasecmp(level, "INFO") == 0 || strcasecmp(level, "TRACE") == 0 ||
                          strcasecmp(level, "ABORT") == 0);
    if (!((info || (more && is_listed(more, "INFO"))) &&
          is_listed(list ? list : "INIT,BOOTSTRAP,ENV", "INIT")))
        return;
    shim_text_expand(&path, name ? name : users_output); /* as NCCL does */
    if (path.full || path.length == 0)
        return;
    file.place = USERS;
    file.why = "NCCL has not opened its log where the shim sees it";
}

/* A file limit would end the program with a signal. That the file can be opened by name is tried:
 * NCCL would log to the standard output. */
static void memory_file(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) {
        nowhere("the size of files is limited");
        return;
    }
    file.fd = (int)syscall(SYS_memfd_create, memory_name, CLOEXEC_SEALING);
    snprintf(file.path, sizeof(file.path), "/proc/self/fd/%d", file.fd);
    if (file.fd >= 0)
        file.spare = open(file.path, O_WRONLY | O_CLOEXEC);
    if (file.spare < 0)
        nowhere("there is no memory file for NCCL's log");
    else
        file.place = MEMORY;
}

/* A second NCCL in the process, or one that starts its log anew, gets none. From 2.30.7 on NCCL
 * asks for the subsystems last, behind the file. */
static const char *answer(const char *name, uint32_t version)
{
    /* A child begins anew: its parent's file is not its own. */
    if (file.pid != getpid()) {
        memset(&notes, 0, sizeof(notes));
        memset(&file, 0, sizeof(file));
        file.fd = file.spare = -1;
        file.pid = getpid();
    }
    if (file.place == NOT_ASKED) {
        if (user_has_set())
            users_log();
        else
            memory_file();
    } else if (file.place == MEMORY && user_has_set()) {
        users_log();
    }
    bool subsystems = strcmp(name, "NCCL_DEBUG_SUBSYS") == 0;
    if (file.place == USERS && strcmp(name, "NCCL_DEBUG_FILE") == 0 &&
        tccl_release_does(version, TCCL_FACT_QUIET_LOG))
        return users_output;
    if (file.place != MEMORY || (file.handed && !(subsystems && !file.subsystems)))
        return NULL;
    if (strcmp(name, "NCCL_DEBUG") == 0)
        return "INFO";
    file.subsystems |= subsystems;
    if (subsystems)
        return "INIT,GRAPH,P2P,SHM,NET";
    file.handed = true;
    close(file.spare);
    file.spare = -1;
    return file.path;
}

const char *shim_nccllog_answer(const char *name, uint32_t version)
{
    const char *value = NULL;
    if (strncmp(name, "NCCL_DEBUG", 10) != 0 ||
        (name[10] != '\0' && strcmp(name + 10, "_SUBSYS") != 0 && strcmp(name + 10, "_FILE") != 0))
        return NULL;
    if (!lock())
        return NULL;
    if (tccl_release_does(version, TCCL_FACT_QUIET_LOG) || user_has_set())
        value = answer(name, version);
    unlock();
    return value;
}

bool shim_nccllog_there(void)
{
    return file.pid == getpid() && (file.place == USERS || file.place == MEMORY) && file.handed &&
           !file.done;
}

int shim_nccllog_missing(struct tccl_error *why)
{
    return tccl_fail(why, "%s", file.why ? file.why : "NCCL can't be made to log what it builds");
}

/* ---- reading ---- */

void shim_nccllog_read(void)
{
    if (!shim_nccllog_there() || file.place != MEMORY || !lock())
        return;
    off_t start = file.offset;
    size_t used = 1;
    if (!shim_is_memory_file(file.fd, memory_name)) {
        nowhere("the program has closed NCCL's log");
        used = 0;
    }
    while (used > 0 && file.offset - start < MOST_AT_ONCE) {
        static char buffer[4 * LONGEST_LINE];
        ssize_t n = pread(file.fd, buffer, sizeof(buffer), file.offset);
        size_t size = n > 0 ? strnlen(buffer, (size_t)n) : 0; /* zero bytes: not written so far */
        used = shim_nccllog_take(buffer, size, file.pid);
        /* A line that is longer than the buffer is not NCCL's: it is left out piece by piece. */
        if (used == 0 && size == sizeof(buffer))
            used = size;
        file.offset += (off_t)used;
    }
    if (file.fd >= 0 && file.offset > 0) {
        off_t first = start & ~4095L, end = file.offset & ~4095L;
        /* Once NCCL has opened it, which empties it. */
        if (start == 0 && ftruncate(file.fd, MOST_LOG) == 0)
            fcntl(file.fd, ADD_SEALS, SEAL_GROW);
        if (end > first)
            syscall(SYS_fallocate, file.fd, HOLE_KEEP_SIZE, first, end - first);
        file.done = file.offset > MOST_LOG - LONGEST_LINE;
    }
    unlock();
}

/* ---- the user's log ---- */

/* What NCCL writes, line by line, goes on as it is, in NCCL's own call: nothing is kept back, so
 * order and what is lost at a crash are as without us. */
static ssize_t pass_on(void *to, const char *text, size_t size)
{
    size_t written = fwrite(text, 1, size, to);
    if (file.pid == getpid() && lock()) {
        shim_nccllog_take(text, size, file.pid);
        unlock();
    }
    return (ssize_t)written;
}

static int close_passed(void *to)
{
    return to == stdout ? 0 : fclose(to);
}

FILE *shim_nccllog_opened(const char *path, FILE *opened)
{
    static const cookie_io_functions_t functions = {.write = pass_on, .close = close_passed};
    bool output = strcmp(path, users_output) == 0;
    if (file.pid != getpid() || file.place != USERS || strcmp(path, file.path) != 0 ||
        file.handed || !(output || opened))
        return opened;
    FILE *ours = fopencookie(output ? stdout : opened, "w", functions);
    if (!ours)
        return opened;
    setvbuf(ours, NULL, _IOLBF, 0);
    if (!output)
        setvbuf(opened, NULL, _IONBF, 0);
    file.handed = true;
    return ours;
}

/* ---- questions ---- */

int shim_nccllog_nic(const char *name, int *count, struct tccl_error *why)
{
    if (!shim_nccllog_there())
        return shim_nccllog_missing(why);
    if (!lock())
        return tccl_fail(why, "NCCL's log is being read by others");
    int found = -1, places = 0;
    for (int i = 0; i < notes.n_nics; i++)
        if (strcmp(notes.nics[i].name, name) == 0) {
            found = notes.nics[i].number;
            places++;
        }
    *count = notes.n_nics;
    if (!notes.network[0])
        found = tccl_fail(why, "NCCL's log does not say which network it uses");
    else if (strcmp(notes.network, "IB") != 0)
        found = tccl_fail(why, "NCCL uses the network %s", notes.network);
    else if (!notes.nics_said || notes.nics_unclear)
        found = tccl_fail(why, "NCCL has merged ports of NICs, or its log does not name the NICs");
    else if (notes.nics_fused)
        found = tccl_fail(why, "NCCL has merged NICs");
    else if (places != 1)
        found = places > 1 ? tccl_fail(why, "the NIC %s has several ports", name)
                           : tccl_fail(why, "NCCL leaves out the NIC %s", name);
    unlock();
    return found;
}

int shim_nccllog_joining(int tid, int *rank, int *ranks, tccl_bus *gpu)
{
    if (!lock())
        return -1;
    const struct member *member = of_thread(tid);
    bool found = member && member->ranks > 0;
    if (found) {
        *rank = member->rank;
        *ranks = member->ranks;
        *gpu = member->gpu;
    }
    unlock();
    return found ? 0 : -1;
}

static struct member *find_built(const void *comm, tccl_bus gpu, int rank, int ranks)
{
    struct member *newest = NULL;
    for (int i = 0; i < MEMBERS; i++) {
        struct member *member = &notes.members[i];
        if (member->order && !member->done && member->gpu == gpu &&
            (rank < 0 || member->rank == rank) && (ranks < 0 || member->ranks == ranks) &&
            (!comm || member->comm == (uint64_t)(uintptr_t)comm) &&
            (!newest || member->order > newest->order))
            newest = member;
    }
    return newest;
}

/* What is received is said where it comes from another node only, then of all channels. */
static bool is_received(const struct member *member, const struct shim_part *channel)
{
    for (int i = 0; channel->receive.way == SHIM_WAY_UNKNOWN && i < member->n_channels; i++)
        if (member->channels[i].prev == channel->prev &&
            member->channels[i].receive.way != SHIM_WAY_UNKNOWN)
            return false;
    return true;
}

int shim_nccllog_built(const void *comm, tccl_bus gpu, int rank, int ranks, bool last,
                       struct shim_built *built)
{
    if (!lock())
        return -1;
    struct member *member = find_built(comm, gpu, rank, ranks);
    if (member) {
        member->done |= last;
        *built = (struct shim_built){.rank = member->rank,
                                     .ranks = member->ranks,
                                     .channels = member->n_channels,
                                     .complete = member->complete,
                                     .connected = member->n_channels > 0 &&
                                                  (!member->by_edges || member->rings),
                                     .trees = member->trees,
                                     .unclear = member->unclear};
        for (int i = 0; i < member->n_channels; i++) {
            built->parts[i] = member->channels[i];
            built->connected &= member->channels[i].send.way != SHIM_WAY_UNKNOWN &&
                                is_received(member, &member->channels[i]);
        }
    }
    unlock();
    return member ? 0 : -1;
}

int shim_nccllog_connected(const void *comm)
{
    enum { BOTH = SHIM_CONNECTED_RINGS | SHIM_CONNECTED_TREES };
    const struct member *newest = NULL;
    if (!lock())
        return 0;
    int connected = notes.connected;
    for (int i = 0; i < MEMBERS; i++) {
        const struct member *member = &notes.members[i];
        if (member->order && member->comm == (uint64_t)(uintptr_t)comm &&
            (!newest || member->order > newest->order))
            newest = member;
    }
    /* Of several communicators it is known where their inits connect them. */
    if (connected == BOTH && notes.order > 1 && !(newest && newest->in_init == BOTH))
        connected = 0;
    unlock();
    return connected;
}

void shim_nccllog_expect(const void *comm)
{
    int self = shim_tid();
    for (int i = 0; i < MEMBERS; i++)
        if (__atomic_load_n(&notes.members[i].comm, __ATOMIC_RELAXED) == (uint64_t)(uintptr_t)comm)
            __atomic_store_n(&notes.members[i].expected, self, __ATOMIC_RELAXED);
}

void shim_nccllog_expect_no_more(void)
{
    int self = shim_tid();
    for (int i = 0; i < MEMBERS; i++)
        if (__atomic_load_n(&notes.members[i].expected, __ATOMIC_RELAXED) == self)
            __atomic_store_n(&notes.members[i].expected, 0, __ATOMIC_RELAXED);
}
