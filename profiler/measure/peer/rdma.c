/* rdma.c: one RDMA connection (a reliable queue pair) and the memory that it may reach. */
#include "measure/peer/peer.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MEMORIES = 64,
    MAX_PORTS = 8,
    MAX_GIDS = 256,
    READS = 16,       /* RDMA reads under way, at most; devices have their own limit */
    RNR_TIMER = 12,   /* 0.64 ms */
    ACK_TIMEOUT = 16, /* 4.096 us * 2^16: 0.27 s */
    RETRIES = 5,
    HOPS = 64,
};

struct tccl_rdma {
    struct ibv_context *context;
    struct ibv_pd *domain;
    struct ibv_cq *queue;
    struct ibv_qp *pair;
    struct ibv_mr *memories[MEMORIES];
    uint64_t addresses[MEMORIES]; /* a GPU's memory has none in its ibv_mr */
    int n_memories;
    uint8_t port, gid_index;
    struct tccl_rdma_end here, there;
};

bool tccl_rdma_is_here(const char *name)
{
    char path[sizeof("/sys/class/infiniband/") + TCCL_RDMA_NAME];
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s", name);
    return *name && access(path, F_OK) == 0;
}

/* ---- the device and its port ---- */

static int least(int a, int b, int c)
{
    int smaller = a < b ? a : b;
    return smaller < c ? smaller : c;
}

/* The first port that is active: 0, or -1. */
static int find_port(struct tccl_rdma *rdma)
{
    struct ibv_device_attr device;
    if (ibv_query_device(rdma->context, &device) != 0)
        return -1;
    rdma->here.reads = (uint8_t)least(READS, device.max_qp_rd_atom, device.max_qp_init_rd_atom);
    for (int port = 1; port <= device.phys_port_cnt && port <= MAX_PORTS; port++) {
        struct ibv_port_attr attr;
        if (ibv_query_port(rdma->context, (uint8_t)port, &attr) != 0 ||
            attr.state != IBV_PORT_ACTIVE)
            continue;
        rdma->port = (uint8_t)port;
        rdma->here.ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
        rdma->here.mtu = (uint8_t)attr.active_mtu;
        rdma->here.lid = attr.lid;
        return 0;
    }
    return -1;
}

static bool open_device(struct tccl_rdma *rdma, struct ibv_context *context)
{
    rdma->context = context;
    if (!context)
        return false;
    snprintf(rdma->here.device, sizeof(rdma->here.device), "%s",
             ibv_get_device_name(context->device));
    if (find_port(rdma) == 0)
        return true;
    ibv_close_device(context);
    rdma->context = NULL;
    return false;
}

static int choose_device(struct tccl_rdma *rdma, const char *name, bool any, struct tccl_error *err)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    bool found = false;
    for (int i = 0; list && !found && i < count; i++)
        if (strcmp(ibv_get_device_name(list[i]), name) == 0)
            found = open_device(rdma, ibv_open_device(list[i]));
    for (int i = 0; list && any && !found && i < count; i++)
        found = open_device(rdma, ibv_open_device(list[i]));
    if (list)
        ibv_free_device_list(list);
    if (found)
        return 0;
    return any ? tccl_fail(err, "no RDMA device with an active port")
               : tccl_fail(err, "RDMA device %s can't be opened, or has no active port", name);
}

static int choose_gid(struct tccl_rdma *rdma, struct tccl_error *err)
{
    static const unsigned char ipv4[12] = {[10] = 0xff, [11] = 0xff};
    struct ibv_gid_entry entry;
    int best = 0;
    for (uint32_t i = 0; i < MAX_GIDS; i++) {
        if (ibv_query_gid_ex(rdma->context, rdma->port, i, &entry, 0) != 0)
            continue;
        /* For RoCE best is version 2, and an address of IPv4, as NCCL wants it. */
        int rank = 1 + (entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 2 : 0) +
                   (memcmp(entry.gid.raw, ipv4, sizeof(ipv4)) == 0);
        if (!rdma->here.ethernet)
            rank = i == 0;
        if (rank <= best)
            continue;
        best = rank;
        rdma->gid_index = (uint8_t)i;
        memcpy(rdma->here.gid, entry.gid.raw, sizeof(rdma->here.gid));
    }
    return best > 0 || !rdma->here.ethernet
               ? 0
               : tccl_fail(err, "RDMA device %s has no address", rdma->here.device);
}

