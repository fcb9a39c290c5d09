/* test-conf.c: tccl.conf, good and bad, and node lists. */
#include <pwd.h>

#include "client/conf.h"
#include "client/hostlist.h"
#include "client/policy.h"
#include "client/users.h"
#include "each-text.h"

static char path[PATH_MAX];

static struct tccl_conf conf; /* what was read last */

static struct tccl_conf *fresh(void)
{
    tccl_conf_clear(&conf);
    return &conf;
}

AFTER
{
    fresh();
}

static int read_text(const char *text, struct tccl_error *err)
{
    cleanup_file FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fflush(file) == 0);
    return tccl_conf_read(path, "n1", fresh(), err);
}

/* The text is refused at the line, and the message holds what is wrong and what is allowed. */
static void check_bad(const char *text, int line, const char *said)
{
    char place[PATH_MAX + 16];
    snprintf(place, sizeof(place), "%s:%d: ", path, line);
    CHECK_INT(read_text(text, ERR), -1);
    CHECK_NO(strncmp(check_err.text, place, strlen(place)) != 0 || !strstr(check_err.text, said),
             "for '%s': got '%s', expected '%s…%s'\n", text, check_err.text, place, said);
}

/* Each of the values, with | between them, is refused in the line, which is the second one. */
static void check_bad_values(const char *line, const char *values, const char *said)
{
    EACH_TEXT(value, values)
        check_bad(check_printf("%s=%s\n", line, value), 2, said);
}

TEST(defaults)
{
    CHECK_INT(read_text("", ERR), 0);
    CHECK_STR(conf.node, "n1");
    CHECK_STR(conf.path, path);
    CHECK_STR(conf.socket, TCCL_RUNSTATEDIR "/tccl/tccld.sock");
    CHECK_STR(conf.machine, TCCL_LOCALSTATEDIR "/lib/tccl/machine.json");
    CHECK_STR(conf.accounting_host, "");
    CHECK_STR(conf.slurm_user, "slurm");
    CHECK_INT(conf.port, 8517);
    CHECK_INT(conf.timeout_ms, 30000);
    CHECK_INT(conf.auto_timeout_ms, 2000);
    CHECK_INT(conf.require_timeout_ms, 60000);
    CHECK_INT(conf.alive_timeout_ms, 3000);
    CHECK_INT(conf.max_rings, 8);
    CHECK(conf.achieved && conf.keep_days[0] == 0 && conf.keep_days[1] == 0);
    CHECK_INT(conf.policy.mode, TCCL_MODE_OFF);
    CHECK(conf.admins == NULL && conf.policy.partitions == NULL && conf.peers == NULL);
}

TEST(all_keys)
{
    int rc = read_text(
        "# a comment\n; another\n[tccl]\n  Socket = /run/x/%n.sock   # said here\n"
        "RunDir=/run/x/%n\nCacheDir=/c/100%%\nstatedir=/s/%n\nShim=/l/shim.so\n"
        "MungeSocket=/run/munge/m.sock\nBindAddr=10.0.0.1 ; inline\nPort=18001\n"
        "AccountingHost=n4\nTccldUser=tccl\nMungeUser=0\nSlurmUser=990\nAdmins=ann,bob\n"
        "Timeout=250ms\nAutoTimeout=100ms\nRequireTimeout=1min\nAliveTimeout=4s\nMaxRings=4\n"
        "Achieved=OFF\n"
        "KeepRecords=730d,misdated=7d\n"
        "[policy]\nDefault=AUTO\nMinNodes=2\nMinGpus=8\nPartitions=gpu,big\n",
        ERR);
    CHECK_INT(rc, 0);
    CHECK_STR(check_err.text, "");
    CHECK_STR(conf.socket, "/run/x/n1.sock");
    CHECK_STR(conf.run_dir, "/run/x/n1");
    CHECK_STR(conf.cache_dir, "/c/100%");
    CHECK_STR(conf.state_dir, "/s/n1");
    CHECK_STR(conf.machine, "/s/n1/machine.json");
    CHECK_STR(conf.shim, "/l/shim.so");
    CHECK_STR(conf.munge_socket, "/run/munge/m.sock");
    CHECK_STR(conf.bind_addr, "10.0.0.1");
    CHECK_INT(conf.port, 18001);
    CHECK_STR(conf.accounting_host, "n4");
    CHECK_STR(conf.tccld_user, "tccl");
    CHECK_STR(conf.munge_user, "0");
    CHECK_STR(conf.slurm_user, "990");
    CHECK_STR(conf.admins, "ann,bob");
    CHECK_INT(conf.timeout_ms, 250);
    CHECK_INT(conf.auto_timeout_ms, 100);
    CHECK_INT(conf.alive_timeout_ms, 4000);
    CHECK_INT(conf.max_rings, 4);
    CHECK(!conf.achieved && conf.keep_days[0] == 730 && conf.keep_days[1] == 7);
    CHECK_INT(conf.require_timeout_ms, 60000);
    CHECK_INT(conf.policy.mode, TCCL_MODE_AUTO);
    CHECK_INT(conf.policy.min_nodes, 2);
    CHECK_INT(conf.policy.min_gpus, 8);
    CHECK_STR(conf.policy.partitions, "gpu,big");
}

