/* owned.h: variables of tests that release what they hold at the end of their scope, as those of
 * base/cleanup.h do. */
#pragma once

#include "check.h"
#include "machine/model.h"
#include "ring/node-class.h"
#include "search/search.h"
#include "search/symmetry.h"

OWNED(model, struct tccl_model, tccl_model_free)
OWNED(search, struct tccl_search, tccl_search_free)
OWNED(symmetry, struct tccl_symmetry, tccl_symmetry_free)
OWNED(table, struct tccl_table, tccl_table_free)
