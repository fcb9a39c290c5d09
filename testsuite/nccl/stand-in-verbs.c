/* stand-in-verbs.c: libibverbs.so.1 without NICs: those of devices.h, one active port each. Queue
 * pairs connect and memory registers, so that a program gets through its initialization. What is
 * sent arrives where kernels run; else nothing can be sent. */
#include "devices.h"
#include "verbs-transfer.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The header's macros would lead to the extended functions. */
#undef ibv_query_port
#undef ibv_reg_mr

#define PUBLIC __attribute__((visibility("default")))

#define ANSWER PUBLIC int
#include "stand-in.h"

/* Providers' libraries look for members of their own behind the public part. */
union device {
    struct ibv_device public;
    char room[sizeof(struct ibv_device) + 256];
};

struct speed {
    int rate; /* Gb/s */
    uint8_t lanes, code;
};

enum { LANES_1 = 1, LANES_4 = 2, LANES_8 = 4 };
static const struct speed speeds[] = {
    {10, LANES_4, 1},   {25, LANES_1, 32},   {40, LANES_4, 4},
    {50, LANES_1, 64},  {56, LANES_4, 16},   {100, LANES_4, 32},
    {200, LANES_4, 64}, {400, LANES_4, 128}, {800, LANES_8, 128},
};

static int index_of(const struct ibv_device *device)
{
    const struct rig_devices *all = rig_devices();
    for (int i = 0; i < all->n_nics; i++)
        if (strcmp(all->nics[i].name, device->name) == 0)
            return i;
    return 0;
}

static int refuse_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    *bad = wr;
    rig_refuse("sending");
    return EOPNOTSUPP;
}

/* A buffer that waits for data that nobody can send. */
static int accept_buffer(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return 0;
}

static int nothing_done(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
    return 0;
}

DOES(ibv_fork_init, (void));

PUBLIC struct ibv_device **ibv_get_device_list(int *count)
{
    const struct rig_devices *all = rig_devices();
    struct ibv_device **list = calloc((size_t)all->n_nics + 1, sizeof(*list));
    for (int i = 0; list && i < all->n_nics; i++) {
        union device *device = calloc(1, sizeof(*device));
        if (!device)
            break;
        device->public.node_type = IBV_NODE_CA;
        device->public.transport_type = IBV_TRANSPORT_IB;
        memcpy(device->public.name, all->nics[i].name, sizeof(device->public.name) - 1);
        memcpy(device->public.dev_name, all->nics[i].name, sizeof(device->public.dev_name) - 1);
        list[i] = &device->public;
    }
    if (count)
        *count = list ? all->n_nics : 0;
    return list;
}

/* The devices stay: contexts point to them. */
PUBLIC void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

PUBLIC const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

PUBLIC struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct ibv_context *context = calloc(1, sizeof(*context));
    const char *launch = getenv("TCCL_RIG_LAUNCH");
    if (!context)
        return NULL;
    context->device = device;
    context->cmd_fd = context->async_fd = -1;
    bool transfers = launch && strcmp(launch, "run") == 0;
    context->ops.post_send = transfers ? rig_post_send : refuse_send;
    context->ops.post_recv = transfers ? rig_post_receive : accept_buffer;
    context->ops.poll_cq = transfers ? rig_poll : nothing_done;
    return context;
}

DOES(ibv_close_device, (struct ibv_context * context), free(context));

/* Nothing ever happens to these devices. */
PUBLIC int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    for (;;)
        pause();
}

PUBLIC void ibv_ack_async_event(struct ibv_async_event *event)
{
}

PUBLIC const char *ibv_event_type_str(enum ibv_event_type event)
{
    return "event";
}

/* The same for all functions of a card: NCCL up to 2.23 joins those that are of one system image.
 */
static uint64_t card_of(const char *name)
{
    char path[PATH_MAX], real[PATH_MAX];
    uint64_t hash = 14695981039346656037U;
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", name);
    const char *text = realpath(path, real) ? real : name;
    size_t length = strlen(text) - (text == real);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211U;
    return hash;
}

PUBLIC int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attributes)
{
    memset(attributes, 0, sizeof(*attributes));
    attributes->node_guid = (uint64_t)index_of(context->device) + 1;
    attributes->sys_image_guid = card_of(context->device->name);
    attributes->max_mr_size = UINT64_MAX;
    attributes->max_qp = attributes->max_cq = attributes->max_mr = 1 << 17;
    attributes->max_qp_wr = attributes->max_cqe = 1 << 15;
    attributes->max_sge = 30;
    attributes->phys_port_cnt = 1;
    return 0;
}

