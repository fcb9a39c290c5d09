/* peer-places.h: the network interfaces of NICs, and the addresses on which a tccl-profile peer
 * serves them. */
#pragma once

#include <netinet/in.h>

#include "machine/machine.h"

enum { TCCL_PEER_PLACES = 4 * TCCL_MAX_NICS };

struct tccl_peer_place {
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } address;
    char nic[TCCL_NAME]; /* of which it is the address */
};

/* The network interface of a NIC: itself, or what its RDMA device has (of InfiniBand: IPoIB's); ""
 * if none is here. */
void tccl_nic_interface(const char *nic, char name[static TCCL_NAME]);

/* The addresses that the machine's NICs have now, with that port; where an interface is part of a
 * bond or bridge, those of that. Link-local ones are left out: they say nothing without an
 * interface. Returns how many, at most TCCL_PEER_PLACES; or -1 with err: there are none. */
int tccl_peer_places(const struct tccl_machine *machine, uint16_t port,
                     struct tccl_peer_place places[static TCCL_PEER_PLACES],
                     struct tccl_error *err);

/* The network interface through which a peer is reached, as the kernel would route it now: name,
 * rate and bus id (one made up where it is no PCI device); its numa is that of the machine's memory
 * it is next to, 0 where nobody knows. Nothing is sent but questions to name servers. peer: "HOST"
 * or "HOST:PORT". Returns 0, or -1 with err. */
int tccl_nic_of_peer(const char *peer, const struct tccl_machine *machine, struct tccl_nic *nic,
                     struct tccl_error *err);
