/* An init's memory files: they are closed at its end, but not what a program has put in their place
 * meanwhile. */
#include "pending.h"

#include <fcntl.h>
#include <unistd.h>

#include "check.h"

static bool open_still(int fd)
{
    return fcntl(fd, F_GETFD) != -1;
}

static void forget(bool reused)
{
    struct shim_init init = {.gpu = 0x100,
                             .graph_fd = shim_memory_file(SHIM_GRAPH_NAME, "", 0),
                             .topo_fd = shim_memory_file(SHIM_TOPO_NAME, "", 0)};
    int own = open("/dev/null", O_RDWR);
    CHECK(shim_is_memory_file(init.graph_fd, SHIM_GRAPH_NAME));
    CHECK(!shim_is_memory_file(init.graph_fd, SHIM_TOPO_NAME));
    CHECK(!shim_is_memory_file(own, SHIM_GRAPH_NAME) && !shim_is_memory_file(-1, SHIM_GRAPH_NAME));
    struct shim_init *added = shim_pending_add(&init);
    CHECK(added != NULL);
    if (!added)
        return;
    if (reused)
        CHECK(dup2(own, init.graph_fd) == init.graph_fd);
    shim_pending_forget(added);
    CHECK_INT(open_still(init.graph_fd), reused);
    CHECK(!open_still(init.topo_fd));
    close(own);
    close(init.graph_fd);
}

int main(void)
{
    forget(false);
    forget(true);
    return check_result();
}
