/* recall.h: a fresh search on a machine whose links carry less than when its profile was measured,
 * by what was measured then: nothing is measured.
 *
 * A set that was measured, or one like it, has what it had; what another one has follows from what
 * its limits carried (search/foretell.h: at least that, if the machine has no others), and is no
 * more than a part of it had. From all of that the links take what they take (ring/narrowed.h). So
 * a ring is found that was no candidate while all links were whole. */
#pragma once

#include "ring/narrowed.h"
#include "search/search.h"
#include "search/setmap.h"

/* The best rings of a GPU set of the node alone; of the rest of the table nothing counts. sets: all
 * that was measured without marks; a search's own members of it change. progress: as of a search,
 * or NULL. The caller frees; NULL with err. */
struct tccl_table *tccl_recall_table(const struct tccl_machine *machine, struct tccl_setmap *sets,
                                     const struct tccl_narrowed *narrowed, uint32_t gpus,
                                     int (*progress)(void *context,
                                                     const struct tccl_search_progress *progress),
                                     void *context, struct tccl_error *err);
