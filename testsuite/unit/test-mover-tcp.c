/* NICs by TCP: over loopback and to a peer of ours in the pool's real workers; what is counted is
 * what the other end has seen; a peer that vanishes, is absent, slow, or talks nonsense. */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "machines.h"
#include "measure/peer/peer.h"
#include "measure/pool/mover.h"
#include "measure/pool/workers.h"

enum { REGION = 1 << 20, SHARE = 8 << 20, TRIES = 20 };

/* ---- the other end, alone ---- */

static void move_bytes(struct tccl_peer_stream *stream, bool send, uint64_t bytes)
{
    int (*step)(struct tccl_peer_stream *, bool) =
        send ? tccl_peer_stream_send : tccl_peer_stream_receive;
    uint64_t before = tccl_peer_stream_moved(stream);
    int rc = 0;
    do {
        rc = step(stream, tccl_peer_stream_moved(stream) - before < bytes);
        if (rc == 0) {
            struct pollfd ready = tccl_peer_stream_poll(stream);
            CHECK(poll(&ready, 1, 60000) == 1);
        }
    } while (rc >= 0 &&
             (!tccl_peer_stream_quiet(stream) || tccl_peer_stream_moved(stream) - before < bytes));
    CHECK(rc >= 0);
}

/* Any mixture of runs in both directions: both ends have seen the same, to the byte. */
TEST(counts_agree)
{
    static unsigned char region[300001]; /* no multiple of anything */
    struct tccl_peer_count count;
    struct tccl_peer_stream stream;
    uint64_t sent = 0, received = 0;
    int fd;
    struct tccl_peer_loop *loop = tccl_peer_loop_open(&fd, ERR);
    CHECK_STR(check_err.text, "");
    tccl_peer_stream_begin(&stream, fd, 1 << 20);
    stream.region = region;
    stream.size = sizeof(region);
    for (int i = 0; i < 40; i++) {
        bool send = rand() & 1;
        uint64_t before = tccl_peer_stream_moved(&stream);
        move_bytes(&stream, send, (uint64_t)rand() % 3000000);
        CHECK(tccl_peer_stream_alive(&stream));
        *(send ? &sent : &received) += tccl_peer_stream_moved(&stream) - before;
    }
    tccl_peer_stream_close(&stream);
    tccl_peer_loop_close(loop, &count);
    CHECK_INT(count.received, sent);
    CHECK_INT(count.sent, received);
    CHECK(sent > 0 && received > 0);
}

/* ---- in the pool ---- */

static struct tccl_workspace *new_workspace(const char *peer, const char *munge)
{
    static struct tccl_site site;
    struct tccl_workspace_settings settings = {.region = REGION};
    site = (struct tccl_site){.machine = {.name = "m", .n_gpus = 1, .n_memories = 1, .n_nics = 2}};
    strcpy(site.machine.nics[0].name, "no_such0");
    strcpy(site.machine.nics[1].name, "no_such1");
    snprintf(settings.peer, sizeof(settings.peer), "%s", peer);
    CHECK_OK(tccl_trust_fill(&settings.trust, munge, "root", ERR));
    struct tccl_workspace *workspace = tccl_workspace_new(&site, &settings, ERR);
    CHECK_STR(check_err.text, "");
    return workspace;
}

static struct tccl_workers *new_workers(struct tccl_workspace *workspace)
{
    const struct tccl_workers_options options = {
        .gpu = &tccl_mover_tcp, .nic = &tccl_mover_tcp, .prepare_limit = 60, .run_limit = 60};
    struct tccl_workers *workers = tccl_workers_new(workspace, &options, ERR);
    CHECK_STR(check_err.text, "");
    return workers;
}

static int run_set(struct tccl_workers *workers, const char *text, struct tccl_run_result *run,
                   struct tccl_error *err)
{
    struct tccl_set set = parse_set(text);
    return tccl_workers_run(workers, &set, SHARE, run, err);
}

static bool is_sound(const struct tccl_run_result *run)
{
    return run->slowest > 0 && run->slowest < 1000;
}

static void check_good(struct tccl_workers *workers, const char *text)
{
    struct tccl_run_result run = {0};
    /* On a busy machine so small a share may go by before its first sample, or members may hardly
     * meet: such a run says nothing, and what measures asks again, too. */
    for (int i = 0; i < TRIES && !is_sound(&run); i++)
        CHECK_OK(run_set(workers, text, &run, ERR));
    CHECK(is_sound(&run));
    printf("%-22s %6.2f GB/s, overlap %.3f\n", text, run.slowest, run.overlap);
}

TEST(loopback)
{
    struct tccl_workspace *workspace = new_workspace("", "");
    struct tccl_workers *workers = new_workers(workspace);
    struct tccl_run_result run;
    for (int i = 0; i < 3; i++) {
        check_good(workers, "n0>m0");
        check_good(workers, "n0<m0");
        check_good(workers, "n0>m0 n0<m0");
        check_good(workers, "n0>m0 n1>m0");
    }
    CHECK_INT(tccl_workers_replaced(workers), 0);
    CHECK_SAYS(run_set(workers, "n0>g0", &run, ERR) == 1, "GPUDirect");
    check_good(workers, "n0>m0");
    tccl_workers_free(workers);
    tccl_workspace_free(workspace);
}
