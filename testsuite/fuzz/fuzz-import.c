/* Exported profiles: what is accepted makes a profile that opens, whose export is accepted again.
 */
#include <limits.h>
#include <string.h>

#include "fuzz.h"
#include "profile/exchange.h"
#include "profiles.h"

static void check_accepted(const char *folder)
{
    struct tccl_error err = {""};
    struct tccl_profile *profile = NULL;
    struct tccl_exchanged made;
    char other[PATH_MAX];
    char *text = NULL;
    size_t size;
    int dropped;

    FUZZ_CHECK(tccl_profile_open_folder(folder, &profile, &err) == 0);
    FILE *out = open_memstream(&text, &size);
    FUZZ_CHECK(tccl_exchange_write(profile, out, &dropped, &err) == 0 && !dropped);
    fclose(out);
    tccl_profile_close(profile);
    make_cache(other);
    FUZZ_CHECK(tccl_exchange_unpack(text, size, other, &made, &err) == 0);
    tccl_exchange_remove(other);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tccl_error err = {""};
    struct tccl_exchanged made;
    char folder[PATH_MAX];

    char *text = fuzz_text(data, size);
    make_cache(folder);
    if (tccl_exchange_unpack(text, size, folder, &made, &err) == 0)
        check_accepted(folder);
    else
        FUZZ_CHECK(err.text[0] && !strstr(err.text, folder));
    tccl_exchange_remove(folder);
    FUZZ_CHECK(access(folder, F_OK) < 0);
    free(text);
    return 0;
}

void fuzz_seeds(fuzz_add *add, void *context)
{
    struct tccl_machine machine = sample_machine();
    char cache[PATH_MAX];

    srand(1);
    for (uint32_t masks = 1; masks <= 8; masks *= 2) {
        char *text = NULL;
        size_t size;
        int dropped;
        make_cache(cache);
        struct tccl_profile *profile = make_profile(cache, &machine, 8, masks);
        FILE *out = open_memstream(&text, &size);
        FUZZ_CHECK(tccl_exchange_write(profile, out, &dropped, NULL) == 0);
        fclose(out);
        add(context, text, size);
        free(text);
        tccl_profile_close(profile);
        remove_cache(cache);
    }
}
