/* The mover of GPUs in the real worker pool, against fake-cuda.c in the driver's place: that data
 * really go where they should, and what happens when something fails. On real GPUs, whose bus ids
 * are given as arguments: the first part of that. */
#include <dlfcn.h>
#include <sys/mman.h>

#include "machines.h"
#include "measure/cuda/cuda-request.h"
#include "measure/pool/workers.h"

enum { REGION = 1 << 20, PLACES = 8, SHARE = 128 * REGION };

static struct tccl_workspace *workspace;
static struct tccl_workers *workers;
static struct tccl_error err;

/* Two GPUs; "busid,busid" as the fake's. */
static struct tccl_site make_site(const char *first, const char *second)
{
    struct tccl_site site = {.machine = {.name = "test", .n_gpus = 2, .n_memories = 1}};
    for (int i = 0; i < 2; i++) {
        strcpy(site.gpu_busid[i], i == 0 ? first : second);
        strcpy(site.machine.gpus[i].busid, site.gpu_busid[i]);
        site.machine.p2p[i][1 - i] = true;
        site.machine.gpus[i].parent = -1;
    }
    return site;
}

static void begin_on(const struct tccl_site *site, bool engine)
{
    const struct tccl_workspace_settings settings = {.region = REGION, .engine = engine};
    const struct tccl_workers_options options = {
        .gpu = &tccl_mover_cuda, .prepare_limit = 90, .run_limit = 60};
    err = (struct tccl_error){0};
    workspace = tccl_workspace_new(site, &settings, &err);
    workers = workspace ? tccl_workers_new(workspace, &options, &err) : NULL;
}

static void begin(bool engine)
{
    struct tccl_site site = make_site("0000:01:00.0", "0000:02:00.0");
    begin_on(&site, engine);
    CHECK_STR(err.text, "");
}

static void end(void)
{
    tccl_workers_free(workers);
    tccl_workspace_free(workspace);
    workers = NULL;
    workspace = NULL;
    unsetenv("FAKE_CUDA_KERNEL");
    unsetenv("FAKE_CUDA_FAIL");
    unsetenv("FAKE_CUDA_MODE");
}

static int run(const char *text, struct tccl_run_result *result)
{
    struct tccl_run_result unused;
    struct tccl_set set = parse_set(text);
    err = (struct tccl_error){0};
    return tccl_workers_run(workers, &set, SHARE, result ? result : &unused, &err);
}

static void run_well(const char *text)
{
    struct tccl_run_result result = {0};
    CHECK_INT(run(text, &result), 0);
    CHECK_STR(err.text, "");
    CHECK(result.window > 0 && result.overlap > 0);
    if (parse_set(text).count ==
        1) /* with more, few cores may leave one out for the whole window */
        CHECK(result.gbps[0] > 0);
}

/* ---- what lies where ---- */

static void fill(int value)
{
    for (int place = 0; place < PLACES; place++) {
        void *memory =
            tccl_workspace_region(workspace, (struct tccl_device){TCCL_MEMORY, 0}, place, &err);
        CHECK(memory != NULL);
        if (memory)
            memset(memory, value, REGION);
    }
}

static bool is_full_of(const unsigned char *memory, size_t bytes, int value)
{
    for (size_t i = 0; i < bytes; i++)
        if (memory[i] != value)
            return false;
    return true;
}

/* Places of the memory that hold nothing but that. */
static int count_full_of(int value)
{
    int count = 0;
    for (int place = 0; place < PLACES; place++)
        count += is_full_of(
            tccl_workspace_region(workspace, (struct tccl_device){TCCL_MEMORY, 0}, place, &err),
            REGION, value);
    return count;
}