TEST(named_policies)
{
    CHECK_OK(read_text("[policy big-1]\nPartitions=gpu,d*\nAccounts=a\nAccounts=b\nQos=normal\n"
                       "Users=ann,DOM\\bob\nJobNames=my job*,x[1-3]\nNodeList=n[1-3]\n"
                       "NodeList=m1\nNodes=2-8\nGpus=4-\nGpuTypes=A100 SXM,h100\n"
                       "default=On\nForbid=no\nTimeout=2s\nRequireTimeout=20s\nMinGain=1.075x\n"
                       "Trial=0.5%\n"
                       "MaxRings=1\nMinNodes=2\nMinGpus=3\nTrafficClass=106/"
                       "3\nEnvironment=NCCL_X=a b=c\n"
                       "Environment=NCCL_Y=1\nEnvironment=NCCL_X=2\n[tccl]\nTimeout=3s\n"
                       "[Policy empty]\n[POLICY Last]\nNodes=3\n",
                       ERR));
    CHECK_INT(conf.n_policies, 3);
    const struct tccl_policy *big = &conf.policies[0];
    CHECK_STR(big->name, "big-1");
    CHECK_STR(big->partitions, "gpu,d*");
    CHECK_STR(big->accounts, "a,b");
    CHECK_STR(big->qos, "normal");
    CHECK_STR(big->users, "ann,DOM\\bob");
    CHECK_STR(big->job_names, "my job*,x[1-3]");
    CHECK_STR(big->node_list, "n[1-3],m1");
    CHECK_STR(big->gpu_types, "a100_sxm,h100");
    CHECK(big->nodes.min == 2 && big->nodes.max == 8);
    CHECK(big->gpus.min == 4 && big->gpus.max == INT_MAX);
    CHECK(big->mode == TCCL_MODE_ON && big->forbid == 0 && big->min_gain == 1075);
    CHECK(big->trial == 500 && conf.policy.trial == 0);
    CHECK(big->traffic_class.tc == 106 && big->traffic_class.sl == 3);
    CHECK(conf.policies[1].traffic_class.tc == TCCL_NOT_SET);
    CHECK(big->timeout_ms == 2000 && big->require_timeout_ms == 20000);
    CHECK(big->min_nodes == 2 && big->min_gpus == 3);
    CHECK(big->max_rings == 1 && conf.policies[1].max_rings == TCCL_NOT_SET);
    CHECK_INT(big->n_environment, 2);
    CHECK_STR(big->environment[0], "NCCL_X=2");
    CHECK_STR(big->environment[1], "NCCL_Y=1");
    CHECK_STR(conf.policies[1].name, "empty");
    CHECK(conf.policies[1].mode == TCCL_NOT_SET && conf.policies[1].nodes.max == 0);
    CHECK_STR(conf.policies[2].name, "Last");
    CHECK_INT(conf.policies[2].nodes.max, 3);
    CHECK_INT(conf.timeout_ms, 3000);
    CHECK_INT(conf.policy.mode, TCCL_MODE_OFF);
}

