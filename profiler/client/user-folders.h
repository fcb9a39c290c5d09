/* user-folders.h: where a user keeps what is theirs alone, by the XDG base directory specification:
 * profiles of their machines, and records of what they ran (tccl-run). */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* $XDG_CACHE_HOME/tccl, else ~/.cache/tccl; $XDG_STATE_HOME/tccl, else ~/.local/state/tccl. Values
 * that are no absolute paths are passed over. Both return 0, or -1: the user has no home, or the
 * path is too long. */
int tccl_user_cache(char path[static PATH_MAX]);
int tccl_user_state(char path[static PATH_MAX]);

/* May this user make files there, or make the folder? */
bool tccl_user_may_write(const char *path);
