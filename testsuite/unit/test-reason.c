/* test-reason.c: every reason that the sources can put on record has its class. */
#include <ctype.h>
#include <limits.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "check.h"
#include "records/reason.h"

static void check_class(const char *reason, const char *word)
{
    if (strcmp(tccl_reason_class(reason), word) != 0)
        fprintf(stderr, "reason: %s\n", reason);
    CHECK_STR(tccl_reason_class(reason), word);
}

/* As they stand in records. */
static void test_texts(void)
{
    check_class("policy: 2 nodes in this step, MinNodes is 4", "policy");
    check_class("n1: policy: 2 GPUs in this step, MinGpus is 4", "policy");
    check_class("NCCL's own ring is as fast (12.0 GB/s)", "no gain");
    check_class("NCCL's own choice is faster (12.0 GB/s, the best ring found 11.0)", "no gain");
    check_class("NCCL's own choice is as good (20.0 GB/s, the best ring found 21.2: less than "
                "1.15x is not worth its risk)",
                "no gain");
    check_class("NCCL's own choice is as good (20.0 GB/s, the best ring found 22.8: but with it "
                "all-reduces of 8 KiB take 1.20x as long)",
                "no gain");
    check_class("n1: no GPU in this step", "no GPU");
    check_class("the job script used no GPUs together", "job script");
    check_class("n1: with --gpus-per-task=1 each task sees only its own GPUs (ConstrainDevices), "
                "and not every NCCL can build a ring then: use --gpus-per-node=4 without it",
                "own GPUs");
    check_class("n1: the step has shards of GPUs (--gres=shard), and rings are over whole GPUs: "
                "use --gpus-per-node",
                "shared GPU");
    check_class("n1: the step has a share of a GPU by MPS (--gres=mps), and rings are over whole "
                "GPUs: use --gpus-per-node",
                "shared GPU");
    check_class("NCCL 2.33.1: not known (2.21 to 2.32 are): update slurm-tccl, or use one of these",
                "unknown NCCL");
    check_class("n1: NCCL 2.17.1: not known (2.21 to 2.32 are)", "unknown NCCL");
    check_class("step spans heterogeneous components", "het step");
    check_class("n2: no description of this machine at /etc/m.json: run tccl-profile init",
                "no profile");
    check_class("n1: no profile of this machine in /var/cache/tccl (its id is 00): run "
                "tccl-profile run",
                "no profile");
    check_class("n1: no chains for GPUs 0,2: run tccl-profile run --gpus 0,2", "no profile");
    check_class("the profile of machine 0123abcd has no chain between NICs for these 4 GPUs: "
                "measure them with tccl-profile run --peer",
                "no profile");
    check_class("n1: GPU 9 is not in the profile's machine, which has 4 GPUs (/m.json)",
                "unknown GPU");
    check_class("n1: GPU 3 (/dev/nvidia3, 0000:c1:00.0) is not in the profile's machine, which has "
                "4 GPUs",
                "unknown GPU");
    check_class("n1: GPU 4 is not in slurmd's list, which has 4 (slurmd -G)", "unknown GPU");
    check_class("n1: GPU 0 is /dev/dri/card0, which is no device of NVIDIA's driver",
                "unknown GPU");
    check_class("n1: GPU 0 is /dev/nvidia0, of which the driver tells no bus id: is it dead?",
                "unknown GPU");
    check_class("n1: GPU 0 (/dev/nvidia0) has MIG instances: rings are over whole GPUs",
                "unknown GPU");
    check_class("n1: no slurmd runs here, so Slurm's numbers of GPUs mean nothing", "unknown GPU");
    check_class("n1: gres.conf has changed since slurmd was started: restart slurmd",
                "unknown GPU");
    check_class("n1: gres.conf or slurm.conf lists other GPUs than when slurmd was started: "
                "restart slurmd",
                "unknown GPU");
    check_class("n1: slurmd -G lists no GPU", "unknown GPU");
    check_class("n1: /usr/sbin/slurmd -G has not ended in time", "unknown GPU");
    check_class("n1: SLURM_STEP_GPUS: \"MIG-1\": column 1: no number or range below 32",
                "unknown GPU");
    check_class("no ring can be closed over these 3 nodes: a chain is missing, or NICs are on "
                "fabrics that do not meet",
                "no ring");
    check_class("n3: the step has not started there within 130 ms (a slow Prolog?) (and 2 more)",
                "late start");
    check_class(
        "n3: the step has started there, but its plugin has not spoken for 3 s: run tccl-check "
        "there",
        "configuration");
    check_class("n3: Slurm has no plugin there: there is no /etc/slurm/plugstack.conf",
                "configuration");
    check_class("n3: the step was sent a signal while it waited for its plan (cancelled or "
                "suspended)",
                "cancelled");
    check_class("n3: the step no longer waits for its plan (cancelled?)", "cancelled");
    check_class("n3: its tccld hung less than a minute ago, and is not waited for yet",
                "no answer in time");
    check_class("n3: tccld hangs: no answer within 300 ms", "no answer in time");
    check_class("n3: no word from its tccld within 300 ms", "no answer in time");
    check_class("n2: no plan came from n1: no answer within 300 ms (n1:8517)", "no answer in time");
    check_class("n1: tccld gave no answer within 500 ms", "no answer in time");
    check_class("n2: connection refused by 127.0.0.1:18002: is its tccld running?", "no daemon");
    check_class("n2: no plan came from n1: its tccld (127.0.0.1:1) closed the connection without "
                "an answer",
                "no daemon");
    check_class("n1: no tccld at /run/tccl/tccld.sock: No such file or directory", "no daemon");
    check_class("n9: its name n9 has no address: Name or service not known", "unreachable");
    check_class("n9: no connection to 10.0.0.9:8517: No route to host", "unreachable");
    check_class("n2: not asked: munge: Failed to access \"/run/munge\"", "munge");
    check_class("n2: message of version 2, this is version 1: update the older side", "version");
    check_class("n2: the node lists of this step do not match: node 1 of 2 here, 1 of 3 there",
                "node lists");
    check_class("tccld has 4096 steps under way", "overload");
    check_class("n2: its tccld closed the connection before its plan was sent", "plan lost");
    check_class("n1: the plan can't be written to /run/tccl: No space left on device", "plan lost");
    check_class("n1: the step no longer waited for its plan (cancelled, or tccld was late)",
                "cancelled");
    check_class("n1: order 41 61 81 in place of 41 81 61", "built differently");
    check_class("n1: network to 41: without GPUDirect", "built differently");
    check_class("n1: /var/cache/tccl/1/machine.json: \"gpus\" is empty", "bad profile");
    check_class("n1: /c/1/chains/00000003.chains: checksum does not match (altered or truncated); "
                "make it again",
                "bad profile");
    check_class("something else", "other");
    check_class("policy \"gpu\": rings are forbidden", "policy");
    check_class("our policy", "other");
    check_class("", "");
    CHECK_STR(tccl_reason_class(NULL), "");
    CHECK_INT(tccl_reason_number(""), -1);
    CHECK_STR(tccl_reason_word(-1), "");
    CHECK_STR(tccl_reason_word(TCCL_REASON_CLASSES), "");
    CHECK_STR(tccl_reason_word(TCCL_REASON_CLASSES - 1), "other");
}

