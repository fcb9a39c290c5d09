"""slurm_choice: which GPUs Slurm gives a job on one node, retold from select/cons_tres (gres_select_filter.c) of 22.05 and of
24.11: jobs of one task, with some cores, that ask by --gres=gpu:K ("node") or by --gpus=K ("job"). bench-place compares it
with a real 22.05."""

MANY = 65534  # NO_VAL16


class Node:
    """sockets: of each GPU, by its Cores=; links: the rows of Links=, None without."""

    def __init__(self, sockets, cores, links):
        self.sockets, self.links = sockets, links
        self.free = set(range(len(sockets)))
        self.cores = [cores] * (max(sockets) + 1)

    def fits(self, gpu, socket, taken):
        return self.sockets[gpu] == socket and gpu in self.free and gpu not in taken

    def choose(self, count, cores, how, version):
        """(GPUs, cores taken of each socket), or None: the job doesn't fit."""
        used = cores_of(self, count, cores)
        if used is None:
            return None
        pick = {("node", 22): node_22, ("job", 22): job_22, ("node", 24): node_24, ("job", 24): job_24}[how, version]
        return sorted(pick(self, count, used)), used

    def take(self, gpus, used):
        self.free -= set(gpus)
        for socket, cores in used.items():
            self.cores[socket] -= cores

    def give(self, gpus, used):
        self.free |= set(gpus)
        for socket, cores in used.items():
            self.cores[socket] += cores


def cores_of(node, count, cores):
    """gres_select_filter_sock_core, first pass: the sockets with most free cores until there are GPUs enough; cores that are
    not needed are let go where most are left."""
    have, left = 0, {}
    for socket in sorted(range(len(node.cores)), key=lambda s: -node.cores[s]):
        gpus = sum(node.sockets[gpu] == socket for gpu in node.free)
        if gpus and node.cores[socket] and have < count:
            have += gpus
            left[socket] = node.cores[socket]
    if have < count or sum(left.values()) < cores:
        return None
    while sum(left.values()) > cores:
        left[max(left, key=lambda s: (left[s], -s))] -= 1
    return {socket: left[socket] for socket in sorted(left) if left[socket]}


def node_22(node, count, used):
    """_set_node_bits: one GPU of each socket, then those with most links to these."""
    n, taken = len(node.sockets), []
    links = [0] * n
    for socket in used:
        first = next((gpu for gpu in range(n) if node.fits(gpu, socket, taken)), None)
        if first is None or len(taken) == count:
            continue
        taken.append(first)
        for gpu in node.free - {first}:
            links[gpu] += node.links[first][gpu] if node.links else 0
    most = max(0, *links)
    if most > 4:
        links = [int(link / ((most + 3) // 4)) for link in links]
        most = max(0, *links)
    others = [socket for socket in range(len(node.cores)) if socket not in used]
    for sockets in (list(used), others):
        for least in range(most, -1, -1):
            for socket in sockets:
                for gpu in range(n):
                    if len(taken) < count and node.fits(gpu, socket, taken) and (not node.links or links[gpu] >= least):
                        taken.append(gpu)
    return taken


def drop(node, count, taken):
    """The first GPU of the best linked pair stays; those least linked to it go."""
    taken, best, kept = sorted(taken), -1, None
    for at, gpu in enumerate(taken):
        for other in taken[at + 1:]:
            if node.links[gpu][other] > best:
                best, kept = node.links[gpu][other], gpu
    while len(taken) > count:
        taken.remove(min((gpu for gpu in taken if gpu != kept), key=lambda gpu: (node.links[kept][gpu], gpu)))
    return taken


def add_any(node, count, taken):
    return taken + [gpu for gpu in sorted(node.free) if gpu not in taken][:max(0, count - len(taken))]


def job_22(node, count, used):
    """_set_job_bits1 and 2."""
    taken = [gpu for socket in used for gpu in range(len(node.sockets)) if node.fits(gpu, socket, [])]
    taken = drop(node, count, taken) if count > 1 and node.links and len(taken) > count else taken[:count]
    return add_any(node, count, taken)


class Picker:
    """_pick_gres_topo of 24.11: in the order of the fewest links to what is taken; after each GPU it goes on at the second."""

    def __init__(self, node, linked):
        self.node, self.linked, self.taken = node, linked and node.links, []
        self.order = list(range(len(node.sockets)))
        self.links = [0] * len(node.sockets)

    def pick(self, socket, count):
        at = 0
        while at < len(self.order) and count > 0:
            gpu = self.order[at]
            if self.node.fits(gpu, socket, self.taken):
                self.taken.append(gpu)
                count -= 1
                if self.linked:
                    for other in self.node.free - {gpu}:
                        self.links[other] += self.node.links[gpu][other]
                    self.order.sort(key=lambda gpu: self.links[gpu])
                    at = 0
            at += 1
        return count


def share_of(used, socket, count):
    return int(used[socket] * (count / sum(used.values())))


def node_24(node, count, used):
    picker, need = Picker(node, True), count
    for socket in used:
        part = min(need, share_of(used, socket, count))
        need -= part - picker.pick(socket, part)
    for socket in list(used) + [socket for socket in range(len(node.cores)) if socket not in used]:
        need = picker.pick(socket, need)
    return picker.taken


def job_24(node, count, used):
    picker = Picker(node, False)
    want = MANY if count > 1 and node.links else count
    for socket in used:
        picker.pick(socket, min(want - len(picker.taken), share_of(used, socket, want)))
    for socket in used:
        picker.pick(socket, want - len(picker.taken))
    taken = picker.taken
    return add_any(node, count, drop(node, count, taken) if len(taken) > count else taken)
