/* Addresses that slurmctld knows: what scontrol prints is read, and asked for before DNS or after
 * it, as this node's own entry says. */

#include <arpa/inet.h>
#include <event2/event.h>

#include "check.h"
#include "tccld/net/resolver.h"

static struct event_base *base;

TEST(read)
{
    static const struct {
        const char *text, *address; /* NULL: it is no good */
        bool own;
    } cases[] = {
        {"NodeName=n7 Arch=x86_64 CoresPerSocket=1 NodeAddr=10.0.0.7 NodeHostName=h7 "
         "Version=24.11.5 "
         "OS=Linux 6.1 State=IDLE ThreadsPerCore=1",
         "10.0.0.7", true},
        {"NodeName=n7 NodeAddr=n7 NodeHostName=n7 OS=Linux State=MIXED+DRAIN Weight=1", "n7",
         false},
        {"NodeName=n7 NodeAddr=n7 NodeHostName=n7 State=IDLE+CLOUD+POWERED_DOWN", "n7", true},
        {"NodeName=n7 NodeAddr=n7 NodeHostName=n7 State=IDLE+DYNAMIC_NORM\n", "n7", true},
        {"NodeName=n7 NodeAddr=fd00::7 State=IDLE", "fd00::7", true},
        {"NodeName=n70 NodeAddr=10.0.0.7 State=IDLE", NULL, false},
        {"NodeName=n7 NodeAddr= State=IDLE", NULL, false},
        {"NodeName=n7 NodeAddr=10.0.0.7", NULL, false},
        {"NodeName=n7 NodeAddr=$(reboot) State=IDLE", NULL, false},
        {"Node n7 not found", NULL, false},
        {"", NULL, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct slurm_node node;
        int failed = slurm_node_read(cases[i].text, "n7", &node);
        CHECK_INT(failed, cases[i].address ? 0 : -1);
        if (!failed && cases[i].address) {
            CHECK_STR(node.address, cases[i].address);
            CHECK_INT(node.own, cases[i].own);
        }
    }
}

/* A scontrol that knows these nodes: NAME ADDRESS STATE a line. It keeps a list of whom it was
 * asked about. */
static void write_scontrol(const char *nodes)
{
    const char *path;
    path = check_at("scontrol");
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fprintf(file,
            "#!/bin/sh\necho \"$4\" >>%s/asked\nwhile read -r name address state; do\n"
            "[ \"$name\" != \"$4\" ] || { echo \"NodeName=$4 NodeAddr=$address State=$state\"; "
            "exit; }\n"
            "done <<END\n%sEND\necho \"Node $4 not found\"; exit 1\n",
            check_folder(), nodes);
    fclose(file);
    chmod(path, 0755);
    path = check_at("asked");
    unlink(path);
}

static int times_asked(const char *node)
{
    char line[256];
    int count = 0;
    const char *path = check_at("asked");
    cleanup_file FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        count += strcmp(line, node) == 0;
    }
    return count;
}

static void on_found(void *context, const struct address *address, const struct tccl_error *err)
{
    char *text = context;
    const struct sockaddr_in *in = (const struct sockaddr_in *)&address->sockaddr;
    strcpy(text, err ? "none" : "of IPv6");
    if (!err && in->sin_family == AF_INET)
        inet_ntop(AF_INET, &in->sin_addr, text, INET6_ADDRSTRLEN);
}

static void await(const char *text)
{
    while (!*text)
        event_base_loop(base, EVLOOP_ONCE);
}

/* Returns where a node is found, from what slurmctld has said of this one, n1. */
static void find(const char *node, const char *squeue, char text[static INET6_ADDRSTRLEN])
{
    static struct tccl_conf conf;
    struct threads *pool = threads_new(base, 1, 16, ERR);
    struct resolver *resolver = resolver_new(pool);
    conf = (struct tccl_conf){.port = 8517};
    strcpy(conf.node, "n1");
    if (*squeue)
        snprintf(conf.squeue, sizeof(conf.squeue), "%s/%s", check_folder(), squeue);
    resolver_look(resolver, &conf);
    *text = '\0';
    resolver_find(resolver, &conf, "tccl-first.invalid", on_found, text);
    await(text); /* the thread has done what came before */
    *text = '\0';
    resolver_find(resolver, &conf, node, on_found, text);
    await(text);
    CHECK_INT(threads_free(pool, 60000), 0);
    resolver_free(resolver);
}

static void check_found(const char *node, const char *address, int asked)
{
    char text[INET6_ADDRSTRLEN];
    find(node, "squeue", text);
    CHECK_STR(text, address);
    CHECK_INT(times_asked(node), asked);
}

TEST(found)
{
    char text[INET6_ADDRSTRLEN];
    static const char others[] = "localhost 127.0.0.9 IDLE\ntccl-no-node.invalid 127.0.0.8 IDLE\n"
                                 "same same IDLE\n";
    /* A cloud's: slurmctld before DNS. */
    write_scontrol(check_printf("n1 n1 IDLE+CLOUD\n%s", others));
    check_found("localhost", "127.0.0.9", 1);
    check_found("tccl-no-node.invalid", "127.0.0.8", 1);
    check_found("tccl-nobody.invalid", "none", 1);
    /* One with its name in DNS: slurmctld only where DNS knows nothing. */
    write_scontrol(check_printf("n1 n1 IDLE\n%s", others));
    find("localhost", "squeue", text);
    CHECK(strcmp(text, "none") != 0 && strcmp(text, "127.0.0.9") != 0);
    CHECK_INT(times_asked("localhost"), 0);
    check_found("tccl-no-node.invalid", "127.0.0.8", 1);
    /* Squeue=none. */
    find("tccl-no-node.invalid", "", text);
    CHECK_STR(text, "none");
    CHECK_INT(times_asked("tccl-no-node.invalid"), 1);
}

SETUP
{
    base = event_base_new();
}
TEARDOWN
{
    event_base_free(base);
}
