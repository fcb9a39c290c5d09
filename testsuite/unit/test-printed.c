/* Which lines the steps of a job have printed: once per job, run and line; what keeps the plugin
 * from knowing has it print. */
#include <sys/file.h>

#include "check.h"
#include "plugin/plugin.h"

static const struct tccl_step_key first = {.cluster = "c", .job = 7};

static void test_once(int fd)
{
    struct tccl_step_key step = {.cluster = "c", .job = 7, .step = 1},
                         job = {.cluster = "c", .job = 8},
                         run = {.cluster = "c", .job = 7, .restart = 1},
                         cluster = {.cluster = "d", .job = 7};
    CHECK(!printed_before(fd, &first, "tccl: ring of 4 GPUs: 8.0 GB/s"));
    CHECK(printed_before(fd, &first, "tccl: ring of 4 GPUs: 8.0 GB/s"));
    CHECK(printed_before(fd, &step, "tccl: ring of 4 GPUs: 8.0 GB/s"));
    CHECK(!printed_before(fd, &step, "tccl: ring of 2 GPUs: 9.0 GB/s"));
    CHECK(printed_before(fd, &first, "tccl: ring of 2 GPUs: 9.0 GB/s"));
    CHECK(!printed_before(fd, &job, "tccl: ring of 4 GPUs: 8.0 GB/s"));
    CHECK(!printed_before(fd, &run, "tccl: ring of 4 GPUs: 8.0 GB/s"));
    CHECK(!printed_before(fd, &cluster, "tccl: ring of 4 GPUs: 8.0 GB/s"));
    CHECK(printed_before(fd, &first, "tccl: ring of 4 GPUs: 8.0 GB/s"));
}

/* However many lines there are, the file does not grow, and the latest are known. */
static void test_bound(int fd)
{
    struct stat status;
    for (int i = 0; i < 20000; i++) {
        CHECK(!printed_before(fd, &first, check_printf("tccl: line %d", i)));
    }
    for (int i = 19900; i < 20000; i++) {
        CHECK(printed_before(fd, &first, check_printf("tccl: line %d", i)));
    }
    CHECK_INT(fstat(fd, &status), 0);
    CHECK_INT(status.st_size, 64 * 1024);
}

static void test_planted(const char *folder, const char *path)
{
    CHECK_INT(unlink(path), 0);
    CHECK_INT(symlink("/dev/null", path), 0);
    CHECK_INT(printed_open(folder), -1);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(mkfifo(path, 0600), 0);
    CHECK_INT(printed_open(folder), -1);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(mkdir(path, 0700), 0);
    CHECK_INT(printed_open(folder), -1);
    CHECK_INT(rmdir(path), 0);
    CHECK_INT(printed_open("/proc/none"), -1);
}

TEST(printed)
{
    const char *path = check_at("printed");
    struct stat status;
    {
        cleanup_close int fd = printed_open(check_folder());
        CHECK_INT(fstat(fd, &status), 0);
        CHECK_INT(status.st_mode & 07777, 0600);
        test_once(fd);
    }
    cleanup_close int fd = printed_open(check_folder()); /* what is in it stays */
    CHECK(printed_before(fd, &first, "tccl: ring of 4 GPUs: 8.0 GB/s"));
    /* It always prints; its steps need not repeat that. */
    struct tccl_step_key script = {.cluster = "c", .job = 9, .run = 1},
                         step = {.cluster = "c", .job = 9};
    CHECK(!printed_before(fd, &script, "tccl: a") && !printed_before(fd, &script, "tccl: a"));
    CHECK(printed_before(fd, &step, "tccl: a"));
    cleanup_close int holder = open(path, O_RDWR | O_CLOEXEC);
    CHECK(!printed_before(-1, &first, "tccl: b") && !printed_before(-1, &first, "tccl: b"));
    CHECK(!printed_before(fd, &first, "tccl: b"));
    CHECK_INT(flock(holder, LOCK_EX), 0);
    CHECK(!printed_before(fd, &first, "tccl: b"));
    CHECK_INT(flock(holder, LOCK_UN), 0);
    CHECK(printed_before(fd, &first, "tccl: b"));
    test_bound(fd);
    test_planted(check_folder(), path);
    check_nothing_left();
}
