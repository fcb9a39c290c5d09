/* verbs-transfer.c: what RDMA does, by writing into the memory of the other process, whose id is in
 * the number of its queue pair. That something arrived that a buffer was posted for, it is told by
 * a datagram to a socket of its own, which it reads when it polls. Both are of one user, in one PID
 * and network namespace. */
#include "verbs-transfer.h"

#include "kernels.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { NUMBER_BITS = 10 }; /* of a pair in its process; above them the process */

struct rig_item {
    struct ibv_wc wc;
    struct rig_item *next;
};

/* Operations that take the machine's time: one after the other in each pair, by a thread. */
enum { PARTS = 4 };

struct send {
    struct ibv_send_wr wr;
    struct ibv_sge parts[PARTS];
    struct send *next;
};

struct rig_sends {
    struct rig_pair *pair;
    struct send *first, **end;
    pthread_cond_t changed;
    pthread_t thread;
    bool ends;
};

struct message {
    uint32_t to, number, bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rig_pair *pairs;
static int inbox = -1;

/* ---- under the lock ---- */

static void push(struct rig_list *list, struct ibv_wc wc)
{
    struct rig_item *item = malloc(sizeof(*item));
    if (!item)
        abort();
    *item = (struct rig_item){wc, NULL};
    *(list->first ? &list->last->next : &list->first) = item;
    list->last = item;
}

static bool pop(struct rig_list *list, struct ibv_wc *wc)
{
    struct rig_item *item = list->first;
    if (!item)
        return false;
    *wc = item->wc;
    list->first = item->next;
    free(item);
    return true;
}

/* What arrived goes with the next buffer that was posted. */
static void match(struct rig_pair *pair)
{
    struct ibv_wc buffer, arrival;
    while (pair->arrivals.first && pop(&pair->buffers, &buffer) && pop(&pair->arrivals, &arrival)) {
        arrival.wr_id = buffer.wr_id;
        push(&((struct rig_queue *)pair->public.recv_cq)->done, arrival);
    }
}

static void read_inbox(void)
{
    struct message message;
    /* not recv(), which waits a moment in programs on the rig (patient-sockets.c) */
    while (recvfrom(inbox, &message, sizeof(message), MSG_DONTWAIT, NULL, NULL) == sizeof(message))
        for (struct rig_pair *pair = pairs; pair; pair = pair->next)
            if (pair->public.qp_num == message.to) {
                push(&pair->arrivals, (struct ibv_wc){.status = IBV_WC_SUCCESS,
                                                      .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
                                                      .byte_len = message.bytes,
                                                      .imm_data = message.number,
                                                      .wc_flags = IBV_WC_WITH_IMM,
                                                      .qp_num = message.to});
                match(pair);
            }
}

static socklen_t name_of(struct sockaddr_un *name, uint32_t process)
{
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1,
                                        "tccl-rig-%u", process));
}

/* The others may write into this process. */
static void open_inbox(void)
{
    struct sockaddr_un name;
    if (inbox >= 0)
        return;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    inbox = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (inbox < 0 || bind(inbox, (struct sockaddr *)&name, name_of(&name, (uint32_t)getpid())) != 0)
        fprintf(stderr, "tccl rig: verbs: %s\n", strerror(errno));
}

/* ---- pairs ---- */

void rig_add_pair(struct rig_pair *pair)
{
    static uint32_t last;
    pthread_mutex_lock(&lock);
    open_inbox();
    pair->public.qp_num = (uint32_t)getpid() << NUMBER_BITS | ++last % (1u << NUMBER_BITS);
    pair->next = pairs;
    pairs = pair;
    pthread_mutex_unlock(&lock);
}