/* A file with so many policies, each with an empty body. */
static int read_many(int policies, struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; i < policies; i++)
        fprintf(out, "[policy p%d]\n", i);
    fclose(out);
    return read_text(text, err);
}

TEST(bad_policies)
{
    check_bad("[policy a]\nNodes=1\n[policy b]\n[policy A]\n", 4, "there is a [policy a] already");
    check_bad("[policy a b]\n", 1, "a policy's name has 1 to 32 letters");
    check_bad("[policy ]\n", 1, "a policy's name has 1 to 32 letters");
    check_bad("[policy a1234567890123456789012345678901x]\nNodes=2\n", 1, "1 to 32 letters");
    check_bad("[policies]\nNodes=2\n", 1, "unknown section [policies]; there are");
    check_bad("[policy a]\nPort=1\n", 2, "'Port' is a key of [tccl]");
    check_bad("[policy]\nUsers=ann\n", 2, "'Users' is a key of [policy NAME]");
    check_bad_values("[policy a]\nNodes", "0|3-2|-3|2-x|70000|2-3-4",
                     "give a number, or a range such as 2-8 or 4-, from 1 to 65536");
    check_bad("[policy a]\nGpus=\n", 2, "from 1 to 1048576");
    check_bad_values("[policy a]\nPartitions", "|a,,b", "names or shell patterns");
    check_bad("[policy a]\nUsers=a, b\n", 2, "no spaces or quotes around them");
    check_bad("[policy a]\nJobNames=a[b\n", 2, "names or shell patterns");
    check_bad("[policy a]\nNodeList=n[1-\n", 2, "NodeList");
    check_bad("[policy a]\nNodeList=\n", 2, "node names");
    check_bad("[policy a]\nGpuTypes=a*\n", 2, "no patterns");
    check_bad("[policy a]\nDefault=maybe\n", 2, "off, auto, on or require");
    check_bad("[policy a]\nForbid=1\n", 2, "yes or no");
    check_bad("[policy a]\nTimeout=5\n", 2, "a number with ms, s or min");
    check_bad_values("[policy a]\nTrial", "51%|5|-1%|nan%|0.0001%", "from 0% to 50%");
    check_bad("[policy a]\nMaxRings=9\n", 2, "from 1 to 8");
    check_bad("[policy]\nMaxRings=0\n", 2, "from 1 to 8");
    check_bad("[tccl]\nAchieved=yes\n", 2, "give on or off");
    check_bad_values("[tccl]\nKeepRecords",
                     "7|0d|7d,|7d,misdated|7d,misdated=|7d, 3d|forever,misdated=3|7d,misdated=0d|"
                     "foreverd||d",
                     "give a number of days");
    check_bad_values("[policy a]\nMinGain", "10%|1.1|0.9x|101x|1.x|1.2345x|x|-2x",
                     "from 1x to 100x, such as 1.1x for 10 % faster");
    check_bad_values("[policy a]\nTrafficClass", "256|/16|1/|/|1/2/3|-1|1 2|a|1/x|1/-2|99999999999",
                     "such as 106 or 106/3");
    check_bad_values("[policy a]\nEnvironment", "X|1X=2", "give NAME=value");
    check_bad_values("[policy a]\nEnvironment", "LD_PRELOAD=x|TCCL=on", "can't set this variable");
    check_bad("[policy a]\nEnvironment=TCCL_PLAN=/x\n", 2, "TCCL_ and SLURM_");
    check_bad("[policy a]\nEnvironment=X=a;b\n", 2, "';' or a control character");
    CHECK_INT(read_many(256, ERR), 0);
    CHECK_SAYS(read_many(257, ERR) == -1, ":257: there are more than 256 policies");
}

static void check_peer(const struct tccl_conf *conf, const char *node, const char *host, int port)
{
    const struct tccl_peer *peer = tccl_conf_peer(conf, node);
    CHECK(peer != NULL);
    if (!peer)
        return;
    CHECK_STR(peer->host, host);
    CHECK_INT(peer->port, port);
}

