/* reason.c: a table of phrases by which the text of a reason is put in its class. Texts are for
 * people and may change; the classes are what summaries count and filters name. */
#include "records/reason.h"

#include <stddef.h>
#include <string.h>

#include "chain/nccl-version.h"

enum {
    PARTS = 20,
    OF_STEP = 8, /* the first classes are the step's or the site's own: no node could help it */
};

/* Phrases of each class; '^': at the beginning of the text, or after "NAME: ". The first class that
 * matches counts, so causes are listed before consequences. */
static const struct {
    const char *word;
    const char *parts[PARTS];
} classes[] = {
    {"policy", {"^policy"}},
    {"no gain",
     {"NCCL's own choice is ", "NCCL's own ring is as fast", "to the steps beside it, NCCL's own"}},
    {"no GPU", {"^no GPU in this step", "^no GPUs in this step", "^a ring needs a GPU"}},
    {"job script", {"^the job script used no GPUs together"}},
    {"own GPUs", {"each task sees only its own GPUs"}},
    {"shared GPU", {"the step has shards of GPUs", "the step has a share of a GPU"}},
    {"unknown NCCL", {TCCL_NCCL_NOT_KNOWN}},
    {"het step", {"step spans heterogeneous components"}},
    {"no profile",
     {"^no description of this machine", "^no profile of this machine", "^no chains for GPUs",
      "the profile has no ring over", "has no chain between NICs", "the profile has no such chain",
      "^no profile in "}},
    {"unknown GPU",
     {"is not in the profile's machine", "is listed twice", "^SLURM_STEP_GPUS: ",
      "^SLURM_JOB_GPUS: ", "is not a GPU index", " GPUs, and no GPU ", "is not in slurmd's list",
      "of NVIDIA's driver", "the driver tells no bus id", "has MIG instances", "^no slurmd runs",
      "restart slurmd", "slurmd -G", "Slurm has no device files", " -G has ", " -G can't be run"}},
    {"no ring", {"^no ring can be closed over", "has no NIC in its profile"}},
    {"late start", {"a slow Prolog?"}},
    {"cancelled",
     {"the step no longer wait", "the step has ended here", "the step was sent a signal while"}},
    {"version", {"update the older side"}},
    {"munge",
     {"^munge", "by munged", "its answer was made by uid", "its answer can't be read: munge"}},
    {"no answer in time",
     {"no word from its tccld within", "no answer within", "no connection within",
      "no address found within", "gave no answer within", "tccld did not take the ",
      "its tccld hung ", "tccld hangs: ", "no answer in time"}},
    {"no daemon",
     {"is its tccld running?", "^no tccld at ", "its tccld is being stopped",
      "closed the connection without an answer", "^the connection was closed"}},
    {"unreachable",
     {"^no connection to ", " has no address: ", "^too many names are being looked"}},
    {"node lists",
     {"^the node lists of this step do not match", "^SLURM_STEP_NODELIST", "^SLURM_JOB_NODELIST",
      "^SLURM_NODELIST", "^SLURMD_NODENAME", "is not in SLURM_STEP_NODELIST",
      "is not in SLURM_JOB_NODELIST", "^the tccld there was started for node",
      " is not below node "}},
    {"overload",
     {"out of memory", "steps under way", "has been joined too often", "does not keep up"}},
    {"plan lost",
     {"the plan can't be written", "^the ring chosen does not fit this node",
      "^the description of this machine has gone", "closed the connection before its plan was sent",
      "the ring was given out before it asked again", "^its plan: ", "^no plan came from ",
      "^column "}},
    {"built differently",
     {" in place of ", "through another GPU", "^with GPUDirect", "^without GPUDirect",
      "^not all channels have the same ring", "^NCCL has not connected it so far",
      "NCCL has no channels for more"}},
    {"configuration",
     {"^excluded from rings", "tccl.conf:", "^plugstack.conf", "^unknown key '",
      " is not Key=value", "its plugin has not spoken", "^Slurm has no plugin there"}},
    {"message",
     {"^MERGE: ", "^PLAN: ", "^JOIN: ", "^key: ", "^classes: ", "^runs: ", "of a node class ",
      "^too many node classes", "^ranges of nodes do not follow", "is beyond the limit of ",
      "its answer ", "was sent twice", "from before its tccld was started again",
      "^not a message: ", " instead of a plan", " is expected"}},
    {"bad profile",
     {".json: ", ".json:", ".jsonl: ", ".jsonl:", ".chains: ", "is of another machine",
      "made for another machine", "is of another set of GPUs", "make it again",
      "make the table again", "comes from \"", "contradicts itself", "cache is too long",
      " is not a machine id"}},
    {"other", {NULL}},
};
_Static_assert(sizeof(classes) / sizeof(*classes) == TCCL_REASON_CLASSES, "classes of reasons");

/* Is this the beginning of the text, or of what follows "NAME: "? */
static bool begins(const char *text, const char *there)
{
    return there == text || (there - text >= 2 && there[-2] == ':' && there[-1] == ' ');
}

static bool holds(const char *text, const char *part)
{
    bool first = *part == '^';
    const char *there = text;
    for (part += first; (there = strstr(there, part)); there++)
        if (!first || begins(text, there))
            return true;
    return false;
}

int tccl_reason_number(const char *reason)
{
    int number = 0;
    if (!reason || !*reason)
        return -1;
    for (; number < TCCL_REASON_CLASSES - 1; number++)
        for (int i = 0; i < PARTS && classes[number].parts[i]; i++)
            if (holds(reason, classes[number].parts[i]))
                return number;
    return number;
}

const char *tccl_reason_word(int number)
{
    return number >= 0 && number < TCCL_REASON_CLASSES ? classes[number].word : "";
}

const char *tccl_reason_class(const char *reason)
{
    return tccl_reason_word(tccl_reason_number(reason));
}

bool tccl_reason_of_node(const char *reason)
{
    return tccl_reason_number(reason) >= OF_STEP;
}
