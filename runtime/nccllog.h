/* nccllog.h: NCCL's own log, read by the shim. Where the user has set none of NCCL_DEBUG,
 * NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE, NCCL's questions for them are answered so that it logs
 * into a memory file that nobody else sees. Where the user has a file with all that is needed
 * (NCCL_DEBUG=INFO or TRACE, subsystems INIT, GRAPH, P2P, SHM, NET), that file is read. Otherwise
 * there is no log. */
#ifndef SHIM_NCCLLOG_H
#define SHIM_NCCLLOG_H

#include "base.h"

/* The shim's answer to NCCL's question for one of these names; NULL: none. The first call with one
 * of them makes the memory file. */
const char *shim_nccllog_answer(const char *name);

bool shim_nccllog_there(void);

/* Reads what has been written since, and takes note of it: NICs, and for each communicator "Init
 * START" … "Init COMPLETE", rings, how peers are reached. Bounded; memory that has been read is
 * given back. */
void shim_nccllog_read(void);

/* The number of NCCL's NIC of that name, and how many NICs there are; -1 with why. After
 * shim_nccllog_read. */
int shim_nccllog_nic(const char *name, struct shim_why *why);

/* What the last communicator that thread tid has begun to join is: ranks, rank. Returns 0, or -1.
 */
int shim_nccllog_joining(int tid, int *rank, int *ranks, shim_bus *gpu);

enum shim_way { SHIM_WAY_UNKNOWN, SHIM_WAY_P2P, SHIM_WAY_SHM, SHIM_WAY_NET };
/* What NCCL built for one rank: of the channels, the distinct ones. */
struct shim_built {
    int rank, ranks, channels; /* channels: how many rings, with copies */
    bool same;                 /* all channels have the same neighbours */
    int prev, next;            /* ranks */
    enum shim_way send, receive;
    int send_nic, receive_nic; /* of NET; -1 */
    bool send_gdr, receive_gdr;
    bool complete; /* "Init COMPLETE" was read */
};
/* The newest communicator of a GPU and rank that the log tells of and that was not asked for
 * before. Returns 0, or -1: there is none. (In one process, each (gpu, rank, ranks) is told in the
 * order of the inits.) */
int shim_nccllog_built(shim_bus gpu, int rank, int ranks, struct shim_built *built);

#endif
