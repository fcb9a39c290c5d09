/* check-peers.c: the item peers: queries the tccld of other nodes in parallel, and summarises the
 * answers. */
#include "check/check-items.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fields.h"
#include "client/client.h"
#include "client/conf.h"
#include "client/hostlist.h"

enum { AT_ONCE = 64, REASONS = 3, EACH_MS = 3000, STACK = 1 << 20 };

json_t *check_peer(const struct tccl_conf *conf, const char *node, int64_t deadline,
                   struct tccl_error *err)
{
    int64_t left = deadline - tccl_now_ms();
    if (left > 0)
        return tccl_client_node(conf, node, NULL, (int)left, err);
    return tccl_fail_null(err, "not asked: --timeout is over");
}

const char *check_peer_advice(const char *text)
{
    if (strstr(text, "munge: ") && (strstr(text, "xpired") || strstr(text, "ewound")))
        return "the clocks of the two nodes differ: synchronise them";
    if (strstr(text, "munge: "))
        return "see the item munge; the munge key must be the same on all nodes";
    if (strstr(text, "connection was closed"))
        return "it rejected our credential: the clocks differ by more than a minute, the munge "
               "keys "
               "differ, or it runs under another name (--node): see its log";
    if (strstr(text, "refused") || strstr(text, "No such file"))
        return "is its tccld running?";
    if (strstr(text, "timed out") || strstr(text, "in time") || strstr(text, "unreachable") ||
        strstr(text, "No route"))
        return "is the node up, and Port= open between nodes?";
    if (strstr(text, "not known") || strstr(text, "resolution") || strstr(text, "associated"))
        return "its name cannot be resolved: correct DNS or /etc/hosts, or list it in [peers]";
    if (strstr(text, "beyond the limit") || strstr(text, "not a message"))
        return "another program listens there: correct Port= or [peers]";
    if (strstr(text, "MungeUser"))
        return "MungeUser= must be the same on all nodes";
    return "see its log";
}

/* ---- all of them ---- */

struct peer {
    const char *node;
    bool asked, good;
    bool down; /* excluded from rings: not asked */
    struct tccl_error err;
    struct tccl_error odd; /* it answers, but steps have no ring there */
};

struct round {
    const struct check_site *site;
    struct peer *peers;
    size_t count;
    _Atomic size_t next;
};

static void *work(void *argument)
{
    struct round *round = argument;
    for (size_t i; (i = round->next++) < round->count && tccl_now_ms() < round->site->deadline;) {
        struct peer *peer = &round->peers[i];
        int64_t end = check_run_until(round->site->deadline, EACH_MS);
        if (peer->down)
            continue;
        peer->asked = true;
        cleanup_json json_t *answer = check_peer(&round->site->conf, peer->node, end, &peer->err);
        /* What the node itself says of its plugin, and whether it is of another release than we. */
        const char *version = tccl_text_of(answer, "version");
        peer->good = answer != NULL;
        if (answer && strcmp(tccl_text_of(answer, "plugin"), "missing") == 0)
            tccl_fail(&peer->odd,
                      "Slurm has no plugin there, so it drops --tccl in silence, also require: "
                      "%.300s",
                      tccl_text_of(answer, "text"));
        else if (answer && strcmp(version, TCCL_VERSION) != 0)
            tccl_fail(&peer->odd, "tccld is of version %.60s, tccl-check of %s", version,
                      TCCL_VERSION);
    }
    return NULL;
}

/* ---- which nodes ---- */

struct list {
    struct tccl_hosts hosts;
    bool gpus_only;
};

static int add_node(void *context, const struct tccl_slurm_node *node)
{
    struct list *list = context;
    if (list->gpus_only && node->gpus == 0)
        return 0;
    if ((list->hosts.count & (list->hosts.count - 1)) == 0) { /* full at powers of two */
        size_t room = list->hosts.count ? 2 * list->hosts.count : 1;
        char **names = realloc(list->hosts.names, room * sizeof(*names));
        if (!names)
            return 1;
        list->hosts.names = names;
    }
    char *name = strdup(node->name);
    if (name)
        list->hosts.names[list->hosts.count++] = name;
    return !name;
}

/* The nodes of --peers; else those of slurm.conf with GPUs, or all if none has any. */
static int list_nodes(const struct check_site *site, struct tccl_hosts *hosts,
                      struct tccl_error *err)
{
    struct list list = {.gpus_only = true};
    if (site->options.peers)
        return tccl_hosts_expand(site->options.peers, CHECK_NODES_MAX, hosts, err);
    if (!site->slurm_good) {
        /* Slurm's own list, where there is no slurm.conf to read. */
        static const char *const ask[] = {"sinfo", "-h", "-o", "%N", NULL};
        cleanup_free char *output = check_site_run(site, EACH_MS, ask);
        if (!output)
            return tccl_fail(err,
                             "neither slurm.conf nor sinfo lists nodes: list them with --peers");
        output[strcspn(output, "\n")] = '\0';
        return tccl_hosts_expand(output, CHECK_NODES_MAX, hosts, err);
    }
    tccl_slurm_nodes(&site->slurm, add_node, &list);
    list.gpus_only = false;
    if (!list.hosts.count)
        tccl_slurm_nodes(&site->slurm, add_node, &list);
    *hosts = list.hosts;
    return 0;
}

