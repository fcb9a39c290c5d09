/* source.c: where bandwidths come from: the back end, and what ran beside. */
#include "base/source.h"

#include <stdio.h>
#include <string.h>

static const char *const names[TCCL_BACKGROUNDS] = {
    [TCCL_BACKGROUND_NONE] = "none", [TCCL_BACKGROUND_OFFLOAD] = "offload"};

const char *tccl_background_name(enum tccl_background background)
{
    return names[background];
}

int tccl_background_parse(const char *name)
{
    for (int i = 0; i < TCCL_BACKGROUNDS; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

enum tccl_background tccl_background_named(const char *name)
{
    int background = tccl_background_parse(name);

    return background < 0 ? TCCL_BACKGROUND_NONE : (enum tccl_background)background;
}

void tccl_source_format(const char *backend, enum tccl_background background, char *text,
                        size_t size)
{
    bool beside = background != TCCL_BACKGROUND_NONE;

    snprintf(text, size, "%s%s%s", backend, beside ? "+" : "", beside ? names[background] : "");
}

bool tccl_source_is(const char *source, const char *backend)
{
    size_t length = strcspn(source, "+");

    return strlen(backend) == length && strncmp(source, backend, length) == 0;
}

bool tccl_source_measured(const char *source)
{
    return *source && !tccl_source_is(source, "model");
}

enum tccl_background tccl_source_background(const char *source)
{
    const char *plus = strchr(source, '+');

    return plus ? tccl_background_named(plus + 1) : TCCL_BACKGROUND_NONE;
}

void tccl_source_backend(const char *source, char *text, size_t size)
{
    snprintf(text, size, "%.*s", (int)strcspn(source, "+"), source);
}