/* What the GPU lends, as fake-cuda.c says where it is. */
static unsigned char *map_loan(int gpu)
{
    const struct tccl_loan *loan = tccl_workspace_loan(workspace, gpu);
    struct {
        char magic[8];
        pid_t pid;
        int fd;
        uint64_t bytes;
    } handle;
    memcpy(&handle, loan->handle, sizeof(handle));
    CHECK_STR(handle.magic, "fake");
    CHECK(handle.bytes == loan->bytes && loan->bytes >= REGION);
    int fd = open(check_printf("/proc/%d/fd/%d", (int)handle.pid, handle.fd), O_RDWR | O_CLOEXEC);
    void *memory = mmap(NULL, loan->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static int count_lent(int gpu, int value)
{
    size_t bytes = tccl_workspace_loan(workspace, gpu)->bytes;
    unsigned char *memory = map_loan(gpu);
    int count = 0;
    for (size_t at = 0; at < bytes; at += REGION)
        count += is_full_of(memory + at, REGION, value);
    munmap(memory, bytes);
    return count;
}

/* ---- transfers ---- */

/* Memory -> GPU 0 -> memory; GPU 0 -> GPU 1; GPU 1 -> GPU 0 -> memory. */
static void check_data(void)
{
    fill(0x11);
    run_well("g0<m0");
    fill(0);
    run_well("g0>m0");
    CHECK_INT(count_full_of(0x11), 1);
    CHECK_INT(count_lent(1, 0x11), 0);
    run_well("g0>g1");
    CHECK_INT(count_lent(1, 0x11), 1);
    size_t bytes = tccl_workspace_loan(workspace, 1)->bytes;
    unsigned char *memory = map_loan(1);
    memset(memory, 0x22, bytes);
    munmap(memory, bytes);
    run_well("g0<g1");
    fill(0);
    run_well("g0>m0");
    CHECK_INT(count_full_of(0x22), 1);
}

/* The same as far as it shows without a look into what GPUs lend: memory -> GPU 0 -> GPU 1 -> GPU 0
 * -> memory, while other bytes were in GPU 0. */
static void check_round_trip(void)
{
    fill(0x11);
    run_well("g0<m0");
    fill(0);
    run_well("g0>m0");
    CHECK_INT(count_full_of(0x11), 1);
    run_well("g0>g1");
    fill(0x33);
    run_well("g0<m0");
    run_well("g0<g1");
    fill(0);
    run_well("g0>m0");
    CHECK_INT(count_full_of(0x11), 1);
}

/* Members of one GPU and of two, whose memory is set up while kernels of others wait. */
static void check_together(void)
{
    run_well("g0>m0 g0<m0");
    run_well("g0>m0 g0<m0 g0>g1 g0<g1 g1>m0 g1<m0 g1>g0 g1<g0");
    run_well("g1<m0 g0>m0");
    CHECK_INT(tccl_workers_replaced(workers), 0);
}

static void test_kinds(bool engine)
{
    begin(engine);
    if (workers) {
        check_data();
        check_round_trip();
        check_together();
    }
    end();
}

/* Two stand-ins: two processes, one GPU. */
TEST(stand_ins)
{
    struct tccl_site site = make_site("0000:02:00.0", "0000:02:00.0");
    begin_on(&site, false);
    CHECK_STR(err.text, "");
    if (workers) {
        check_data();
        run_well("g0>m0 g1<m0 g0>g1 g1>g0");
    }
    end();
}

/* CUDA lets a GPU reach few others at once, here two: those that a set needs are mapped, others
 * give way. A set that needs more fails, and says why; it is nothing that stays. */
TEST(few_peers)
{
    struct tccl_site site = make_site("0000:01:00.0", "0000:02:00.0");
    const char *before = getenv("FAKE_CUDA_GPUS");
    cleanup_free char *saved = before ? strdup(before) : NULL;
    setenv("FAKE_CUDA_GPUS", "0000:01:00.0,0000:02:00.0,0000:03:00.0,0000:04:00.0", 1);
    setenv("FAKE_CUDA_PEERS", "2", 1);
    site.machine.n_gpus = 4;
    for (int i = 0; i < 4; i++) {
        snprintf(site.gpu_busid[i], sizeof(site.gpu_busid[i]), "0000:0%d:00.0", i + 1);
        strcpy(site.machine.gpus[i].busid, site.gpu_busid[i]);
        site.machine.gpus[i].parent = -1;
        for (int k = 0; k < 4; k++)
            site.machine.p2p[i][k] = i != k;
    }
    begin_on(&site, false);
    CHECK_STR(err.text, "");
    for (int round = 0; workers && round < 2; round++) {
        fill(0x11 * (round + 1));
        run_well("g0<m0");
        for (int gpu = 1; gpu < 4; gpu++) {
            run_well(check_printf("g0>g%d", gpu));
            CHECK_INT(count_lent(gpu, 0x11 * (round + 1)), 1);
        }
        run_well("g0>g1 g0>g3");
        run_well("g0>g2 g0<g3");
        CHECK_INT(run("g0>g1 g0>g2 g0>g3", NULL), 1);
        CHECK(strstr(err.text, "peer mapping resources exhausted") ||
              strstr(err.text, "more than the 8 peers that CUDA allows"));
        run_well("g1>g0 g1>g2 g0>g3");
    }
    if (workers)
        CHECK_INT(tccl_workers_replaced(workers), 0);
    end();
    unsetenv("FAKE_CUDA_PEERS");
    if (saved)
        setenv("FAKE_CUDA_GPUS", saved, 1);
}

/* If the checks above could not tell, they would be worth nothing. */
TEST(idle_is_found)
{
    setenv("FAKE_CUDA_KERNEL", "idle", 1);
    begin(false);
    if (workers) {
        fill(0x11);
        run_well("g0<m0");
        fill(0);
        run_well("g0>m0");
        CHECK_INT(count_full_of(0x11), 0);
    }
    end();
}

/* ---- failures ---- */

static void run_badly(const char *text, const char *why)
{
    CHECK_INT(run(text, NULL), 1);
    CHECK_HOLDS(err.text, why);
    CHECK(!strchr(err.text, '\n'));
}

static void test_kernel(const char *kind, const char *why)
{
    setenv("FAKE_CUDA_KERNEL", kind, 1);
    begin(false);
    if (workers)
        run_badly("g0>m0", why);
    end();
}

/* A copy that nothing ends is ended with its keeper; the next one does better. */
TEST(endless)
{
    setenv("FAKE_CUDA_KERNEL", "endless", 1);
    begin(false);
    if (workers) {
        run_badly("g0>m0", "did not stop");
        unsetenv("FAKE_CUDA_KERNEL");
        run_badly("g0<m0", "timed out");
        run_well("g0<m0 g0>m0");
    }
    end();
}

/* A keeper that had to end is replaced: what failed says so, and the others go on. */
static void test_broken(const char *kind, const char *why)
{
    setenv("FAKE_CUDA_KERNEL", kind, 1);
    begin(false);
    if (workers) {
        run_badly("g0>m0", why);
        run_badly("g1>m0", why);
        run_badly("g0>m0", why);
        CHECK(tccl_workers_replaced(workers) > 0);
    }
    end();
}

TEST(silent_keeper)
{
    const size_t bytes = sizeof(struct tccl_cuda_requests);
    struct tccl_cuda_requests *requests =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    tccl_cuda_requests_open(requests, true);
    requests->keeper = pid;
    err = (struct tccl_error){0};
    CHECK_INT(tccl_cuda_requests_ask(requests, 0, TCCL_CUDA_PREPARE, 0.02, &err), -1);
    CHECK(strstr(err.text, "did not answer within 0.02 s") != NULL);
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    munmap(requests, bytes);
}

static void test_call(const char *call, const char *transfer, const char *why)
{
    setenv("FAKE_CUDA_FAIL", call, 1);
    begin(false);
    if (workers)
        run_badly(transfer, why);
    end();
}

/* Peers that can't reach each other; the memories can be measured all the same. */
static void test_no_peers(const char *call, const char *why)
{
    setenv("FAKE_CUDA_FAIL", call, 1);
    begin(false);
    if (workers) {
        run_badly("g0>g1", why);
        run_badly("g0>m0 g1<g0", why);
        run_well("g0>m0 g1<m0");
    }
    end();
}

static void test_no_start(const char *call, const char *mode, const char *busid, const char *why)
{
    struct tccl_site site = make_site("0000:01:00.0", busid);
    if (call)
        setenv("FAKE_CUDA_FAIL", call, 1);
    setenv("FAKE_CUDA_MODE", mode, 1);
    begin_on(&site, false);
    CHECK(workers == NULL);
    CHECK_HOLDS(err.text, why);
    end();
}

static bool have_fake(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    bool fake = library && dlsym(library, "fake_cuda");
    if (library)
        dlclose(library);
    return fake;
}

/* With a real driver: GPUs of those bus ids, or two stand-ins on one. */
static int test_real(const char *first, const char *second)
{
    struct tccl_site site = make_site(first, second);
    for (int engine = 0; engine < 2; engine++) {
        begin_on(&site, engine == 1);
        CHECK_STR(err.text, "");
        if (workers) {
            check_round_trip();
            check_together();
        }
        end();
    }
    return check_result();
}

SETUP
{
    if (check_args[1])
        exit(test_real(check_args[1], check_args[2] ? check_args[2] : check_args[1]));
    if (!have_fake()) {
        check_skip("LD_LIBRARY_PATH does not lead to fake-cuda.c's libcuda.so.1");
        return;
    }
    setenv("FAKE_CUDA_GPUS", "0000:01:00.0,0000:02:00.0", 1);
    setenv("CUDA_VISIBLE_DEVICES", "7", 1); /* all GPUs are measured nevertheless */
    setenv("CUDA_LAUNCH_BLOCKING", "1", 1); /* and kernels run together */
    setenv("CUDA_MODULE_LOADING", "LAZY", 1);
}

TEST(failures)
{
    test_kinds(false);
    test_kinds(true);
    test_kernel("absent", "did not start");
    test_broken("broken", "unspecified launch failure");
    test_broken("deadly", "");
    test_call("cuLaunchKernel", "g0>m0", "can't be started");
    test_call("cuStreamCreate", "g0>m0", "no CUDA stream");
    test_no_peers("cuIpcOpenMemHandle", "peer access is not supported");
    test_no_peers("cuIpcGetMemHandle", "can't share its memory");
    test_no_start("cuInit", "0", "0000:02:00.0", "no CUDA-capable device");
    test_no_start(NULL, "0", "0000:07:00.0", "CUDA can't see it");
    test_no_start(NULL, "2", "0000:02:00.0", "compute mode \"prohibited\"");
    test_no_start("cuDevicePrimaryCtxRetain", "3", "0000:02:00.0", "another process has it");
    test_no_start("cuMemHostRegister", "0", "0000:02:00.0", "host memory can't be mapped");
    test_no_start("cuMemAlloc", "0", "0000:02:00.0", "out of memory");
    test_no_start("cuModuleLoadData", "0", "0000:02:00.0", "kernel can't be loaded: some");
    setenv("FAKE_CUDA_VERSION", "11040", 1);
    test_no_start(NULL, "0", "0000:02:00.0", "the driver is of CUDA 11.4 (update it");
    unsetenv("FAKE_CUDA_VERSION");
}
