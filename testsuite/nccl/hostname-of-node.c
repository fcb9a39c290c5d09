/* hostname-of-node.c: all nodes of a minicluster are one machine. With this in LD_PRELOAD a program
 * takes its node's name in Slurm for the machine's, as on a real cluster: so Open MPI's mpirun
 * knows that it is on a node of the job, and starts no daemon there. */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char *node(void)
{
    const char *name = getenv("SLURMD_NODENAME");
    return name ? name : "elsewhere";
}

int gethostname(char *name, size_t size)
{
    strncpy(name, node(), size);
    return 0;
}

int uname(struct utsname *system)
{
    long rc = syscall(SYS_uname, system);
    strncpy(system->nodename, node(), sizeof(system->nodename) - 1);
    return (int)rc;
}
