/* ring.h: the ring for a job step, from the classes of its nodes. */
#pragma once

#include "ring/decision.h"
#include "ring/node-class.h"

/* Consecutive nodes of one class. */
struct tccl_run {
    const struct tccl_node_class *class;
    int count;
};

struct tccl_ring_choice {
    int seen;                        /* index into what the class has */
    uint8_t order[TCCL_CHAIN_RINGS]; /* and which chain of that each ring has */
};

struct tccl_ring {
    double
        gbps; /* of the slowest chain or hop, beside the steps that run; 0: no ring can be closed */
    double alone; /* the same ring when nobody else runs */
    double lost;  /* of gbps and alone, as a part: what an all-reduce does not reach (reach.h) */
    double told_lost; /* of gbps beside the steps that run: what people are told */
    double share; /* what it leaves to those that run, as a part of what they have alone; 1: all */
    bool harms;   /* one of those that run has less than beside NCCL's own choice */
    enum tccl_basis
        basis;    /* by what gbps and share are known beside them; the least sure chain's */
    double bound; /* proven upper bound of all rings, or sets of as many as any class has sets of */
    double baseline_gbps[TCCL_GENERATIONS]; /* of the baseline of each generation of NCCL; 0 if
                                             * unknown */
    double baseline_lost[TCCL_GENERATIONS], baseline_told_lost[TCCL_GENERATIONS]; /* as of gbps */
    double baseline_share[TCCL_GENERATIONS]; /* what that leaves to those that run */
    double noise;  /* of the measurements, as a ratio; the largest of all classes */
    bool measured; /* all classes; else some are by a model */
    int n_nodes;
    uint32_t closes; /* bit R: R rings at once close, of those numbers that were looked at */
    int gpus;        /* of all nodes */
    int bounces;     /* on the way of the ring that has most (latency.h); */
    int baseline_bounces[TCCL_GENERATIONS]; /* and of the baseline's */
    int rings; /* how many run at once; gbps and alone are of all of them together */
    struct tccl_ring_choice *choices; /* n_nodes; owned by the ring */
};

/* Rate of a hop: the slower line rate of both NICs; 0 if their fabrics differ. GB/s. */
double tccl_hop(const struct tccl_node_class *from, int exit_nic, const struct tccl_node_class *to,
                int entry_nic);

/* Aggregate bandwidth of the baseline's chains over a hop, GB/s; 0 if two NICs are not connected.
 * Both classes must have a baseline of this generation. The chains carry equal parts of the data,
 * and those through one NIC share its rate. Chains are assumed to be connected in the order of the
 * NICs. */
double tccl_baseline_hop(const struct tccl_node_class *from, const struct tccl_node_class *to,
                         int generation);

/* Solves the ring over the nodes of the runs in order, or the best set of rings at once where all
 * classes have sets of so many. rings: so many at once; 0: whatever is best. Rings through one NIC
 * share its line rate. Returns 0; 1 if there is nothing to do (one GPU in all); -1 with err saying
 * why there is no ring (a node without NIC, fabrics that do not meet, a class without a set of so
 * many). tccl_ring_clear frees. */
int tccl_ring_solve(const struct tccl_run *runs, int n_runs, int rings, struct tccl_ring *ring,
                    struct tccl_error *err);

/* What a job gets: the best rings, most at once, of those beside which nobody has less than the
 * least share that there is with a single one, the step's own included, if they are worth it
 * (tccl_decide_several); else the single one. *rings_of_best: how many the best ones are. The bound
 * is of all rings and sets. Returns as tccl_ring_solve. */
int tccl_ring_choose(const struct tccl_run *runs, int n_runs, int most, struct tccl_ring *ring,
                     int *rings_of_best, struct tccl_error *err);

/* What an all-reduce of large size reaches by it (reach.h), GB/s: beside the steps that run; when
 * nobody else runs; and by the baseline of a generation. What users are told: where the ends beside
 * others (node-class.h) are not known of one of the nodes, as it decides. What decides is the
 * same of a ring that is alone, stretched as its transfers are beside others: margins were found
 * with that. */
double tccl_ring_reach(const struct tccl_ring *ring);
double tccl_ring_reach_alone(const struct tccl_ring *ring);
double tccl_ring_baseline_reach(const struct tccl_ring *ring, int generation);

/* Is the ring worth taking in place of the baseline of this generation? min_gain: of the policy; 0:
 * none. If not, it must not be applied with that NCCL. */
struct tccl_decision_case tccl_ring_case(const struct tccl_ring *ring, int generation,
                                         double min_gain);
struct tccl_decision tccl_ring_decide(const struct tccl_ring *ring, int generation,
                                      double min_gain);
/* The same, whatever the policy: yes or no. */
bool tccl_ring_gains(const struct tccl_ring *ring, int generation);

void tccl_ring_clear(struct tccl_ring *ring);

/* The chains of all rings on a node of that class, the first ring's first. */
void tccl_ring_set_of(const struct tccl_ring *ring, const struct tccl_node_class *class, int node,
                      struct tccl_ring_set *set);

/* "n1[chain] n2[chain]", or of several rings "n1[chain | chain] n2[chain | chain]", for all nodes.
 * Where this takes more than most bytes, chains that several nodes have are written at the first
 * one only: "n1[chain] n2[= n1]", which may be longer still. names has n_nodes entries. Allocated;
 * NULL if out of memory. */
char *tccl_ring_format(const struct tccl_run *runs, int n_runs, const struct tccl_ring *ring,
                       const char *const *names, size_t most);