/* ---- what is said ---- */

/* Do the two have the same to be said: the same oddity, or the same advice for their errors? */
static bool is_alike(const struct peer *a, const struct peer *b, bool odd)
{
    if (odd)
        return *a->odd.text && strcmp(a->odd.text, b->odd.text) == 0;
    return a->asked && !a->good && b->asked && !b->good &&
           check_peer_advice(a->err.text) == check_peer_advice(b->err.text);
}

/* The host list of the peers that are wanted; of: those alike, NULL: all that are silent, or down.
 * *count: how many. Allocated; NULL if out of memory. */
static char *fold(const struct round *round, const struct peer *of, bool odd, bool down,
                  size_t *count)
{
    cleanup_free const char **names = calloc(round->count + 1, sizeof(*names));
    *count = 0;
    for (size_t i = 0; names && i < round->count; i++) {
        const struct peer *peer = &round->peers[i];
        if (of ? is_alike(of, peer, odd) : down ? peer->down : !peer->good && !peer->down)
            names[(*count)++] = peer->node;
    }
    return names ? tccl_hosts_fold(names, *count) : NULL;
}

/* One finding per kind of error, or of oddity, with the names of all peers that have it. */
static void say_kinds(const struct round *round, bool odd, enum check_level level,
                      struct check_result *result)
{
    int said = 0;
    for (size_t i = 0, count, first; i < round->count && said < REASONS; i++) {
        const struct peer *peer = &round->peers[i];
        for (first = 0; first < i && !is_alike(&round->peers[first], peer, odd);)
            first++;
        if (first < i || !is_alike(peer, peer, odd))
            continue;
        cleanup_free char *names = fold(round, peer, odd, false, &count);
        said++;
        if (odd)
            check_say(result, level, "%.200s: %s", names ? names : peer->node, peer->odd.text);
        else
            check_say(result, level, "%.100s: %.200s: %s", names ? names : peer->node,
                      peer->err.text, check_peer_advice(peer->err.text));
    }
}

/* Those that [peers] excludes from rings, whom nobody asks. Returns how many. */
static size_t say_down(const struct round *round, struct check_result *result)
{
    size_t count;
    cleanup_free char *names = fold(round, NULL, false, true, &count);
    if (count)
        check_say(result, CHECK_WARN,
                  "%.200s: excluded from rings by down in [peers] of %.200s: remove that when %s "
                  "again",
                  names ? names : "some", round->site->conf.path,
                  count > 1 ? "they work" : "it works");
    return count;
}

static void say(const struct round *round, struct check_result *result)
{
    size_t good = 0, silent = 0, down = say_down(round, result), wanted = round->count - down;
    for (size_t i = 0; i < round->count; i++) {
        good += round->peers[i].good;
        silent += round->peers[i].asked && !round->peers[i].good;
    }
    if (good == wanted) {
        check_say(result, down ? CHECK_WARN : CHECK_OK, "%zu of %zu answer", good, wanted);
        say_kinds(round, true, CHECK_WARN, result);
        return;
    }
    size_t count;
    cleanup_free char *names = fold(round, NULL, false, false, &count);
    enum check_level level = good ? CHECK_WARN : CHECK_FAIL;
    check_say(result, level, "%zu of %zu answer, not %.200s", good, wanted, names ? names : "all");
    say_kinds(round, false, level, result);
    if (good + silent < wanted)
        check_say(result, level, "%zu were not contacted in time: choose fewer with --peers",
                  wanted - good - silent);
    say_kinds(round, true, CHECK_WARN, result);
}

void check_item_peers(const struct check_site *site, struct check_result *result)
{
    struct tccl_hosts hosts = {0};
    struct tccl_error err = {0};
    struct round round = {.site = site};
    int more;
    if (list_nodes(site, &hosts, &err) != 0) {
        check_say(result, CHECK_WARN, "%s", err.text);
        return;
    }
    round.count = hosts.count;
    round.peers = calloc(hosts.count ? hosts.count : 1, sizeof(*round.peers));
    for (size_t i = 0; round.peers && i < hosts.count; i++)
        round.peers[i] = (struct peer){
            .node = hosts.names[i], .down = tccl_peer_down(&site->conf, &hosts.names[i], 1, &more)};
    if (round.peers && round.count) {
        pthread_t threads[AT_ONCE];
        size_t started = 0, wanted = round.count < AT_ONCE ? round.count : AT_ONCE;
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, STACK);
        while (started < wanted &&
               pthread_create(&threads[started], &attributes, work, &round) == 0)
            started++;
        pthread_attr_destroy(&attributes);
        if (!started)
            work(&round);
        for (size_t i = 0; i < started; i++)
            pthread_join(threads[i], NULL);
        say(&round, result);
    } else {
        check_say(result, CHECK_WARN, "slurm.conf lists no nodes to contact");
    }
    free(round.peers);
    tccl_hosts_clear(&hosts);
}
