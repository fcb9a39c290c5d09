/* decision.h: are planned rings worth taking in place of NCCL's own, or several at once in place of
 * a single one? The one place that decides it: at a launch, for groups, in tccl-path and reports.
 *
 * Rings are taken if they are faster than NCCL's own by the gain that is required of them
 * (required), lose no more time at any size of an all-reduce than they win at
 * another one (latency.h; where small messages come first, what is lost up to 128 KiB counts four
 * times), and leave each step that runs beside them what it would have beside NCCL's own; or if
 * they are as fast, and raise the least share, several rings by the gain that is required. Never if
 * people would be told that they are slower, nor if they would be told of less than the policy
 * wants. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Rings, ours or NCCL's own. */
struct tccl_contender {
    double gbps;  /* of all of them at once, GB/s; 0: not known */
    double told;  /* what people are told that these reach (ring.h), GB/s; 0: as gbps */
    double share; /* what they leave to the steps that run beside them, as a part; 1: all */
    bool harms;   /* a step beside them has less than beside NCCL's own */
    int rings;    /* at once; 0 counts as 1 */
    int bounces;  /* ways through host memory, of the ring that has most (latency.h) */
};

struct tccl_decision_case {
    struct tccl_contender ours, nccl;
    int nodes, gpus;  /* of all nodes; 0: times are not compared */
    bool small_first; /* small messages come first, as with two GPUs: a group within a node */
    double alone;     /* what ours reach when nobody else runs, GB/s; 0: nobody else does */
    double noise;     /* of the measurements, as a ratio */
    bool measured;    /* the sets of both on all nodes; else at least one node's are by a model */
    double min_gain;  /* what the site's policy wants, times NCCL's own; 1 or less: nothing */
};

enum tccl_decided {
    TCCL_TAKE,
    TCCL_NO_FASTER,    /* NCCL's own are as fast, or faster */
    TCCL_HARMS,        /* faster, but the steps beside them would pay for it */
    TCCL_LITTLE_GAIN,  /* faster, but not by what is required */
    TCCL_SLOWER_SMALL, /* faster, but some sizes lose more time than others win */
    TCCL_BELOW_POLICY, /* nor by what the policy wants */
};

struct tccl_decision {
    enum tccl_decided decided;
    double required;  /* how many times as fast as NCCL's own they have to be */
    double win, loss; /* how many times as long NCCL's own take, and ours, at most of all sizes */
    uint64_t loss_at; /* bytes */
};

/* What an all-reduce of the i-th size (latency.h) takes, us. */
void tccl_decision_times(const struct tccl_decision_case *asked, int i, double *ours, double *nccl);

/* Without a known bandwidth of NCCL's own ours are taken, if they don't harm. */
struct tccl_decision tccl_decide(const struct tccl_decision_case *asked);

/* Are several rings worth their graph file in place of the single one? Both cases have the same of
 * NCCL's own. Also if neither is taken, and these are the faster ones. */
bool tccl_decide_several(const struct tccl_decision_case *several,
                         const struct tccl_decision_case *single);

/* Why not, for people: "NCCL's own choice is faster (…)"; "" if they are taken, or if that is the
 * policy's. */
enum { TCCL_DECISION_TEXT = 256 };
void tccl_decision_say(const struct tccl_decision_case *asked, const struct tccl_decision *decision,
                       char text[static TCCL_DECISION_TEXT]);