TEST(peers)
{
    CHECK_OK(read_text("[peers]\nn[1-4]=127.0.0.1:18001-18004\nm[08-10]=h[1-3]:9000\n"
                       "x=[fe80::1]:77\ny=other\nz,w=10.1.1.1:5\n[tccl]\nPort=999\n",
                       ERR));
    CHECK_INT(conf.n_peers, 11);
    check_peer(&conf, "n1", "127.0.0.1", 18001);
    check_peer(&conf, "n4", "127.0.0.1", 18004);
    check_peer(&conf, "m08", "h1", 9000);
    check_peer(&conf, "m10", "h3", 9000);
    check_peer(&conf, "x", "fe80::1", 77);
    check_peer(&conf, "y", "other", 999);
    check_peer(&conf, "w", "10.1.1.1", 5);
    CHECK(tccl_conf_peer(&conf, "n5") == NULL);
    CHECK_SAYS(read_text("[peers]\nn[1-2]=a:1\nn2=b:1\n", ERR) == -1, "names node n2 twice");
    check_bad("[peers]\nz=a\nn[1-3]=a:1\n\n# n2\nm=b\nn2=b:1\nz=c\n", 7,
              "names node n2 twice, first in line 3");
    check_bad("[peers]\nn[1-2],n1=a\n", 2, "names node n1 twice, first in line 2");
    check_bad("[peers]\nn1=down\nn1=a\n\nn[1-2]=Down\n", 5, "names node n1 twice, first in line");
    check_bad("[peers]\nn1=a\nn1=down\nn1=b\n", 4, "names node n1 twice, first in line");
}

static void check_down(const struct tccl_conf *conf, const char *node, int line)
{
    const struct tccl_peer *peer = tccl_conf_peer(conf, node);
    CHECK_INT(peer ? peer->down : 0, line);
}

/* Excluded from rings, with an address of their own or without, whichever line comes first. */
TEST(down)
{
    static char *names[] = {"m1", "n2", "n3", "n9", "x"};
    int more;
    CHECK_OK(read_text("[peers]\nn[2,9]=DOWN\nn[1-4]=127.0.0.1:18001-18004\nx=down:7\n"
                       "n4=down\n[tccl]\nPort=999\n",
                       ERR));
    CHECK_INT(conf.n_peers, 6);
    CHECK_INT(conf.n_down, 3);
    check_peer(&conf, "n2", "127.0.0.1", 18002);
    check_peer(&conf, "n4", "127.0.0.1", 18004);
    check_peer(&conf, "n9", "n9", 999);
    check_peer(&conf, "x", "down", 7);
    check_down(&conf, "n1", 0);
    check_down(&conf, "n2", 2);
    check_down(&conf, "n4", 5);
    check_down(&conf, "n9", 2);
    check_down(&conf, "x", 0);
    const struct tccl_peer *first = tccl_peer_down(&conf, names, 5, &more);
    CHECK_STR(first ? first->node : NULL, "n2");
    CHECK_INT(more, 1);
    CHECK(tccl_peer_down(&conf, names + 2, 1, &more) == NULL);
    CHECK_INT(more, 0);
}

/* What editors and habits from other formats bring along. */
TEST(habits)
{
    CHECK_OK(read_text("\xef\xbb\xbf[policy a]  ; said here\r\nDefault=on\r\n", ERR));
    CHECK(conf.n_policies == 1 && conf.policies[0].mode == TCCL_MODE_ON);
    check_bad("[policy a]\n[policy b] Default=on\n", 2, "text behind a section");
    check_bad("[policy a]\nJobNames=\"my job\"\n", 2, "no spaces or quotes around them");
    check_bad("[policy a]\nAccounts=x,'y'\n", 2, "no spaces or quotes around them");
    CHECK_INT(read_text("[policy a]\nJobNames=o'neill\n", ERR), 0);
}

