/* Which NICs have no link, by a /sys of the test's; what counts of a link that comes and goes. */
#include "base/clock.h"
#include "check.h"
#include "doctor/doctor.h"
#include "tccld/join/own.h"
#include "tccld/main/metrics.h"

static int changes, lines; /* of what plans go by; in the log */
static bool narrow;        /* do plans go by a link that carries less? */
static int64_t clock_ms;
static int submitted; /* looks */

static void hear_own(struct own *own, const struct tccl_since *since)
{
    (void)own;
    changes++;
    narrow = since->narrowed.n > 0;
}

static void hear_line(const char *fmt, ...)
{
    (void)fmt;
    lines++;
}

#define own_since hear_own
#define log_line hear_line
#define metrics_worse(metrics, links, devices) (void)(metrics)
#define own_links(own, down) (void)(own)
#define threads_submit(pool, run, done, task) ((void)(run), submitted++, 0)
#define tccl_now_ms() clock_ms
#include "tccld/join/nic-links.c"
#undef tccl_now_ms

__attribute__((format(printf, 1, 2))) static void run(const char *format, ...)
{
    char command[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    CHECK_INT(system(command), 0);
}

/* Writes a file below check_folder(), in a folder that is there. */
__attribute__((format(printf, 2, 3))) static void put(const char *text, const char *format, ...)
{
    char path[128];
    va_list args;
    va_start(args, format);
    vsnprintf(path, sizeof(path), format, args);
    va_end(args);
    check_write_file(check_at("sys/class/%s", path), check_printf("%s\n", text));
}

static void add(const char *class, const char *name, const char *busid)
{
    char path[256];
    int at = snprintf(path, sizeof(path), "%s/sys/class/%s/%s", check_folder(), class, name);
    CHECK_INT(mkdir(path, 0755), 0);
    snprintf(path + at, sizeof(path) - (size_t)at, "/device");
    CHECK_INT(symlink(check_printf("../../../devices/%s", busid), path), 0);
}

static void set_port(const char *name, int port, const char *state)
{
    run("mkdir -p %s/sys/class/infiniband/%s/ports/%d", check_folder(), name, port);
    put(state, "infiniband/%s/ports/%d/state", name, port);
}

static void set_net(const char *name, const char *state)
{
    put(state, "net/%s/operstate", name);
}

static void check_down(const char *expected)
{
    static const char *const buses[] = {"0000:c1:00.0", "0000:c1:00.1", "0000:21:00.0",
                                        "0000:41:00.0", "0000:61:00.0"};
    struct nic_links_down down;
    char found[64] = "";
    nic_links_look(check_folder(), &down);
    for (size_t i = 0; i < COUNT(buses); i++)
        if (nic_links_has(&down, buses[i]))
            snprintf(found + strlen(found), sizeof(found) - strlen(found), "%zu ", i);
    CHECK_STR(found, expected);
    CHECK_INT(down.n, (int)strlen(expected) / 2);
    CHECK(!nic_links_has(&down, "0000:c1:00"));
}

TEST(look)
{
    check_down(""); /* there is no /sys/class */
    run("mkdir -p %s/sys/class/infiniband %s/sys/class/net", check_folder(), check_folder());
    add("infiniband", "mlx5_0", "0000:c1:00.0");
    check_down(""); /* nothing is known of it */
    set_port("mlx5_0", 1, "4: ACTIVE");
    add("infiniband", "mlx5_1", "0000:c1:00.1");
    set_port("mlx5_1", 1, "1: DOWN");
    check_down("1 ");
    set_port("mlx5_1", 2, "4: ACTIVE"); /* one of its ports is enough */
    check_down("");
    set_port("mlx5_1", 2, "2: INIT");
    set_port("mlx5_0", 1, "3: ARMED");
    check_down("0 1 ");
}

/* The IP interface of an RDMA device counts for nothing; that of another NIC is all there is. */
TEST(net)
{
    set_port("mlx5_0", 1, "4: ACTIVE");
    add("net", "ib0", "0000:c1:00.0");
    set_net("ib0", "down");
    add("net", "eth0", "0000:21:00.0");
    set_net("eth0", "lowerlayerdown");
    add("net", "eth1", "0000:41:00.0");
    set_net("eth1", "unknown");
    check_down("1 2 ");
    add("net", "eth2", "0000:21:00.0"); /* a second port of the device */
    set_net("eth2", "up");
    run("mkdir -p %s/sys/class/net/bond0", check_folder()); /* no PCI device */
    set_net("bond0", "down");
    check_down("1 ");
}

/* More devices than there is room for. */
TEST(many)
{
    struct nic_links_down down;
    char name[32];
    for (int i = 0; i < 2 * NIC_LINKS_MAX; i++) {
        snprintf(name, sizeof(name), "many%d", i);
        add("net", name, check_printf("%04x:e1:%02x.%d", i / 256, i / 8 % 32, i % 8));
        set_net(name, "down");
    }
    nic_links_look(check_folder(), &down);
    CHECK(down.n > NIC_LINKS_MAX - 8 && down.n <= NIC_LINKS_MAX);
}

/* A link carries that many GB/s of 24. */
static void see(struct nic_links *links, double gbps)
{
    links->since = (struct tccl_since){.machine = "m", .narrowed.n = gbps < 24};
    links->since.narrowed.links[0] =
        (struct tccl_narrow){.gpus = 2, .gbps = {gbps, gbps}, .text = "link of GPU 1 is x4"};
}

/* One look at it. */
static void look(struct nic_links *links, double gbps)
{
    see(links, gbps);
    hear_since(links);
    clock_ms += (int64_t)PERIOD_MS * links->until_since;
}

/* Down and up at random: plans go by it once it was seen twice, and no longer once it is back; the
 * log says it once in an hour, and again at once where it is worse than it was said. */
TEST(comes_and_goes)
{
    struct daemon daemon = {.own = NULL};
    struct nic_links links = {.daemon = &daemon};
    int all = 0;
    look(&links, 24);
    for (int round = 0; round < 20; round++) {
        bool before = false, counts = false;
        int turns = 0;
        changes = lines = 0;
        links.said_ms = -SAID_MS; /* an hour ago */
        int64_t end = clock_ms + SAID_MS;
        for (int quiet = 1 + rand() % 4; clock_ms < end - SAID_MS / 10;) {
            bool down = rand() % (quiet + 1) == 0;
            look(&links, down ? 6 : 24);
            turns += counts != (down && (before || counts));
            counts = down && (before || counts);
            before = down;
            CHECK_INT(narrow, counts);
        }
        CHECK_INT(changes, turns);
        CHECK_INT(lines, turns > 0);
        all += turns;
        look(&links, 3);
        look(&links, 3);
        CHECK_INT(lines, (turns > 0) + 1);
        look(&links, 24);
        CHECK(!narrow);
    }
    CHECK(all > 60);
}

/* A reload while a look is under way has all of it looked at behind that. Two looks a moment apart
 * are one; what is seen a second later counts. */
TEST(hurries)
{
    struct tccl_conf conf = {.node = "n1"};
    struct daemon daemon = {.conf = &conf};
    struct nic_links links = {.daemon = &daemon};
    look(&links, 24);
    narrow = false;
    submitted = 0;
    nic_links_hurry(&links);
    CHECK(submitted == 1 && links.with_since);
    nic_links_hurry(&links);
    nic_links_hurry(&links);
    CHECK_INT(submitted, 1);
    see(&links, 6);
    on_looked(&links);
    CHECK(submitted == 2 && links.with_since && !narrow);
    clock_ms += 3;
    on_looked(&links);
    CHECK(submitted == 2 && !links.looking && !narrow);
    on_time(-1, 0, &links); /* the period's */
    CHECK(submitted == 3 && links.with_since);
    clock_ms += TWICE_MS - 3;
    on_looked(&links);
    CHECK(narrow);
    for (int i = 1; i <= SINCE_EVERY; i++) { /* sure: all of it every third time */
        on_time(-1, 0, &links);
        CHECK_INT(links.with_since, i == SINCE_EVERY);
        on_looked(&links);
    }
}
