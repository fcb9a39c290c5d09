/* The edits of a step's environment. */
#include "plugin/plugin.h"

#include "check.h"

static const char shim[] = "/usr/lib/tccl/libtccl-nccl.so";

static struct job_env_edits edits;

/* These, without any. */
static struct job_env_edits *fresh(void)
{
    job_env_edits_clear(&edits);
    return &edits;
}

AFTER
{
    fresh();
}

/* What name is after the edits: its value, NULL if unset, "(unchanged)" if no edit names it. */
static const char *edited(const char *name)
{
    const char *value = "(unchanged)";
    for (int i = 0; i < edits.count; i++)
        if (strcmp(edits.list[i].name, name) == 0)
            value = edits.list[i].value;
    return value;
}

TEST(get)
{
    char *env[] = {"TCCLX=1", "TCCL=on", "EMPTY=", "TCCL=off", NULL};
    CHECK_STR(job_env_get(env, "TCCL"), "on");
    CHECK_STR(job_env_get(env, "EMPTY"), "");
    CHECK(!job_env_get(env, "TCC") && !job_env_get(NULL, "TCCL"));
}

TEST(number)
{
    char *env[] = {"A=12",
                   "B=",
                   "C=-1",
                   "D=1x",
                   "E=4294967295",
                   "F=4294967296",
                   "G= 1",
                   "H=99999999999999999999",
                   NULL};
    CHECK_INT(job_env_number(env, "A", 7), 12);
    CHECK_INT(job_env_number(env, "E", 7), 4294967295);
    const char *const bad[] = {"B", "C", "D", "F", "G", "H", "none"};
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK_INT(job_env_number(env, bad[i], 7), 7);
}