/* Where users that are not known here are named. */
TEST(users)
{
    struct tccl_users users;
    char place[PATH_MAX + 64];
    CHECK_INT(read_text("[tccl]\nSlurmUser=tccl-nobody\nAdmins=root,4711\n", ERR), 0);
    CHECK_INT(tccl_conf_line(&conf, "Admins"), 3);
    CHECK_INT(tccl_conf_line(&conf, "TccldUser"), 0);
    CHECK_INT(tccl_conf_line(&conf, "nothing"), 0);
    CHECK_INT(tccl_users_find(&conf, &users, ERR), 0);
    const struct passwd *tccl = getpwnam("tccl"); /* the default, where there is such a user */
    CHECK(users.tccld == (tccl ? tccl->pw_uid : 0));
    CHECK(users.munge == 0 && users.slurm == (uid_t)-1);
    CHECK(users.n_admins == 2 && users.admins[0] == 0 && users.admins[1] == 4711);
    CHECK_INT(read_text("[tccl]\nAdmins=root\n\nadmins=root,tccl-nobody\n", ERR), 0);
    CHECK_INT(tccl_users_find(&conf, &users, ERR), -1);
    snprintf(place, sizeof(place), "%s:4: Admins=tccl-nobody: there is no such user here", path);
    CHECK_STR(check_err.text, place);
    CHECK_INT(tccl_conf_override(&conf, "Admins=tccl-nobody", ERR), 0);
    CHECK_FAILS(tccl_users_find(&conf, &users, ERR),
                "Admins=tccl-nobody: there is no such user here");
    CHECK_INT(read_text("[tccl]\n  TccldUser = tccl-nobody\n", ERR), 0);
    CHECK_INT(tccl_users_find(&conf, &users, ERR), -1);
    snprintf(place, sizeof(place), "%s:2: TccldUser=tccl-nobody: ", path);
    CHECK(strncmp(check_err.text, place, strlen(place)) == 0);
    CHECK_INT(read_text("[tccl]\nTccldUser=4712\nMungeUser=4713\n", ERR), 0);
    CHECK_INT(tccl_users_find(&conf, &users, ERR), 0);
    CHECK(users.tccld == 4712 && users.munge == 4713);
    CHECK_INT(read_text("[tccl]\nMungeUser=tccl-nobody\n", ERR), 0);
    CHECK_INT(tccl_users_find(&conf, &users, ERR), -1);
    snprintf(place, sizeof(place), "%s:2: MungeUser=tccl-nobody: ", path);
    CHECK(strncmp(check_err.text, place, strlen(place)) == 0);
}

TEST(bad_values)
{
    check_bad("[tccl]\nTimeout=5\n", 2, "Timeout=5: give a number with ms, s or min, from 10ms");
    check_bad_values("[tccl]\nTimeout", "9ms|6min|-1s|99999999999999999999s", "from 10ms to 300s");
    check_bad("[tccl]\nRequireTimeout=\n", 2, "from 10ms to 300s");
    check_bad("[tccl]\n\nPort=0\n", 3, "Port=0: give a whole number from 1 to 65535");
    check_bad_values("[tccl]\nPort", "65536|80x", "from 1 to 65535");
    check_bad_values("[tccl]\nSocket", "tccld.sock|", "a path that begins with '/'");
    check_bad_values("[tccl]\nStateDir", "/x/%q|/x/%", "%n is the node");
    check_bad("[tccl]\nSocket=/0123456789012345678901234567890123456789012345678901234567890"
              "123456789012345678901234567890123456789012345678901234567890\n",
              2, "at most 107 bytes");
    check_bad_values("[tccl]\nAccountingHost", "n[1-2]|../x", "the name of one node");
    check_bad("[tccl]\nTccldUser=\n", 2, "one user");
    check_bad("[tccl]\nSlurmUser=a b\n", 2, "one user");
    check_bad_values("[tccl]\nAdmins", "a,,b|a,|a b", "names with commas");
    check_bad("[tccl]\nGresOrder=pci\n", 2, "GresOrder");
    check_bad("[tccl]\nBindAddr=a/b\n", 2, "an address");
    check_bad("[policy]\nDefault=yes\n", 2, "off, auto, on or require");
    check_bad("[policy]\nMinNodes=0\n", 2, "from 1 to 65536");
    check_bad("[policy]\nMinGpus=many\n", 2, "from 1 to 1048576");
}

