/* Back ends: opening, and that "model" says what the model says. */
#include "measure/backends/backend.h"

#include "machines.h"
#include "owned.h"

OWNED(backend, struct tccl_backend, tccl_backend_close)

TEST(refused)
{
    struct tccl_backend *backend;
    struct tccl_backend_options options = {0};
    CHECK_INT(tccl_backend_open("abacus", &options, &backend, ERR), -1);
    CHECK(backend == NULL);
    CHECK_HOLDS(check_err.text, "no back end \"abacus\" in this build: it has model");
    CHECK_SAYS(tccl_backend_open("model", &options, &backend, ERR) == -1, "--model FILE");
    options.model = "/nonexistent/model.json";
    CHECK_SAYS(tccl_backend_open("model", &options, &backend, ERR) == -1, options.model);
    options.model = check_at("README.md");
    check_write_file(options.model, "no model");
    CHECK_SAYS(tccl_backend_open("model", &options, &backend, ERR) == -1, "README.md:1:");
    tccl_backend_close(NULL);
}

static void compare(struct tccl_backend *backend, const struct tccl_model *model)
{
    struct tccl_measurement measured, again;
    struct tccl_set set = {0};
    double gbps;
    for (int n = 1 + rand() % 10; n > 0; n--)
        tccl_set_add(&set, random_transfer(backend->machine));
    CHECK_INT(tccl_backend_measure(backend, &set, &measured, ERR), 0);
    CHECK_INT(tccl_backend_measure(backend, &set, &again, ERR), 0);
    CHECK_INT(tccl_model_measure(model, &set, &gbps, NULL, NULL, ERR), 0);
    CHECK(measured.gbps == gbps && again.gbps == gbps && measured.spread == 0 && gbps > 0);
}

static void test_model(const char *name)
{
    const struct tccl_backend_options options = {.model = machine_file(name)};
    owned(backend) struct tccl_backend *backend = NULL;
    owned(model) struct tccl_model *model;
    char id[TCCL_HASH_HEX], own[TCCL_HASH_HEX];
    CHECK_INT(tccl_model_read(options.model, &model, ERR), 0);
    CHECK_INT(tccl_backend_open("model", &options, &backend, ERR), 0);
    CHECK_STR(backend->name, "model");
    CHECK(backend->noise == 0 && backend->symmetry != NULL);
    CHECK(json_object_get(backend->model, "machine") != NULL);
    tccl_machine_id(backend->machine, id);
    tccl_machine_id(tccl_model_machine(model), own);
    CHECK_STR(id, own);
    for (int i = 0; i < 100; i++)
        compare(backend, model);
}

TEST(impossible)
{
    const struct tccl_backend_options options = {.model = machine_file("amd-4gpu")};
    struct tccl_measurement measured;
    owned(backend) struct tccl_backend *backend = NULL;
    struct tccl_set set = parse_set("g0>g7");
    CHECK_INT(tccl_backend_open("model", &options, &backend, ERR), 0);
    CHECK_INT(tccl_backend_measure(backend, &set, &measured, ERR), 1);
    CHECK(check_err.text[0]);
}

TEST(models)
{
    test_model("amd-4gpu");
    test_model("epyc-8gpu-unequal");
}
