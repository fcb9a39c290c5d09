/* shim-nccl.h: the files of this folder, one after the other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/loaded.h"
#include "plan/plan.h"

/* ---- pci ---- */

/* The PCI tree around GPUs and NICs, as NCCL finds it in /sys. */

enum {
    SHIM_PCI_NICS = 32,
    SHIM_PCI_DEVICES = SHIM_GPUS + SHIM_PCI_NICS,
    SHIM_PCI_DEPTH = 16,
    SHIM_PCI_NODES = 1024
};

/* How far NCCL takes two devices to be apart: topo.h's PATH_PIX … PATH_SYS. */
enum shim_path { SHIM_PIX, SHIM_PXB, SHIM_PHB, SHIM_SYS };
const char *shim_path_name(enum shim_path path); /* "PIX" … */

struct shim_pci_device {
    tccl_bus bus;
    int16_t node; /* what NCCL takes for the number of its CPU: the NUMA node of its uppermost
                     bridge (its own, where it has none), -1 if the kernel knows none */
    uint8_t depth;
    tccl_bus above[SHIM_PCI_DEPTH]; /* the bridges that NCCL sees, from the top down: each second
                                       one of the kernel's, so that a switch is one */
};

struct shim_pci {
    uint8_t n;
    bool amd, intel; /* the CPU's maker, as NCCL will see it */
    uint8_t reads;   /* bit i: NCCL sends directly from ring i's last GPU to a NIC that is near */
    bool net_intra;  /* NCCL may take NICs in place of host memory within the node */
    bool cautious;   /* a CPU through which NCCL never took P2P: Intel's, Zhaoxin's, ARM */
    /* What NCCL has been told of the CPU in place of asking it; "", -1: nothing. */
    char vendor[16];
    int32_t family, model;
    uint64_t nodes[SHIM_PCI_NODES / 64]; /* NUMA nodes that the kernel has; bits */
    struct shim_pci_device devices[SHIM_PCI_DEVICES];
};

/* Reads the places of n devices from root's sys, proc and var ("" is the real one). Returns 0, or
 * -1 with why: they can't be read, or NCCL would not go by them (the machine has a topology file,
 * or switches that are joined otherwise). A device that is there twice is kept once. */
int shim_pci_read(const char *root, const tccl_bus *devices, int n, struct shim_pci *pci,
                  struct tccl_error *why);

/* Adds the machine's NICs whose places can be read, as far as there is room. */
void shim_pci_add_nics(struct shim_pci *pci);

/* Has the kernel such a NUMA node? -1, where devices of no node are: yes. */
bool shim_pci_has_node(const struct shim_pci *pci, int node);
/* Is the device behind that bridge? */
bool shim_pci_is_below(const struct shim_pci_device *device, tccl_bus bridge);
/* The i-th address that nothing has: for bridges that are invented. */
tccl_bus shim_pci_unused(const struct shim_pci *pci, int i);

/* Index of a device, or -1. */
int shim_pci_find(const struct shim_pci *pci, tccl_bus bus);
/* How far apart two places are; what is behind a device's own bridge counts alike. */
enum shim_path shim_pci_distance(const struct shim_pci_device *a, const struct shim_pci_device *b);
/* a, b: bus ids that were read; SHIM_SYS for others. */
enum shim_path shim_pci_path(const struct shim_pci *pci, tccl_bus a, tccl_bus b);

/* ---- settings ---- */

/* What the user has set for NCCL (environment, or nccl.conf, which NCCL puts into the environment
 * when it starts: after the wrappers, before its first question). It is never overruled. Of its own
 * the shim gives a process two settings: net-intra's, and NCCL_P2P_READ_ENABLE, in all processes of
 * a step on a node whose rings read. */