/* Words are there once each, short, and numbers lead to them. */
static void test_words(void)
{
    for (int i = 0; i < TCCL_REASON_CLASSES; i++) {
        const char *word = tccl_reason_word(i);
        CHECK(*word && strlen(word) < 20);
        CHECK(strspn(word, "abcdefghijklmnopqrstuvwxyzGPUNCL ") == strlen(word));
        for (int j = 0; j < i; j++)
            CHECK(strcmp(word, tccl_reason_word(j)) != 0);
    }
}

/* Where the sources make reasons, and the beginnings of those that are of something else. */
static const struct {
    const char *file, *calls[4];
} sources[] = {
    {"profiler/tccld/join/step.c", {" fail(", " go_without(", "tccl_fail(", NULL}},
    {"profiler/tccld/join/outcome.c", {"fall_back(", "tccl_fail(", NULL}},
    {"profiler/tccld/net/link.c", {" fail(", "tccl_fail(", NULL}},
    {"profiler/tccld/join/node-profile.c", {"tccl_fail(", NULL}},
    {"profiler/tccld/join/merge.c", {"tccl_fail(", NULL}},
    {"profiler/tccld/join/planfile.c", {"tccl_fail(", NULL}},
    {"profiler/tccld/net/resolver.c", {"tccl_fail(", NULL}},
    {"profiler/tccld/net/seal.c", {"tccl_fail(", NULL}},
    {"profiler/tccld/net/replay.c", {"tccl_fail(", NULL}},
    {"profiler/client/client.c", {"tccl_fail(", NULL}},
    {"profiler/client/envelope.c", {"tccl_fail(", NULL}},
    {"profiler/client/frame.c", {"tccl_fail(", NULL}},
    {"profiler/client/key.c", {"tccl_fail(", NULL}},
    {"profiler/client/message.c", {"tccl_fail(", NULL}},
    {"profiler/client/outcome.c", {"tccl_fail(", NULL}},
    {"profiler/client/step-json.c", {"tccl_fail(", NULL}},
    {"pathfind/ring/ring.c", {"tccl_fail(", NULL}},
    {"pathfind/ring/node-class.c", {"tccl_fail(", NULL}},
    {"spank/plugin/spank-remote.c", {"fall_back(", NULL}},
    {"spank/plugin/step-info.c", {"tccl_fail(", NULL}},
};

