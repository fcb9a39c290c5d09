/* nccl-version.c: the range of versions that are known. */
#include "chain/nccl-version.h"

#include <stdio.h>

enum { OLDEST = 21800, NEWEST = 23099 };

bool tccl_nccl_known(unsigned version)
{
    return version >= OLDEST && version <= NEWEST;
}

static unsigned major_of(unsigned version)
{
    return version / 10000;
}

static unsigned minor_of(unsigned version)
{
    return version / 100 % 100;
}

void tccl_nccl_format(unsigned version, char text[static TCCL_NCCL_TEXT])
{
    if (version == 0)
        snprintf(text, TCCL_NCCL_TEXT, "NCCL of an unknown version");
    else
        snprintf(text, TCCL_NCCL_TEXT, "NCCL %u.%u.%u", major_of(version), minor_of(version),
                 version % 100);
}

void tccl_nccl_not_known(unsigned version, char text[static TCCL_NCCL_TEXT])
{
    char name[TCCL_NCCL_TEXT];
    tccl_nccl_format(version, name);
    snprintf(text, TCCL_NCCL_TEXT, "%.40s" TCCL_NCCL_NOT_KNOWN "%u.%u to %u.%u are)", name,
             major_of(OLDEST), minor_of(OLDEST), major_of(NEWEST), minor_of(NEWEST));
}