/* What the user has set, as bits: of such a process' communicators some or all can't be steered. */
enum {
    SHIM_USER_FILES = 1 << 0, /* NCCL_GRAPH_FILE, NCCL_TOPO_FILE, NCCL_ENV_PLUGIN, or an nccl.conf
                                 that can't be looked through */
    SHIM_USER_P2P = 1 << 1,   /* NCCL_P2P_DISABLE, NCCL_P2P_LEVEL other than PXB …: edges within a
                                 node */
    SHIM_USER_SHM = 1 << 2,   /* NCCL_SHM_DISABLE, NCCL_SHM_LOCALITY other than 2 … */
    SHIM_USER_NET =
        1 << 3, /* NCCL_NET, NCCL_NET_PLUGIN, NCCL_IB_DISABLE, NCCL_NET_MERGE_LEVEL …: NICs */
    SHIM_USER_GDR = 1 << 4,   /* NCCL_NET_GDR_LEVEL, NCCL_NET_GDR_READ */
    SHIM_USER_SHARP = 1 << 5, /* NCCL_COLLNET_ENABLE */
    SHIM_USER_ALGO = 1 << 6,  /* NCCL_ALGO without Ring, NCCL_CROSS_NIC=1 */
    /* No hindrance by themselves: what can't be given in their place. */
    SHIM_USER_PXB = 1 << 7,           /* NCCL_P2P_LEVEL=PXB, as we would have it */
    SHIM_USER_READ = 1 << 8,          /* NCCL_P2P_READ_ENABLE other than 0 */
    SHIM_USER_HOST = 1 << 9,          /* NCCL_CUMEM_HOST_ENABLE other than 0 */
    SHIM_USER_NO_HOST = 1 << 10,      /* NCCL_CUMEM_HOST_ENABLE=0, NCCL_CUMEM_ENABLE=0 */
    SHIM_USER_NO_NET_INTRA = 1 << 11, /* NCCL_NET_DISABLE_INTRA=1, as we would have it */
    SHIM_USER_KIND = 1 << 12          /* NCCL_P2P_READ_ENABLE, whatever it says */
};
/* Reads the environment, and the files that NCCL will put into it. May look the user up in the
 * user database, as NCCL does: not on a path that has to be short. */
uint32_t shim_settings_user(void);
/* Words for these bits: the variables that are set, for the log. */
void shim_settings_user_words(uint32_t user, struct shim_text *text);

/* Says what the user has set, of these bits, that leaves nothing to us. Returns 0: none of them; or
 * -1 with why. */
int shim_settings_refuse(uint32_t bits, struct tccl_error *why);
/* Does what users have set leave the chain to us (user: of each of the members that hold
 * chain->rings.chains[0].gpus[i])? reads: P2P reads in the step's processes here that don't say
 * otherwise. Returns 0, or -1 with why. */
int shim_settings_suit(const struct shim_chain *chain, const uint32_t *user, bool reads,
                       struct tccl_error *why);

/* Is one of the GPU's buffers on another memory than its own, where NCCL puts them by itself? */
bool shim_settings_move(const struct shim_chain *chain, const struct shim_pci *pci, tccl_bus gpu);
/* Does NCCL have its buffers between processes from CUDA's host memory? Else they are files in
 * /dev/shm. driver: CUDA's version that it is for (12060: 12.6); user: what the user has set. */
bool shim_settings_cumem_host(uint32_t version, int driver, uint32_t user);

/* ---- islands ---- */

/* NCCL takes P2P between GPUs that are at most PXB apart, else it goes through host memory; and
 * GPUDirect between a GPU and a NIC that are. Where that is not what the chain wants, a topology
 * file puts consecutive GPUs that hand on directly below one invented bridge, and the NIC of an end
 * there, or away from it. That holds for one communicator, as no setting would. */

/* Reads the places of a chain's GPUs and of the machine's NICs. Returns 0, or -1 with why. */
int shim_islands_read(const struct shim_chain *chain, struct shim_pci *pci, struct tccl_error *why);