/* Of the system, of what is wrong with a message's members ("MERGE: " stands before them), of the
 * tools' side of the client, and what says itself nothing of the cause. */
static const char *const elsewhere[] = {
    "socket: ",
    "poll: ",
    "write: ",
    "read: ",
    "getrandom: ",
    "a machine",
    "%s: longer",
    "nonce: ",
    "%s: %lld",
    "%d nodes with",
    "nodes: ",
    "gres: ",
    "state: \"%.32",
    "%s: \"%.32",
    "%s: more than",
    "node: %d is",
    "choices: ",
    "baselines: ",
    "it is the plan",
    "the %s of",
    "machine, source",
    "noise or",
    "NIC %d of",
    "cell %d of",
    "nics and cells",
    "gpus %s",
    "%s: a socket's path",
    "tccld did not answer the LEAVE",
    "no %s within",
    "not asked: %s",
    "GPU %s is not in",
    "%s: tccld: %s",
};

static bool is_elsewhere(const char *text)
{
    for (size_t i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++)
        if (strncmp(text, elsewhere[i], strlen(elsewhere[i])) == 0)
            return true;
    return false;
}

/* Takes the first text in a call (of a call that has one) from its source, as C joins it. */
static void first_literal(const char *call, char text[static 1024])
{
    size_t n = 0;
    const char *at = call + strcspn(call, "\";");
    while (*at == '"') {
        for (at++; *at && *at != '"'; at++) {
            at += *at == '\\';
            if (n < 1023)
                text[n++] = *at;
        }
        at += *at == '"';
        at += strspn(at, " \n");
    }
    text[n] = '\0';
}

/* A format that only puts other texts together. */
static bool only_joins(const char *text)
{
    for (; *text; text++) {
        if (*text == '%')
            text += 1 + strspn(text + 1, "0123456789.zl");
        else if (isalpha((unsigned char)*text))
            return false;
        if (!*text)
            break;
    }
    return true;
}

static int check_calls(const char *file, const char *source, const char *call)
{
    int found = 0;
    char text[1024];
    for (const char *at = source; (at = strstr(at, call)); at++) {
        first_literal(at, text);
        if (only_joins(text) || is_elsewhere(text))
            continue;
        found++;
        if (strcmp(tccl_reason_class(text), "other") == 0) {
            fprintf(stderr, "%s: a reason without a class in reason.c: \"%s\"\n", file, text);
            check_failures++;
        }
    }
    return found;
}

static void test_sources(const char *root)
{
    int found = 0;
    for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++) {
        char path[PATH_MAX];
        cleanup_free char *source = NULL;
        size_t size;
        snprintf(path, sizeof(path), "%s/%s", root, sources[i].file);
        CHECK_INT(tccl_read_file(path, 1 << 20, &source, &size, NULL), 0);
        for (int j = 0; source && sources[i].calls[j]; j++)
            found += check_calls(sources[i].file, source, sources[i].calls[j]);
    }
    CHECK(found > 60);
}

/* A summary counts against a node what is wrong there, and not what nobody there could help. */
static void test_of_node(void)
{
    static const char *const of_step[] = {
        "policy tests forbids rings", "n1: policy tests forbids rings", "no GPUs in this step",
        "NCCL 2.33.1: not known (2.21 to 2.32 are)", "NCCL's own ring is as fast (9.1 GB/s)"};
    static const char *const of_node[] = {"n3: no profile of this machine",
                                          "n2: no answer within 300 ms", "something new: n4: what"};
    for (size_t i = 0; i < sizeof(of_step) / sizeof(*of_step); i++)
        CHECK(!tccl_reason_of_node(of_step[i]));
    for (size_t i = 0; i < sizeof(of_node) / sizeof(*of_node); i++)
        CHECK(tccl_reason_of_node(of_node[i]));
    CHECK(!tccl_reason_of_node("") && !tccl_reason_of_node(NULL));
}

int main(void)
{
    const char *root = getenv("TCCL_SOURCES");
    test_texts();
    test_words();
    if (root)
        test_sources(root);
    else
        CHECK(!"TCCL_SOURCES is not set");
    test_of_node();
    return check_result();
}
