/* nic-links.c: a profile is older than the cable that was pulled, and than the slot that trains
 * badly. NCCL takes no NIC without a link, so a plan that names it would be built on none of the
 * nodes. */
#include "tccld/join/nic-links.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "discover/sysfs.h"
#include "doctor/doctor.h"
#include "tccld/join/own.h"
#include "tccld/main/metrics.h"
#include "tccld/main/threads.h"

enum { PERIOD_MS = 10000, STOP_MS = 100, MAX_PORTS = 8, MAX_ENTRIES = 4096 };
enum { SINCE_EVERY = 3 /* looks */, TWICE_MS = 1000, SAID_MS = 3600000 };

struct nic_links {
    struct daemon *daemon;
    struct event *timer;
    struct threads *pool;
    struct nic_links_down down; /* the thread's, while it looks, */
    struct tccl_since since;    /* and this, where it is to look at that, too, by these */
    char machine[PATH_MAX], cache_dir[PATH_MAX];
    bool with_since;
    struct tccl_since known, doubted; /* what counts, and what was seen once, */
    int64_t doubted_ms;               /* first then */
    int looks;                        /* so far, of what has become worse */
    int until_since;                  /* looks until that is looked at again */
    struct tccl_since said;           /* what is worse, as the log had it last */
    int64_t said_ms;
    bool looking, ending, hurried; /* hurried: all of it is looked at next, at once */
};

/* ---- in the thread ---- */

static enum tccl_sys_link rdma_link(const char *root, const char *name)
{
    enum tccl_sys_link best = TCCL_LINK_UNKNOWN;
    for (int port = 1; port <= MAX_PORTS && best != TCCL_LINK_UP; port++) {
        enum tccl_sys_link link = tccl_sys_port_link(root, name, port);
        best = link > best ? link : best;
    }
    return best;
}

/* Devices of a class, each with the PCI address that it is at. */
struct found {
    char busids[NIC_LINKS_MAX][TCCL_BUS_TEXT];
    enum tccl_sys_link links[NIC_LINKS_MAX];
    int n;
};

/* Of several interfaces of one device the best counts. */
static void note(struct found *found, const char *busid, enum tccl_sys_link link)
{
    int i = 0;
    while (i < found->n && strcmp(found->busids[i], busid) != 0)
        i++;
    if (i == NIC_LINKS_MAX || strlen(busid) >= TCCL_BUS_TEXT)
        return;
    if (i == found->n) {
        strcpy(found->busids[found->n++], busid);
        found->links[i] = TCCL_LINK_UNKNOWN;
    }
    found->links[i] = link > found->links[i] ? link : found->links[i];
}

static void look_at(const char *root, const char *class,
                    enum tccl_sys_link (*link_of)(const char *root, const char *name),
                    struct found *found)
{
    char path[PATH_MAX], device[PATH_MAX];
    snprintf(path, sizeof(path), "%s/sys/class/%s", root ? root : "", class);
    cleanup_dir DIR *folder = opendir(path);
    const struct dirent *entry;
    for (int i = 0; folder && i < MAX_ENTRIES && (entry = readdir(folder)) != NULL; i++) {
        snprintf(path, sizeof(path), "%.1024s/sys/class/%s/%s/device", root ? root : "", class,
                 entry->d_name);
        ssize_t size = entry->d_name[0] == '.' ? -1 : readlink(path, device, sizeof(device) - 1);
        if (size <= 0)
            continue;
        device[size] = '\0';
        const char *slash = strrchr(device, '/');
        if (slash)
            note(found, slash + 1, link_of(root, entry->d_name));
    }
}

void nic_links_look(const char *root, struct nic_links_down *down)
{
    struct found rdma = {.n = 0}, net = {.n = 0};
    look_at(root, "infiniband", rdma_link, &rdma);
    look_at(root, "net", tccl_sys_net_link, &net);
    for (int i = 0; i < rdma.n; i++) /* an IP interface of theirs may be unused */
        for (int k = 0; k < net.n; k++)
            if (rdma.links[i] != TCCL_LINK_UNKNOWN && strcmp(net.busids[k], rdma.busids[i]) == 0)
                net.links[k] = TCCL_LINK_UNKNOWN;
    down->n = 0;
    for (int i = 0; i < rdma.n; i++)
        if (rdma.links[i] == TCCL_LINK_DOWN)
            strcpy(down->busids[down->n++], rdma.busids[i]);
    for (int i = 0; i < net.n && down->n < NIC_LINKS_MAX; i++)
        if (net.links[i] == TCCL_LINK_DOWN)
            strcpy(down->busids[down->n++], net.busids[i]);
}

