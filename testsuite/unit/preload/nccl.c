/* A stand-in for libnccl.so.2 as a program sees it: the names and their twins, and the questions
 * that NCCL asks of the environment. Runs on old systems, too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))
#ifndef COPY
#define COPY 0 /* by which two in one program are told apart */
#endif

typedef struct {
    char bytes[128];
} unique_id;

PUBLIC int pncclGetVersion(int *version);
PUBLIC int pncclGetUniqueId(unique_id *id);
PUBLIC int pncclCommInitRank(void **comm, int ranks, unique_id id, int rank);
PUBLIC int pncclCommDestroy(void *comm);

#define TWIN(name) __attribute__((weak, alias("p" #name), visibility("default")))
TWIN(ncclGetVersion) int ncclGetVersion(int *version);
TWIN(ncclGetUniqueId) int ncclGetUniqueId(unique_id *id);
TWIN(ncclCommInitRank) int ncclCommInitRank(void **comm, int ranks, unique_id id, int rank);
TWIN(ncclCommDestroy) int ncclCommDestroy(void *comm);

static void ask(const char *name)
{
    const char *value = getenv(name);
    printf("%s=%s\n", name, value ? value : "(none)");
}

int pncclGetVersion(int *version)
{
    *version = 22907;
    return 0;
}

int pncclGetUniqueId(unique_id *id)
{
    for (size_t i = 0; i < sizeof(id->bytes); i++)
        id->bytes[i] = (char)i;
    id->bytes[0] = COPY;
    return 0;
}

int pncclCommInitRank(void **comm, int ranks, unique_id id, int rank)
{
    printf("init %d of %d, id %d … %d\n", rank, ranks, id.bytes[1], id.bytes[127]);
    ask("NCCL_P2P_LEVEL");
    ask("NCCL_TOPO_FILE");
    ask("NCCL_GRAPH_FILE");
    *comm = malloc(1);
    return *comm ? 0 : 2;
}

int pncclCommDestroy(void *comm)
{
    free(comm);
    return 0;
}
