/* slurmd's list of GPUs: what slurmd -G of each version prints, which GPU each number is by devices
 * and a driver of the test's own, and the file in which it is kept. */
#include "gres/gres.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "base/command.h"
#include "check.h"

static struct tccl_gres list;

/* The files of the list, with ' ' between them, '+' before a MIG instance; or why there is none. */
static void check_parsed(const char *text, const char *expected)
{
    char got[1024] = "";
    int rc = tccl_gres_parse(text, &list, ERR);
    for (int i = 0; rc == 0 && i < list.count; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s%s", i ? " " : "",
                 list.devices[i].mig ? "+" : "", list.devices[i].file);
    CHECK_STR(rc == 0 ? got : check_err.text, expected);
}

TEST(versions)
{
    check_parsed("slurmd: Gres Name=gpu Type=(null) Count=4 Index=0 ID=7696487 "
                 "File=/dev/nvidia[0-3] (null)\n",
                 "/dev/nvidia0 /dev/nvidia1 /dev/nvidia2 /dev/nvidia3"); /* 22.05 */
    check_parsed("slurmd: Gres Name=gpu Type=a100 Count=1 Index=3 ID=7696487 File=/dev/nvidia3 "
                 "Cores=0-15 CoreCnt=32 Links=-1,4\n"
                 "slurmd: Gres Name=gpu Type=a100 Count=1 Index=1 ID=7696487 File=/dev/nvidia1 "
                 "Cores=0-15 CoreCnt=32 Links=4,-1\n",
                 "/dev/nvidia3 /dev/nvidia1");
    check_parsed("[2025-11-02T10:00:00.000] debug:  gpu/nvml: init\n"
                 "slurmd: Gres Name=gpu Type=h100 Count=3 Index=0 ID=7696487 "
                 "File=/dev/nvidia[3,0-1] Links=(null) Flags=HAS_FILE,HAS_TYPE,ENV_NVML\n"
                 "slurmd: Gres Name=shard Type=h100 Count=8 Index=0 ID=1 File=/dev/nvidia7 "
                 "Links=(null) Flags=HAS_FILE\n"
                 "slurmd: Gres Name=nic Type=(null) Count=1 ID=2 File=/dev/nvidia8\n",
                 "/dev/nvidia3 /dev/nvidia0 /dev/nvidia1"); /* 23.02 to 25.11 */
    check_parsed("slurmd: Gres Name=gpu Type=a100_1g.5gb Count=1 Index=30 ID=7696487 "
                 "File=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap30,/dev/nvidia-caps/nvidia-cap31 "
                 "Links=0 Flags=HAS_FILE\n"
                 "slurmd: Gres Name=gpu Type=a100 Count=1 Index=1 ID=7 File=/dev/nvidia1 (null)\n",
                 "+/dev/nvidia0 /dev/nvidia1");
    check_parsed("slurmd: Gres Name=gpu Type=a Count=2 ID=7 File=/dev/a,/dev/b (null)\n",
                 "/dev/a /dev/b");
}

/* Links= of each device, where there are some. */
TEST(links)
{
    static struct tccl_gres gres;
    CHECK_INT(tccl_gres_parse("slurmd: Gres Name=gpu Type=a Count=1 Index=0 ID=7 File=/dev/nvidia0 "
                              "Cores=0-15,32-47 CoreCnt=64 Links=-1,4 Flags=HAS_FILE\n"
                              "slurmd: Gres Name=gpu Type=a Count=1 Index=1 ID=7 File=/dev/nvidia1 "
                              "Links=(null) Flags=HAS_FILE\n"
                              "slurmd: Gres Name=gpu Type=a Count=2 ID=7 File=/dev/nvidia[2-3] "
                              "(null)\n",
                              &gres, NULL),
              0);
    CHECK_STR(gres.devices[0].links, "-1,4");
    CHECK_STR(gres.devices[0].cores, "0-15,32-47");
    CHECK_INT(gres.devices[0].core_count, 64);
    CHECK_INT(gres.devices[1].core_count, 0);
    for (int i = 1; i < gres.count; i++)
        CHECK(gres.devices[i].links[0] == '\0' && gres.devices[i].cores[0] == '\0');
}

