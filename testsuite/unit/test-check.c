/* What tccl-check reads: results, slurm.conf, plugstack.conf, other programs' output. */
#include "base/clock.h"
#include "base/command.h"
#include "check.h"
#include "check/check-items.h"
#include "gres/gres.h"
#include "gres/slurm-conf.h"

static const char *put(const char *name, const char *text)
{
    const char *path = check_at("%s", name);
    check_write_file(path, text);
    return path;
}

TEST(results)
{
    struct check_result result = {0};
    CHECK_INT(result.level, CHECK_OK);
    check_say(&result, CHECK_OK, "all is %s", "well");
    CHECK_STR(check_text(&result), "all is well");
    check_say(&result, CHECK_FAIL, "line\nof \033[31mred");
    check_say(&result, CHECK_WARN, "not shown");
    check_say(&result, CHECK_FAIL, "more \x9b \xc2\x9b é");
    CHECK_INT(result.level, CHECK_FAIL);
    CHECK_STR(check_text(&result), "line?of ?[31mred; more ? ?? é");
    for (int i = 0; i < 2000; i++)
        check_say(&result, CHECK_FAIL, "%d", i);
    CHECK(strlen(check_text(&result)) < CHECK_TEXT);
    struct check_result odd = {0};
    check_say(&odd, CHECK_WARN, "bytes \xff\xfe: do");
    cleanup_json json_t *json = check_to_json("item", &odd);
    CHECK_STR(json_string_value(json_object_get(json, "level")), "warn");
    CHECK_STR(json_string_value(json_object_get(json, "text")), "bytes ??: do");
}

TEST(gpus)
{
    CHECK_INT(tccl_slurm_gpus("gpu:4"), 4);
    CHECK_INT(tccl_slurm_gpus("gpu"), 1);
    CHECK_INT(tccl_slurm_gpus("gpu:a100"), 1);
    CHECK_INT(tccl_slurm_gpus("gpu:a100:8(S:0-1)"), 8);
    CHECK_INT(tccl_slurm_gpus("shard:16,gpu:a:2(S:0,1),gpu:b:3(IDX:0,2)"), 5);
    CHECK_INT(tccl_slurm_gpus("gpux:4,mps:100"), 0);
    CHECK_INT(tccl_slurm_gpus("(null)"), 0);
    CHECK_INT(tccl_slurm_gpus(""), 0);
    CHECK(tccl_slurm_gpus("gpu:2147483647,gpu:2147483647,gpu:99999999999999999999") > 0);
    CHECK(tccl_slurm_lists("task/affinity,task/cgroup", "task/cgroup"));
    CHECK(!tccl_slurm_lists("task/cgroups", "task/cgroup"));
    CHECK(!tccl_slurm_lists(NULL, "x"));
    CHECK(!tccl_slurm_lists("", "x"));
}

static int collect(void *context, const struct tccl_slurm_node *node)
{
    char *text = context;
    sprintf(text + strlen(text), "%s@%s:%d ", node->name, node->hostname, node->gpus);
    return 0;
}

TEST(slurm_conf)
{
    struct tccl_slurm_conf conf;
    char nodes[512] = "";
    put("more.conf", "PluginDir=/b:/c\nNodeName=DEFAULT Gres=gpu:2\n");
    const char *path = put("slurm.conf", "# PluginDir=/no\n"
                                         "plugindir=/a # comment\n"
                                         "Prolog=\"/with blank\"   Epilog=/none\r\n"
                                         "TaskPlugin = task/cgroup\n"
                                         "include more.conf\n"
                                         "Include nothing.conf\n"
                                         "NodeName=n[1-2] NodeHostname=h[1-2] \\\n"
                                         "   Port=1-2\n"
                                         "NodeName=big gres=\"gpu:a:8(S:0-1)\" CPUs=4\n"
                                         "NodeName=x[1-2] NodeHostname=one Gres=craynetwork:4\n"
                                         "lonely\n=nothing\n\n");
    CHECK_INT(tccl_slurm_conf_read(path, &conf, ERR), 0);
    CHECK_STR(tccl_slurm_get(&conf, "PLUGINDIR"), "/b:/c");
    CHECK_STR(tccl_slurm_get(&conf, "Prolog"), "/with blank");
    CHECK_STR(tccl_slurm_get(&conf, "TaskPlugin"), "task/cgroup");
    CHECK(!tccl_slurm_get(&conf, "lonely"));
    CHECK_INT(tccl_slurm_nodes(&conf, collect, nodes), 5);
    CHECK_STR(nodes, "n1@h1:2 n2@h2:2 big@big:8 x1@one:0 x2@one:0 ");
    tccl_slurm_conf_clear(&conf);
    CHECK_SAYS(tccl_slurm_conf_read(check_at("missing"), &conf, ERR) == -1, "missing");
    tccl_slurm_conf_clear(&conf);
    /* A file that includes itself ends. */
    path = put("loop.conf", "Include loop.conf\nA=1\n");
    CHECK_INT(tccl_slurm_conf_read(path, &conf, NULL), 0);
    CHECK_STR(tccl_slurm_get(&conf, "A"), "1");
    tccl_slurm_conf_clear(&conf);
    /* Files that include each other many times are refused, in time. */
    put("many2.conf", "include many*.conf\ninclude many*.conf\ninclude many*.conf\n");
    path = put("many1.conf", "include many*.conf\ninclude many*.conf\ninclude many*.conf\n");
    CHECK_SAYS(tccl_slurm_conf_read(path, &conf, ERR) == -1, "include each other");
    tccl_slurm_conf_clear(&conf);
    struct tccl_plugstack stack;
    CHECK_INT(tccl_plugstack_read(path, &stack, NULL), 0);
    CHECK(*stack.closed);
}

