/* The sample configuration: it is short, it is read without a complaint, all its keys exist, and
 * what it says of built-in values is so. argv: the sample, the plugstack sample. */
#include "client/conf.h"

#include "base/fileio.h"
#include "check.h"

/* "#Key=value" -> "Key=value" */
static size_t uncomment(const char *text, char *out)
{
    size_t used = 0;
    for (const char *at = text; *at; at++) {
        bool begins = at == text || at[-1] == '\n';
        bool key = begins && *at == '#' && at[1] >= 'A' && at[1] <= 'Z';
        if (!key)
            out[used++] = *at;
    }
    out[used] = '\0';
    return used;
}

static void check_same(const struct tccl_conf *a, const struct tccl_conf *b)
{
    CHECK_STR(a->socket, b->socket);
    CHECK_STR(a->run_dir, b->run_dir);
    CHECK_STR(a->cache_dir, b->cache_dir);
    CHECK_STR(a->state_dir, b->state_dir);
    CHECK_STR(a->machine, b->machine);
    CHECK_STR(a->shim, b->shim);
    CHECK_STR(a->container_shim, b->container_shim);
    CHECK_STR(a->munge_socket, b->munge_socket);
    CHECK_STR(a->bind_addr, b->bind_addr);
    CHECK_STR(a->accounting_host, b->accounting_host);
    CHECK_STR(a->tccld_user, b->tccld_user);
    CHECK_STR(a->munge_user, b->munge_user);
    CHECK_STR(a->slurm_user, b->slurm_user);
    CHECK_INT(a->port, b->port);
    CHECK_INT(a->timeout_ms, b->timeout_ms);
    CHECK_INT(a->require_timeout_ms, b->require_timeout_ms);
    CHECK_INT(a->policy.mode, b->policy.mode);
    CHECK_INT(a->policy.min_nodes, b->policy.min_nodes);
    CHECK_INT(a->policy.min_gpus, b->policy.min_gpus);
    CHECK_INT(a->n_peers, b->n_peers);
}

/* What most sites set stands there. All other keys: test-manuals wants them in tccl.conf(5). */
static void check_keys(const char *sample)
{
    static const char *const keys[] = {"AccountingHost", "KeepRecords", "MetricsFile", "Default",
                                       "Partitions"};
    int lines = 0;
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        CHECK_HOLDS(sample, check_printf("\n#%s=", keys[i]));
    for (const char *at = sample; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    CHECK(lines <= 12);
}

TEST(samples)
{
    cleared_by(tccl_conf_clear) struct tccl_conf built_in = {0}, read = {0}, all = {0};
    cleanup_free char *sample = NULL, *plugstack = NULL;
    const char *path = check_at("tccl.conf");
    size_t size = 0;
    CHECK_OK(tccl_conf_read(check_args[1], "n1", &read, ERR));
    CHECK_OK(tccl_conf_read(NULL, "n1", &built_in, ERR));
    check_same(&read, &built_in);
    CHECK_OK(tccl_read_file(check_args[1], 1 << 16, &sample, &size, ERR));
    cleanup_free char *text = malloc(size + 1);
    size = uncomment(sample, text);
    CHECK_OK(tccl_write_file(path, 0600, text, size, ERR));
    CHECK_OK(tccl_conf_read(path, "n1", &all, ERR));
    check_same(&all, &built_in);
    check_keys(sample);
    CHECK_OK(tccl_read_file(check_args[2], 1 << 16, &plugstack, &size, ERR));
    CHECK(strstr(plugstack, "\noptional spank_tccl.so\n") != NULL);
}