TEST(refused)
{
    static struct tccl_gres gres;
    tccl_gres_parse("slurmd: Gres Name=gpu Count=1 File=/dev/x Links=-1,4\n", &gres, NULL);
    CHECK_STR(gres.refused, "");
    tccl_gres_parse(
        "slurmd: error: gres.conf: Ignoring invalid Links=a for Name=nic\n"
        "slurmd: error: gres.conf: Ignoring invalid Links=b for Name=gpus\n"
        "slurmd: error: gres_links_validate: Failed to parse token 'foo' in links string 'foo,1'\n"
        "slurmd: error: gres.conf: Ignoring invalid Links=foo,1 for Name=gpu\n"
        "slurmd: error: gres.conf: Ignoring invalid Links=bar for Name=gpu\n",
        &gres, NULL);
    CHECK_STR(gres.refused, "foo,1");
    tccl_gres_parse("Ignoring invalid Links=x\n for Name=gpu\n", &gres, NULL);
    CHECK_STR(gres.refused, "");
    char longest[512] = "Ignoring invalid Links=";
    memset(longest + strlen(longest), '4', 300);
    strcat(longest, " for Name=gpu\n");
    tccl_gres_parse(longest, &gres, NULL);
    CHECK_INT(strlen(gres.refused), TCCL_GRES_LINKS - 1);
}

TEST(cores)
{
    static const char *const fine[] = {"0", "63", "0-63", "0-15,32-47", "5,3,1-1"};
    static const char *const wrong[] = {
        "64", "0-64", "100-131", "abc", "40-32", "",     "0-",
        "-3", "1,",   ",1",      "0 1", "1-2-3", "0x10", "99999999999999999999"};
    for (size_t i = 0; i < COUNT(fine); i++)
        CHECK(tccl_gres_cores_exist(fine[i], 64));
    for (size_t i = 0; i < COUNT(wrong); i++)
        CHECK(!tccl_gres_cores_exist(wrong[i], 64));
}

TEST(nonsense)
{
    char many[32768] = "";
    check_parsed("", "slurmd -G lists no GPU");
    check_parsed("slurmd: fatal: no such node\n", "slurmd -G lists no GPU");
    check_parsed("Gres Name=gpu Type=(null) Count=4 ID=7696487 (null)\n",
                 "Slurm has no device files for GPUs of this node: see File= and AutoDetect= in "
                 "gres.conf(5)");
    check_parsed("Gres Name=gpu Count=3 File=/dev/nvidia[0-1]\n",
                 "slurmd -G: Count=3 with 2 files (/dev/nvidia[0-1])");
    check_parsed("Gres Name=gpu Count=-1 File=/dev/x\n", "slurmd -G: Count=-1");
    check_parsed("Gres Name=gpu File=/dev/x\n",
                 "slurmd -G: no Count= in \"Gres Name=gpu File=/dev/x\"");
    CHECK(tccl_gres_parse("Gres Name=gpu Count=9999999 File=/dev/n[0-9999998]\n", &list, NULL) !=
          0);
    CHECK(tccl_gres_parse("Gres Name=gpu Count=1 File=/dev/n[\n", &list, NULL) != 0);
    for (int i = 0; i <= TCCL_GRES_MAX; i++)
        snprintf(many + strlen(many), sizeof(many) - strlen(many),
                 "Gres Name=gpu Count=1 File=/dev/x%d \n", i);
    check_parsed(many, "slurmd -G lists more than 128 GPUs");
}

/* ---- which GPU is it? ---- */

static void put_device(const char *name, unsigned major_number, unsigned minor_number)
{
    const char *path = check_at("%s", name);
    if (mknod(path, S_IFCHR | 0600, makedev(major_number, minor_number)) != 0) {
        printf("skipped: no device can be made here\n");
        exit(77);
    }
}

