/* tccl.conf, plugstack arguments, and node lists. */
#include "client/conf.h"
#include "client/hostlist.h"
#include "fuzz.h"

static void check_conf(const struct tccl_conf *conf)
{
    FUZZ_CHECK(conf->socket[0] == '/' && conf->run_dir[0] == '/' && conf->cache_dir[0] == '/');
    FUZZ_CHECK(conf->port > 0 && conf->timeout_ms >= 10 && conf->require_timeout_ms >= 10);
    for (int i = 0; i < conf->n_peers; i++)
        FUZZ_CHECK(conf->peers[i].node[0] && conf->peers[i].host[0] && conf->peers[i].port &&
                   conf->peers[i].down >= 0);
}

static void override(const char *text)
{
    cleared_by(tccl_conf_clear) struct tccl_conf conf = {0};
    if (tccl_conf_read(NULL, "n1", &conf, ERR) == 0 && tccl_conf_override(&conf, text, ERR) == 0)
        check_conf(&conf);
}

static void expand(const char *text)
{
    cleared_by(tccl_hosts_clear) struct tccl_hosts hosts = {0};
    if (tccl_hosts_expand(text, 1000, &hosts, ERR) == 0)
        FUZZ_CHECK(hosts.count <= 1000);
    else
        FUZZ_CHECK(check_err.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_free char *text = fuzz_text(data, size);
    cleared_by(tccl_conf_clear) struct tccl_conf conf = {0};
    char path[FUZZ_PATH];
    int fd = fuzz_file(data, size, path);
    if (tccl_conf_read(path, "n1", &conf, ERR) == 0)
        check_conf(&conf);
    else
        FUZZ_CHECK(strstr(check_err.text, path));
    override(text);
    expand(text);
    close(fd);
    return 0;
}

FUZZ_SEEDS("[tccl]\nSocket=/run/tccl/%n.sock\nPort=8517\nTimeout=250ms ; short\nRequireTimeout=5s\n"
           "AccountingHost=head\nAdmins=a,b\n[policy]\nDefault=auto\nMinNodes=2\n"
           "MinGpus=8\nPartitions=gpu,dgx\n[peers]\nn[1-4]=127.0.0.1:18001-18004\nh=::1\n",
           "[peers]\nn[1-4]=h[1-4]:8517\nx=[fe80::1]:99\nn[2,9]=down\n",
           ("[policy a]\nPartitions=gpu,d*\nQos=x[1-3]\nNodeList=n[1-4]\nNodes=2-8\nGpus=4-\n"
            "GpuTypes=A100 SXM\nForbid=yes\nMinGain=1.05x\nEnvironment=NCCL_X=a=b\n[policy b]\n"),
           "Timeout=1min", "Machine=/var/lib/%h/%%/machine.json", "n[1-3,7,009-011],head,x[1-2]y")
