/* discover-users.c: who uses the GPUs now, as far as this process may see; MIG and MPS. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "discover/discover-parts.h"
#include "discover/sysfs.h"

enum { MAX_PROCESSES = 200000, MAX_FILES = 4096 };

/* Control daemon and server: the kernel keeps the first 15 letters. */
static const char mps_name[] = "nvidia-cuda-mps";

static void set_user(struct tccl_found *found, int gpu, const char *name, int pid)
{
    if (name[0])
        snprintf(found->user[gpu], sizeof(found->user[gpu]), "%.40s (pid %d)", name, pid);
    else
        snprintf(found->user[gpu], sizeof(found->user[gpu]), "pid %d", pid);
}

/* GPUs (a mask) that a process has open. */
static unsigned open_gpus(struct tccl_scene *scene, const char *folder)
{
    const struct tccl_machine *machine = scene->machine;
    char path[PATH_MAX], target[64], extra;
    unsigned mask = 0;
    int minor;
    cleanup_dir DIR *files = opendir(folder);
    struct dirent *entry;
    for (int n = 0; files && n < MAX_FILES && (entry = readdir(files)); n++) {
        if (snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >= PATH_MAX)
            continue;
        ssize_t length = readlink(path, target, sizeof(target) - 1);
        target[length > 0 ? length : 0] = '\0';
        bool is_gpu = sscanf(target, "/dev/nvidia%4d%c", &minor, &extra) == 1;
        for (int i = 0; is_gpu && i < machine->n_gpus; i++)
            mask |= (unsigned)(machine->gpus[i].minor == minor) << i;
    }
    return mask;
}

static void add_users(struct tccl_scene *scene, const char *name, int pid)
{
    const char *root = scene->options->root ? scene->options->root : "";
    struct tccl_found *found = scene->found;
    char folder[PATH_MAX];
    if (snprintf(folder, sizeof(folder), "%s/proc/%d/fd", root, pid) >= PATH_MAX)
        return;
    unsigned mask = open_gpus(scene, folder);
    for (int i = 0; i < found->site.machine.n_gpus; i++)
        if (mask >> i & 1 && found->n_users[i]++ == 0)
            set_user(found, i, name, pid);
}

/* Looks at every process once. Without NVML, /dev/nvidiaN open says who uses a GPU. */
static bool look_at_processes(struct tccl_scene *scene)
{
    const char *root = scene->options->root;
    char path[PATH_MAX], name[TCCL_NAME];
    bool mps = false;
    struct dirent *entry;
    if (snprintf(path, sizeof(path), "%s/proc", root ? root : "") >= PATH_MAX)
        return false;
    cleanup_dir DIR *processes = opendir(path);
    for (int n = 0; processes && n < MAX_PROCESSES && (entry = readdir(processes)); n++) {
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        if (*end || pid <= 0 || pid > INT_MAX || pid == (long)getpid())
            continue;
        tccl_sys_text(root, name, sizeof(name), "/proc/%ld/comm", pid);
        mps |= strcmp(name, mps_name) == 0;
        if (scene->nvml.n_gpus == 0 && strcmp(name, "nvidia-persiste") != 0)
            add_users(scene, name, (int)pid);
    }
    return mps;
}

void tccl_scene_users(struct tccl_scene *scene)
{
    if (!scene->facts)
        return;
    struct tccl_found *found = scene->found;
    struct tccl_machine *machine = &found->site.machine;
    for (int i = 0; i < scene->nvml.n_gpus; i++) {
        const struct tccl_nvml_gpu *from = &scene->nvml.gpus[i];
        int gpu = tccl_machine_find_gpu(machine, from->busid);
        if (gpu < 0)
            continue;
        found->n_users[gpu] = from->n_users;
        if (from->n_users > 0)
            set_user(found, gpu, from->users_of, from->users[0]);
        if (from->mig) {
            found->marks |= TCCL_MARK_MIG;
            tccl_scene_note(scene, "GPU %s is in MIG mode: no chains are made", from->busid);
        }
    }
    /* Does the control daemon hold its pipe open? One left behind has nobody at the other end. */
    const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/control", folder ? folder : "/tmp/nvidia-mps");
    bool mps = look_at_processes(scene);
    cleanup_close int pipe = !mps && length < PATH_MAX && !scene->options->root
                                 ? open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)
                                 : -1;
    if (!mps && pipe < 0)
        return;
    scene->found->marks |= TCCL_MARK_MPS;
    tccl_scene_note(scene, "the MPS daemon is running: no chains are made; stop it with: echo quit "
                           "| nvidia-cuda-mps-control");
}