static void list_devices(int count, const char *const names[])
{
    list.count = count;
    for (int i = 0; i < count; i++) {
        list.devices[i] = (struct tccl_gres_device){.minor = -1};
        snprintf(list.devices[i].file, TCCL_GRES_FILE, "%s/%s", check_folder(), names[i]);
    }
    tccl_gres_locate(&list, check_folder());
}

static const struct tccl_machine machine = {
    .n_gpus = 3,
    .gpus = {{.busid = "0000:01:00.0", .minor = 2},
             {.busid = "0000:41:00.0", .minor = 0},
             {.busid = "0000:61:00.0", .minor = 1}},
};

static void check_found(bool real, int number, int gpu, const char *part)
{
    CHECK_INT(tccl_gres_find(&list, &machine, real, number, ERR), gpu);
    if (!strstr(check_err.text, part) || (gpu >= 0) != (*part == '\0'))
        CHECK_STR(check_err.text, part);
}

static void check_driver(void)
{
    static const char *const names[] = {"nvidia1", "nvidia0", "nvidia2", "null", "nothing"};
    put_device("nvidia0", 195, 0);
    put_device("nvidia1", 195, 1);
    put_device("nvidia2", 195, 2);
    put_device("null", 1, 3);
    list_devices(5, names);
    /* No driver: what the description says counts for a model, nothing for a real machine. */
    check_found(false, 0, 2, "");
    check_found(false, 1, 1, "");
    check_found(false, 2, 0, "");
    check_found(true, 0, -1, "the driver has no bus id for it");
    check_found(false, 3, -1, "no device of NVIDIA's driver");
    check_found(false, 4, -1, "no device of NVIDIA's driver");
    check_found(false, 5, -1, "not in slurmd's list, which has 5");
    check_found(false, -1, -1, "not in slurmd's list");
    /* The driver numbers them in another way than when the machine was described. */
    check_write_file(check_at("proc/driver/nvidia/gpus/%s/information", "0000:01:00.0"),
                     "Model: x\nDevice Minor: \t 0\n");
    check_write_file(check_at("proc/driver/nvidia/gpus/%s/information", "0000:41:00.0"),
                     "Device Minor: \t 1\n");
    check_write_file(check_at("proc/driver/nvidia/gpus/%s/information", "0000:c1:00.0"),
                     "Device Minor: \t 2\n");
    list_devices(3, names);
    check_found(true, 0, 1, "");
    check_found(true, 1, 0, "");
    check_found(true, 2, -1, "0000:c1:00.0) is not in the profile's machine");
    check_write_file(check_at("proc/driver/nvidia/capabilities/gpu1/mig/%s/access", "gi0"), "");
    list_devices(3, names);
    check_found(true, 0, -1, "has MIG instances");
    check_found(true, 1, 0, "");
}

static void check_kept(void)
{
    static struct tccl_gres other;
    const char *path;
    int pid = 0;
    int64_t started = 0;
    path = check_at(TCCL_GRES_NAME);
    strcpy(list.devices[1].links, "-1,4,4");
    strcpy(list.devices[2].cores, "0-15,32-47");
    list.devices[2].core_count = 64;
    strcpy(list.refused, "best of all");
    CHECK_OK(tccl_gres_save(&list, path, 77, 1234567890123, ERR));
    CHECK_OK(tccl_gres_load(&other, path, &pid, &started, ERR));
    CHECK_INT(pid, 77);
    CHECK(started == 1234567890123 && tccl_gres_equal(&list, &other));
    CHECK(other.devices[1].has_bus && other.devices[1].bus == list.devices[1].bus);
    for (int i = 0; i < list.count; i++) {
        CHECK_STR(other.devices[i].links, list.devices[i].links);
        CHECK_STR(other.devices[i].cores, list.devices[i].cores);
        CHECK_INT(other.devices[i].core_count, list.devices[i].core_count);
    }
    CHECK_STR(other.refused, "best of all");
    other.devices[0].minor = 9;
    CHECK(!tccl_gres_equal(&list, &other));
    check_write_file(check_at("bad"),
                     "tccl-slurm-gpus 1\nslurmd 7\nstarted 1\ngpu 1 whole 0 - /dev/x\nend\n");
    path = check_at("bad");
    CHECK(tccl_gres_load(&other, path, &pid, &started, NULL) != 0);
}

