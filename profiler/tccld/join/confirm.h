/* confirm.h: what NCCL built of a step's ring, as its processes say. */
#ifndef TCCL_CONFIRM_H
#define TCCL_CONFIRM_H

#include "client/client.h"
#include "tccld/net/connection.h"

enum { CONFIRM_TEXT = 255 };

/* Handler of CONFIRM. */
lines_handler confirm_hear;

#endif
