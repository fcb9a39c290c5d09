/* What policies ask about a step: the user by the uid, models by Slurm's numbers of the GPUs. */
#include "plugin/plugin.h"

#include <pwd.h>

#include "check.h"
#include "gres/gres.h"

static char path[PATH_MAX];

/* Two GPUs whose minors are not in the order of PCI. */
static const char machine[] =
    "{\"format\": \"tccl-machine\", \"version\": 1, \"memories\": 1, \"p2p\": false, \"gpus\": ["
    "{\"busid\": \"0000:21:00.0\", \"model\": \"Tesla T4\", \"numa\": 0, \"minor\": 1},"
    "{\"busid\": \"0000:22:00.0\", \"model\": \"NVIDIA A100\", \"numa\": 0, \"minor\": 0}]}";

static void write_machine(const char *text)
{
    cleanup_file FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0);
}

/* slurmd's list as tccld keeps it: these minors in this order. */
static void write_list(int a, int b)
{
    static struct tccl_gres list;
    char file[64];
    list = (struct tccl_gres){.count = 2,
                              .devices = {{.file = "/dev/a", .nvidia = true, .minor = a},
                                          {.file = "/dev/b", .nvidia = true, .minor = b}}};
    snprintf(file, sizeof(file), "%s/" TCCL_GRES_NAME, check_folder());
    CHECK_INT(tccl_gres_save(&list, file, 1, 1, NULL), 0);
}

/* The models of these GPUs, with ';' between them; "(unknown)" where they can't be read. */
static void check_models(int a, int b, const char *expected)
{
    char *names[] = {"n1", "n2"}, text[256] = "";
    struct tccl_step step = {.gres = {a, b}, .n_gres = 2, .nodes = names, .n_nodes = 2};
    struct tccl_policy policy = {.gpu_types = (char *)"t4"};
    struct tccl_conf conf = {.policies = &policy, .n_policies = 1};
    struct step_facts facts;
    snprintf(conf.machine, sizeof(conf.machine), "%s", path);
    strcpy(conf.run_dir, check_folder());
    int rc = step_facts_read(&conf, &step, &facts, ERR);
    CHECK_INT(facts.facts.gpus, 4);
    CHECK_INT(facts.facts.n_nodes, 2);
    for (int i = 0; i < facts.facts.n_gpu_models; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? ";" : "",
                 facts.facts.gpu_models[i]);
    CHECK_STR(rc == 0 ? text : "(unknown)", expected);
    CHECK((rc == 0) == (check_err.text[0] == '\0') && (rc == 0 || facts.facts.n_gpu_models == 0));
    step_facts_clear(&facts);
}

static void check_user(uid_t uid, const char *expected)
{
    struct tccl_step step = {.uid = uid};
    struct tccl_policy policy = {.users = (char *)"x"};
    struct tccl_conf conf = {.policies = &policy, .n_policies = 1};
    struct step_facts facts;
    CHECK_INT(step_facts_read(&conf, &step, &facts, NULL), 0);
    CHECK_STR(facts.facts.user, expected);
    step_facts_clear(&facts);
    conf.n_policies = 0; /* nobody asks */
    CHECK_INT(step_facts_read(&conf, &step, &facts, NULL), 0);
    CHECK_STR(facts.facts.user, "");
    step_facts_clear(&facts);
}

SETUP
{
    snprintf(path, sizeof(path), "%s", check_at("machine.json"));
}

TEST(models)
{
    write_machine(machine);
    check_models(0, 1, "(unknown)");
    write_list(1, 0);
    check_models(0, 1, "Tesla T4;NVIDIA A100");
    write_list(0, 1);
    check_models(0, 1, "NVIDIA A100;Tesla T4");
    check_models(1, 2, "(unknown)");
    write_machine("{");
    check_models(0, 1, "(unknown)");
    unlink(path);
    check_models(0, 1, "(unknown)");
    CHECK_INT(unlink(check_at(TCCL_GRES_NAME)), 0);
    check_nothing_left();
}

TEST(users)
{
    const struct passwd *own = getpwuid(getuid());
    if (own)
        check_user(getuid(), own->pw_name);
    check_user(4000000001u, "4000000001");
}