/* Writes the topology file for a chain. pci: all of its GPUs were read, and its NICs if it is open.
 * Returns 0: none is needed, NCCL takes each edge as planned; 1: text holds it; or -1 with why: it
 * can't be expressed. linked: which pairs of chain->rings.chains[0].gpus have NVLink (base.h),
 * which NCCL always takes. pxb: NCCL_P2P_LEVEL is PXB, else NCCL's default of that version. seen:
 * pci as NCCL will see it; its net_intra is false only if the chain needs it so. */
int shim_islands(const struct shim_chain *chain, const struct shim_pci *pci,
                 bool linked[SHIM_GPUS][SHIM_GPUS], bool pxb, uint32_t version,
                 struct shim_text *text, struct shim_pci *seen, struct tccl_error *why);

/* Does NCCL by itself take P2P at any distance, on a node with n GPUs of the communicator? */
bool shim_islands_far_p2p(const struct shim_pci *pci, int n, uint32_t version);

/* ---- graph ---- */

/* The graph file of a chain. */

struct shim_numbers {
    int gpus[SHIM_GPUS];  /* NVML's index of chain->rings.chains[0].gpus[i], in its own process */
    bool by_rank;         /* these may be equal: NCCL is told ranks */
    int ranks[SHIM_GPUS]; /* in the communicator; -1: unknown. Not used without by_rank */
    int entry[TCCL_CHAIN_RINGS], exit[TCCL_CHAIN_RINGS]; /* NCCL's numbers of the rings' NICs; not
                                                            used when closed */
    int tree;   /* of the tree's NIC; negative: NCCL finds its own tree */
    bool apart; /* not all nodes have several rings: as many channels as NCCL's own */
};

/* Channels of a graph: as many as NCCL's own rings have on this node (own > 0), or as few more as
 * give each of n rings equally many (some fewer, beyond the 16 that all versions have room for). */
int shim_graph_channels(int own, int n);

/* Writes <graphs> with the rings (id 0), one channel after the other, and the tree (id 1) where one
 * is planned, or trees along the rings: of one GPU on each node, which whatever is connected first
 * joins, and for several rings of one node, as NCCL's search may find none with so many channels.
 * The rings' channels and speeds
 * are those that NCCL's own search has for its rings on this node (own->ring), with
 * shim_graph_channels of them, which are as fast together, or with as many (apart): of several
 * rings the first ones then. From them NCCL reckons how long each algorithm and protocol takes for
 * a size, after it has taken the least of all nodes, of each number by itself. So the tree gives
 * way to the ring, and LL to Simple, at the sizes at which they would without us, on nodes without
 * a plan, too, and NCCL's tree has as many channels as ever. A planned tree has NCCL's own speeds,
 * too, but no more, beside the ring's, than was measured of both. types: the farthest edge and end
 * as NCCL will see them (never NVL: it would use LL128, which needs NVLink). Returns 0, or -1 with
 * why: too long, a number is negative, or own is not known. */
int shim_graph(const struct shim_chain *chain, const struct shim_numbers *numbers,
               const struct shim_baseline *own, enum shim_path intra, enum shim_path inter,
               struct shim_text *text, struct tccl_error *why);

/* GB/s, nominal, of all channels of a tree that was measured with so many GB/s each way, beside the
 * planned ring: NCCL's own (speed_tree for each channel), but no more, beside those of its own ring
 * (speed_ring), than was measured of both (chain/tree-rate.h). */
double shim_graph_tree_gbps(const struct shim_chain *chain, const struct shim_baseline *own,
                            double tree, double speed_tree, double speed_ring);

/* Has a graph file a tree? NCCL reads it once for each graph. */
bool shim_graph_tells_tree(const char *file);

/* Does reading a graph file take NCCL hundreds of megabytes? */
bool shim_graph_is_costly(uint32_t version);
/* Memory that NCCL takes for a moment when one graph is answered, for each rank, in bytes. */
uint64_t shim_graph_memory(uint32_t version);

