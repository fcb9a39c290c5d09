/* print-decision.c: what the runtime shim decides for the communicator of all GPUs of a plan,
 * without an NCCL, and the microseconds that it takes to. Usage: print-decision VERSION PLAN... A
 * line for each plan: files, microseconds, why there are none or not fewer. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "hook/hook.h"
#include "nccl/shim-nccl.h"

static struct shim_plan plan;
static struct shim_member members[SHIM_GPUS];
static struct shim_answer answer;
static char apart[SHIM_GRAPH_SIZE];

/* As calls.c fills them in, for a process each. */
static void make_members(uint32_t version)
{
    struct tccl_error why = {""};
    memset(members, 0, sizeof(members));
    for (int i = 0; i < plan.n_gpus; i++) {
        members[i] = (struct shim_member){.gpu = plan.gpus[i],
                                          .rank = i,
                                          .nvml = -1,
                                          .sees = UINT32_MAX,
                                          .version = version,
                                          .host = 1,
                                          .sm = shim_device_sm(plan.gpus[i]),
                                          .pid = 1 + i,
                                          .room = UINT64_MAX};
        if (shim_device_nvml(plan.gpus[i], &members[i].nvml, &why) != 0)
            members[i].nvml = -1;
    }
}

static void decide(uint32_t version)
{
    struct shim_comm comm = {.key = 1,
                             .ranks = (int)plan.step_gpus,
                             .expected = plan.n_gpus,
                             .nccl = {.version = version}};
    struct shim_text apart_text = {apart, sizeof(apart), 0, false};
    struct tccl_error why = {""};
    make_members(version);
    int64_t start = shim_now_us();
    int result = shim_decide(&plan, NULL, &comm, members, plan.n_gpus, &answer, &apart_text, &why);
    long long took = shim_now_us() - start;
    printf("%s %lld %s\n",
           result != 0         ? "none"
           : answer.graph_size ? "graph"
           : answer.topo_size  ? "topology"
                               : "nothing",
           took, why.text);
}

int main(int argc, char **argv)
{
    uint32_t version = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;
    struct tccl_error why = {""};
    if (argc < 3)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);                 /* in turn with the log */
    dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL); /* as NCCL has */
    setenv("TCCL_DEBUG", "INFO", 1);                  /* why a graph file is needed, to stderr */
    for (int i = 2; i < argc; i++) {
        if (shim_plan_read(argv[i], &plan, &why) != 0) {
            fprintf(stderr, "print-decision: %s: %s\n", argv[i], why.text);
            return 1;
        }
        decide(version);
    }
    return 0;
}
