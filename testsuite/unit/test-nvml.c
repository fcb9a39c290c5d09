/* test-nvml.c: what is read from NVIDIA's library, by a stand-in for it (fake-nvml.c). */
#include "check.h"
#include "discover/discover.h"

static void clear(void)
{
    static const char *const names[] = {"GPUS",  "NAME", "P2P",  "MIG",
                                        "USERS", "DENY", "LOST", "INIT"};
    for (size_t i = 0; i < COUNT(names); i++) {
        unsetenv(check_printf("FAKE_NVML_%s", names[i]));
    }
}

static struct tccl_nvml nvml;

static void read_well(const char *gpus)
{
    setenv("FAKE_NVML_GPUS", gpus, 1);
    CHECK_OK(tccl_nvml_read(&nvml, ERR));
}

static void check_failure(const char *why)
{
    CHECK_SAYS(tccl_nvml_read(&nvml, ERR) == -1, why);
    CHECK(!strchr(check_err.text, '\n'));
}

TEST(order)
{
    clear();
    read_well("0000:84:00.0,0000:03:00.0,0001:01:00.0,0000:44:1f.0");
    CHECK_INT(nvml.n_gpus, 4);
    CHECK_STR(nvml.driver, "999.1");
    CHECK_STR(nvml.gpus[0].busid, "0000:03:00.0");
    CHECK_STR(nvml.gpus[1].busid, "0000:44:1f.0");
    CHECK_STR(nvml.gpus[2].busid, "0000:84:00.0");
    CHECK_STR(nvml.gpus[3].busid, "0001:01:00.0");
    CHECK_INT(nvml.gpus[0].index, 1);
    CHECK_INT(nvml.gpus[0].minor, 101);
    CHECK_INT(nvml.gpus[2].index, 0);
    CHECK_INT(nvml.gpus[2].sm, 86);
    CHECK_STR(nvml.gpus[3].name, "Fake GPU");
    CHECK(!nvml.gpus[0].mig && nvml.gpus[0].n_users == 0);
}

TEST(pairs)
{
    clear();
    setenv("FAKE_NVML_P2P", "0-2,2-0,1-2", 1);
    read_well("0000:84:00.0,0000:03:00.0,0000:44:00.0"); /* 0 is last, 1 first, 2 in the middle */
    CHECK(nvml.knows_p2p && nvml.read[2][1] && nvml.write[2][1] && nvml.read[1][2]);
    CHECK(nvml.read[0][1] && !nvml.read[1][0] && !nvml.read[0][2] && !nvml.read[0][0]);
}

TEST(users)
{
    char users[64];
    clear();
    snprintf(users, sizeof(users), "1-%d,0-%d,1-4000001,1-%d", (int)getpid(), (int)getppid(),
             (int)getppid());
    setenv("FAKE_NVML_USERS", users, 1);
    setenv("FAKE_NVML_MIG", "1", 1);
    setenv("FAKE_NVML_NAME",
           " Gr\xc3\xa4\x01"
           "fin\n",
           1);
    read_well("0000:03:00.0,0000:44:00.0");
    CHECK_INT(nvml.gpus[0].n_users, 1);
    CHECK_INT(nvml.gpus[0].users[0], getppid());
    CHECK(nvml.gpus[0].users_of[0]);
    CHECK_INT(nvml.gpus[1].n_users, 2); /* without this process */
    CHECK_INT(nvml.gpus[1].users[0], 4000001);
    CHECK_STR(nvml.gpus[1].users_of, ""); /* there is no such process */
    CHECK(nvml.gpus[1].mig && !nvml.gpus[0].mig);
    CHECK_STR(nvml.gpus[0].name, "Gr???fin");
}

TEST(trouble)
{
    char many[1024] = "0000:00:00.0";
    clear();
    setenv("FAKE_NVML_GPUS", "0000:03:00.0,0000:44:00.0", 1);
    setenv("FAKE_NVML_INIT", "18", 1);
    check_failure("mismatch (error 18): the driver was updated");
    setenv("FAKE_NVML_INIT", "4", 1);
    check_failure("run this as root");
    setenv("FAKE_NVML_INIT", "9", 1);
    check_failure("modprobe nvidia");
    unsetenv("FAKE_NVML_INIT");
    setenv("FAKE_NVML_DENY", "1", 1);
    check_failure("NVML index 1: Insufficient Permissions");
    clear();
    setenv("FAKE_NVML_LOST", "0", 1);
    read_well("0000:03:00.0,0000:44:00.0");
    CHECK_INT(nvml.n_gpus, 1);
    CHECK_INT(nvml.gpus[0].index, 1);
    clear();
    read_well("");
    CHECK_INT(nvml.n_gpus, 0);
    for (int i = 1; i <= TCCL_NVML_GPUS; i++)
        snprintf(many + strlen(many), sizeof(many) - strlen(many), ",0:%x:0.0", i);
    setenv("FAKE_NVML_GPUS", many, 1);
    check_failure("65 GPUs");
}

/* As many processes as there is room for, and more, of which the first are kept. */
TEST(many_users)
{
    char users[2048] = "0-5000000";
    clear();
    for (int i = 1; i < TCCL_NVML_USERS; i++)
        snprintf(users + strlen(users), sizeof(users) - strlen(users), ",0-%d", 5000000 + i);
    setenv("FAKE_NVML_USERS", users, 1);
    read_well("0000:03:00.0");
    CHECK_INT(nvml.gpus[0].n_users, TCCL_NVML_USERS);
    CHECK_INT(nvml.gpus[0].users[TCCL_NVML_USERS - 1], 5000000 + TCCL_NVML_USERS - 1);
    for (int i = 0; i < 9; i++)
        snprintf(users + strlen(users), sizeof(users) - strlen(users), ",0-%d", 6000000 + i);
    setenv("FAKE_NVML_USERS", users, 1);
    read_well("0000:03:00.0");
    CHECK_INT(nvml.gpus[0].n_users, TCCL_NVML_USERS);
    CHECK_INT(nvml.gpus[0].users[TCCL_NVML_USERS - 1], 5000000 + TCCL_NVML_USERS - 1);
}

/* A program of its own has the old library. */
SETUP
{
    if (check_args[1] && strcmp(check_args[1], "old") == 0) {
        /* In a process whose library is one from before MIG and P2P. */
        clear();
        setenv("FAKE_NVML_USERS", "1-4000001,1-4000002", 1);
        read_well("0000:44:00.0,0000:03:00.0");
        CHECK_INT(nvml.n_gpus, 2);
        CHECK_INT(nvml.gpus[0].minor, -1);
        CHECK_INT(nvml.gpus[0].sm, 0);
        CHECK_INT(nvml.gpus[0].n_users, 2);
        CHECK_INT(nvml.gpus[0].users[1], 4000002);
        CHECK(!nvml.knows_p2p && !nvml.gpus[0].mig);
        exit(check_result());
    }
}

TEST(old_library)
{
    const char *library = getenv("TCCL_OLD_NVML");
    CHECK_INT(symlink(library ? library : "", check_at("libnvidia-ml.so.1")), 0);
    pid_t child = fork();
    if (child == 0) {
        setenv("LD_LIBRARY_PATH", check_folder(), 1);
        execl("/proc/self/exe", "test-nvml", "old", NULL);
        _exit(127);
    }
    CHECK_INT(check_exit(child), 0);
}
