/* nic-of-peer.c: the network interface through which a peer is reached. */
#include "measure/peer/peer-places.h"

#include <errno.h>
#include <ifaddrs.h>
#include <libgen.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bus.h"
#include "base/cleanup.h"
#include "discover/sysfs.h"
#include "measure/peer/peer-hello.h"

/* GB/s of an interface that doesn't say. */
static const double usual_gbps = 1.25;

/* Our own address on the way there. A datagram socket is routed when it is connected. */
static int own_address(const struct addrinfo *there, struct sockaddr_storage *own)
{
    cleanup_close int fd = socket(there->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t size = sizeof(*own);

    if (fd < 0 || connect(fd, there->ai_addr, there->ai_addrlen) != 0)
        return -1;
    return getsockname(fd, (struct sockaddr *)own, &size);
}

static int find_route(const char *host, uint16_t port, struct sockaddr_storage *own,
                      struct tccl_error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
    struct addrinfo *list = NULL;
    char service[8];

    snprintf(service, sizeof(service), "%u", port);
    int rc = getaddrinfo(host, service, &hints, &list);
    if (rc != 0)
        return tccl_fail(err, "peer %s: %s", host, gai_strerror(rc));
    for (const struct addrinfo *at = list; at; at = at->ai_next) {
        if (own_address(at, own) == 0) {
            freeaddrinfo(list);
            return 0;
        }
    }
    int failed = errno;
    freeaddrinfo(list);
    return tccl_fail(err, "peer %s: no way there: %s", host, strerror(failed));
}

static bool is_same(const struct sockaddr *a, const struct sockaddr_storage *b)
{
    if (!a || a->sa_family != b->ss_family)
        return false;
    if (a->sa_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
    return memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
                  &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr,
                  sizeof(struct in6_addr)) == 0;
}

static int find_interface(const struct sockaddr_storage *own, char name[static IF_NAMESIZE])
{
    struct ifaddrs *list = NULL;
    const struct sockaddr_in *four = (const void *)own;
    /* Any address of the loopback's net is one of its own. */
    bool loops = own->ss_family == AF_INET && ntohl(four->sin_addr.s_addr) >> 24 == 127;
    snprintf(name, IF_NAMESIZE, "%s", loops ? "lo" : "");
    if (getifaddrs(&list) != 0)
        return name[0] ? 0 : -1;
    for (const struct ifaddrs *at = list; at && !name[0]; at = at->ifa_next)
        if (is_same(at->ifa_addr, own))
            snprintf(name, IF_NAMESIZE, "%.*s", IF_NAMESIZE - 1, at->ifa_name);
    freeifaddrs(list);
    return name[0] ? 0 : -1;
}

static void describe(const char *interface, const struct tccl_machine *machine,
                     struct tccl_nic *nic)
{
    bool loops = strcmp(interface, "lo") == 0;
    char path[64], device[PATH_MAX];
    long speed = 0, node = -1;
    tccl_bus bus;

    *nic = (struct tccl_nic){.gbps = usual_gbps, .parent = -1};
    snprintf(nic->name, sizeof(nic->name), "%s", interface);
    tccl_nic_rename(nic->name);
    snprintf(nic->fabric, sizeof(nic->fabric), "%s", loops ? "loopback" : "ethernet");
    /* Of the PCI device that the interface is a part of, if it is one. */
    snprintf(path, sizeof(path), "/sys/class/net/%s/device", interface);
    if (!realpath(path, device) || tccl_bus_parse(basename(device), &bus) != 0)
        bus = UINT64_C(0xf1) << 16;
    tccl_bus_format(bus, nic->busid);
    if (tccl_sys_number(NULL, &speed, "/sys/class/net/%s/speed", interface) && speed > 0)
        nic->gbps = (double)speed / 8000;
    tccl_sys_number(NULL, &node, "/sys/class/net/%s/device/numa_node", interface);
    for (int i = 0; i < machine->n_memories; i++)
        if (machine->nodes[i] == node)
            nic->numa = i;
}

int tccl_nic_of_peer(const char *peer, const struct tccl_machine *machine, struct tccl_nic *nic,
                     struct tccl_error *err)
{
    char host[TCCL_PEER_HOST], interface[IF_NAMESIZE];
    struct sockaddr_storage own = {0};
    uint16_t port;

    if (tccl_peer_address(peer, false, host, &port, err) != 0 ||
        find_route(host, port, &own, err) != 0)
        return -1;
    if (find_interface(&own, interface) != 0)
        return tccl_fail(err,
                         "peer %s: no network interface of ours has the address on the way "
                         "there",
                         host);
    describe(interface, machine, nic);
    return 0;
}