static int make_pair(struct tccl_rdma *rdma, struct tccl_error *err)
{
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = TCCL_RDMA_DEPTH,
                                            .max_recv_wr = 1,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1}};
    rdma->domain = ibv_alloc_pd(rdma->context);
    rdma->queue = ibv_create_cq(rdma->context, TCCL_RDMA_DEPTH, NULL, NULL, 0);
    if (!rdma->domain || !rdma->queue)
        return tccl_fail(err, "RDMA device %s: %s", rdma->here.device, strerror(errno));
    attr.send_cq = attr.recv_cq = rdma->queue;
    rdma->pair = ibv_create_qp(rdma->domain, &attr);
    if (!rdma->pair)
        return tccl_fail(err, "RDMA device %s: no queue pair: %s", rdma->here.device,
                         strerror(errno));
    rdma->here.number = rdma->pair->qp_num;
    return 0;
}

static struct tccl_rdma *open_rdma(const char *name, bool any, struct tccl_error *err)
{
    struct tccl_rdma *rdma = calloc(1, sizeof(*rdma));
    if (!rdma)
        return tccl_fail_null(err, "out of memory");
    if (choose_device(rdma, name, any, err) == 0 && choose_gid(rdma, err) == 0 &&
        make_pair(rdma, err) == 0)
        return rdma;
    tccl_rdma_close(rdma);
    return NULL;
}

struct tccl_rdma *tccl_rdma_open(const char *name, struct tccl_error *err)
{
    return open_rdma(name, false, err);
}

void tccl_rdma_close(struct tccl_rdma *rdma)
{
    if (!rdma)
        return;
    if (rdma->pair)
        ibv_destroy_qp(rdma->pair);
    for (int i = 0; i < rdma->n_memories; i++)
        ibv_dereg_mr(rdma->memories[i]);
    if (rdma->queue)
        ibv_destroy_cq(rdma->queue);
    if (rdma->domain)
        ibv_dealloc_pd(rdma->domain);
    if (rdma->context)
        ibv_close_device(rdma->context);
    free(rdma);
}

/* ---- memory ---- */

/* shared: the other side may move data from and to it, too. */
static int register_memory(struct tccl_rdma *rdma, void *address, size_t bytes, int dmabuf,
                           bool shared, struct tccl_error *err)
{
    int access =
        IBV_ACCESS_LOCAL_WRITE | (shared ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE : 0);
    struct ibv_mr *memory = NULL;
    if (rdma->n_memories == MEMORIES)
        return tccl_fail(err, "RDMA device %s: too many memory regions", rdma->here.device);
    if (dmabuf >= 0)
        memory =
            ibv_reg_dmabuf_mr(rdma->domain, 0, bytes, (uint64_t)(uintptr_t)address, dmabuf, access);
    if (!memory) /* nvidia_peermem may do what a kernel or a NIC's driver can't by dma-buf */
        memory = ibv_reg_mr(rdma->domain, address, bytes, access);
    if (!memory)
        return tccl_fail(err, "RDMA device %s can't use this memory: %s%s", rdma->here.device,
                         strerror(errno), errno == ENOMEM ? " (ulimit -l?)" : "");
    if (shared) {
        rdma->here.key = memory->rkey;
        rdma->here.address = (uint64_t)(uintptr_t)address;
        rdma->here.bytes = bytes;
    }
    rdma->memories[rdma->n_memories] = memory;
    rdma->addresses[rdma->n_memories] = (uint64_t)(uintptr_t)address;
    return rdma->n_memories++;
}

int tccl_rdma_register(struct tccl_rdma *rdma, void *address, size_t bytes, int dmabuf,
                       struct tccl_error *err)
{
    return register_memory(rdma, address, bytes, dmabuf, false, err);
}

/* ---- the connection ---- */

void tccl_rdma_describe(const struct tccl_rdma *rdma, struct tccl_rdma_end *end)
{
    *end = rdma->here;
}

