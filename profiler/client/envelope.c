/* envelope.c: nonces, and the members of an envelope. */
#include "client/envelope.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "client/hostlist.h"
#include "client/message.h"

int tccl_nonce_make(char nonce[static TCCL_NONCE], struct tccl_error *err)
{
    unsigned char bytes[(TCCL_NONCE - 1) / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return tccl_fail(err, "getrandom: %s", strerror(errno));
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(nonce + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

int tccl_envelope_put(json_t *message, struct tccl_envelope *envelope, struct tccl_error *err)
{
    if (tccl_nonce_make(envelope->nonce, err) != 0)
        return -1;
    if (json_object_set_new(message, "to", json_string(envelope->to)) != 0 ||
        json_object_set_new(message, "from", json_string(envelope->from)) != 0 ||
        json_object_set_new(message, "epoch", json_integer(envelope->epoch)) != 0 ||
        json_object_set_new(message, "nonce", json_string(envelope->nonce)) != 0)
        return tccl_fail(err, "out of memory");
    return 0;
}

int tccl_envelope_get(const json_t *message, struct tccl_envelope *envelope, struct tccl_error *err)
{
    const char *nonce;
    if (tccl_get_text(message, "to", TCCL_HOST_NAME, &envelope->to, err) != 0 ||
        tccl_get_text(message, "from", TCCL_HOST_NAME, &envelope->from, err) != 0 ||
        tccl_get_int(message, "epoch", 0, INT64_MAX, &envelope->epoch, err) != 0 ||
        tccl_get_text(message, "nonce", TCCL_NONCE - 1, &nonce, err) != 0)
        return -1;
    if (strlen(nonce) != TCCL_NONCE - 1)
        return tccl_fail(err, "nonce: %d hexadecimal digits are expected", TCCL_NONCE - 1);
    memcpy(envelope->nonce, nonce, TCCL_NONCE);
    return 0;
}
