/* registry.c: the registry's shared memory. Other processes of the same user write to it at any
 * time, so what is used is copied first, and every number is checked. */
#include "plan/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MEMBERS = SHIM_GPUS * 2, CLAIMS = 64, PAGE = 4096 };

/* Zero is the state of everything that has not begun: a new file needs no first writer. */
struct place {
    int ready; /* written at last */
    int asked;
    struct shim_member member;
};

/* Of P2P in all processes. */
enum kind { KIND_OPEN, KIND_READS, KIND_WRITES };

enum { VERDICTS = 4 }; /* APPLIED to DIFFERS (verify.h) */

struct shim_entry {
    bool used;                /* not all zero bytes any more */
    int came, went, expected; /* ranks; under the table's lock */
    int decision;             /* enum shim_decision */
    int joined;               /* places taken */
    int locals;
    uint64_t files;           /* bytes in /dev/shm; under the table's lock */
    int why_taken, why_ready; /* written once, by the first */
    struct tccl_error why;    /* it is ASIDE, or not all nodes build all rings */
    struct place places[MEMBERS];
    int done;                       /* verdicts told */
    char worst_text[VERDICTS][256]; /* for each verdict */
    int worst_ready[VERDICTS];      /* 1 being written, 2 written */
    struct shim_answer answer;
} __attribute__((aligned(PAGE)));

struct claim {
    uint64_t owner; /* pid, and when it started */
    uint64_t gpu;   /* bus + 1 */
};

struct shim_registry {
    uint64_t layout;   /* tells versions of this file apart */
    uint64_t table;    /* owner of its lock, 0: nobody */
    int closed;        /* no new entries */
    uint64_t reserved; /* bytes of memory */
    int unheard;       /* a node of the step */
    int silent;        /* this node's tccld, for a group */
    int kind;          /* enum kind */
    uint64_t room;     /* bytes in /dev/shm, and 1; 0: not known yet */
    struct claim claims[CLAIMS];
    uint64_t keys[SHIM_ENTRIES];
    struct shim_entry entries[SHIM_ENTRIES];
};

static struct {
    struct shim_registry *map;
    pid_t pid;
    dev_t device;
    ino_t file;
    char path[SHIM_PATH];
} opened;

static uint64_t layout(void)
{
    return SHIM_HASH_START ^ (uint64_t)sizeof(struct shim_registry) << 8 ^
           (uint64_t)sizeof(struct shim_answer) ^ 10;
}

/* A file that grows beyond this limit ends the program with a signal. */
static bool limited(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur < sizeof(struct shim_registry);
}

/* Makes room for a part of the file now, since a write to the mapping of a full /dev/shm kills. */
static int reserve(int fd, size_t offset, size_t size)
{
    if (limited()) {
        errno = EFBIG;
        return -1;
    }
    return syscall(SYS_fallocate, fd, 0, (off_t)offset, (off_t)size) ? -1 : 0;
}

/* A file that is ours alone and as long as it has to be. */
static int check_file(int fd, const char *path, struct stat *file, struct tccl_error *why)
{
    struct stat status;
    if (syscall(SYS_fstat, fd, &status))
        return tccl_fail(why, "%s: %s", path, strerror(errno));
    *file = status;
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || status.st_nlink != 1)
        return tccl_fail(why, "%s is not this user's own file", path);
    if (status.st_mode & 077)
        return tccl_fail(why, "%s is open to others", path);
    if (limited())
        return tccl_fail(why, "the size of files is limited (ulimit -f)");
    if (status.st_size == 0 && ftruncate(fd, sizeof(struct shim_registry)))
        return tccl_fail(why, "%s: %s", path, strerror(errno));
    if (status.st_size != 0 && status.st_size != sizeof(struct shim_registry))
        return tccl_fail(why, "%s has the wrong length", path);
    if (reserve(fd, 0, offsetof(struct shim_registry, entries)))
        return tccl_fail(why, "%s: %s", path, strerror(errno));
    return 0;
}

