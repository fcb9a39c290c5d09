/* The back end "cuda" from end to end, on machines that hwloc is told of, against fake-cuda.c in
 * the driver's place. */
#include "measure/backends/backend.h"

#include <dlfcn.h>
#include <sys/prctl.h>

#include "busy.h"
#include "check.h"

OWNED(backend, struct tccl_backend, tccl_backend_close)

static const char *path;
static struct tccl_error err;
static bool kept; /* from running a set's transfers at the same time, or from ending them */

/* This machine, as hwloc and NVML are to see it: one core, memory of node 0, so many GPUs. */
static void make_machine(int gpus)
{
    static const char *const lists[] = {"", "0000:01:00.0", "0000:01:00.0,0000:02:00.0"};
    static const char sets[] =
        "cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\"";
    cleanup_file FILE *file = fopen(path, "w");
    setenv("FAKE_NVML_GPUS", lists[gpus], 1);
    setenv("FAKE_NVML_P2P", "all", 1);
    fprintf(file,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n"
            "<object type=\"Machine\" os_index=\"0\" %s allowed_cpuset=\"0x1\" "
            "allowed_nodeset=\"0x1\" gp_index=\"1\">\n"
            "<object type=\"NUMANode\" os_index=\"0\" %s gp_index=\"2\" "
            "local_memory=\"1073741824\"/>\n"
            "<object type=\"Core\" os_index=\"0\" %s gp_index=\"3\">\n"
            "<object type=\"PU\" os_index=\"0\" %s gp_index=\"4\"/>\n</object>\n"
            "<object type=\"Bridge\" gp_index=\"5\" bridge_type=\"0-1\" depth=\"0\" "
            "bridge_pci=\"0000:[00-09]\">\n",
            sets, sets, sets, sets);
    for (int i = 1; i <= gpus; i++)
        fprintf(file,
                "<object type=\"PCIDev\" gp_index=\"%d\" pci_busid=\"0000:%02x:00.0\" "
                "pci_type=\"0302 [10de:20b0] [10de:144e] a1\" pci_link_speed=\"31.5\"/>\n",
                10 + i, i);
    fputs("</object>\n</object>\n</topology>\n", file);
}

static struct tccl_backend *open_with(const struct tccl_backend_options *options)
{
    struct tccl_backend *backend;
    err = (struct tccl_error){0};
    CHECK_INT(tccl_backend_open("cuda", options, &backend, &err), 0);
    CHECK_STR(err.text, "");
    return backend;
}

/* Two cores that others use keep transfers of five milliseconds apart now and then, or the thread
 * that is the GPU here from seeing in time that it is to stop: not every time. */
static bool was_kept(void)
{
    return strstr(err.text, "hardly run at the same time") ||
           strstr(err.text, "the copy did not stop within");
}

static int try_measure(struct tccl_backend *backend, const struct tccl_set *set,
                       struct tccl_measurement *measured)
{
    int rc = -1;
    for (int try = 0; try < 50; try++) {
        err = (struct tccl_error){0};
        rc = tccl_backend_measure(backend, set, measured, &err);
        if (rc == 0 || !was_kept())
            break;
    }
    return rc;
}

static struct tccl_measurement measure(struct tccl_backend *backend, const char *text, int expected)
{
    struct tccl_measurement measured = {0};
    struct tccl_set set = {0};
    CHECK_INT(tccl_set_parse(text, &set, &err), 0);
    int rc = try_measure(backend, &set, &measured);
    if (rc != 0 && was_kept()) {
        fprintf(stderr, "%s: %s\n", text, err.text);
        kept = true;
        return measured;
    }
    CHECK_INT(rc, expected);
    CHECK((expected == 0) == (err.text[0] == '\0'));
    if (expected == 0 && err.text[0])
        fprintf(stderr, "%s: \"%s\"\n", text, err.text);
    CHECK(!strchr(err.text, '\n'));
    return measured;
}

static void test_measure(bool engine)
{
    const struct tccl_backend_options options = {.engine = engine, .window = 0.005, .repeats = 3};
    struct tccl_measurement measured;
    owned(backend) struct tccl_backend *backend = open_with(&options);
    if (!backend)
        return;
    CHECK_STR(backend->name, "cuda");
    CHECK_STR(backend->conditions, engine ? "copy engines" : "kernel copies");
    CHECK_INT(backend->marks, 0);
    CHECK(backend->model == NULL && backend->noise > 0);
    CHECK_INT(backend->machine->n_gpus, 2);
    measured = measure(backend, "g0>m0", 0);
    CHECK(kept || (measured.gbps > 0 && measured.overlap > 0));
    CHECK(measured.marks == 0 && !measured.failed);
    measure(backend, "g0>m0 g0<m0 g0>g1 g1<m0", 0);
    measure(backend, "g0>g5", 1);
    measure(backend, "n0>m0", 1);
    measure(backend, "g0>m0", 0);
}

static void test_stand_ins(void)
{
    const struct tccl_backend_options options = {.devices = 2, .window = 0.005, .repeats = 3};
    struct tccl_measurement measured;
    owned(backend) struct tccl_backend *backend = open_with(&options);
    if (!backend)
        return;
    CHECK(strstr(backend->conditions, "one GPU stands for 2"));
    CHECK_INT(backend->marks, TCCL_MARK_STAND_IN);
    CHECK_INT(backend->machine->n_gpus, 2);
    measured = measure(backend, "g0>m0 g1<m0 g0>g1", 0);
    CHECK(kept || measured.marks == TCCL_MARK_STAND_IN);
}