/* As the plugin reads it. */
static int read_own(const char *text, struct tccl_error *err)
{
    cleanup_file FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fflush(file) == 0);
    return tccl_conf_read_as(TCCL_CONF_PLUGIN, path, "n1", fresh(), err);
}

/* The plugin passes over keys that it doesn't know; a policy that has one holds for nobody. */
TEST(passed_over)
{
    char why[POLICY_WHY];
    const struct policy_facts facts = {.n_nodes = 1, .gpus = 4};
    CHECK_OK(read_own("[tccl]\nPort=8600\nSokket=/x\n[policy]\nDefualt=on\nMinNodes=2\n[policy a]\n"
                      "Qso=debug\nForbid=yes\n[policy b]\nDefault=auto\n[peers]\nn1=h1\n",
                      ERR));
    CHECK_INT(conf.passed_over, 3);
    CHECK_INT(conf.port, 8600);
    CHECK_INT(conf.policy.min_nodes, 2);
    CHECK_INT(conf.n_policies, 2);
    CHECK(!policy_matches(&conf.policies[0], &facts, why));
    CHECK(policy_matches(&conf.policies[1], &facts, why));
    CHECK(policy_matches(&conf.policy, &facts, why));
    CHECK_STR(policy_find(&conf, &facts).name, "b");
    CHECK_INT(read_own("[tccl]\nPort=8600\n", ERR), 0);
    CHECK_INT(conf.passed_over, 0);
    CHECK_INT(read_own("[tccl]\nPort=x\n", ERR), -1);
}

/* As tccl-check reads it: past mistakes, of which the first one is said. */
TEST(past)
{
    CHECK_INT(read_text("[tccl]\nPort=8600\n", ERR), 0);
    cleanup_file FILE *file = fopen(path, "w");
    CHECK(file &&
          fputs("[tccl]\nnothing\nPort=x\nPort=8600\nSokket=/x\n[policy a b]\nQos=x\n[what]\n"
                "Port=1\n[policy a] x\nQos=y\n[policy c]\nQos=z\n[peers]\nn2=h2\nn1=h1\nn3=a:b\n",
                file) >= 0 &&
          fflush(file) == 0);
    CHECK_INT(tccl_conf_read_as(TCCL_CONF_CHECK, path, "n1", fresh(), ERR), -1);
    CHECK_STR(check_err.text, check_printf("%s:2: neither [section] nor Key=value", path));
    CHECK_INT(conf.port, 8600);
    CHECK(conf.n_policies == 1 && !strcmp(conf.policies[0].qos, "z"));
    check_peer(&conf, "n1", "h1", 8600);
    check_peer(&conf, "n2", "h2", 8600);
    CHECK_INT(conf.n_peers, 2);
}

TEST(bad_forms)
{
    check_bad("[tccl]\nSokket=/x\n", 2, "unknown key 'Sokket': did you mean Socket?");
    check_bad("[tccl]\nacountinghost=x\n", 2, "did you mean AccountingHost?");
    check_bad("[policy]\nDefualt=on\n", 2, "did you mean Default?");
    check_bad("[policy]\nSocket=/x\n", 2, "'Socket' is a key of [tccl], not of this section");
    check_bad("[tccl]\nDefault=on\n", 2, "'Default' is a key of [policy], not of this section");
    check_bad("[policy]\nQos=a\n", 2, "'Qos' is a key of [policy NAME], not of this section");
    check_bad("[policy]\nPrefix=/x\n", 2, "unknown key 'Prefix'; known: Default MinNodes");
    check_bad("Port=1\n", 1,
              "is before any section; there are [tccl], [policy], [policy NAME], [peers]");
    check_bad("[tcld]\nPort=1\n", 1, "unknown section [tcld]");
    check_bad("[tccl]\nPort 1\n", 2, "neither [section] nor Key=value");
    check_bad("[tccl\nPort=1\n", 1, "neither [section] nor Key=value");
    check_bad("[tccl]\nPort=x\nnothing\n", 2, "from 1 to 65535");
    check_bad("[tccl]\nnothing\nPort=x\n", 2, "neither [section] nor Key=value");
    check_bad("[tccl]\nSocket=/a\n  Port=x\n", 3, "Port=x");
    char text[400] = "[tccl]\nRunDir=/";
    memset(text + strlen(text), 'a', 300);
    check_bad(text, 2, "longer than");
}