/* ---- steer ---- */

/* A topology file under which NCCL's own search finds the chain. From 2.29.7 on NCCL makes a table
 * of 0.9 GB for any graph file (clearing); a topology file needs none. */

/* What the file is made for. */
struct shim_steer {
    int channels; /* that NCCL's own search finds on this node without us, and the nominal GB/s */
    double gbps;  /* of each; 0: unknown */
    double tree_gbps;           /* of all channels of its trees, to the NICs */
    bool near_entry, near_exit; /* does NCCL take the NIC to be at most PXB from the chain's first
                                   GPU, its last? */
    bool far_p2p;               /* NCCL takes P2P at any distance */
    int nics;                   /* on this node; those that NCCL leaves out count, too */
    bool given;    /* a graph file gives NCCL the ring, which its search need not find */
    bool ways;     /* NCCL reads links between PCI switches, and takes P2P along one of them only:
                      from 2.30.7 on it takes any number of switches in a row */
    bool all_cpus; /* NUMA nodes without GPUs have to be in the file, too */
};

/* Writes the file for a chain whose edges and ends shim_islands has found possible. linked: NVLink
 * between GPUs, in the order of the chain. The ranks of a node must all have it. Returns 1, with
 * why if some GPUs that NCCL alone joins by host memory, and that are no neighbours in the chain,
 * become direct to each other; or 0 with why: a graph file is needed. why is "" before. */
int shim_steer(const struct shim_chain *chain, const struct shim_pci *pci,
               bool linked[SHIM_GPUS][SHIM_GPUS], const struct shim_steer *facts,
               struct shim_text *text, struct tccl_error *why);

/* ---- shim-layout ---- */

/* Where a topology file of steer has a chain's GPUs and its NIC: which are below one bridge, at
 * which CPU, and which pairs have a way of their own. */

struct shim_layout {
    const struct shim_chain *chain;
    const struct shim_pci *pci;
    const struct shim_steer *facts;
    bool intel;                /* the CPU that the file has: Intel's, or AMD's */
    int n, first;              /* number of GPUs; the one that the file begins with */
    int islands;               /* consecutive P2P neighbours */
    int begins[SHIM_GPUS + 1]; /* of each island: its first GPU, counted from `first` */
    int16_t node[SHIM_GPUS];   /* and the NUMA node that most of its GPUs are at */
    int home;                  /* the island below whose bridge the NIC is, -1: none */
    bool crowded;              /* NCCL would not read all ways */
};

/* Of a chain; the layout keeps the pointers. Returns 0, or -1 with why: pci does not have all of
 * its GPUs. */
int shim_layout(const struct shim_chain *chain, const struct shim_pci *pci,
                const struct shim_steer *facts, struct shim_layout *layout, struct tccl_error *why);

/* GPU i, counted from the first. */
const struct shim_pci_device *shim_layout_gpu(const struct shim_layout *layout, int i);

/* GPUs i < j: P2P where it is planned, or, between GPUs that are no neighbours, where NCCL alone
 * takes it? */
bool shim_layout_wants_p2p(const struct shim_layout *layout, int i, int j);

/* Would a bridge above the island's GPUs make more of them direct to each other than wanted? Then
 * the number of ways that do in its place, else 0. */
int shim_layout_count_ways(const struct shim_layout *layout, int island);
bool shim_layout_can_have_ways(const struct shim_layout *layout, int island);
bool shim_layout_needs_ways(const struct shim_layout *layout, int island);

/* ---- topo-file ---- */

/* Of a layout. Returns 1, with why if GPUs become direct that are not to (shim_steer); or 0 with
 * why: NCCL would not read it. */
int shim_topo_layout(const struct shim_layout *layout, struct shim_text *text,
                     struct tccl_error *why);