/* Whatever stands in the file, it is read or refused. */
TEST(any_conf)
{
    static const char letters[] = "NodeName=ab[1-3],\\\n \t\"#=Gresgpu:4()include\r";
    char text[400];
    for (int round = 0; round < 500; round++) {
        cleared_by(tccl_slurm_conf_clear) struct tccl_slurm_conf conf = {0};
        struct tccl_plugstack stack;
        size_t size = (size_t)rand() % sizeof(text);
        for (size_t i = 0; i < size; i++)
            text[i] = letters[(size_t)rand() % (sizeof(letters) - 1)];
        text[size ? size - 1 : 0] = '\0';
        const char *path = put("any.conf", text);
        CHECK_INT(tccl_slurm_conf_read(path, &conf, NULL), 0);
        CHECK_INT(tccl_plugstack_read(path, &stack, NULL), 0);
        tccl_slurm_gpus(text);
    }
}

TEST(plugstack)
{
    struct tccl_plugstack stack;
    mkdir(check_at("d"), 0755);
    put("d/b.conf", "required /opt/spank_tccl.so config=/b\n");
    put("d/a.conf", "# optional spank_tccl.so\n\toptional   spank_tccl.so\tTimeout=1s config=/x "
                    "config=/y #z\n");
    const char *path = put("plugstack.conf", "optional other.so spank_tccl.so\n"
                                             "include none/*.conf\n"
                                             "optional\n"
                                             "include d/*.conf\n");
    CHECK_INT(tccl_plugstack_read(path, &stack, ERR), 0);
    CHECK(stack.there && stack.found && !stack.required);
    CHECK_INT(stack.times, 2);
    CHECK_INT(stack.line, 2);
    CHECK_STR(stack.file, check_at("d/a.conf"));
    CHECK_STR(stack.plugin, "spank_tccl.so");
    CHECK_INT(stack.n_args, 3);
    CHECK_STR(tccl_plugstack_config(&stack), "/y");
    CHECK_STR(stack.empty, check_at("none/*.conf"));
    CHECK_STR(stack.wrong, "line 3 of plugstack.conf");
    CHECK(stack.changed > time(NULL) - 3600);
    CHECK_INT(tccl_plugstack_read(check_at("nowhere"), &stack, ERR), 0);
    CHECK(!stack.there && !stack.found);
    CHECK(!tccl_plugstack_config(&stack));
    CHECK_INT(tccl_plugstack_read(check_folder(), &stack, ERR), -1);
    /* A file that includes itself ends. */
    CHECK_INT(tccl_plugstack_read(put("self.conf", "include self.conf\n"), &stack, NULL), 0);
}

TEST(run)
{
    static struct tccl_command_output output;
    const char *const talk[] = {"sh", "-c", "echo out; echo err >&2; exit 3", NULL};
    const char *const much[] = {"sh", "-c", "yes | head -c 300000", NULL};
    const char *const none[] = {"tccl-no-such-program", NULL};
    const char *const hang[] = {"sleep", "100", NULL};
    const char *const closed[] = {"sh", "-c", "exec >/dev/null 2>&1; exec sleep 100", NULL};
    int64_t later = tccl_now_ms() + 60000;
    CHECK_INT(tccl_command_run(talk, NULL, later, &output), 3);
    CHECK_STR(output.out, "out\n");
    CHECK_STR(output.err, "err\n");
    CHECK_INT(tccl_command_run(much, NULL, later, &output), 0);
    CHECK_INT(strlen(output.out), sizeof(output.out) - 1);
    CHECK_INT(tccl_command_run(none, NULL, later, &output), TCCL_COMMAND_NONE);
    CHECK_INT(tccl_command_run(hang, NULL, tccl_now_ms() + 50, &output), TCCL_COMMAND_LATE);
    CHECK_INT(tccl_command_run(closed, NULL, tccl_now_ms() + 200, &output), TCCL_COMMAND_LATE);
    CHECK(tccl_command_exists("sh"));
    CHECK(!tccl_command_exists("tccl-no-such-program"));
}