PUBLIC int ibv_query_port(struct ibv_context *context, uint8_t port,
                          struct _compat_ibv_port_attr *compat)
{
    struct ibv_port_attr *attributes = (struct ibv_port_attr *)compat;
    int rate = rig_devices()->nics[index_of(context->device)].rate;
    if (port != 1)
        return EINVAL;
    attributes->state = IBV_PORT_ACTIVE;
    attributes->max_mtu = attributes->active_mtu = IBV_MTU_4096;
    attributes->gid_tbl_len = 1;
    attributes->max_msg_sz = 1 << 30;
    attributes->pkey_tbl_len = 1;
    attributes->lid = (uint16_t)(index_of(context->device) + 1);
    attributes->phys_state = 5; /* link up */
    for (size_t i = sizeof(speeds) / sizeof(*speeds); i-- > 0;)
        if (rate <= speeds[i].rate || !attributes->active_speed) {
            attributes->active_width = speeds[i].lanes;
            attributes->active_speed = speeds[i].code;
        }
    attributes->link_layer = IBV_LINK_LAYER_INFINIBAND;
    return 0;
}

PUBLIC int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    if (port != 1 || index != 0)
        return -1;
    memset(gid, 0, sizeof(*gid));
    gid->raw[0] = 0xfe;
    gid->raw[1] = 0x80;
    gid->raw[15] = (uint8_t)(index_of(context->device) + 1);
    return 0;
}

/* The default partition; asked for by NCCL from 2.31 on. */
PUBLIC int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *key)
{
    *key = 0xffff;
    return port == 1 && index == 0 ? 0 : -1;
}

PUBLIC struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *domain = calloc(1, sizeof(*domain));
    if (domain)
        domain->context = context;
    return domain;
}

DOES(ibv_dealloc_pd, (struct ibv_pd * domain), free(domain));

PUBLIC struct ibv_mr *ibv_reg_mr(struct ibv_pd *domain, void *address, size_t length, int access)
{
    struct ibv_mr *region = calloc(1, sizeof(*region));
    if (region)
        *region = (struct ibv_mr){.context = domain->context,
                                  .pd = domain,
                                  .addr = address,
                                  .length = length,
                                  .lkey = rig_key_of(address, index_of(domain->context->device)),
                                  .rkey = rig_key_of(address, index_of(domain->context->device))};
    return region;
}

DOES(ibv_dereg_mr, (struct ibv_mr * region), free(region));

PUBLIC struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *data,
                                    struct ibv_comp_channel *channel, int vector)
{
    struct rig_queue *queue = calloc(1, sizeof(*queue));
    if (!queue)
        return NULL;
    queue->public =
        (struct ibv_cq){.context = context, .channel = channel, .cq_context = data, .cqe = entries};
    return &queue->public;
}

DOES(ibv_destroy_cq, (struct ibv_cq * queue), free(queue));

PUBLIC struct ibv_qp *ibv_create_qp(struct ibv_pd *domain, struct ibv_qp_init_attr *attributes)
{
    struct rig_pair *pair = calloc(1, sizeof(*pair));
    if (!pair)
        return NULL;
    pair->public = (struct ibv_qp){.context = domain->context,
                                   .pd = domain,
                                   .send_cq = attributes->send_cq,
                                   .recv_cq = attributes->recv_cq,
                                   .qp_type = attributes->qp_type};
    rig_add_pair(pair);
    return &pair->public;
}

PUBLIC int ibv_modify_qp(struct ibv_qp *pair, struct ibv_qp_attr *attributes, int mask)
{
    if (mask & IBV_QP_STATE)
        pair->state = attributes->qp_state;
    if (mask & IBV_QP_DEST_QPN)
        ((struct rig_pair *)pair)->remote = attributes->dest_qp_num;
    return 0;
}

PUBLIC int ibv_query_qp(struct ibv_qp *pair, struct ibv_qp_attr *attributes, int mask,
                        struct ibv_qp_init_attr *init)
{
    memset(attributes, 0, sizeof(*attributes));
    memset(init, 0, sizeof(*init));
    attributes->qp_state = pair->state;
    return 0;
}

DOES(ibv_destroy_qp, (struct ibv_qp * pair), rig_remove_pair((struct rig_pair *)pair); free(pair));
