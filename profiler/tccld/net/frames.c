/* A frame is taken out of a buffer when all of it is there; one that is too long never is, and
 * nothing is allocated for it. */
#include "tccld/net/front.h"

#include <stdlib.h>

#include "client/frame.h"

int frames_take(struct evbuffer *in, size_t limit, char **data, size_t *size)
{
    unsigned char header[TCCL_FRAME_HEADER];
    if (evbuffer_copyout(in, header, sizeof(header)) < (ev_ssize_t)sizeof(header))
        return 0;
    *size = tccl_frame_size(header);
    if (*size == 0 || *size > limit)
        return -1;
    if (evbuffer_get_length(in) < sizeof(header) + *size)
        return 0;
    *data = malloc(*size + 1);
    if (!*data)
        return -1;
    evbuffer_drain(in, sizeof(header));
    evbuffer_remove(in, *data, *size);
    (*data)[*size] = '\0';
    return 1;
}

int frames_add(struct evbuffer *out, const char *data, size_t size, size_t limit)
{
    unsigned char header[TCCL_FRAME_HEADER];
    if (size == 0 || size > limit)
        return -1;
    tccl_frame_header(size, header);
    if (evbuffer_add(out, header, sizeof(header)) != 0)
        return -1;
    return evbuffer_add(out, data, size);
}