/* ---- slurmd ---- */

/* What the program in slurmd's place answers, as the list or the reason. */
static void check_asked(struct tccl_slurmd *slurmd, const char *script, const char *part)
{
    static struct tccl_command_output output;
    struct tccl_error err = {""};
    check_write_file(check_at("asked"), script);
    snprintf(slurmd->program, sizeof(slurmd->program), "%s/asked", check_folder());
    chmod(slurmd->program, 0755);
    const char *scratch = check_at("scratch");
    int rc = tccl_slurmd_list(slurmd, "n7", scratch, tccl_now_ms() + 2000, &output, &err);
    const char *said = rc == 0 ? output.err : err.text;
    if (!strstr(said, part))
        CHECK_STR(said, part);
    CHECK(access(scratch, F_OK) != 0);
}

TEST(slurmd)
{
    struct tccl_slurmd slurmd;
    char conf[128];
    snprintf(conf, sizeof(conf), "%s/slurm.conf", check_folder());
    check_write_file(check_at("slurm.conf"), "x");
    check_write_file(check_at("gres.conf"), "gres of this slurmd\n");
    CHECK_INT(tccl_slurmd_find("n7", conf, 0, &slurmd, ERR), 1);
    slurmd = (struct tccl_slurmd){.node = "n1"};
    snprintf(slurmd.conf, sizeof(slurmd.conf), "%s", conf);
    check_asked(&slurmd,
                "#!/bin/sh\n[ $1 != -V ] || { echo slurm 24.11.5; exit; }\n"
                "cat \"${SLURM_CONF%/*}\"/gres.conf \"${SLURM_CONF%/*}\"/cgroup.conf >&2\n"
                "echo \"$*\" >&2\n",
                "gres of this slurmd\nCgroupPlugin=disabled\n-G -Nn7\n");
    /* It must not find the slurmstepds and the log of the real one. */
    check_asked(&slurmd, "#!/bin/sh\n[ $1 != -V ] || exit\ncat \"$SLURM_CONF\" >&2\n",
                check_printf("include %s\nSlurmdSpoolDir=%s/scratch\nSlurmdLogFile=/dev/null\n",
                             conf, check_folder()));
    check_asked(&slurmd,
                "#!/bin/sh\n[ $1 != -V ] || { echo slurm-wlm 22.05.8; exit; }\n"
                "cat \"${SLURM_CONF%/*}\"/cgroup.conf >&2\n",
                "CgroupPlugin=cgroup/v1\n");
    check_asked(&slurmd, "#!/bin/sh\necho slurmd: fatal: bad gres.conf >&2\nexit 1\n",
                "has ended with status 1: fatal: bad gres.conf");
    check_asked(&slurmd, "#!/bin/sh\n[ $1 != -V ] || exit\nexec sleep 60\n",
                "-G has not ended in time");
    check_asked(&slurmd, "#!/bin/sh\n[ $1 != -V ] || exit\nyes >&2\n", "-G has not ended in time");
    slurmd.conf[0] = '\0';
    check_asked(&slurmd, "#!/bin/sh\n", "isn't in a usual place");
}