/* However long it takes from the first line to the last. */
TEST(run_until)
{
    int64_t now = tccl_now_ms();
    int64_t usual = check_run_until(now + 9500, 3000);
    int64_t patient = check_run_until(now + 600000, 3000);
    CHECK(usual >= now + 3000 && usual <= now + 9500);
    CHECK(patient >= now + 180000 && patient <= now + 600000);
    CHECK_INT(check_run_until(now + 1000, 3000), now + 1000);
    CHECK_INT(check_run_until(now - 1000, 3000), now - 1000);
}

/* Programs of whoever may write to the check_folder() that we are in, or to one in PATH, are not
 * run. */
TEST(path)
{
    static struct tccl_command_output output;
    const char *const ask[] = {"tccl-test-program", NULL};
    int64_t later = tccl_now_ms() + 60000;
    const char *before = getenv("PATH");
    char path[128], *copy = strdup(before ? before : "");
    CHECK_INT(chmod(put(ask[0], "#!/bin/sh\nexit 5\n"), 0755), 0);
    CHECK_INT(chdir(check_folder()), 0);
    for (int all = 0; all < 2; all++) {
        CHECK_INT(chmod(check_folder(), all ? 0777 : 0755), 0);
        snprintf(path, sizeof(path), "/nowhere:%s:/bin", check_folder());
        const char *const paths[] = {"", ".", "/bin:", ":/bin", "./", "../tmp/.", path, NULL};
        for (int i = 0; paths[i]; i++) {
            bool run = paths[i] == path && !all;
            setenv("PATH", paths[i], 1);
            CHECK_INT(tccl_command_run(ask, NULL, later, &output), run ? 5 : TCCL_COMMAND_NONE);
            CHECK_INT(tccl_command_exists(ask[0]), run);
        }
    }
    unsetenv("PATH");
    CHECK_INT(tccl_command_run(ask, NULL, later, &output), TCCL_COMMAND_NONE);
    setenv("PATH", copy, 1);
    free(copy);
    CHECK_INT(chdir("/"), 0);
}

/* A program named slurmd that sleeps, with this slurm.conf in its environment and more on its
 * command line. */
static pid_t start_slurmd(const char *program, const char *conf, const char *option,
                          const char *value)
{
    pid_t pid = fork();
    setpgid(pid, 0); /* so that its sleep ends with it */
    if (pid == 0) {
        setenv("SLURM_CONF", conf, 1);
        execl(program, "slurmd", "-c", "sleep 100; :", option, value, (char *)NULL);
        _exit(1);
    }
    return pid;
}

/* One that only says its version, as we ask it to ourselves, serves no node. */
TEST(slurmd)
{
    struct tccl_slurmd found;
    const char *program = check_at("slurmd"), *conf = check_at("of-slurmd.conf");
    CHECK_INT(system(check_printf("cp /bin/sh %s && : >%s", program, conf)), 0);
    for (int says = 0; says < 2; says++) {
        pid_t pid = start_slurmd(program, conf, says ? "-V" : "-D", NULL);
        bool there = false;
        for (int i = 0; i < (says ? 20 : 3000) && !there; i++) {
            there = tccl_slurmd_find("n1", conf, 0, &found, NULL) == 0;
            usleep(20000);
        }
        CHECK_INT(there, !says);
        CHECK(!there || found.pid == pid);
        kill(-pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    unlink(program);
    unlink(conf);
}

/* A file as a user's job would find it, told by root. */
TEST(open)
{
    char closed[PATH_MAX], real[PATH_MAX];
    CHECK(realpath(check_folder(), real) && chmod(check_folder(), 0755) == 0);
    CHECK(mkdir(check_at("open"), 0711) == 0 && chmod(check_at("open"), 0711) == 0);
    const char *file = put("open/file", "x");
    CHECK(chmod(file, 0644) == 0);
    CHECK(symlink(file, check_at("link")) == 0);
    CHECK(check_open_to_all(file, closed) && check_open_to_all(check_at("link"), closed));
    CHECK(check_open_to_all(check_at("nothing"), closed));
    CHECK(chmod(file, 0640) == 0);
    CHECK(!check_open_to_all(check_at("link"), closed));
    CHECK(strncmp(closed, real, strlen(real)) == 0);
    CHECK_STR(closed + strlen(real), "/open/file");
    CHECK(chmod(file, 0644) == 0 && chmod(check_at("open"), 0700) == 0);
    CHECK(!check_open_to_all(check_at("link"), closed));
    CHECK_STR(closed + strlen(real), "/open");
}
