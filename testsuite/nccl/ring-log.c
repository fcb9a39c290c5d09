/* ring-log.c: what NCCL says in its log of the communicators it made. Lines of several threads may
 * be mixed; each names its thread, and a thread makes one communicator at a time. What is connected
 * after the init is said by any thread: it belongs to the communicator that the thread's device was
 * last asked for a collective on. */
#include "ring-log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ring_member *of_thread(struct ring_log *log, int thread)
{
    for (int i = log->n_members - 1; i >= 0; i--)
        if (log->members[i].thread == thread)
            return &log->members[i];
    return NULL;
}

/* The communicator that was made last, or has had a collective last, on the device: members are in
 * that order. */
static struct ring_member *of_device(struct ring_log *log, int device)
{
    for (int i = log->n_members - 1; i >= 0; i--)
        if (log->members[i].device == device && log->members[i].thread == 0)
            return &log->members[i];
    return NULL;
}

static int add_member(struct ring_log *log, int thread, void *comm, int rank, int ranks)
{
    struct ring_member *members =
        realloc(log->members, ((size_t)log->n_members + 1) * sizeof(*members));
    if (!members)
        return -1;
    log->members = members;
    struct ring_member *member = &members[log->n_members++];
    memset(member, 0, sizeof(*member));
    member->thread = thread;
    member->comm = comm;
    member->rank = rank;
    member->ranks = ranks;
    for (int i = 0; i < RING_CHANNELS; i++)
        member->channels[i].prev = member->channels[i].next = -1;
    return 0;
}

static struct ring_channel *channel_of(struct ring_member *member, int index)
{
    if (!member || index < 0 || index >= RING_CHANNELS)
        return NULL;
    if (index >= member->n_channels)
        member->n_channels = index + 1;
    return &member->channels[index];
}

/* "… comm 0x55d0 rank 0 nranks 4 cudaDev 1 … - Init START", and COMPLETE. */
static int read_init(struct ring_log *log, int thread, const char *text)
{
    const char *at = strstr(text, "comm 0x");
    struct ring_member *member = of_thread(log, thread);
    const char *device = strstr(text, "cudaDev ");
    void *comm;
    int rank, ranks;
    if (strstr(text, "Init COMPLETE") && member)
        member->thread = 0;
    if (!strstr(text, "Init START") || !at ||
        sscanf(at, "comm %p rank %d nranks %d", &comm, &rank, &ranks) != 3)
        return 0;
    if (member)
        member->thread = 0;
    if (add_member(log, thread, comm, rank, ranks) != 0)
        return -1;
    log->members[log->n_members - 1].device = device ? atoi(device + strlen("cudaDev ")) : -1;
    return 0;
}

/* "Broadcast: opCount 0 sendbuff … comm 0x55d0 [nranks=4] stream …": the communicator becomes its
 * device's last one. */
static void read_collective(struct ring_log *log, const char *text)
{
    const char *at = strstr(text, " comm 0x");
    struct ring_member found;
    void *comm;
    if (!at || sscanf(at, " comm %p", &comm) != 1)
        return;
    for (int i = log->n_members - 1; i >= 0; i--)
        if (log->members[i].comm == comm) {
            found = log->members[i];
            memmove(&log->members[i], &log->members[i + 1],
                    (size_t)(log->n_members - 1 - i) * sizeof(found));
            log->members[log->n_members - 1] = found;
            return;
        }
}

/* "Channel 00/02 : 0 2 1 3" */
static int read_order(struct ring_member *member, int index, const char *list)
{
    int *order = member->ranks > 0 ? malloc((size_t)member->ranks * sizeof(*order)) : NULL;
    struct ring_channel *channel = channel_of(member, index);
    int count = 0, length;
    if (!order || !channel) {
        free(order);
        return order ? 0 : -1;
    }
    while (count < member->ranks && sscanf(list, "%d%n", &order[count], &length) == 1) {
        list += length;
        count++;
    }
    free(channel->order);
    channel->order = count == member->ranks ? order : NULL;
    if (!channel->order)
        free(order);
    return 0;
}

static void note(char *via, const char *text)
{
    static const char pointer[] = "P2P/direct pointer";
    size_t word = strcspn(text, " \n"), tail = 0;
    if (strncmp(text, pointer, sizeof(pointer) - 1) == 0)
        tail = strcspn(text + sizeof(pointer) - 1, " \n");
    if (!*via)
        snprintf(via, RING_VIA, "%.*s%.*s", (int)word, text, (int)tail,
                 tail ? text + sizeof(pointer) - 1 : "");
}