TEST(bad_peers)
{
    check_bad("[peers]\nn[1-4]=127.0.0.1:18001-18003\n", 2, "4 nodes, but 1 hosts and 3 ports");
    check_bad("[peers]\nn[1-4]=h[1-3]:1\n", 2, "4 nodes, but 3 hosts");
    check_bad("[peers]\nn[1-4=h:1\n", 2, "is not a node list");
    check_bad("[peers]\nn[4-1]=h:1\n", 2, "is not a node list");
    check_bad("[peers]\nn[1-99999999]=h:1\n", 2, "more than 65536 nodes");
    check_bad_values("[peers]\nn1", "h:0|h:65536|h:1-|::1|[::1|", "give NODE=HOST:PORT");
    check_bad("[peers]\n../n=h:1\n", 2, "is not a node list");
}

TEST(files)
{
    CHECK_SAYS(tccl_conf_read("/nonexistent/tccl.conf", "n1", fresh(), ERR) == -1,
               "/nonexistent/tccl.conf");
    CHECK_SAYS(tccl_conf_read(path, "../x", fresh(), ERR) == -1, "not the name of a node");
    cleanup_file FILE *file = fopen(path, "w");
    CHECK(file && fwrite("[tccl]\0Port=x\n", 1, 14, file) == 14 && fflush(file) == 0);
    CHECK_SAYS(tccl_conf_read(path, "n1", fresh(), ERR) == -1, "is not text");
}

TEST(override)
{
    CHECK_OK(read_text("", ERR));
    CHECK_OK(tccl_conf_override(&conf, "Timeout=1s", ERR));
    CHECK_INT(conf.timeout_ms, 1000);
    CHECK_OK(tccl_conf_override(&conf, "default=on", ERR));
    CHECK_INT(conf.policy.mode, TCCL_MODE_ON);
    CHECK_OK(tccl_conf_override(&conf, "StateDir=/s/%n", ERR));
    CHECK_STR(conf.machine, "/s/n1/machine.json");
    CHECK_OK(tccl_conf_override(&conf, "Machine=/m.json", ERR));
    CHECK_OK(tccl_conf_override(&conf, "StateDir=/t", ERR));
    CHECK_STR(conf.machine, "/m.json");
    CHECK_OK(tccl_conf_override(&conf, "Admins=a", ERR));
    CHECK_OK(tccl_conf_override(&conf, "Admins=b,c", ERR));
    CHECK_STR(conf.admins, "b,c");
    CHECK_SAYS(tccl_conf_override(&conf, "Nothing=1", ERR) == -1,
               "unknown key 'Nothing'; known: Socket");
    CHECK_FAILS(tccl_conf_override(&conf, "Timeout", ERR), "'Timeout' is not Key=value");
    CHECK_INT(conf.timeout_ms, 1000);
}

TEST(tool_path)
{
    unsetenv("TCCL_CONF");
    CHECK(tccl_conf_tool_path(NULL) == NULL);
    setenv("TCCL_CONF", "/env", 1);
    CHECK_STR(tccl_conf_tool_path(NULL), "/env");
    CHECK_STR(tccl_conf_tool_path("/option"), "/option");
    unsetenv("TCCL_CONF");
}

