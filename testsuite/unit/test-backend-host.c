/* The back end "host": real transfers between cores and memories of this machine, through the same
 * interface as all others. */
#include "ahead.h"
#include "machines.h"
#include "measure/backends/backend.h"

static struct tccl_backend *backend;

static int measure(const char *text, struct tccl_measurement *out, struct tccl_error *err)
{
    struct tccl_set set = parse_set(text);
    return tccl_backend_measure(backend, &set, out, err);
}

/* A machine like any other: its description can be written, read again, and has an id. */
static void check_machine(void)
{
    const struct tccl_machine *machine = backend->machine;
    char id[TCCL_HASH_HEX], again[TCCL_HASH_HEX];
    struct tccl_machine copy;
    CHECK_STR(backend->name, "host");
    CHECK(strstr(backend->conditions, "core copies, non-temporal"));
    CHECK(strstr(backend->conditions, "; TCP over loopback"));
    CHECK_INT(backend->marks, 0);
    CHECK(backend->noise > 0 && !backend->model);
    CHECK_INT(machine->n_gpus, 2);
    CHECK(machine->n_memories >= 1);
    CHECK_INT(machine->n_nics, 1);
    cleanup_json json_t *json = tccl_machine_to_json(machine);
    CHECK_OK(tccl_machine_from_json(json, &copy, ERR));
    tccl_machine_id(machine, id);
    tccl_machine_id(&copy, again);
    CHECK_STR(again, id);
}

static void check_measured(const char *text)
{
    struct tccl_measurement out = {.failed = true};
    CHECK_OK(measure(text, &out, ERR));
    printf("%-24s %8.3f GB/s, spread %.3f, skew %.1f us, overlap %.3f%s\n", text, out.gbps,
           out.spread, out.skew, out.overlap, out.noisy ? ", noisy" : "");
    CHECK(out.gbps > 0.001 && out.gbps < 1000);
    CHECK(out.overlap > 0 && out.overlap <= 1 && out.spread >= 0 && out.skew >= 0);
    CHECK(!out.failed && out.marks == 0);
}

static void check_refused(const char *text)
{
    struct tccl_measurement out;
    CHECK_INT(measure(text, &out, ERR), 1);
    CHECK(check_err.text[0]);
}

/* Measured twice, a set comes out the same within what is stated: spread and noise. Not those that
 * are marked noisy; and others may use the machine, so most pairs are enough. */
static bool check_repeats(const char *text)
{
    enum { PAIRS = 5 };
    int agree = 0, quiet = 0;
    for (int i = 0; i < 3 * PAIRS && quiet < PAIRS; i++) {
        struct tccl_measurement a, b;
        CHECK_INT(measure(text, &a, NULL), 0);
        CHECK_INT(measure(text, &b, NULL), 0);
        if (a.noisy || b.noisy)
            continue;
        quiet++;
        double stated = fmax(a.spread, b.spread) + backend->noise;
        agree += fabs(a.gbps - b.gbps) <= stated * fmax(a.gbps, b.gbps);
    }
    printf("%s: %d of %d pairs agree\n", text, agree, quiet);
    CHECK(quiet < PAIRS || agree > PAIRS / 2);
    return quiet == PAIRS;
}

static void check_options(void)
{
    struct tccl_backend *other = NULL;
    struct tccl_backend_options options = {.devices = 5, .window = 0.002, .repeats = 3};
    struct tccl_measurement out;
    struct tccl_set set = parse_set("g0>g1 g1>g2 g2>g3 g3>m0 g4<m0 n0>m0");
    CHECK_OK(tccl_backend_open("host", &options, &other, ERR));
    CHECK_INT(other->machine->n_gpus, 5);
    CHECK_OK(tccl_backend_measure(other, &set, &out, ERR));
    /* Rings of a set make the same transfer several times. */
    CHECK_INT(tccl_set_parse_repeats("g0>g1 g0>g1 g1>g0 g1>g0 g1>g0", &set, NULL), 0);
    CHECK_OK(tccl_backend_measure(other, &set, &out, ERR));
    CHECK(out.gbps > 0);
    tccl_backend_close(other);
    options.devices = 1000;
    CHECK_INT(tccl_backend_open("host", &options, &other, ERR), -1);
    CHECK(check_err.text[0] && !other);
    /* Nobody listens there: known before anything is measured. */
    options.devices = 1;
    options.peer = "127.0.0.1:1";
    CHECK_SAYS(tccl_backend_open("host", &options, &other, ERR) == -1, "127.0.0.1");
}

static int open_two(void)
{
    const struct tccl_backend_options options = {.devices = 2};
    if (tccl_backend_open("host", &options, &backend, ERR) == 0)
        return 0;
    fprintf(stderr, "%s\n", check_err.text);
    return -1;
}

TEST(host)
{
    alarm(900);
    if (open_two() < 0)
        exit(1);
    check_machine();
    check_measured("g0>m0");
    check_measured("g0<m0");
    check_measured("g0>g1");
    check_measured("g0<g1");
    check_measured("g0>m0 g0<m0 g1>g0");
    check_measured("n0>m0");
    check_measured("n0<m0 g0>m0");
    check_refused("g0>m15");
    check_refused("g7>m0");
    check_refused("n0>g0");
    tccl_backend_close(backend);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
    check_options();
    /* Not for what moves by TCP: the kernel's own threads would have to wait. */
    go_ahead();
    if (open_two() < 0)
        exit(1);
    if (!check_repeats("g0>m0"))
        check_skip("this machine is too busy: nearly all sets were noisy");
    tccl_backend_close(backend);
}