/* "Channel 00/0 : 0[0] -> 1[1] via P2P/IPC", perhaps with [send] or [receive] before "via". The
 * same is said of a tree's edges, and later of those by which ranks send to each other. */
static void read_edge(struct ring_member *member, int index, int from, int to, const char *text)
{
    struct ring_channel *channel = channel_of(member, index);
    const char *via = strstr(text, " via ");
    if (!channel || !via)
        return;
    via += strlen(" via ");
    if (!member->connected)
        member->connected = member->thread ? RING_AT_INIT : RING_AT_COLLECTIVE;
    if (from == member->rank && to == channel->next)
        note(channel->send_via, via);
    if (to == member->rank && from == channel->prev && strstr(text, "[receive]"))
        note(channel->receive_via, via);
}

static int read_channel(struct ring_member *member, const char *text)
{
    int index, from, to, length = 0;
    const char *colon = strchr(text, ':');
    if (!member || !colon || sscanf(text, "Channel %d", &index) != 1)
        return 0;
    if (sscanf(colon, ": %d[%*[^]]] -> %d%n", &from, &to, &length) == 2 && length > 0)
        read_edge(member, index, from, to, colon);
    else if (strchr(text, '/') && strchr(text, '/') < colon)
        return read_order(member, index, colon + 1);
    return 0;
}

/* "Ring 00 : 3 -> 0 -> 2" */
static void read_ring(struct ring_member *member, const char *text)
{
    int index, prev, rank, next;
    if (!member || sscanf(text, "Ring %d : %d -> %d -> %d", &index, &prev, &rank, &next) != 4 ||
        rank != member->rank)
        return;
    struct ring_channel *channel = channel_of(member, index);
    if (channel) {
        channel->prev = prev;
        channel->next = next;
    }
}

enum { CONNECTS_LATE = 22200 }; /* the first version that can */

/* Words that are only said where buffers come from cuMemCreate, or don't. */
static void read_memory(struct ring_log *log, const char *text)
{
    if (strstr(text, "NCCL_RUNTIME_CONNECT set by environment to 0"))
        log->told_early = true;
    if (strstr(text, "CUMEM") || strstr(text, "cuMemEnable 1"))
        log->memory = RING_CUMEM;
    else if (strstr(text, "cuMemEnable 0") || strstr(text, " via P2P/IPC"))
        log->memory = RING_OLDER;
}

/* "host:pid:thread [device] NCCL INFO text" */
static int read_line(struct ring_log *log, const char *line)
{
    const char *text = strstr(line, "NCCL INFO ");
    int thread, device;
    if (!text || sscanf(line, "%*[^:]:%*d:%d [%d]", &thread, &device) != 2)
        return 0;
    text += strlen("NCCL INFO ");
    read_memory(log, text);
    if (strstr(text, " Init "))
        return read_init(log, thread, text);
    if (strstr(text, ": opCount "))
        read_collective(log, text);
    if (strncmp(text, "Channel ", 8) == 0)
        return read_channel(
            of_thread(log, thread) ? of_thread(log, thread) : of_device(log, device), text);
    if (strncmp(text, "Ring ", 5) == 0)
        read_ring(of_thread(log, thread), text);
    return 0;
}

/* Late connections are only made with cuMemCreate, unless NCCL is told not to; older versions make
 * none, whatever their memory. */
static enum ring_memory conclude(const struct ring_log *log)
{
    bool early = false;
    for (int i = 0; i < log->n_members && log->memory == RING_UNKNOWN; i++) {
        if (log->members[i].connected == RING_AT_COLLECTIVE)
            return RING_CUMEM;
        early = early || log->members[i].connected == RING_AT_INIT;
    }
    early = early && log->version >= CONNECTS_LATE && !log->told_early;
    return log->memory == RING_UNKNOWN && early ? RING_OLDER : log->memory;
}

int ring_log_read(const char *path, int version, struct ring_log *log)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    int status = 0;
    memset(log, 0, sizeof(*log));
    log->version = version;
    if (!file)
        return -1;
    while (status == 0 && getline(&line, &size, file) >= 0)
        status = read_line(log, line);
    free(line);
    fclose(file);
    log->memory = conclude(log);
    return status;
}

void ring_log_free(struct ring_log *log)
{
    for (int i = 0; i < log->n_members; i++)
        for (int k = 0; k < RING_CHANNELS; k++)
            free(log->members[i].channels[k].order);
    free(log->members);
    memset(log, 0, sizeof(*log));
}

const struct ring_member *ring_log_find(const struct ring_log *log, const void *comm)
{
    for (int i = log->n_members - 1; i >= 0; i--)
        if (log->members[i].comm == comm)
            return &log->members[i];
    return NULL;
}