static void check_hosts(const char *text, const char *expanded, const char *folded)
{
    cleared_by(tccl_hosts_clear) struct tccl_hosts hosts = {0};
    char joined[1024] = "";
    CHECK_INT(tccl_hosts_expand(text, 100, &hosts, ERR), 0);
    for (size_t i = 0; i < hosts.count; i++) {
        if (i)
            strcat(joined, " ");
        strcat(joined, hosts.names[i]);
        CHECK(tccl_hosts_contain(text, hosts.names[i]));
    }
    CHECK_STR(joined, expanded);
    CHECK(!tccl_hosts_contain(text, "nobody"));
    cleanup_free char *fold = tccl_hosts_fold((const char *const *)hosts.names, hosts.count);
    CHECK_STR(fold, folded);
}

static void check_no_hosts(const char *text)
{
    struct tccl_hosts hosts;
    CHECK_INT(tccl_hosts_expand(text, 100, &hosts, ERR), -1);
    CHECK(check_err.text[0] != '\0' && hosts.names == NULL && !tccl_hosts_contain(text, "n-1"));
}

TEST(hostlists)
{
    check_hosts("", "", "");
    check_hosts("n1", "n1", "n1");
    check_hosts("n[1-3,7],login", "n1 n2 n3 n7 login", "n[1-3,7],login");
    check_hosts("n[08-11]", "n08 n09 n10 n11", "n[08-11]");
    check_hosts("n[8-11]", "n8 n9 n10 n11", "n[8-11]");
    check_hosts("n[1,01,001]", "n1 n01 n001", "n[1,01,001]");
    check_hosts("n[9,010,11-12]", "n9 n010 n11 n12", "n[9,010,11-12]");
    check_hosts("r[1-2]n[1-2]-ib", "r1n1-ib r1n2-ib r2n1-ib r2n2-ib", "r1n[1-2]-ib,r2n[1-2]-ib");
    check_hosts("n[3,1-2]", "n3 n1 n2", "n[3,1-2]");
    check_hosts("n[3-3]", "n3", "n3");
    check_hosts("n[999999999999999998-999999999999999999]",
                "n999999999999999998 n999999999999999999",
                "n[999999999999999998-999999999999999999]");
    CHECK(!tccl_hosts_contain("n[08-11]", "n8") && !tccl_hosts_contain("n[8-11]", "n08"));
    CHECK(!tccl_hosts_contain("n[1-4]", "n5") && !tccl_hosts_contain("n[1-4]", "n"));
    CHECK(tccl_hosts_contain("a,n[1-4]x", "n4x"));
    check_no_hosts("n[1-3");
    check_no_hosts("n[]");
    check_no_hosts("n[3-1]");
    check_no_hosts("n[1-x]");
    check_no_hosts("n[0-]");
    check_no_hosts("n[1000000000000000000]"); /* more digits than fit */
    check_no_hosts("n1,");
    check_no_hosts(",n1");
    check_no_hosts("n1]");
    check_no_hosts("n 1");
    check_no_hosts("n[1-101]");
    check_no_hosts("n[0-99][0-99][0-99][0-99]");
    check_no_hosts("n[0-999999999999999999][0-999999999999999999]");
    check_no_hosts("n[1][1][1][1][1]");
}

/* Random names fold to a list that expands to the same names. */
TEST(fold_round_trip)
{
    for (int round = 0; round < 200; round++) {
        char names[40][32];
        const char *pointers[40];
        size_t count = (size_t)rand() % 40 + 1;
        for (size_t i = 0; i < count; i++) {
            snprintf(names[i], sizeof(names[i]), "%c%0*d%s", 'a' + rand() % 2, rand() % 3,
                     rand() % 15, rand() % 8 ? "" : "-x");
            pointers[i] = names[i];
        }
        cleanup_free char *text = tccl_hosts_fold(pointers, count);
        cleared_by(tccl_hosts_clear) struct tccl_hosts hosts = {0};
        CHECK_OK(tccl_hosts_expand(text, 40, &hosts, ERR));
        CHECK_INT((long long)hosts.count, (long long)count);
        for (size_t i = 0; i < hosts.count; i++)
            CHECK_STR(hosts.names[i], names[i]);
    }
}

SETUP
{
    snprintf(path, sizeof(path), "%s", check_at("tccl.conf"));
}