TEST(preload)
{
    static const struct {
        const char *list, *kept;
    } cases[] = {
        {"/usr/lib/tccl/libtccl-nccl.so", ""},
        {"/usr/lib/tccl/libtccl-nccl.so:/a.so", "/a.so"},
        {"/a.so:/usr/lib/tccl/libtccl-nccl.so", "/a.so"},
        {"/a.so:/usr/lib/tccl/libtccl-nccl.so:/b.so", "/a.so:/b.so"},
        {"/a.so /usr/lib/tccl/libtccl-nccl.so /b.so:/c.so", "/a.so /b.so:/c.so"},
        {"/old/shim.so /usr/lib/tccl/libtccl-nccl.so", ""},
        {"/b.so:/a.so:/old/shim.so:/b.so", "/b.so:/a.so:/b.so"},
        {"/usr/lib/tccl/libtccl-nccl.so.1:libtccl-nccl.so",
         "/usr/lib/tccl/libtccl-nccl.so.1:libtccl-nccl.so"},
        {"", ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        cleanup_free char *kept = job_env_preload_without(cases[i].list, shim, "/old/shim.so");
        CHECK_STR(kept, cases[i].kept);
    }
    cleanup_free char *kept = job_env_preload_without("/a.so:/b.so", NULL, "");
    CHECK_STR(kept, "/a.so:/b.so");
}

TEST(forget)
{
    char *env[] = {
        "TCCL=on",         "TCCL_STATE=planned", "TCCL_PLAN=/run/tccl/x",     "HOME=/root",
        "TCCL_OTHER=mine", "TCCL_SHIM=/old.so",  "LD_PRELOAD=/old.so:/my.so", NULL};
    CHECK_INT(job_env_forget(env, shim, fresh()), 0);
    CHECK(!edited("TCCL_STATE") && !edited("TCCL_PLAN"));
    CHECK(!edited("TCCL_SHIM"));
    CHECK_STR(edited("LD_PRELOAD"), "/my.so");
    CHECK_INT(edits.count, 4);
    char *own[] = {"LD_PRELOAD=/usr/lib/tccl/libtccl-nccl.so",
                   "TCCL_RING=x",
                   "TCCL_GBPS=1",
                   "TCCL_REASON=x",
                   "TCCL_BASELINE_GBPS=1",
                   NULL};
    CHECK_INT(job_env_forget(own, shim, fresh()), 0);
    CHECK(!edited("LD_PRELOAD"));
    CHECK_INT(edits.count, 5);
    char *user[] = {"LD_PRELOAD= /a.so::/b.so ", "TCCL=off", NULL};
    CHECK_INT(job_env_forget(user, shim, fresh()), 0);
    CHECK_INT(edits.count, 0);
    CHECK_INT(job_env_forget(NULL, shim, fresh()), 0);
    CHECK_INT(edits.count, 0);
}

TEST(announce_applied)
{
    char *env[] = {"LD_PRELOAD=/my.so", NULL};
    char *empty[] = {"LD_PRELOAD=", NULL};
    struct tccl_outcome plan = {.state = TCCL_STATE_PLANNED, .gbps = 11.237, .baseline_gbps = 6.1};
    plan.path = (char *)"/run/tccl/k/plan";
    plan.ring = strdup("n1[0 -w> 1 -w> 0]");
    CHECK_INT(job_env_announce(env, &plan, shim, fresh()), 0);
    CHECK_STR(edited("TCCL_STATE"), "planned");
    CHECK_STR(edited("TCCL_GBPS"), "11.24");
    CHECK_STR(edited("TCCL_BASELINE_GBPS"), "6.10");
    CHECK_STR(edited("TCCL_PLAN"), "/run/tccl/k/plan");
    CHECK_STR(edited("TCCL_RING"), "n1[0 -w> 1 -w> 0]");
    CHECK_STR(edited("TCCL_REASON"), "(unchanged)");
    CHECK_STR(edited("TCCL_SHIM"), shim);
    CHECK_STR(edited("LD_PRELOAD"), "/usr/lib/tccl/libtccl-nccl.so:/my.so");
    CHECK_INT(job_env_announce(empty, &plan, shim, fresh()), 0);
    CHECK_STR(edited("LD_PRELOAD"), shim);
    CHECK_INT(job_env_announce(env, &plan, NULL, fresh()), 0);
    CHECK_STR(edited("LD_PRELOAD"), "(unchanged)");
    free(plan.ring);
}

/* The longest LD_PRELOAD that a program can be started with has no room for ours. */
TEST(announce_long)
{
    enum { LONGEST = 32 * 4096 };
    struct tccl_outcome plan = {.state = TCCL_STATE_PLANNED, .gbps = 1};
    for (int left = 0; left < 2; left++) {
        size_t size = left ? LONGEST - strlen(shim) - 1 : LONGEST; /* 1: the colon */
        cleanup_free char *list = malloc(size);
        char *env[] = {list, NULL};
        CHECK(list != NULL);
        memset(list, 'x', size);
        memcpy(list, "LD_PRELOAD=", 11);
        list[size - 1] = '\0';
        CHECK_INT(job_env_announce(env, &plan, shim, fresh()), 0);
        CHECK_INT(strcmp(edited("LD_PRELOAD"), "(unchanged)") != 0, left);
        CHECK_INT(strcmp(edited("TCCL_SHIM"), "(unchanged)") != 0, left);
        CHECK_STR(edited("TCCL_STATE"), "planned");
    }
}

static void contained(const char *wanted, char **env, const char *inside)
{
    CHECK_INT(job_env_contain(env, inside, fresh()), 0);
    CHECK_STR(edited("APPTAINERENV_LD_PRELOAD"), wanted);
    CHECK_STR(edited("SINGULARITYENV_LD_PRELOAD"), wanted);
}

TEST(contain)
{
    char *none[] = {"HOME=/", NULL}, *own[] = {"LD_PRELOAD=/my.so:/b.so", NULL};
    char *theirs[] = {"SINGULARITYENV_LD_PRELOAD=/in.so", "LD_PRELOAD=/my.so", NULL};
    char *inherited[] = {"APPTAINERENV_LD_PRELOAD=:/old", "TCCL_SHIM=/old", NULL};
    char *shell[] = {"LD_PRELOAD=/$LIB/my.so", NULL};
    contained(":", none, "");
    contained(":/in/shim.so", none, "/in/shim.so");
    contained(":/my.so:/b.so", own, "");
    contained(":/in/shim.so:/my.so:/b.so", own, "/in/shim.so");
    contained("(unchanged)", theirs, "/in/shim.so");
    contained("(unchanged)", shell, "");
    contained("(unchanged)", none, "/usr/$LIB/shim.so");
    contained(":/in/shim.so", inherited, "/in/shim.so");
    CHECK_INT(job_env_forget(inherited, shim, fresh()), 0);
    CHECK(!edited("APPTAINERENV_LD_PRELOAD"));
    CHECK_INT(job_env_forget(theirs, shim, fresh()), 0);
    CHECK_INT(edits.count, 0);
}

/* As LD_PRELOAD: what no program can be started with is not set. */
TEST(contain_long)
{
    enum { LONGEST = 32 * 4096 };
    size_t length = LONGEST - strlen("SINGULARITYENV_LD_PRELOAD=:") - 1;
    for (int more = 0; more < 2; more++) {
        cleanup_free char *list = malloc(length + sizeof("LD_PRELOAD=") + 1);
        char *env[] = {list, NULL};
        CHECK(list != NULL);
        memset(list, 'x', length + strlen("LD_PRELOAD=") + 1);
        memcpy(list, "LD_PRELOAD=", 11);
        list[11 + length + (size_t)more] = '\0';
        CHECK_INT(job_env_contain(env, "", fresh()), 0);
        CHECK_INT(strcmp(edited("SINGULARITYENV_LD_PRELOAD"), "(unchanged)") == 0, more);
    }
}

TEST(announce_fallback)
{
    struct tccl_outcome plan = {.state = TCCL_STATE_FAILED, .gbps = 5, .baseline_gbps = 6};
    strcpy(plan.reason, "n3: no profile");
    CHECK_INT(job_env_announce(NULL, &plan, shim, fresh()), 0);
    CHECK_STR(edited("TCCL_STATE"), "failed");
    CHECK_STR(edited("TCCL_REASON"), "n3: no profile");
    CHECK_STR(edited("TCCL_BASELINE_GBPS"), "6.00");
    CHECK_INT(edits.count, 3);
    plan.state = TCCL_STATE_LEFT; /* a plan for its groups */
    plan.path = (char *)"/run/tccl/k/plan";
    CHECK_INT(job_env_announce(NULL, &plan, shim, fresh()), 0);
    CHECK_STR(edited("TCCL_STATE"), "left");
    CHECK_STR(edited("TCCL_PLAN"), "/run/tccl/k/plan");
    CHECK_STR(edited("LD_PRELOAD"), shim);
    CHECK_STR(edited("TCCL_GBPS"), "(unchanged)");
    CHECK_INT(job_env_announce(NULL, &plan, NULL, fresh()), 0);
    CHECK_INT(edits.count, 3);
}

/* Random lists: the elements that are kept are those that aren't ours, in their order. */
TEST(preload_property)
{
    static const char *const elements[] = {"/a.so", "/b.so", shim, "/old.so", "libx.so"};
    for (int round = 0; round < 2000; round++) {
        char list[512] = "", expected[512] = "";
        int n = (int)(random() % 8);
        for (int i = 0; i < n; i++) {
            const char *element = elements[random() % 5], *divider = random() % 2 ? ":" : " ";
            if (i)
                strcat(list, divider);
            strcat(list, element);
            if (element == elements[2] || element == elements[3])
                continue;
            if (*expected)
                strcat(expected, i ? divider : "");
            strcat(expected, element);
        }
        cleanup_free char *kept = job_env_preload_without(list, shim, "/old.so");
        CHECK_STR(kept, expected);
    }
}