static struct shim_registry *map_file(int fd, const char *path, struct stat *file,
                                      struct tccl_error *why)
{
    if (check_file(fd, path, file, why))
        return NULL;
    struct shim_registry *map =
        mmap(NULL, sizeof(*map), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (map == MAP_FAILED)
        return tccl_fail_null(why, "%s: %s", path, strerror(errno));
    uint64_t none = 0;
    shim_swap(&map->layout, &none, layout());
    if (shim_load(&map->layout) != layout()) {
        tccl_fail(why, "%s is of another version", path);
        munmap(map, sizeof(*map));
        return NULL;
    }
    return map;
}

struct shim_registry *shim_registry_open(const struct shim_plan *plan, struct tccl_error *why)
{
    char path[SHIM_PATH];
    snprintf(path, sizeof(path), "/dev/shm/tccl-%u-%s.%u", plan->uid, plan->folder, plan->index);
    if (opened.map && opened.pid == getpid() && !strcmp(path, opened.path))
        return opened.map;
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0)
        return tccl_fail_null(why, "%s: %s", path, strerror(errno));
    struct stat file = {0};
    struct shim_registry *map = map_file(fd, path, &file, why);
    close(fd);
    if (!map)
        return NULL;
    opened.map = map;
    opened.device = file.st_dev;
    opened.file = file.st_ino;
    opened.pid = getpid();
    memcpy(opened.path, path, sizeof(path));
    return map;
}

/* A process, told apart from later ones with its number; 0: there is none. */
static uint64_t process_word(pid_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (shim_read_file(path, text, sizeof(text)) < 0)
        return 0;
    char *at = strrchr(text, ')'); /* behind the program's name: state is field 3 */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (!at)
        return 0;
    char *end = strchr(++at, ' ');
    uint64_t start;
    if (!end)
        return 0;
    *end = '\0';
    if (shim_number(at, 10, UINT64_MAX, &start))
        return 0;
    return (uint64_t)(uint32_t)pid << 32 | (uint32_t)start;
}

static bool lives(uint64_t owner)
{
    return owner && process_word((pid_t)(owner >> 32)) == owner;
}

/* ---- The table of entries ---- */

/* Held for moments only: one that is held for longer, by a process that is gone, is taken over.
 * Returns -1: it can't be had. */
static int take_table(struct shim_registry *registry)
{
    enum { MOMENT_US = 100000, WAIT_US = 1000000 };
    uint64_t self = process_word(getpid());
    int64_t start = shim_now_us(), waited = 0;
    for (; self && waited < WAIT_US; waited = shim_now_us() - start) {
        uint64_t holder = 0;
        if (shim_swap(&registry->table, &holder, self))
            return 0;
        if (waited > MOMENT_US && !lives(holder) && shim_swap(&registry->table, &holder, self))
            return 0;
        shim_sleep_us(20);
    }
    return -1;
}

static void release_table(struct shim_registry *registry)
{
    shim_store(&registry->table, 0);
}

/* The index of a key (0: of a free place); -1: it is not there. */
static int find_key(const struct shim_registry *registry, uint64_t key)
{
    for (int i = 0; i < SHIM_ENTRIES; i++)
        if (shim_load(&registry->keys[i]) == key)
            return i;
    return -1;
}

