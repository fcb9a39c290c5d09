/* A library that brings libnccl.so.2 along, as a Python extension does. */
#include <stdio.h>

typedef struct {
    char bytes[128];
} unique_id;

extern int ncclGetVersion(int *version);
extern int ncclGetUniqueId(unique_id *id);
extern int ncclCommInitRank(void **comm, int ranks, unique_id id, int rank);
extern int ncclCommDestroy(void *comm);

__attribute__((visibility("default"))) int use_nccl(void);

int use_nccl(void)
{
    int version = 0;
    void *comm = NULL;
    unique_id id = {{0}};
    int rc = ncclGetVersion(&version);
    rc = rc * 10 + ncclGetUniqueId(&id);
    rc = rc * 10 + ncclCommInitRank(&comm, 1, id, 0);
    rc = rc * 10 + ncclCommDestroy(comm);
    printf("NCCL %d: %04d\n", version, rc);
    fflush(stdout);
    return rc;
}
