/* nic-of-peer.h: the network interface through which a peer is reached. */
#ifndef TCCL_NIC_OF_PEER_H
#define TCCL_NIC_OF_PEER_H

#include "machine/machine.h"

/* As the kernel would route it now: name, rate and bus id (one made up where it is no PCI device);
 * its numa is that of the machine's memory it is next to, 0 where nobody knows. Nothing is sent but
 * questions to name servers. peer: "HOST" or "HOST:PORT". Returns 0, or -1 with err. */
int tccl_nic_of_peer(const char *peer, const struct tccl_machine *machine, struct tccl_nic *nic,
                     struct tccl_error *err);

#endif