/* The place comes into being with its key, at last. */
static int make_entry(struct shim_registry *registry, uint64_t key)
{
    int at = find_key(registry, 0);
    if (at < 0)
        return -1;
    /* The file is opened anew for it: programs close descriptors that they did not open, and use
     * the number for something else. */
    struct stat status;
    int fd = open(opened.path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -1;
    size_t offset =
        offsetof(struct shim_registry, entries) + (size_t)at * sizeof(struct shim_entry);
    bool same = !syscall(SYS_fstat, fd, &status) && status.st_dev == opened.device &&
                status.st_ino == opened.file;
    int result = same ? reserve(fd, offset, sizeof(struct shim_entry)) : -1;
    close(fd);
    if (result)
        return -1;
    if (registry->entries[at].used)
        memset(&registry->entries[at], 0, sizeof(registry->entries[at]));
    registry->entries[at].used = true;
    shim_store(&registry->keys[at], key);
    return at;
}

struct shim_entry *shim_registry_entry(struct shim_registry *registry, uint64_t key, int expected)
{
    int at = -1;
    if (take_table(registry)) {
        shim_store(&registry->closed, 1);
        return NULL;
    }
    at = find_key(registry, key);
    if (at < 0 && !shim_registry_closed(registry))
        at = make_entry(registry, key);
    struct shim_entry *entry = at < 0 ? NULL : &registry->entries[at];
    if (entry) {
        entry->expected = expected;
        entry->came++;
    } else {
        shim_store(&registry->closed, 1);
    }
    release_table(registry);
    return entry;
}

void shim_registry_drop(struct shim_registry *registry, struct shim_entry *entry)
{
    if (!entry || take_table(registry))
        return;
    entry->went++;
    if (entry->went == entry->came && entry->came >= entry->expected)
        shim_store(&registry->keys[entry - registry->entries], 0);
    release_table(registry);
}

bool shim_registry_reserve(struct shim_registry *registry, uint64_t bytes, uint64_t left)
{
    uint64_t before = shim_load(&registry->reserved);
    do {
        if (bytes > left || before > left - bytes)
            return false;
    } while (!shim_swap(&registry->reserved, &before, before + bytes));
    return true;
}

void shim_registry_release(struct shim_registry *registry, uint64_t bytes)
{
    uint64_t before = shim_load(&registry->reserved);
    while (!shim_swap(&registry->reserved, &before, before > bytes ? before - bytes : 0))
        ;
}

void shim_registry_begin(struct shim_registry *registry, uint64_t free)
{
    uint64_t none = 0;
    shim_swap(&registry->room, &none, free / 4 + 1);
}

static bool any_lives(const struct shim_entry *entry)
{
    struct shim_member members[MEMBERS];
    int n = shim_entry_members(entry, members);
    for (int i = 0; i < n; i++)
        if (process_word((pid_t)members[i].pid))
            return true;
    return false;
}

/* What others have, in communicators that are still there. Under the table's lock. */
static uint64_t files_of_others(const struct shim_registry *registry,
                                const struct shim_entry *entry)
{
    uint64_t taken = 0;
    for (int i = 0; i < SHIM_ENTRIES; i++) {
        const struct shim_entry *other = &registry->entries[i];
        if (shim_load(&registry->keys[i]) && other != entry && other->files &&
            shim_entry_stands(other) != SHIM_ASIDE && any_lives(other))
            taken += other->files;
    }
    return taken;
}

int shim_registry_charge(struct shim_registry *registry, struct shim_entry *entry, uint64_t bytes,
                         struct tccl_error *why)
{
    if (bytes == 0)
        return 0;
    if (take_table(registry) != 0)
        return tccl_fail(why, "its file in /dev/shm is locked by another process");
    uint64_t room = shim_load(&registry->room);
    uint64_t all = room ? room - 1 : 0, taken = files_of_others(registry, entry);
    uint64_t left = all > taken ? all - taken : 0;
    if (bytes <= left)
        entry->files = bytes;
    release_table(registry);
    return bytes <= left
               ? 0
               : tccl_fail(why,
                           "its buffers would take %llu MiB in /dev/shm; rings may have a quarter "
                           "of what was free when the step began, of which %llu MiB are left",
                           (unsigned long long)(bytes >> 20), (unsigned long long)(left >> 20));
}

bool shim_registry_closed(const struct shim_registry *registry)
{
    return shim_load(&registry->closed) != 0;
}

int shim_entry_join(struct shim_entry *entry, const struct shim_member *member)
{
    if (shim_load(&entry->decision) != SHIM_UNDECIDED)
        return -1;
    int place = __atomic_fetch_add(&entry->joined, 1, __ATOMIC_SEQ_CST);
    if (place < 0 || place >= MEMBERS)
        return -1;
    entry->places[place].member = *member;
    shim_store(&entry->places[place].ready, 1);
    return place;
}

void shim_entry_set_rank(struct shim_entry *entry, int place, int rank)
{
    if (place >= 0 && place < MEMBERS)
        shim_store(&entry->places[place].member.rank, rank);
}

int shim_entry_members(const struct shim_entry *entry,
                       struct shim_member members[static SHIM_GPUS * 2])
{
    int joined = shim_load(&entry->joined), n = 0;
    for (int i = 0; i < joined && i < MEMBERS; i++) {
        if (!shim_load(&entry->places[i].ready))
            continue;
        struct shim_member member = entry->places[i].member;
        int at = n++;
        for (; at > 0 && members[at - 1].gpu > member.gpu; at--)
            members[at] = members[at - 1];
        members[at] = member;
    }
    return n;
}

void shim_entry_asked(struct shim_entry *entry, int place, enum shim_buffers buffers,
                      enum shim_net net)
{
    if (place < 0 || place >= MEMBERS)
        return;
    entry->places[place].member.buffers = (int32_t)buffers;
    entry->places[place].member.net = (int32_t)net;
    shim_store(&entry->places[place].asked, 1);
}

int shim_entry_await(const struct shim_entry *entry, int n, int64_t deadline_us)
{
    for (;;) {
        int asked = 0;
        for (int i = 0; i < MEMBERS; i++)
            asked += shim_load(&entry->places[i].asked) == 1;
        if (asked >= n)
            return 0;
        if (shim_entry_stands(entry) == SHIM_ASIDE || shim_now_us() >= deadline_us)
            return -1;
        shim_sleep_us(50);
    }
}

static bool change(struct shim_entry *entry, int from, int to)
{
    return shim_swap(&entry->decision, &from, to);
}

enum shim_decision shim_entry_stands(const struct shim_entry *entry)
{
    return (enum shim_decision)shim_load(&entry->decision);
}

bool shim_entry_begin(struct shim_entry *entry)
{
    return change(entry, SHIM_UNDECIDED, SHIM_DECIDING);
}

struct shim_answer *shim_entry_answer(struct shim_entry *entry)
{
    return &entry->answer;
}

static bool is_ring(struct tccl_named_chain *ring)
{
    ring->entry.nic[TCCL_CHAIN_NIC - 1] = ring->exit.nic[TCCL_CHAIN_NIC - 1] = '\0';
    for (int i = 0; i < ring->n_gpus && i < SHIM_GPUS; i++)
        if (ring->edges[i].kind > TCCL_BOUNCE)
            return false;
    return ring->n_gpus >= 1 && ring->n_gpus <= SHIM_GPUS;
}

static bool is_chain(struct shim_chain *chain)
{
    chain->source[SHIM_NAME - 1] = '\0';
    if (chain->rings.n < 1 || chain->rings.n > TCCL_CHAIN_RINGS || chain->n_baselines < 0 ||
        chain->n_baselines > SHIM_BASELINES)
        return false;
    for (int i = 0; i < chain->rings.n; i++)
        if (!is_ring(&chain->rings.chains[i]))
            return false;
    return true;
}

/* Copied first: others can write to it at any time. */
bool shim_entry_read(const struct shim_entry *entry, struct shim_answer *answer)
{
    memcpy(answer, &entry->answer, sizeof(*answer));
    return answer->graph_size <= sizeof(answer->graph) &&
           answer->topo_size <= sizeof(answer->topo) && is_chain(&answer->chain);
}

static void keep(struct shim_entry *entry, const struct tccl_error *why)
{
    if (!why || __atomic_exchange_n(&entry->why_taken, 1, __ATOMIC_SEQ_CST))
        return;
    entry->why = *why;
    shim_store(&entry->why_ready, 1);
}

enum shim_decision shim_entry_decide(struct shim_entry *entry, enum shim_decision decision,
                                     const struct tccl_error *why)
{
    keep(entry, why);
    change(entry, SHIM_DECIDING, decision);
    return shim_entry_stands(entry);
}

enum shim_decision shim_entry_aside(struct shim_entry *entry, const struct tccl_error *why)
{
    while (shim_entry_stands(entry) < SHIM_USE)
        if (change(entry, SHIM_UNDECIDED, SHIM_ASIDE) || change(entry, SHIM_DECIDING, SHIM_ASIDE))
            keep(entry, why);
    return shim_entry_stands(entry);
}

enum shim_decision shim_entry_wait(struct shim_entry *entry, int64_t deadline_us)
{
    static const struct tccl_error why = {"another rank did not come to a decision in time"};
    while (shim_entry_stands(entry) < SHIM_USE) {
        if (shim_now_us() >= deadline_us)
            return shim_entry_aside(entry, &why);
        shim_sleep_us(50);
    }
    return shim_entry_stands(entry);
}

void shim_entry_why(const struct shim_entry *entry, struct tccl_error *why)
{
    if (shim_load(&entry->why_ready))
        *why = entry->why;
    why->text[sizeof(why->text) - 1] = '\0';
}

void shim_entry_prove(struct shim_entry *entry, int locals)
{
    shim_store(&entry->locals, locals);
}

int shim_entry_proven(const struct shim_entry *entry)
{
    return shim_load(&entry->locals);
}

void shim_registry_claim_gpu(struct shim_registry *registry, tccl_bus gpu)
{
    uint64_t self = process_word(getpid());
    if (!self)
        return;
    for (int i = 0; i < CLAIMS; i++) {
        struct claim *claim = &registry->claims[i];
        uint64_t owner = shim_load(&claim->owner);
        if (owner == self && shim_load(&claim->gpu) == gpu + 1)
            return;
    }
    for (int i = 0; i < CLAIMS; i++) {
        struct claim *claim = &registry->claims[i];
        uint64_t owner = shim_load(&claim->owner);
        if (owner == self || lives(owner))
            continue;
        shim_store(&claim->gpu, 0);
        if (!shim_swap(&claim->owner, &owner, self))
            continue;
        shim_store(&claim->gpu, gpu + 1);
        return;
    }
}

/* By a living process with the shim. */
static bool is_claimed(const struct shim_registry *registry, tccl_bus gpu)
{
    for (int i = 0; i < CLAIMS; i++) {
        const struct claim *claim = &registry->claims[i];
        if (shim_load(&claim->gpu) == gpu + 1 && lives(shim_load(&claim->owner)))
            return true;
    }
    return false;
}

bool shim_registry_all_claimed(const struct shim_registry *registry, const tccl_bus *gpus, int n)
{
    for (int i = 0; i < n; i++)
        if (!is_claimed(registry, gpus[i]))
            return false;
    return true;
}

static enum kind settle_kind(struct shim_registry *registry, int kind)
{
    int open = KIND_OPEN;
    shim_swap(&registry->kind, &open, kind);
    return (enum kind)shim_load(&registry->kind);
}

bool shim_registry_reads(struct shim_registry *registry, const tccl_bus *gpus, int n, bool now)
{
    enum kind kind = (enum kind)shim_load(&registry->kind);
    if (kind == KIND_OPEN && shim_registry_all_claimed(registry, gpus, n))
        kind = settle_kind(registry, KIND_READS);
    else if (kind == KIND_OPEN && now)
        kind = settle_kind(registry, KIND_WRITES);
    return kind == KIND_READS;
}

void shim_registry_keep_writing(struct shim_registry *registry)
{
    settle_kind(registry, KIND_WRITES);
}

static void keep_text(struct shim_entry *entry, int verdict, const char *text)
{
    char *kept = entry->worst_text[verdict];
    for (int tries = 0; tries < 1000; tries++) {
        int ready = shim_load(&entry->worst_ready[verdict]);
        /* A rank for which the first two rings look alike sees one of them where another rank sees
         * both. */
        if (ready == 2 && !(*text >= '0' && *text <= '9' && *text > *kept))
            return;
        if (ready != 1 && shim_swap(&entry->worst_ready[verdict], &ready, 1)) {
            snprintf(kept, sizeof(entry->worst_text[verdict]), "%s", text);
            shim_store(&entry->worst_ready[verdict], 2);
            return;
        }
    }
}

bool shim_entry_done(struct shim_entry *entry, int members, int verdict, const char *text,
                     int *worst, char worst_text[static 256])
{
    if (verdict < 0 || verdict >= VERDICTS)
        verdict = 1;
    keep_text(entry, verdict, text);
    if (__atomic_add_fetch(&entry->done, 1, __ATOMIC_SEQ_CST) != members)
        return false;
    *worst = 0;
    worst_text[0] = '\0';
    for (int i = VERDICTS - 1; i >= 0; i--) {
        int ready = shim_load(&entry->worst_ready[i]);
        if (!ready)
            continue;
        *worst = i;
        if (ready == 2)
            memcpy(worst_text, entry->worst_text[i], 256);
        worst_text[255] = '\0';
        break;
    }
    return true;
}

void shim_registry_set_unheard(struct shim_registry *registry)
{
    shim_store(&registry->unheard, 1);
}

bool shim_registry_unheard(const struct shim_registry *registry)
{
    return shim_load(&registry->unheard) != 0;
}

void shim_registry_set_silent(struct shim_registry *registry, bool silent)
{
    shim_store(&registry->silent, silent);
}

bool shim_registry_silent(const struct shim_registry *registry)
{
    return shim_load(&registry->silent) != 0;
}