int tccl_rdma_join(struct tccl_rdma *rdma, const struct tccl_rdma_end *there,
                   struct tccl_error *err)
{
    rdma->there = *there;
    if (there->ethernet != rdma->here.ethernet)
        return tccl_fail(err, "RDMA device %s and %s of the other node are on different networks",
                         rdma->here.device, there->device);
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
                               .port_num = rdma->port,
                               .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};
    uint8_t mtu = rdma->here.mtu < there->mtu ? rdma->here.mtu : there->mtu;
    struct ibv_qp_attr receiving = {.qp_state = IBV_QPS_RTR,
                                    .path_mtu = (enum ibv_mtu)mtu,
                                    .dest_qp_num = there->number,
                                    .max_dest_rd_atomic = rdma->here.reads,
                                    .min_rnr_timer = RNR_TIMER,
                                    .ah_attr = {.dlid = there->lid, .port_num = rdma->port}};
    struct ibv_qp_attr sending = {.qp_state = IBV_QPS_RTS,
                                  .timeout = ACK_TIMEOUT,
                                  .retry_cnt = RETRIES,
                                  .rnr_retry = RETRIES,
                                  .max_rd_atomic =
                                      (uint8_t)least(READS, rdma->here.reads, there->reads)};
    if (rdma->here.ethernet) {
        receiving.ah_attr.is_global = 1;
        memcpy(receiving.ah_attr.grh.dgid.raw, there->gid, sizeof(there->gid));
        receiving.ah_attr.grh.sgid_index = rdma->gid_index;
        receiving.ah_attr.grh.hop_limit = HOPS;
    }
    int code = ibv_modify_qp(rdma->pair, &init,
                             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    /* Packets are numbered from 0 on both sides. */
    if (code == 0)
        code = ibv_modify_qp(rdma->pair, &receiving,
                             IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (code == 0)
        code = ibv_modify_qp(rdma->pair, &sending,
                             IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    return code == 0 ? 0
                     : tccl_fail(err, "RDMA device %s does not reach %s of the other node: %s",
                                 rdma->here.device, there->device, strerror(code));
}

struct tccl_rdma *tccl_rdma_lend(const struct tccl_rdma_end *guest, void *memory, size_t bytes,
                                 struct tccl_rdma_end *ours, struct tccl_error *err)
{
    struct tccl_rdma *rdma = open_rdma(guest->device, true, err);
    if (!rdma)
        return NULL;
    if (register_memory(rdma, memory, bytes, -1, true, err) < 0 ||
        tccl_rdma_join(rdma, guest, err) != 0) {
        tccl_rdma_close(rdma);
        return NULL;
    }
    *ours = rdma->here;
    return rdma;
}

/* ---- pieces ---- */

int tccl_rdma_start(struct tccl_rdma *rdma, bool reads, int memory, uint64_t here, uint64_t there,
                    uint32_t bytes, struct tccl_error *err)
{
    struct ibv_sge part = {rdma->addresses[memory] + here, bytes, rdma->memories[memory]->lkey};
    struct ibv_send_wr work = {.sg_list = &part,
                               .num_sge = 1,
                               .opcode = reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                               .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    work.wr.rdma.remote_addr = rdma->there.address + there;
    work.wr.rdma.rkey = rdma->there.key;
    int code = ibv_post_send(rdma->pair, &work, &bad);
    return code == 0 ? 0 : tccl_fail(err, "RDMA device %s: %s", rdma->here.device, strerror(code));
}

int tccl_rdma_ended(struct tccl_rdma *rdma, struct tccl_error *err)
{
    struct ibv_wc ended[TCCL_RDMA_DEPTH];
    int count = ibv_poll_cq(rdma->queue, TCCL_RDMA_DEPTH, ended);
    if (count < 0)
        return tccl_fail(err, "RDMA device %s: its queue can't be read", rdma->here.device);
    for (int i = 0; i < count; i++)
        if (ended[i].status != IBV_WC_SUCCESS)
            return tccl_fail(err, "RDMA device %s: %s", rdma->here.device,
                             ibv_wc_status_str(ended[i].status));
    return count;
}