bool nic_links_has(const struct nic_links_down *down, const char *busid)
{
    for (int i = 0; i < down->n; i++)
        if (strcmp(down->busids[i], busid) == 0)
            return true;
    return false;
}

static void run_look(void *task)
{
    struct nic_links *links = task;
    nic_links_look(NULL, &links->down);
    if (links->with_since)
        tccl_since_look(NULL, links->machine, links->cache_dir, &links->since);
}

/* ---- on the event loop ---- */

/* What is better counts at once. What is worse counts when it is seen a second time, a second later
 * or more, since a link may be training just now, and one that comes and goes is best left alone;
 * at the start at once. */
static void hear_since(struct nic_links *links)
{
    const struct tccl_since *seen = &links->since;
    const int64_t now_ms = tccl_now_ms();
    if (!tccl_since_equal(seen, &links->doubted))
        links->doubted_ms = now_ms;
    links->doubted = *seen;
    bool sure = links->looks++ == 0 || tccl_since_no_worse(seen, &links->known) ||
                now_ms >= links->doubted_ms + TWICE_MS;
    links->until_since = sure ? SINCE_EVERY : 1;
    if (!sure || tccl_since_equal(seen, &links->known))
        return;
    links->known = *seen;
    own_since(links->daemon->own, seen);
    metrics_worse(links->daemon->metrics, seen->narrowed.n,
                  __builtin_popcount(seen->gone) + __builtin_popcount(seen->gone_nics));
    /* Of a link that comes and goes, the log says the same once in an hour. */
    const struct tccl_since *now = &links->known;
    if (!now->narrowed.n ||
        (tccl_since_no_worse(now, &links->said) && now_ms < links->said_ms + SAID_MS))
        return;
    for (int i = 0; i < now->narrowed.n; i++)
        log_line("rings are planned anew: %s", now->narrowed.links[i].text);
    links->said = *now;
    links->said_ms = now_ms;
}

static void on_time(evutil_socket_t fd, short what, void *argument);

static void on_looked(void *task)
{
    struct nic_links *links = task;
    links->looking = false;
    if (links->ending)
        return;
    own_links(links->daemon->own, &links->down);
    if (links->with_since)
        hear_since(links);
    if (links->hurried)
        on_time(-1, 0, links);
}

static void on_time(evutil_socket_t fd UNUSED, short what UNUSED, void *argument)
{
    struct nic_links *links = argument;
    fresh_look(links->daemon->fresh);
    if (links->looking)
        return;
    links->with_since = links->hurried || --links->until_since <= 0;
    snprintf(links->machine, sizeof(links->machine), "%s", links->daemon->conf->machine);
    snprintf(links->cache_dir, sizeof(links->cache_dir), "%s", links->daemon->conf->cache_dir);
    links->looking = threads_submit(links->pool, run_look, on_looked, links) == 0;
    links->hurried = links->hurried && !links->looking;
}

void nic_links_hurry(struct nic_links *links)
{
    links->hurried = true;
    on_time(-1, 0, links);
}

struct nic_links *nic_links_new(struct daemon *daemon, struct tccl_error *err)
{
    struct nic_links *links = calloc(1, sizeof(*links));
    if (!links)
        return tccl_fail_null(err, "out of memory");
    links->daemon = daemon;
    links->pool = threads_new(daemon->base, 1, 1, err);
    links->timer = event_new(daemon->base, -1, EV_PERSIST, on_time, links);
    if (links->pool && links->timer && daemon_set(links->timer, PERIOD_MS) == 0) {
        on_time(-1, 0, links);
        return links;
    }
    tccl_fail(err, "out of memory");
    nic_links_free(links);
    return NULL;
}

void nic_links_free(struct nic_links *links)
{
    if (!links)
        return;
    links->ending = true;
    daemon_drop(links->timer);
    if (links->pool && threads_free(links->pool, STOP_MS) != 0)
        return; /* the thread still has it */
    free(links);
}
