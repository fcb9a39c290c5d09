/* check-pace.c: the rig's machines (pace.c) against the project's own evaluation, which was written
 * without it: the rate of each of the transfers of random sets, some of which run several times.
 * Usage: check-pace MODEL [SEED] with TCCL_RIG_PACE. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "machine/machine.h"
#include "machine/model.h"
#include "pace.h"

enum { SETS = 2000, MOST = 40 };

int main(int argc, char **argv)
{
    struct tccl_error err = {""};
    struct tccl_model *model = NULL;
    tccl_transfer possible[TCCL_TRANSFERS], set[MOST];
    struct pace_part parts[MOST];
    double rates[MOST], paced[MOST];
    unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : (unsigned)time(NULL);
    int n = 0;
    if (argc < 2 || tccl_model_read(argv[1], &model, &err) != 0 || !pace_open()) {
        fprintf(stderr, "check-pace: %s\n", err.text);
        return 1;
    }
    printf("%s, seed %u\n", argv[1], seed);
    srand(seed);
    for (tccl_transfer t = 0; t < TCCL_TRANSFERS; t++)
        if (tccl_transfer_valid(t) && tccl_machine_allows(tccl_model_machine(model), t, NULL) == 0)
            possible[n++] = t;
    for (int i = 0; i < SETS; i++) {
        int count = 1 + rand() % (i % 2 ? MOST : 6);
        for (int k = 0; k < count; k++) {
            char name[12];
            set[k] = k && rand() % 8 == 0 ? set[rand() % k] : possible[rand() % n];
            tccl_transfer_format(set[k], name);
            parts[k] = (struct pace_part){0, pace_find(0, name)};
            if (parts[k].transfer < 0) {
                fprintf(stderr, "check-pace: describe-pace has no %s\n", name);
                return 1;
            }
        }
        if (tccl_model_rates(model, set, count, rates, NULL, &err) != 0) {
            fprintf(stderr, "check-pace: %s\n", err.text);
            return 1;
        }
        pace_rates(parts, count, paced);
        for (int k = 0; k < count; k++)
            if (!(fabs(rates[k] - paced[k]) <= 1e-6 * rates[k])) {
                fprintf(stderr, "check-pace: set %d, transfer %d of %d: %g by the model, %g here\n",
                        i, k, count, rates[k], paced[k]);
                return 1;
            }
    }
    tccl_model_free(model);
    return 0;
}