/* Of those devices that are left to be written, all of them at the end. disguised: at Intel's CPUs.
 * all_cpus: NCCL fails where the file leaves out a CPU that a NIC is at. Returns 1, or -1 with why.
 */
int shim_topo_islands(const struct shim_pci *pci, bool *left, bool disguised, bool all_cpus,
                      struct shim_text *text, struct tccl_error *why);

/* ---- clearing ---- */

/* NCCL from 2.29.7 on has a table of 0.9 GB made and cleared before it reads a graph file, of which
 * it then uses some entries. What malloc has just got from the kernel reads as zero already, and
 * has no memory until it is written. So the one memset that follows the answer, in this thread, by
 * this library, gives the pages back to the kernel in place of writing them.  For that the
 * library's own pointer to memset (shim_slot) leads to the shim meanwhile. Nothing is done, and
 * NCCL clears its table as without us, where that pointer is not as the loader leaves it, or is
 * write-protected. Calls of other threads, and smaller ones, go on to memset. */

/* Can it be left out of the object that holds the address? */
bool shim_clearing_can(const void *caller);
/* The calling thread's next large memset, by the object that holds the caller. Until
 * shim_clearing_stop, or the call has come. */
void shim_clearing_leave_out(const void *caller);
/* It does not come any more. (Of a thread that waits for none: nothing.) */
void shim_clearing_stop(void);

/* Clears memory by giving its pages back to the kernel. False: it is not such memory (a file, or
 * locked), and the bytes may be anything. */
bool shim_clear_pages(void *at, size_t size);

/* ---- nics ---- */

/* The number that this process' NCCL gives to a NIC. */

/* NCCL's device number of the NIC named name ("mlx5_0"). From NCCL's own log where the shim has it
 * (nccllog: "NET/IB : Using [0]mlx5_0:1/IB …"), else found as NCCL does (libibverbs' list if the
 * process has loaded it, ports that are up, NCCL_IB_HCA). -1 with why on any doubt: another net
 * plugin, devices that NCCL has fused, one NIC with several ports, a filter that is not understood,
 * sockets, a NIC that NCCL leaves out. To be asked when NCCL asks: it knows its NICs by then. */
int shim_nic_number(const char *name, const struct shim_nccl *nccl, struct tccl_error *why);

/* How many InfiniBand or RoCE devices the node has, also those that NCCL leaves out. */
int shim_nics_there(void);

/* A hash of what the user has set that decides NICs' numbers: processes where it is not the same
 * may number them differently. */
uint64_t shim_nics_settings(void);

/* ---- memory ---- */

/* Bounce buffers on the memory of the chain. NCCL's receiver allocates them, in a thread that the
 * init thread makes, which inherits the policy. */

struct shim_policy {
    bool changed;
    int mode;
    unsigned long nodes[16]; /* 1,024 nodes */
};
/* Prefers the NUMA node for the calling thread and those that it makes from now on; saved gets what
 * was before. node -1 or a kernel without NUMA: nothing. Returns 0; -1 with why: it was refused
 * (seccomp, cpuset); 1 with why: this machine has no such node. */
int shim_policy_prefer(int node, struct shim_policy *saved, struct tccl_error *why);
void shim_policy_restore(struct shim_policy *saved);
/* May the process ask for its policy? Where it may not, neither can CUDA choose a memory. */
bool shim_policy_can(void);
/* The node that such a policy of ours prefers in the calling thread, set here or inherited; -1:
 * there is none. */
int shim_policy_node(void);

/* Bytes that are free in /dev/shm. UINT64_MAX: unknown. */
uint64_t shim_shm_left(void);

/* Bytes that the process can still have: of the machine, and of its memory cgroups. UINT64_MAX:
 * unknown. */
uint64_t shim_memory_left(void);
/* Bytes that its own limits leave to the process (ulimit -v, -d). UINT64_MAX: there are none. */
uint64_t shim_memory_limits_left(void);
