/* rdma-end.c: what the two sides of an RDMA connection tell each other, as JSON. */
#include <stdio.h>
#include <string.h>

#include "client/message.h"
#include "measure/peer/peer.h"

enum { GID_TEXT = 33, MTU_LEAST = 1, MTU_MOST = 5, NUMBER_MOST = (1 << 24) - 1 };

json_t *tccl_rdma_to_json(const struct tccl_rdma_end *end)
{
    char gid[GID_TEXT];
    for (size_t i = 0; i < sizeof(end->gid); i++)
        snprintf(gid + 2 * i, 3, "%02x", end->gid[i]);
    return json_pack("{s:s, s:b, s:i, s:i, s:i, s:I, s:s, s:I, s:I, s:I}", "device", end->device,
                     "ethernet", end->ethernet, "mtu", (int)end->mtu, "reads", (int)end->reads,
                     "lid", (int)end->lid, "number", (json_int_t)end->number, "gid", gid, "key",
                     (json_int_t)end->key, "address", (json_int_t)end->address, "bytes",
                     (json_int_t)end->bytes);
}

int tccl_rdma_from_json(const json_t *json, struct tccl_rdma_end *end, struct tccl_error *err)
{
    json_int_t mtu, reads, lid, number, key, address, bytes;
    const char *device, *gid;
    if (tccl_get_text(json, "device", TCCL_RDMA_NAME - 1, &device, err) != 0 ||
        tccl_get_text(json, "gid", GID_TEXT - 1, &gid, err) != 0 ||
        tccl_get_int(json, "mtu", MTU_LEAST, MTU_MOST, &mtu, err) != 0 ||
        tccl_get_int(json, "reads", 1, UINT8_MAX, &reads, err) != 0 ||
        tccl_get_int(json, "lid", 0, UINT16_MAX, &lid, err) != 0 ||
        tccl_get_int(json, "number", 0, NUMBER_MOST, &number, err) != 0 ||
        tccl_get_int(json, "key", 0, UINT32_MAX, &key, err) != 0 ||
        tccl_get_int(json, "address", INT64_MIN, INT64_MAX, &address, err) != 0 ||
        tccl_get_int(json, "bytes", 0, INT64_MAX, &bytes, err) != 0)
        return -1;
    if (strlen(gid) != GID_TEXT - 1 || strspn(gid, "0123456789abcdef") != GID_TEXT - 1)
        return tccl_fail(err, "gid: 32 hexadecimal digits are expected");
    *end = (struct tccl_rdma_end){.ethernet = json_is_true(json_object_get(json, "ethernet")),
                                  .mtu = (uint8_t)mtu,
                                  .reads = (uint8_t)reads,
                                  .lid = (uint16_t)lid,
                                  .number = (uint32_t)number,
                                  .key = (uint32_t)key,
                                  .address = (uint64_t)address,
                                  .bytes = (uint64_t)bytes};
    snprintf(end->device, sizeof(end->device), "%s", device);
    for (size_t i = 0; i < sizeof(end->gid); i++)
        sscanf(gid + 2 * i, "%2hhx", &end->gid[i]);
    return 0;
}
