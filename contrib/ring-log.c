/* ring-log.c: what NCCL says in its log of the communicators it made. Lines of several threads may
 * be mixed; each names its thread, and a thread makes one communicator at a time. */
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

/* "… comm 0x55d0 rank 0 nranks 4 … - Init START", and COMPLETE. */
static int read_init(struct ring_log *log, int thread, const char *text)
{
    const char *at = strstr(text, "comm 0x");
    struct ring_member *member = of_thread(log, thread);
    void *comm;
    int rank, ranks;

    if (strstr(text, "Init COMPLETE") && member)
        member->thread = 0;
    if (!strstr(text, "Init START") || !at ||
        sscanf(at, "comm %p rank %d nranks %d", &comm, &rank, &ranks) != 3)
        return 0;
    if (member)
        member->thread = 0;
    return add_member(log, thread, comm, rank, ranks);
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

/* "Channel 00/0 : 0[0] -> 1[1] via P2P/IPC", perhaps with [send] or [receive] before "via". The
 * same is said of a tree's edges. */
static void read_edge(struct ring_member *member, int index, int from, int to, const char *text)
{
    struct ring_channel *channel = channel_of(member, index);
    const char *via = strstr(text, " via ");

    if (!channel || !via)
        return;
    via += strlen(" via ");
    if (from == member->rank && to == channel->next)
        snprintf(channel->send_via, RING_VIA, "%.*s", (int)strcspn(via, " \n"), via);
    if (to == member->rank && from == channel->prev && strstr(text, "[receive]"))
        snprintf(channel->receive_via, RING_VIA, "%.*s", (int)strcspn(via, " \n"), via);
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

/* "host:pid:thread [device] NCCL INFO text" */
static int read_line(struct ring_log *log, const char *line)
{
    const char *text = strstr(line, "NCCL INFO ");
    int thread;

    if (!text || sscanf(line, "%*[^:]:%*d:%d", &thread) != 1)
        return 0;
    text += strlen("NCCL INFO ");
    if (strstr(text, " Init "))
        return read_init(log, thread, text);
    if (strncmp(text, "Channel ", 8) == 0)
        return read_channel(of_thread(log, thread), text);
    if (strncmp(text, "Ring ", 5) == 0)
        read_ring(of_thread(log, thread), text);
    return 0;
}

int ring_log_read(const char *path, struct ring_log *log)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    int status = 0;

    memset(log, 0, sizeof(*log));
    if (!file)
        return -1;
    while (status == 0 && getline(&line, &size, file) >= 0)
        status = read_line(log, line);
    free(line);
    fclose(file);
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