void rig_remove_pair(struct rig_pair *pair)
{
    struct rig_pair **at = &pairs;
    struct ibv_wc wc;
    pthread_mutex_lock(&lock);
    if (pair->sends) {
        pair->sends->ends = true;
        pthread_cond_signal(&pair->sends->changed);
        pthread_mutex_unlock(&lock);
        pthread_join(pair->sends->thread, NULL);
        pthread_mutex_lock(&lock);
        free(pair->sends);
    }
    while (*at != pair)
        at = &(*at)->next;
    *at = pair->next;
    while (pop(&pair->buffers, &wc) || pop(&pair->arrivals, &wc))
        ;
    pthread_mutex_unlock(&lock);
}

/* ---- transfers ---- */

static uint32_t bytes_of(const struct ibv_send_wr *wr)
{
    uint32_t bytes = 0;
    for (int i = 0; i < wr->num_sge; i++)
        bytes += wr->sg_list[i].length;
    return bytes;
}

/* Both return 0, or an errno. */
static int transfer(const struct rig_pair *pair, const struct ibv_send_wr *wr)
{
    ssize_t (*move)(pid_t, const struct iovec *, unsigned long, const struct iovec *, unsigned long,
                    unsigned long) =
        wr->opcode == IBV_WR_RDMA_READ ? process_vm_readv : process_vm_writev;
    uint64_t at = wr->wr.rdma.remote_addr;
    for (int i = 0; i < wr->num_sge; i++) {
        uint64_t from = wr->sg_list[i].addr, left = wr->sg_list[i].length;
        while (left > 0) {
            struct iovec here = {(void *)from, left}, there = {(void *)at, left};
            ssize_t moved = move((pid_t)(pair->remote >> NUMBER_BITS), &here, 1, &there, 1, 0);
            if (moved <= 0)
                return moved < 0 ? errno : EIO;
            from += (uint64_t)moved, at += (uint64_t)moved, left -= (uint64_t)moved;
        }
    }
    return 0;
}

/* The other's inbox may be full because it waits for room in this one. */
static int tell(const struct rig_pair *pair, const struct ibv_send_wr *wr)
{
    struct message message = {pair->remote, wr->imm_data, bytes_of(wr)};
    struct sockaddr_un name;
    socklen_t length = name_of(&name, pair->remote >> NUMBER_BITS);
    while (sendto(inbox, &message, sizeof(message), MSG_DONTWAIT, (struct sockaddr *)&name,
                  length) < 0) {
        if (errno != EAGAIN)
            return errno;
        pthread_mutex_lock(&lock);
        read_inbox();
        pthread_mutex_unlock(&lock);
        sched_yield();
    }
    return 0;
}

/* One operation, with its completion. Returns 0, or an errno. */
static int carry_out(struct rig_pair *pair, const struct ibv_send_wr *wr)
{
    bool with_number = wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    bool read = wr->opcode == IBV_WR_RDMA_READ;
    int error =
        with_number || read || wr->opcode == IBV_WR_RDMA_WRITE ? transfer(pair, wr) : EOPNOTSUPP;
    if (!error && with_number)
        error = tell(pair, wr);
    if (error)
        fprintf(stderr, "tccl rig: verbs: operation %d: %s\n", wr->opcode, strerror(error));
    if (error || !(wr->send_flags & IBV_SEND_SIGNALED))
        return error;
    pthread_mutex_lock(&lock);
    push(&((struct rig_queue *)pair->public.send_cq)->done,
         (struct ibv_wc){.wr_id = wr->wr_id,
                         .status = IBV_WC_SUCCESS,
                         .opcode = read ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE,
                         .byte_len = bytes_of(wr),
                         .qp_num = pair->public.qp_num});
    pthread_mutex_unlock(&lock);
    return 0;
}

/* ---- operations that take the machine's time: one after the other in each pair, by a thread ----
 */

/* A key: bit 0, then whether the place is known, a GPU's (else a NUMA node's), its number, that of
 * the NIC, of the node. */
uint32_t rig_key_of(const void *address, int nic)
{
    static bool (*find)(const void *address, struct rig_place *place);
    struct rig_place place;
    if (!pace_open())
        return 1;
    if (!find) {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        *(void **)&find = driver ? dlsym(driver, "rig_place") : NULL;
    }
    if (!find || !find(address, &place))
        return 1;
    return 1u | 2u | (uint32_t)(place.kind == 'g') << 2 | (uint32_t)(place.number & 31) << 3 |
           (uint32_t)(nic & 31) << 8 | (uint32_t)pace_node() << 13;
}

