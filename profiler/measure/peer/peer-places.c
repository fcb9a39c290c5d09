/* peer-places.c: from NICs to network interfaces (/sys) and their addresses; and from a peer to the
 * interface by which it is reached. */
#include "measure/peer/peer.h"

#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <libgen.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bus.h"
#include "base/cleanup.h"
#include "discover/sysfs.h"

/* GB/s of an interface that doesn't say. */
static const double usual_gbps = 1.25;

void tccl_nic_interface(const char *nic, char name[static TCCL_NAME])
{
    char path[sizeof("/sys/class/infiniband//device/net") + TCCL_NAME];
    struct dirent **entries;
    snprintf(path, sizeof(path), "/sys/class/net/%s", nic);
    snprintf(name, TCCL_NAME, "%s", access(path, F_OK) == 0 ? nic : "");
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/net", nic);
    int count = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (!*name && entries[i]->d_name[0] != '.')
            snprintf(name, TCCL_NAME, "%.*s", TCCL_NAME - 1, entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

/* Returns whether it is an address by which others reach us. */
static bool take_address(const struct sockaddr *address, uint16_t port,
                         struct tccl_peer_place *place)
{
    if (address && address->sa_family == AF_INET) {
        memcpy(&place->address.four, address, sizeof(place->address.four));
        place->address.four.sin_port = htons(port);
        return true;
    }
    if (!address || address->sa_family != AF_INET6)
        return false;
    memcpy(&place->address.six, address, sizeof(place->address.six));
    place->address.six.sin6_port = htons(port);
    return !IN6_IS_ADDR_LINKLOCAL(&place->address.six.sin6_addr);
}

/* NICs of one bond have its addresses once. */
static bool is_known(const struct tccl_peer_place *places, int count,
                     const struct tccl_peer_place *place)
{
    for (int i = 0; i < count; i++)
        if (memcmp(&places[i].address, &place->address, sizeof(place->address)) == 0)
            return true;
    return false;
}

static int add_places(const struct ifaddrs *list, const char *nic, uint16_t port,
                      struct tccl_peer_place *places, int count)
{
    char name[TCCL_NAME], path[sizeof("/sys/class/net//master") + TCCL_NAME], master[PATH_MAX];
    tccl_nic_interface(nic, name);
    /* The bond or bridge that an interface is part of has the address. */
    snprintf(path, sizeof(path), "/sys/class/net/%s/master", name);
    if (*name && realpath(path, master))
        snprintf(name, TCCL_NAME, "%.*s", TCCL_NAME - 1, basename(master));
    for (const struct ifaddrs *at = list; at && count < TCCL_PEER_PLACES; at = at->ifa_next) {
        struct tccl_peer_place place = {0};
        if (strcmp(at->ifa_name, name) == 0 && take_address(at->ifa_addr, port, &place) &&
            !is_known(places, count, &place)) {
            snprintf(place.nic, sizeof(place.nic), "%s", nic);
            places[count++] = place;
        }
    }
    return count;
}

int tccl_peer_places(const struct tccl_machine *machine, uint16_t port,
                     struct tccl_peer_place places[static TCCL_PEER_PLACES], struct tccl_error *err)
{
    struct ifaddrs *list;
    int count = 0;
    if (getifaddrs(&list) != 0)
        return tccl_fail(err, "this node's network interfaces can't be listed");
    for (int i = 0; i < machine->n_nics; i++)
        count = add_places(list, machine->nics[i].name, port, places, count);
    freeifaddrs(list);
    if (count > 0)
        return count;
    if (machine->n_nics == 0)
        return tccl_fail(err,
                         "this node has no NIC to serve: say where to listen by --listen ADDR");
    return tccl_fail(
        err,
        "%s%s: no address: give its network interface one (of InfiniBand: IPoIB's), or "
        "say where to listen by --listen ADDR",
        machine->nics[0].name, machine->n_nics > 1 ? " and the other NICs" : "");
}

/* ---- the interface by which a peer is reached ---- */

/* Our own address on the way there. A datagram socket is routed when it is connected. */
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
    rc = -1;
    for (const struct addrinfo *at = list; at && rc != 0; at = at->ai_next) {
        cleanup_close int fd = socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        socklen_t size = sizeof(*own);
        if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0)
            rc = getsockname(fd, (struct sockaddr *)own, &size);
    }
    if (rc != 0)
        tccl_fail(err, "peer %s: no route to it: %s", host, strerror(errno));
    freeaddrinfo(list);
    return rc;
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
        return tccl_fail(
            err, "peer %s: no network interface of this node has the address of the route to it",
            host);
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
    return 0;
}
