/* What a machine runs: read from /sys, written to a profile, and read back. */
#include <sys/utsname.h>

#include "machines.h"
#include "profile/cache.h"

static void put(const char *folder, const char *name, const char *text)
{
    CHECK_INT(system(check_printf("mkdir -p %s%s", check_folder(), folder)), 0);
    FILE *file = fopen(check_printf("%s%s/%s", check_folder(), folder, name), "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        abort();
}

TEST(read)
{
    struct tccl_system found, back;
    struct utsname name;
    CHECK_INT(uname(&name), 0);
    tccl_system_read(check_folder(), &found);
    CHECK_STR(found.kernel, name.release);
    CHECK_STR(found.driver, "");
    CHECK_STR(found.firmware, "");
    put("/sys/module/nvidia", "version", "550.54.14\n");
    put("/sys/class/dmi/id", "bios_version", "2.1\xc3\xa9\t\n");
    put("/sys/class/dmi/id", "bios_date", "03/04/2024\nmore");
    tccl_system_read(check_folder(), &found);
    CHECK_STR(found.driver, "550.54.14");
    CHECK_STR(found.firmware, "2.1??? 03/04/2024");
    cleanup_json json_t *json = tccl_system_to_json(&found);
    tccl_system_from_json(json, &back);
    CHECK_STR(back.kernel, found.kernel);
    CHECK_STR(back.driver, found.driver);
    CHECK_STR(back.firmware, found.firmware);
    json_object_set_new(json, "driver", json_integer(550));
    tccl_system_from_json(json, &back);
    CHECK_STR(back.driver, "");
    cleanup_json json_t *raw = json_pack("{s:s}", "kernel", "6\x1b[31m\xc2\x9b");
    tccl_system_from_json(raw, &back);
    CHECK_STR(back.kernel, "6?[31m??");
    tccl_system_from_json(NULL, &back);
    CHECK_STR(back.kernel, "");
}

/* A measured profile has it; where it is old, the next run takes note; a model's has none. */
static void test_profile(const char *source, const char *kernel)
{
    struct tccl_machine machine = *machine_of("amd-4gpu");
    struct tccl_profile *profile;
    const char *cache = check_at("%s", source);
    cleanup_json json_t *json = json_load_file(machine_file("amd-4gpu"), 0, NULL);
    json_t *given = strcmp(source, "model") == 0 ? json : NULL;
    CHECK_INT(tccl_profile_create(cache, &machine, source, given, &profile, ERR), 0);
    CHECK_STR(tccl_profile_system(profile)->kernel, kernel);
    tccl_profile_close(profile);
    CHECK_INT(
        system(check_printf(
            "sed -i 's/\"kernel\": *\"[^\"]*\"/\"kernel\": \"1.0\"/' %s/*/profile.json", cache)),
        0);
    CHECK_INT(tccl_profile_create(cache, &machine, source, given, &profile, ERR), 0);
    CHECK_STR(tccl_profile_system(profile)->kernel, *kernel ? "1.0" : "");
    CHECK_INT(tccl_profile_claim(profile, *kernel ? "core copies" : "", ERR), 0);
    tccl_profile_close(profile);
    CHECK_INT(tccl_profile_create(cache, &machine, source, given, &profile, ERR), 0);
    CHECK_STR(tccl_profile_system(profile)->kernel, kernel);
    tccl_profile_close(profile);
}

TEST(profiles)
{
    struct utsname name;
    CHECK_INT(uname(&name), 0);
    test_profile("host", name.release);
    test_profile("model", "");
}
