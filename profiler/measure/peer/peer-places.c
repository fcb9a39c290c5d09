/* peer-places.c: from NICs to network interfaces (/sys) and their addresses. */
#include "measure/peer/peer-places.h"

#include <dirent.h>
#include <ifaddrs.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

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