static void refuse(const struct tccl_backend_options *options, const char *why)
{
    struct tccl_backend *backend;
    err = (struct tccl_error){0};
    CHECK_INT(tccl_backend_open("cuda", options, &backend, &err), -1);
    CHECK(backend == NULL && strstr(err.text, why) && !strchr(err.text, '\n'));
    if (!strstr(err.text, why))
        fprintf(stderr, "\"%s\", not \"%s\"\n", err.text, why);
}

static void test_force(const char *variable, const char *value, const char *why, unsigned mark)
{
    struct tccl_backend_options options = {.window = 0.005, .repeats = 3};
    owned(backend) struct tccl_backend *backend = NULL;
    setenv(variable, value, 1);
    refuse(&options, why);
    options.force = true;
    backend = open_with(&options);
    if (backend) {
        CHECK_INT(backend->marks, mark);
        CHECK(measure(backend, "g0>m0", 0).marks == mark || kept);
    }
    unsetenv(variable);
}

static int be_without_driver(void)
{
    const struct tccl_backend_options options = {0};
    if (!dlopen("libcuda.so.1", RTLD_NOW))
        refuse(&options, "no NVIDIA driver");
    return check_result();
}

/* Of an earlier run, nobody's child any more: it goes soon. Returns its pid. */
static pid_t start_leaving(void)
{
    pid_t leaving = 0;
    int fds[2];
    CHECK_INT(pipe(fds), 0);
    pid_t parent = fork();
    if (parent == 0) {
        leaving = fork();
        if (leaving != 0)
            _exit(0);
        prctl(PR_SET_NAME, "tccl keep g0");
        leaving = getpid();
        _exit(write(fds[1], &leaving, sizeof(leaving)) > 0 && usleep(1500000) == 0 ? 0 : 1);
    }
    waitpid(parent, NULL, 0);
    CHECK_INT(read(fds[0], &leaving, sizeof(leaving)), sizeof(leaving));
    close(fds[0]);
    close(fds[1]);
    return leaving;
}

/* What an earlier run leaves for a moment is waited for: the driver still clears up. */
static void test_leaving(void)
{
    const struct tccl_backend_options options = {.window = 0.005, .repeats = 3};
    setenv("FAKE_NVML_USERS", check_printf("0-%d", (int)start_leaving()), 1);
    setenv("FAKE_NVML_ALIVE", "1", 1);
    struct tccl_backend *backend = open_with(&options);
    CHECK(backend && backend->marks == 0);
    tccl_backend_close(backend);
    unsetenv("FAKE_NVML_USERS");
    unsetenv("FAKE_NVML_ALIVE");
}

static bool have_fake(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    bool fake = library && dlsym(library, "fake_cuda");
    if (library)
        dlclose(library);
    return fake;
}

SETUP
{
    if (check_args[1])
        exit(be_without_driver());
    if (!have_fake()) {
        check_skip("LD_LIBRARY_PATH does not lead to fake-cuda.c's libcuda.so.1");
        return;
    }
    path = check_at("machine.xml");
    setenv("HWLOC_XMLFILE", path, 1);
    setenv("HWLOC_THISSYSTEM", "1", 1);
    setenv("FAKE_CUDA_GPUS", "0000:01:00.0,0000:02:00.0", 1);
}

TEST(cuda)
{
    make_machine(2);
    test_measure(false);
    test_measure(true);
    /* A control daemon of MPS, as far as can be seen: somebody reads its pipe. */
    const char *folder = check_folder(), *pipe = check_at("control");
    CHECK(mkfifo(pipe, 0600) == 0);
    int fd = open(pipe, O_RDWR | O_CLOEXEC);
    test_force("CUDA_MPS_PIPE_DIRECTORY", folder, "MPS is running", TCCL_MARK_MPS);
    unlink(pipe);
    test_force("FAKE_NVML_MIG", "0", "a GPU is in MIG mode", TCCL_MARK_MIG);
    test_force("FAKE_NVML_USERS", check_printf("1-%d", (int)getppid()),
               "GPU 1 (0000:02:00.0) is in use by ", TCCL_MARK_BUSY);
    test_leaving();
    /* This program again, without the fake in its way. */
    char *argv[] = {check_args[0], "no-driver", NULL};
    pid_t pid = fork();
    if (pid == 0) {
        unsetenv("LD_LIBRARY_PATH");
        execv(check_args[0], argv);
        _exit(127);
    }
    CHECK_INT(check_exit(pid), 0);
    make_machine(1);
    test_stand_ins();
    const struct tccl_backend_options options = {0};
    make_machine(0);
    refuse(&options, "no GPU found");
    make_machine(2);
    setenv("FAKE_CUDA_GPUS", "0000:01:00.0", 1);
    refuse(&options, "GPU 1 (0000:02:00.0): CUDA can't see it");
    setenv("FAKE_CUDA_FAIL", "cuInit", 1);
    refuse(&options, "no CUDA-capable device");
    unsetenv("FAKE_CUDA_FAIL");
    if (kept && check_failures == 0 && is_busy())
        check_skip("this machine is too busy for transfers to run at the same time");
    else
        CHECK(!kept);
    close(fd);
}
