/* What goes in front of LD_PRELOAD: $LIB as ld.so has it, containers, AddressSanitizer. argv: a
 * library that any program can load. */
#include "plugin/plugin.h"

#include "check.h"

static void run(const char *format, ...)
{
    char command[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(command, sizeof(command), format, list);
    va_end(list);
    CHECK_INT(system(command), 0);
}

/* A library where $LIB leads to by our reckoning is the one that ld.so finds. */
static void test_lib(const char *library)
{
    static const char *const forms[] = {"$LIB", "${LIB}"};
    for (int i = 0; i < 2; i++) {
        const char *path = check_at("%d/%s/tccl/x.so", i, forms[i]);
        cleanup_free char *native = preload_native(path);
        CHECK(strchr(native, '$') == NULL && !preload_readable(path));
        run("mkdir -p $(dirname %s) && cp %s %s", native, library, native);
        CHECK(preload_readable(path));
        run("LD_PRELOAD='%s' cat /proc/self/maps | grep -q %s", path, native);
    }
    static const char *const here[] = {"/nonexistent", "/bin/sh", NULL};
    struct tccl_conf conf = {.shim = "/a/$LIB/x.so"};
    cleanup_free char *stands_for = preload_native(conf.shim);
    preload_simplify(&conf, here);
    CHECK_STR(conf.shim, "/a/$LIB/x.so");
    preload_simplify(&conf, here + 2);
    CHECK_STR(conf.shim, stands_for);
    cleanup_free char *plain = preload_native("/a/LIB/$ORIGIN/$");
    CHECK_STR(plain, "/a/LIB/$ORIGIN/$");
}

static void test_containers(void)
{
    char *none[] = {"A=b", "SLURM_CONTAINER=", "_SLURM_SPANK_OPTION_pyxis_container_mounts=/a:/b",
                    NULL};
    char *image[] = {"_SLURM_SPANK_OPTION_pyxis_container_image=ubuntu", NULL};
    char *name[] = {"A=b", "_SLURM_SPANK_OPTION_pyxis_container_name=x", NULL};
    char *bundle[] = {"SLURM_CONTAINER=/bundle", NULL};
    CHECK(!preload_pyxis(NULL) && !preload_pyxis(none) && !preload_pyxis(bundle));
    CHECK(preload_pyxis(image) && preload_pyxis(name));
    struct tccl_conf conf = {.shim = "/bin/sh"};
    const char *why;
    CHECK_STR(preload_choose(&conf, none, false, &why), "/bin/sh");
    CHECK(preload_choose(&conf, none, true, &why) == NULL);
    CHECK(why && strstr(why, "container") != NULL);
    CHECK(preload_choose(&conf, bundle, false, &why) == NULL);
    CHECK(why && strstr(why, "ContainerShim=") != NULL);
    strcpy(conf.container_shim, "/inside/x.so");
    CHECK_STR(preload_choose(&conf, none, true, &why), "/inside/x.so");
    CHECK_STR(preload_choose(&conf, bundle, false, &why), "/inside/x.so");
    CHECK_STR(preload_choose(&conf, none, false, &why), "/bin/sh");
    strcpy(conf.container_shim, "/inside/a:b.so");
    CHECK(preload_choose(&conf, bundle, false, &why) == NULL);
    CHECK(why && strstr(why, "ContainerShim= in tccl.conf has a space or a colon"));
    strcpy(conf.shim, check_at("a b"));
    check_write_file(conf.shim, "");
    CHECK(preload_choose(&conf, none, false, &why) == NULL);
    CHECK(why && strstr(why, "has a space or a colon"));
    strcpy(conf.shim, "/nonexistent");
    CHECK(preload_choose(&conf, NULL, false, &why) == NULL);
    CHECK(why && strstr(why, "Shim=") != NULL);
}

/* An environment after edits, with room for more entries. */
static void apply(char **env, struct job_env_edits *edits)
{
    static char store[64][128];
    static int used;
    for (int i = 0; i < edits->count; i++) {
        size_t length = strlen(edits->list[i].name);
        int at = 0;
        while (env[at] &&
               (strncmp(env[at], edits->list[i].name, length) != 0 || env[at][length] != '='))
            at++;
        if (edits->list[i].value) {
            if (!env[at])
                env[at + 1] = NULL;
            env[at] = store[used++ % 64];
            snprintf(env[at], sizeof(store[0]), "%s=%s", edits->list[i].name, edits->list[i].value);
        } else {
            do
                env[at] = env[at + 1];
            while (env[at++]);
        }
    }
    job_env_edits_clear(edits);
}

/* Whatever the user had, with the preload ours is in front; without it all is as it was. */
static void test_asan(bool unload)
{
    static const char *const users[] = {NULL, "detect_leaks=0", JOB_ENV_ASAN,
                                        JOB_ENV_ASAN ":detect_leaks=1",
                                        "verify_asan_link_order=01"};
    for (size_t i = 0; i < COUNT(users); i++) {
        char own[128], expected[192], *env[32] = {"A=b", NULL};
        struct job_env_edits edits = {.count = 0};
        struct tccl_outcome plan = {.state = TCCL_STATE_PLANNED, .path = (char *)"/p"};
        if (users[i]) {
            snprintf(own, sizeof(own), "ASAN_OPTIONS=%s", users[i]);
            env[1] = own;
        }
        CHECK_INT(job_env_forget(env, "/s.so", &edits), 0);
        CHECK_INT(edits.count, 0);
        CHECK_INT(job_env_announce(env, &plan, NULL, &edits), 0);
        apply(env, &edits);
        CHECK(!users[i] ? !job_env_get(env, "ASAN_OPTIONS")
                        : strcmp(job_env_get(env, "ASAN_OPTIONS"), users[i]) == 0);
        CHECK_INT(job_env_announce(env, &plan, "/s.so", &edits), 0);
        apply(env, &edits);
        snprintf(expected, sizeof(expected), JOB_ENV_ASAN "%s%s", users[i] ? ":" : "",
                 users[i] ? users[i] : "");
        CHECK_STR(job_env_get(env, "ASAN_OPTIONS"), expected);
        CHECK_STR(job_env_get(env, "LD_PRELOAD"), "/s.so");
        CHECK_INT(unload ? job_env_unload(env, &edits) : job_env_forget(env, "/s.so", &edits), 0);
        apply(env, &edits);
        CHECK(!users[i] ? !job_env_get(env, "ASAN_OPTIONS")
                        : strcmp(job_env_get(env, "ASAN_OPTIONS"), users[i]) == 0);
        CHECK(!job_env_get(env, "LD_PRELOAD") && !job_env_get(env, "TCCL_SHIM"));
        CHECK(!unload == !job_env_get(env, "TCCL_PLAN"));
    }
}

TEST(preload)
{
    if (!check_args[1])
        exit(2);
    test_lib(check_args[1]);
    test_containers();
    test_asan(false);
    test_asan(true);
}
