/* verbs-transfer.h: queue pairs of the stand-in verbs library that move data between processes of
 * one machine, where kernels run (TCCL_RIG_LAUNCH=run). */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>

struct rig_list {
    struct rig_item *first, *last;
};

struct rig_queue {
    struct ibv_cq public;
    struct rig_list done;
};

struct rig_pair {
    struct ibv_qp public;
    uint32_t remote;          /* the other's number */
    struct rig_list buffers;  /* that wait for what arrives */
    struct rig_list arrivals; /* that wait for a buffer */
    struct rig_sends *sends;  /* where the machine is paced */
    struct rig_pair *next;
};

/* The key of memory that a NIC may use, not 0: where it is, and which NIC that is. */
uint32_t rig_key_of(const void *address, int nic);

/* Gives it its number. */
void rig_add_pair(struct rig_pair *pair);
void rig_remove_pair(struct rig_pair *pair);

/* As ibv_post_send and its kin. */
int rig_post_send(struct ibv_qp *pair, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int rig_post_receive(struct ibv_qp *pair, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int rig_poll(struct ibv_cq *queue, int entries, struct ibv_wc *wc);
