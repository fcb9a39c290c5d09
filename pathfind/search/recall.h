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

/* Of larger profiles that many sets count, those that were measured first: what says most. */
enum { TCCL_RECALL_SETS = 4096 };

/* Adds what was measured to a tccl_setmap (the context), if it was without marks, and there is room
 * for it. Returns 0, or -1 without memory: for tccl_profile_sets. */
int tccl_recall_note(void *sets, const struct tccl_set *set, const struct tccl_measurement *value);

/* The best rings of a GPU set of the node alone, and the best chains and ring sets between those of
 * its NICs that were measured; of the rest of the table nothing counts. before: what the profile
 * has for the set; may P2P read there, it may here. sets: what was noted; a search's own members of
 * it change. progress: as of a search, or NULL; it is asked while it
 * learns, too. The caller frees; NULL with err. */
struct tccl_table *
tccl_recall_table(const struct tccl_machine *machine, struct tccl_setmap *sets,
                  const struct tccl_narrowed *narrowed, const struct tccl_table *before,
                  int (*progress)(void *context, const struct tccl_search_progress *progress),
                  void *context, struct tccl_error *err);