static int add_part(struct pace_part *parts, int n, uint32_t key, char way)
{
    char name[PACE_NAME];
    if (!(key & 2))
        return n;
    snprintf(name, sizeof(name), "n%u%c%c%u", key >> 8 & 31, way, key & 4 ? 'g' : 'm',
             key >> 3 & 31);
    return n + pace_find_part((int)(key >> 13), name, &parts[n]);
}

/* The NIC here reads what it sends, and the other one writes it. */
static void pace(const struct ibv_send_wr *wr, struct pace_stream *stream)
{
    struct pace_part parts[PACE_PARTS];
    int n = 0;
    if (wr->num_sge == 0 || wr->opcode == IBV_WR_RDMA_READ) /* a flush */
        return;
    n = add_part(parts, n, wr->sg_list[0].lkey, '<');
    n = add_part(parts, n, wr->wr.rdma.rkey, '>');
    pace_copy(stream, parts, n, bytes_of(wr), NULL, NULL);
}

static void *send_all(void *data)
{
    struct rig_sends *sends = data;
    struct pace_stream stream = {0};
    pthread_mutex_lock(&lock);
    for (;;) {
        struct send *send = sends->first;
        if (!send && sends->ends)
            break;
        if (!send) {
            pthread_cond_wait(&sends->changed, &lock);
            continue;
        }
        if (!(sends->first = send->next))
            sends->end = &sends->first;
        pthread_mutex_unlock(&lock);
        pace(&send->wr, &stream);
        carry_out(sends->pair, &send->wr);
        free(send);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Returns 0, or an errno. */
static int send_later(struct rig_pair *pair, const struct ibv_send_wr *wr)
{
    struct send *send = malloc(sizeof(*send));
    if (!send || wr->num_sge > PARTS)
        return free(send), ENOMEM;
    send->wr = *wr;
    send->wr.sg_list = send->parts;
    send->next = NULL;
    memcpy(send->parts, wr->sg_list, (size_t)wr->num_sge * sizeof(*wr->sg_list));
    pthread_mutex_lock(&lock);
    struct rig_sends *sends = pair->sends;
    if (!sends && (sends = calloc(1, sizeof(*sends)))) {
        *sends = (struct rig_sends){.pair = pair, .changed = PTHREAD_COND_INITIALIZER};
        sends->end = &sends->first;
        if (pthread_create(&sends->thread, NULL, send_all, sends) == 0)
            pair->sends = sends;
    }
    bool there = pair->sends != NULL;
    if (there) {
        *sends->end = send;
        sends->end = &send->next;
        pthread_cond_signal(&sends->changed);
    }
    pthread_mutex_unlock(&lock);
    if (!there)
        return free(sends), free(send), ENOMEM;
    return 0;
}

int rig_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct rig_pair *pair = (struct rig_pair *)qp;
    bool paced = pace_open();
    for (; wr; wr = wr->next) {
        int error = paced ? send_later(pair, wr) : carry_out(pair, wr);
        if (error) {
            *bad = wr;
            return error;
        }
    }
    return 0;
}

int rig_post_receive(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct rig_pair *pair = (struct rig_pair *)qp;
    pthread_mutex_lock(&lock);
    for (; wr; wr = wr->next)
        push(&pair->buffers, (struct ibv_wc){.wr_id = wr->wr_id});
    match(pair);
    pthread_mutex_unlock(&lock);
    return 0;
}

int rig_poll(struct ibv_cq *queue, int entries, struct ibv_wc *wc)
{
    int count = 0;
    pthread_mutex_lock(&lock);
    read_inbox();
    while (count < entries && pop(&((struct rig_queue *)queue)->done, &wc[count]))
        count++;
    pthread_mutex_unlock(&lock);
    return count;
}