TEST(units)
{
    static const struct {
        const char *cgroups;
        bool is;
    } cases[] = {
        {"0::/system.slice/slurmd.service\n", true},
        {"0::/system.slice/slurmd.service/slurmd\n", true},
        {"0::/system.slice/slurmd@n1.service\n", true},
        {"12:cpu:/\n1:name=systemd:/system.slice/slurmd.service\n0::/\n", true},
        {"0::/system.slice/slurmdx\n0::/system.slice/slurmd.service", true},
        {"", false},
        {"0::/\n", false},
        {"0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n", false},
        {"0::/system.slice/slurmd.scope\n", false},
        {"0::/system.slice/slurmd/x.service\n", false},
        {"0::/system.slice/slurmd\n1::/x.service\n", false},
        {"0::/system.slice/ssh.service/system.slice/slurmd.service\n", false},
        {"0::/user.slice/user-7.slice/user@7.service/app.slice/slurmd.service\n", false},
        {"0::/user.slice/user-7.slice/user@7.service/system.slice/slurmd.service\n", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        CHECK_NO(tccl_slurmd_in_unit(cases[i].cgroups) != cases[i].is, "%s is not %d\n",
                 cases[i].cgroups, cases[i].is);
}

/* As in a unit with a /tmp of its own; where that may not be, nothing is changed. */
static void hide_mounts(void)
{
    const char *place = check_at("mounted");
    if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
        (void)(mkdir(place, 0755) + mount("none", place, "tmpfs", 0, NULL));
}

/* A shell by the name of slurmd, of that user, in that chroot (NULL: none; "": with mounts of its
 * own), started as the slurmd of node "decoy". */
static pid_t start_decoy(uid_t uid, const char *root, const char *conf)
{
    const char *program = check_at("slurmd");
    pid_t pid = fork();
    setpgid(pid, 0); /* so that its sleep ends with it */
    if (pid == 0) {
        if (root && !*root)
            hide_mounts();
        if ((root && *root && (chroot(root) != 0 || chdir("/") != 0)) || setgid(uid) != 0 ||
            setuid(uid) != 0)
            _exit(1);
        execl(program, program, "-c", "sleep 60; :", "-Ndecoy", "-f", conf, (char *)NULL);
        _exit(1);
    }
    char name[16] = "";
    for (int tries = 0; tries < 6000 && strcmp(name, "slurmd\n") != 0; tries++) {
        usleep(10000);
        tccl_process_text(pid, "comm", name, sizeof(name));
    }
    CHECK_STR(name, "slurmd\n");
    return pid;
}

static uid_t slurm_user;

/* Is it found, within a second? */
static int find_decoy(const char *conf, struct tccl_slurmd *slurmd, struct tccl_error *err)
{
    int rc = 1;
    for (int tries = 0; tries < 20 && rc == 1; tries++) {
        rc = tccl_slurmd_find("decoy", conf, slurm_user, slurmd, err);
        if (rc == 1)
            usleep(50000);
    }
    return rc;
}

/* The same without the right to see which program another process runs, as that user. */
static int find_unseen(uid_t uid, const char *conf)
{
    pid_t child = fork();
    if (child == 0) {
        struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct caps[2];
        struct tccl_slurmd slurmd;
        if (syscall(SYS_capget, &head, caps) != 0)
            _exit(10);
        caps[0].effective &= ~(1U << CAP_SYS_PTRACE);
        caps[0].permitted &= ~(1U << CAP_SYS_PTRACE);
        if (syscall(SYS_capset, &head, caps) != 0 || setuid(uid) != 0)
            _exit(11);
        int rc = find_decoy(conf, &slurmd, ERR);
        _exit(rc < 0 ? (strstr(check_err.text, "others than root") ? 2 : 3) : rc);
    }
    return check_exit(child);
}

static void end_decoy(pid_t pid)
{
    kill(-pid, SIGKILL);
    waitpid(pid, NULL, 0);
    /* What it had just forked has its name, too, and dies in its own time. */
    for (int tries = 0; tries < 1000 && kill(-pid, 0) == 0; tries++)
        usleep(10000);
}

/* A process of another user is never slurmd, whatever it is called; one of root's only if what it
 * names is root's, where its program can't be seen. */
static void check_decoys(void)
{
    struct tccl_slurmd slurmd;
    const char *conf = check_at("slurm.conf");
    CHECK_INT(system(check_printf("cp /bin/sh %s/slurmd && chmod 711 %s", check_folder(),
                                  check_folder())),
              0);
    pid_t decoy = start_decoy(65534, NULL, conf);
    CHECK_INT(find_decoy(conf, &slurmd, ERR), 1);
    end_decoy(decoy);
    decoy = start_decoy(0, NULL, conf);
    CHECK_INT(find_decoy(conf, &slurmd, ERR), 0);
    CHECK(slurmd.pid == decoy);
    for (uid_t uid = 0; uid <= 1; uid++) { /* root without rights, and the user daemon */
        CHECK_INT(find_unseen(uid, conf), 0);
        CHECK_INT(chown(conf, 65534, 65534), 0);
        CHECK_INT(find_unseen(uid, conf), 2);
        slurm_user = 65534;
        CHECK_INT(find_unseen(uid, conf), 0);
        slurm_user = 2;
        CHECK_INT(find_unseen(uid, conf), 2);
        slurm_user = 0;
        CHECK_INT(chmod(conf, 0646) | chown(conf, 0, 0), 0);
        CHECK_INT(find_unseen(uid, conf), 2);
        CHECK_INT(chmod(conf, 0644) | chown(check_folder(), 65534, 65534), 0);
        CHECK_INT(find_unseen(uid, conf), 2);
        CHECK_INT(chown(check_folder(), 0, 0), 0);
    }
    end_decoy(decoy);
}

/* A slurmd whose root check_folder() is another one is of another node, and so is one that has
 * another file as its slurm.conf; one with other mounts is not. */
static void check_chroot(void)
{
    struct tccl_slurmd slurmd;
    const char *conf = check_at("slurm.conf"), *root = check_at("root");
    CHECK_INT(system(check_printf(
                  "for file in $(ldd %s/slurmd | grep -o '/[^ ]*') %s/slurmd %s /bin/sleep; do\n"
                  "install -D $file %s$file || exit; done",
                  check_folder(), check_folder(), conf, root)),
              0);
    pid_t far = start_decoy(0, root, conf);
    CHECK_INT(find_decoy(conf, &slurmd, ERR), 1);
    CHECK_INT(kill(far, 0) | waitpid(far, NULL, WNOHANG), 0);
    pid_t decoy = start_decoy(0, "", conf);
    CHECK_INT(find_decoy(conf, &slurmd, ERR), 0);
    CHECK(slurmd.pid == decoy);
    CHECK_INT(find_unseen(1, conf), 0);
    end_decoy(decoy);
    CHECK_INT(find_unseen(1, conf), 1);
    end_decoy(far);
    conf = check_at("mounted/slurm.conf");
    check_write_file(conf, "x"); /* in the folder that the decoy has hidden from itself */
    far = start_decoy(0, "", conf);
    CHECK_INT(find_decoy(conf, &slurmd, ERR), 1);
    CHECK_INT(find_unseen(1, conf), 1);
    decoy = start_decoy(0, NULL, conf);
    CHECK_INT(find_decoy(conf, &slurmd, ERR), 0);
    CHECK_INT(slurmd.pid, decoy);
    end_decoy(decoy);
    end_decoy(far);
}

/* Of two, the one that is in the pid file of its slurm.conf, if that is root's; else the older. */
static void check_several(void)
{
    struct tccl_slurmd slurmd;
    pid_t decoys[2];
    const char *conf = check_at("slurm.conf"), *path = check_at("decoy.pid");
    check_write_file(check_at("slurm.conf"),
                     check_printf("SlurmdPidFile=%s/%%n.pid\n", check_folder()));
    for (int i = 0; i < 2; i++) {
        decoys[i] = start_decoy(0, NULL, conf);
        CHECK_INT(find_decoy(conf, &slurmd, ERR), 0);
        usleep(30000); /* their age is in ticks of 10 ms */
    }
    for (int i = 0; i < 2; i++) {
        check_write_file(check_at("decoy.pid"), check_printf("%d\n", decoys[i]));
        CHECK_INT(find_decoy(conf, &slurmd, ERR), 0);
        CHECK_INT(slurmd.pid, decoys[i]);
    }
    CHECK_INT(chown(path, 65534, 65534), 0);
    CHECK_INT(find_decoy(conf, &slurmd, ERR), 0);
    CHECK_INT(slurmd.pid, decoys[0]);
    end_decoy(decoys[0]);
    end_decoy(decoys[1]);
}

TEST(root)
{
    if (geteuid() == 0) {
        check_decoys();
        check_chroot();
        check_several();
        check_driver();
        check_kept();
    }
}
