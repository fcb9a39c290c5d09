/* kernels.cc: what NCCL's kernels do, on the CPU: a host thread for each block. It is built with
 * the headers of the NCCL that launches them, so structures and constants are NCCL's own;
 * functions.h has the names of its functions (get-nccl). Rings, and trees of all-reduce; sends; the
 * protocols Simple, LL and LL128. Whatever else is launched is refused. */
#include "kernels.h"

#include "collectives.h"
#include "device.h"
#include "functions.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace
{

/* ---- reductions: as on a GPU, each result is rounded to the type ---- */

struct bfloat16 {
    uint16_t bits = 0;
    bfloat16() = default;
    bfloat16(float value)
    {
        uint32_t all;
        memcpy(&all, &value, sizeof(all));
        bits = (uint16_t)((all + 0x7fff + (all >> 16 & 1)) >> 16);
    }
    operator float() const
    {
        uint32_t all = (uint32_t)bits << 16;
        float value;
        memcpy(&value, &all, sizeof(value));
        return value;
    }
};

/* Of a and b, or of a alone. */
typedef void apply_fn(char *to, const char *a, const char *b, size_t count, uint64_t argument);

struct reduction {
    size_t size = 1;
    apply_fn *pre = nullptr, *add = nullptr, *post = nullptr;
};

template <typename T, typename F>
void each(char *to, const char *a, const char *b, size_t count, F f)
{
    for (size_t i = 0; i < count; i++)
        ((T *)to)[i] = (T)f(((const T *)a)[i], b ? ((const T *)b)[i] : T());
}

template <typename T> void sum(char *to, const char *a, const char *b, size_t count, uint64_t)
{
    each<T>(to, a, b, count, [](T x, T y) { return x + y; });
}

template <typename T> void product(char *to, const char *a, const char *b, size_t count, uint64_t)
{
    each<T>(to, a, b, count, [](T x, T y) { return x * y; });
}

template <typename T>
void min_max(char *to, const char *a, const char *b, size_t count, uint64_t argument)
{
    if constexpr (std::is_integral_v<T>)
        each<T>(to, a, b, count,
                [=](T x, T y) { return (T)(x ^ (T)argument) < (T)(y ^ (T)argument) ? x : y; });
    else if (argument & 1)
        each<T>(to, a, b, count, [](T x, T y) { return std::fmax((double)x, (double)y); });
    else
        each<T>(to, a, b, count, [](T x, T y) { return std::fmin((double)x, (double)y); });
}

template <typename T>
void scale(char *to, const char *a, const char *, size_t count, uint64_t argument)
{
    T factor;
    memcpy((void *)&factor, &argument, sizeof(factor));
    each<T>(to, a, nullptr, count, [=](T x, T) { return x * factor; });
}

/* The argument: the divisor; from 2.24 on twice that, and 1 for signed ones. */
template <typename T>
void divide(char *to, const char *a, const char *, size_t count, uint64_t argument)
{
    if constexpr (std::is_integral_v<T>) {
        typedef std::make_signed_t<T> S;
        const bool old = NCCL_VERSION_CODE < NCCL_VERSION(2, 24, 0);
        uint64_t by = old ? argument : argument >> 1;
        if (old ? std::is_signed_v<T> : argument & 1)
            each<T>(to, a, nullptr, count, [=](T x, T) { return (S)x / (S)by; });
        else
            each<T>(to, a, nullptr, count, [=](T x, T) { return x / (T)by; });
    }
}

template <typename T> reduction reduction_of_type(const std::string &operation)
{
    return {sizeof(T), operation == "PreMulSum" ? scale<T> : nullptr,
            operation == "Prod"     ? product<T>
            : operation == "MinMax" ? min_max<T>
                                    : sum<T>,
            operation == "SumPostDiv" ? divide<T> : nullptr};
}

/* False: there is none for the type. */
bool reduction_of(const std::string &operation, const std::string &type, reduction *out)
{
    static const struct {
        const char *type;
        reduction (*of)(const std::string &operation);
    } all[] = {{"i8", reduction_of_type<int8_t>},    {"u8", reduction_of_type<uint8_t>},
               {"i32", reduction_of_type<int32_t>},  {"u32", reduction_of_type<uint32_t>},
               {"i64", reduction_of_type<int64_t>},  {"u64", reduction_of_type<uint64_t>},
               {"f16", reduction_of_type<_Float16>}, {"f32", reduction_of_type<float>},
               {"f64", reduction_of_type<double>},   {"bf16", reduction_of_type<bfloat16>}};

    for (const auto &one : all)
        if (type == one.type) {
            *out = one.of(operation);
            return true;
        }
    return false;
}

/* ---- a block ---- */

struct aborted {
};

/* ncclDevComm up to 2.27, ncclKernelComm since. */
typedef std::remove_pointer_t<decltype(ncclDevKernelArgs::comm)> kernel_comm;

struct block {
    kernel_comm *comm;
    ncclDevChannel *channel;
    int channel_id;
    int gpu;
    rig_copies *copies;

    bool is_aborted() const
    {
        return comm->abortFlag &&
               __atomic_load_n((const uint32_t *)comm->abortFlag, __ATOMIC_ACQUIRE);
    }

    /* Until the condition is true. There may be far fewer processors than blocks, so the others
     * must get on meanwhile. */
    template <typename F> void until(F condition) const
    {
        for (int tries = 0; !condition(); tries++) {
            if (tries < 64)
                continue;
            if (is_aborted())
                throw aborted();
            struct timespec moment = {0, tries < 2000 ? 20000 : 200000};
            if (tries < 256)
                sched_yield();
            else
                nanosleep(&moment, nullptr);
        }
    }
};

uint64_t load(const uint64_t *at)
{
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

void store(uint64_t *at, uint64_t value)
{
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
}

struct flow { /* to or from one peer */
    ncclConnInfo *conn;
    uint64_t step;

    int slot() const
    {
        return (int)(step % NCCL_STEPS);
    }
};

/* What NCCL calls so: takes from the peers that it receives from, and from src; puts the sum into
 * dst and to the peers that it sends to. A chunk has slices, a slice steps of the peers' buffers.
 * In LL a line is 8 bytes of data, each half with a flag; in LL128 it is 15 words and a flag. */
struct primitives {
    enum { FAN = NCCL_MAX_TREE_ARITY, WORDS = NCCL_LL128_DATAELEMS };

    const block &in;
    const reduction &reduce;
    const uint64_t argument; /* of the reduction */
    const int protocol;
    int slices = 1, steps = 1;
    ssize_t step_size; /* elements, in protocol Simple */
    int n_receive = 0, n_send = 0;
    flow receives[FAN], sends[FAN];
    pace_stream stream = {};

    primitives(const block &in, const reduction &reduce, uint64_t argument, int protocol,
               int chunk_steps, int slice_steps, std::initializer_list<int> from,
               std::initializer_list<int> to, int connection = 0, ssize_t given_step_size = 0)
        : in(in), reduce(reduce), argument(argument), protocol(protocol)
    {
        step_size = given_step_size
                        ? given_step_size
                        : in.comm->buffSizes[NCCL_PROTO_SIMPLE] / NCCL_STEPS / (ssize_t)reduce.size;
        if (protocol == NCCL_PROTO_SIMPLE)
            slices = chunk_steps / slice_steps, steps = slice_steps;
        for (int peer : from)
            if (peer >= 0) {
                ncclConnInfo *conn = &in.channel->peers[peer]->recv[connection];
                receives[n_receive] = {conn, rounded(conn->step)};
                if (protocol == NCCL_PROTO_SIMPLE)
                    store(conn->head, receives[n_receive].step);
                n_receive++;
            }
        for (int peer : to)
            if (peer >= 0) {
                ncclConnInfo *conn = &in.channel->peers[peer]->send[connection];
                sends[n_send++] = {conn, rounded(conn->step)};
            }
    }

    void end()
    {
        for (int i = 0; i < n_receive; i++)
            receives[i].conn->step = receives[i].step;
        for (int i = 0; i < n_send; i++)
            sends[i].conn->step = sends[i].step;
    }

    uint64_t rounded(uint64_t step) const
    {
        uint64_t chunk = (uint64_t)(slices * steps);

        return (step + chunk - 1) / chunk * chunk;
    }

    /* src and dst may be null; pre: what comes from src is scaled first, where the reduction does
     * that; post: the sum is divided at the end, likewise. */
    void run(bool receive, bool send, const char *src, bool pre, char *dst, ssize_t count,
             bool post)
    {
        count = std::max<ssize_t>(count, 0);
        if (protocol == NCCL_PROTO_SIMPLE)
            run_slices(receive, send, src, pre, dst, count, post);
        else
            run_lines(receive, send, src, pre, dst, count, post);
    }

    /* Until the data are there, in Simple, and there is room at the peers. */
    void acquire(bool receive, bool send, size_t bytes)
    {
        uint64_t n = (uint64_t)steps;

        for (int i = 0; receive && protocol == NCCL_PROTO_SIMPLE && i < n_receive; i++)
            in.until([&] { return load(receives[i].conn->tail) >= receives[i].step + n; });
        for (int i = 0; send && i < n_send; i++) {
            flow &flow = sends[i];
            in.until([&] { return load(flow.conn->head) + NCCL_STEPS >= flow.step + n; });
            if (flow.conn->connFifo)
                __atomic_store_n(&flow.conn->connFifo[flow.slot()].size, (ssize_t)bytes,
                                 __ATOMIC_RELEASE);
        }
    }

    /* All copies end here, when the machine would be done with so many bytes: peers see now that
     * there are data, and room. */
    void post(bool receive, bool send, size_t bytes)
    {
        rig_copy copies[2 * FAN];
        int n = 0;

        for (int i = 0; receive && i < n_receive; i++)
            copies[n++] = {buffer(receives[i]), true};
        for (int i = 0; send && i < n_send; i++)
            copies[n++] = {buffer(sends[i]), false};
        if (in.copies && bytes > 0) {
            in.copies(
                in.gpu, &stream, copies, n, bytes,
                [](void *block) { return ((const struct block *)block)->is_aborted(); },
                (void *)&in);
            if (in.is_aborted())
                throw aborted();
        }
        for (int i = 0; receive && i < n_receive; i++)
            store(receives[i].conn->head, receives[i].step += (uint64_t)steps);
        for (int i = 0; send && i < n_send; i++) {
            sends[i].step += (uint64_t)steps;
            if (protocol != NCCL_PROTO_LL && sends[i].conn->tail)
                store(sends[i].conn->tail, sends[i].step);
        }
    }

    char *buffer(const flow &flow) const
    {
        const ncclConnInfo *conn = flow.conn;
        char *start = conn->buffs[protocol];

        if (protocol != NCCL_PROTO_SIMPLE)
            return start;
        if (conn->connFifo && conn->connFifo[flow.slot()].mode == NCCL_MODE_OFFSET)
            return start + __atomic_load_n(&conn->connFifo[flow.slot()].offset, __ATOMIC_ACQUIRE);
        return start + (size_t)flow.slot() * (size_t)conn->stepSize;
    }

    /* A slice may be empty: peers count it all the same. */
    void run_slices(bool receive, bool send, const char *src, bool pre, char *dst, ssize_t count,
                    bool post_divide)
    {
        ssize_t size = std::max<ssize_t>((count + 16 * slices - 1) / (16 * slices) * 16,
                                         step_size * steps / 32);
        ssize_t element = (ssize_t)reduce.size;

        for (ssize_t slice = 0, at = 0; slice < slices; slice++, at += size) {
            size = std::min(size, count - at);
            acquire(receive, send, (size_t)(size * element));
            if (size > 0)
                move(receive, send, src ? src + at * element : nullptr, pre,
                     dst ? dst + at * element : nullptr, (size_t)size, post_divide);
            post(receive, send, (size_t)(std::max<ssize_t>(size, 0) * element));
        }
    }

    void move(bool receive, bool send, const char *src, bool pre, char *dst, size_t count,
              bool post_divide)
    {
        const char *from[FAN + 1];
        char *to[FAN + 1];
        int n_from = 0, n_to = 0;
        size_t bytes = count * reduce.size;

        if (src)
            from[n_from++] = src;
        for (int i = 0; receive && i < n_receive; i++)
            from[n_from++] = buffer(receives[i]);
        if (dst)
            to[n_to++] = dst;
        for (int i = 0; send && i < n_send; i++)
            to[n_to++] = buffer(sends[i]);
        if (n_to == 0 || n_from == 0)
            return;
        if (src && pre && reduce.pre) {
            reduce.pre(to[0], src, nullptr, count, argument);
            from[0] = to[0];
        }
        if (n_from == 1 && from[0] != to[0])
            memmove(to[0], from[0], bytes);
        for (int i = 1; i < n_from; i++)
            reduce.add(to[0], i == 1 ? from[0] : to[0], from[i], count, argument);
        if (post_divide && reduce.post)
            reduce.post(to[0], to[0], nullptr, count, argument);
        for (int i = 1; i < n_to; i++)
            memcpy(to[i], to[0], bytes);
    }

    /* -- LL and LL128 -- */

    size_t line_bytes() const
    {
        return protocol == NCCL_PROTO_LL ? sizeof(ncclLLFifoLine) : NCCL_LL128_LINESIZE;
    }

    uint64_t *line(const flow &flow, size_t number) const
    {
        size_t step_bytes = (size_t)in.comm->buffSizes[protocol] / NCCL_STEPS;

        return (uint64_t *)(flow.conn->buffs[protocol] + (size_t)flow.slot() * step_bytes +
                            number * line_bytes());
    }

    void put(const flow &flow, size_t number, const uint64_t *data) const
    {
        uint64_t *to = line(flow, number), flag = flow.step + 1;

        if (protocol == NCCL_PROTO_LL) {
            flag = (uint64_t)NCCL_LL_FLAG(flag) << 32;
            store(&to[0], (data[0] & 0xffffffff) | flag);
            store(&to[1], data[0] >> 32 | flag);
            return;
        }
        memcpy(to, data, WORDS * sizeof(*data));
        store(&to[WORDS], flag);
    }

    void get(const flow &flow, size_t number, uint64_t *data) const
    {
        uint64_t *from = line(flow, number), flag = flow.step + 1, low = 0, high = 0;

        if (protocol == NCCL_PROTO_LL) {
            flag = NCCL_LL_FLAG(flag);
            in.until([&] {
                low = load(&from[0]), high = load(&from[1]);
                return low >> 32 == flag && high >> 32 == flag;
            });
            data[0] = (low & 0xffffffff) | high << 32;
            return;
        }
        in.until([&] { return load(&from[WORDS]) == flag; });
        memcpy(data, from, WORDS * sizeof(*data));
    }

    void run_lines(bool receive, bool send, const char *src, bool pre, char *dst, ssize_t count,
                   bool post_divide)
    {
        size_t bytes = (size_t)count * reduce.size,
               unit = protocol == NCCL_PROTO_LL ? 8 : WORDS * 8;
        size_t n = (bytes + unit - 1) / unit, elements = unit / reduce.size;

        acquire(receive, send, n * line_bytes());
        for (size_t i = 0; i < n; i++) {
            uint64_t data[WORDS] = {0}, other[WORDS];
            size_t here = std::min(unit, bytes - i * unit);
            if (src) {
                memcpy(data, src + i * unit, here);
                if (pre && reduce.pre)
                    reduce.pre((char *)data, (char *)data, nullptr, elements, argument);
            }
            for (int j = 0; receive && j < n_receive; j++) {
                bool first = !src && j == 0;
                get(receives[j], i, first ? data : other);
                if (!first)
                    reduce.add((char *)data, (char *)data, (char *)other, elements, argument);
            }
            if (post_divide && reduce.post)
                reduce.post((char *)data, (char *)data, nullptr, elements, argument);
            for (int j = 0; send && j < n_send; j++)
                put(sends[j], i, data);
            if (dst)
                memcpy(dst + i * unit, data, here);
        }
        post(receive, send, n * line_bytes());
    }
};

/* ---- collectives: NCCL's src/device/COLLECTIVE.h ---- */

struct collective {
    const block &in;
    const reduction &reduce;
    const ncclDevWorkColl *work;
    const int protocol;
    struct { /* of the data: this channel's */
        size_t count, offset, size, chunk;
    } part;
    const ssize_t ranks;
    const ncclRing *ring;

    collective(const block &in, const reduction &reduce, ncclDevWorkColl *work, int protocol)
        : in(in), reduce(reduce), work(work), protocol(protocol), ranks(in.comm->nRanks),
          ring(&in.channel->ring)
    {
        ncclCollCbdPart(work, (uint32_t)in.channel_id, protocol, (int)reduce.size, &part.count,
                        &part.offset, &part.size, &part.chunk);
    }

    const char *input(size_t offset) const
    {
        return (const char *)work->sendbuff + offset * reduce.size;
    }

    char *output(size_t offset) const
    {
        return (char *)work->recvbuff + offset * reduce.size;
    }

    bool in_place(size_t offset) const
    {
        return input(offset) == output(offset);
    }

    primitives with_peers(int chunk_steps, int slice_steps, std::initializer_list<int> from,
                          std::initializer_list<int> to) const
    {
        return primitives(in, reduce, work->redOpArg, protocol, chunk_steps, slice_steps, from, to);
    }

    primitives on_ring(int chunk_steps, int slice_steps) const
    {
        return with_peers(chunk_steps, slice_steps, {ring->prev}, {ring->next});
    }

    /* Chunk by chunk: f(where it begins, its elements). */
    template <typename F> void chunks(F f) const
    {
        for (size_t at = 0; at < part.size; at += part.chunk)
            f(part.offset + at, (ssize_t)std::min(part.chunk, part.size - at));
    }

    void all_reduce()
    {
        primitives p = on_ring(ALLREDUCE_CHUNKSTEPS, ALLREDUCE_SLICESTEPS);
        ssize_t chunk = (ssize_t)part.chunk, size = (ssize_t)part.size, loop = chunk * ranks;

        for (ssize_t at = 0; at < size; at += loop) {
            ssize_t left = size - at, unit = 16 / (ssize_t)reduce.size;
            if (left < loop)
                chunk = ((left + ranks - 1) / ranks + unit - 1) / unit * unit;
            auto piece = [&](ssize_t back, bool receive, bool send, bool src, bool dst, bool post) {
                ssize_t offset = (ring->index + ranks - back) % ranks * chunk;
                size_t from = part.offset + (size_t)(at + offset);
                p.run(receive, send, src ? input(from) : nullptr, true,
                      dst ? output(from) : nullptr, std::min(chunk, left - offset), post);
            };
            piece(1, false, true, true, false, false);
            for (ssize_t j = 2; j < ranks; j++)
                piece(j, true, true, true, false, false);
            piece(0, true, true, true, true, true);
            for (ssize_t j = 1; j < ranks - 1; j++)
                piece(j, true, true, false, true, false);
            piece(ranks - 1, true, false, false, true, false);
        }
        p.end();
    }

    void all_gather()
    {
        primitives p = on_ring(ALLGATHER_CHUNKSTEPS, ALLGATHER_SLICESTEPS);

        chunks([&](size_t at, ssize_t n) {
            auto out = [&](ssize_t i) {
                return output(at + (size_t)ring->userRanks[i] * part.count);
            };
            p.run(false, true, input(at), false, input(at) == out(0) ? nullptr : out(0), n, false);
            for (ssize_t j = 1; j < ranks - 1; j++)
                p.run(true, true, nullptr, false, out(ranks - j), n, false);
            p.run(true, false, nullptr, false, out(1), n, false);
        });
        p.end();
    }

    void reduce_scatter()
    {
        primitives p = on_ring(REDUCESCATTER_CHUNKSTEPS, REDUCESCATTER_SLICESTEPS);

        chunks([&](size_t at, ssize_t n) {
            auto from = [&](ssize_t i) {
                return input(at + (size_t)ring->userRanks[i] * part.count);
            };
            p.run(false, true, from(ranks - 1), true, nullptr, n, false);
            for (ssize_t j = 2; j < ranks; j++)
                p.run(true, true, from(ranks - j), true, nullptr, n, false);
            p.run(true, false, from(0), true, output(at), n, true);
        });
        p.end();
    }

    void broadcast()
    {
        primitives p = on_ring(BROADCAST_CHUNKSTEPS, BROADCAST_SLICESTEPS);
        int root = (int)work->root;

        chunks([&](size_t at, ssize_t n) {
            if (ring->userRanks[0] == root)
                p.run(false, true, input(at), false, in_place(at) ? nullptr : output(at), n, false);
            else
                p.run(true, ring->userRanks[1] != root, nullptr, false, output(at), n, false);
        });
        p.end();
    }

    void reduce_to_root()
    {
        primitives p = on_ring(REDUCE_CHUNKSTEPS, REDUCE_SLICESTEPS);
        bool is_root = ring->userRanks[0] == (int)work->root;

        chunks([&](size_t at, ssize_t n) {
            p.run(ring->prev != (int)work->root, !is_root, input(at), true,
                  is_root ? output(at) : nullptr, n, is_root);
        });
        p.end();
    }

    /* All up, then all down: on a GPU both at once, which no peer can tell. */
    void tree_all_reduce()
    {
        const ncclTree *tree = &in.channel->tree;
        const auto below = {tree->down[0], tree->down[1], tree->down[2]};
        bool is_root = tree->up < 0;

        primitives up = with_peers(1, 1, below, {tree->up});
        chunks([&](size_t at, ssize_t n) {
            up.run(true, true, input(at), true, is_root ? output(at) : nullptr, n, is_root);
        });
        up.end();
        primitives down = with_peers(1, 1, {tree->up}, below);
        chunks([&](size_t at, ssize_t n) {
            down.run(true, true, is_root ? output(at) : nullptr, false,
                     is_root ? nullptr : output(at), n, false);
        });
        down.end();
    }
};

/* ---- what a launch asks for ---- */

struct function {
    const char *name;
    void (collective::*run)() = nullptr; /* a collective's */
    int protocol = NCCL_PROTO_SIMPLE;
    reduction reduce = {};
    bool known = false;
};

/* "AllReduce Sum f32 RING SIMPLE", "AllGather RING LL", "SendRecv" */
function parse(const char *name)
{
    static const struct {
        const char *collective, *algorithm;
        void (collective::*run)();
    } all[] = {{"AllReduce", "RING", &collective::all_reduce},
               {"AllReduce", "TREE", &collective::tree_all_reduce},
               {"AllGather", "RING", &collective::all_gather},
               {"ReduceScatter", "RING", &collective::reduce_scatter},
               {"Broadcast", "RING", &collective::broadcast},
               {"Reduce", "RING", &collective::reduce_to_root}};
    char words[5][32];
    int n =
        sscanf(name, "%31s %31s %31s %31s %31s", words[0], words[1], words[2], words[3], words[4]);
    function out = {name};

    out.known = strcmp(name, "SendRecv") == 0;
    for (const auto &one : all)
        if (n >= 3 && strcmp(words[0], one.collective) == 0 &&
            strcmp(words[n - 2], one.algorithm) == 0) {
            std::string protocol = words[n - 1];
            out.run = one.run;
            out.protocol = protocol == "LL"      ? NCCL_PROTO_LL
                           : protocol == "LL128" ? NCCL_PROTO_LL128
                                                 : NCCL_PROTO_SIMPLE;
            out.known = n == 3 || reduction_of(words[1], words[2], &out.reduce);
        }
    return out;
}

/* Threads of ranks may outlive the program's main, so it is never freed. */
const function &function_of(unsigned id)
{
    static const std::vector<function> *const all = [] {
        auto *made = new std::vector<function>;
        for (const char *name : functions)
            made->push_back(parse(name));
        return made;
    }();
    static const function none = {"an unknown function"};

    return id < all->size() ? (*all)[id] : none;
}

/* What one function does at once. */
struct batch {
    const function *what;
    std::vector<ncclDevWorkColl> collectives;
    std::vector<ncclDevWorkP2p> sends;
    bool known_work; /* false: it is of another kind */
};

/* Adds those that a batch of NCCL's has. */
template <typename T>
void add_works(const ncclDevKernelArgs *args, const ncclDevWorkBatch *from, std::vector<T> *works)
{
    bool in_arguments = args->workStorageType == ncclDevWorkStorageTypeArgs;

    for (int i = 0; i < 64; i++) {
        if (!(from->offsetBitset >> i & 1))
            continue;
        size_t at = from->offsetBase + (size_t)i * sizeof(T);
        T work;
        /* In the buffer a work wraps around between its packs of 16 bytes. */
        for (size_t pack = 0; pack < sizeof(work); pack += 16)
            memcpy((char *)&work + pack,
                   in_arguments ? (const char *)args + at + pack
                                : (const char *)args->workBuf + ((at + pack) & args->workMask),
                   16);
        works->push_back(work);
    }
}

/* Those of a block, in their order. NCCL's batches that extend others are one with them. */
std::vector<batch> batches_of(const ncclDevKernelArgs *args, unsigned block)
{
    const ncclDevWorkBatch *at = (const ncclDevWorkBatch *)(args + 1) + block;
    std::vector<batch> batches;

    for (bool extends = false;; at += at->nextJump) {
        if (!extends)
            batches.push_back({&function_of(at->funcId), {}, {}, true});
        batch &last = batches.back();
        if (at->workType == ncclDevWorkTypeP2p)
            add_works(args, at, &last.sends);
        else if (at->workType == ncclDevWorkTypeColl)
            add_works(args, at, &last.collectives);
        else
            last.known_work = false;
        extends = at->nextExtends;
        if (at->nextJump == 0)
            return batches;
    }
}

/* Are a user's buffers used in place of NCCL's own? */
bool is_registered(const auto &work)
{
    if constexpr (requires { work.regUsed; })
        if (work.regUsed)
            return true;
    if constexpr (requires { work.netRegUsed; })
        if (work.netRegUsed)
            return true;
    if constexpr (requires { work.sendRegistered; })
        if (work.sendRegistered || work.recvRegistered)
            return true;
    if constexpr (requires { work.sendNetReg; })
        if (work.sendNetReg || work.recvNetReg)
            return true;
    if constexpr (requires { work.sendIpcReg; })
        if (work.sendIpcReg || work.recvIpcReg)
            return true;
    return false;
}

/* Does a profiler plugin wait for what a kernel counts? */
bool is_profiled(const auto &work)
{
    if constexpr (requires { work.profilerEnabled; })
        return work.profilerEnabled;
    return false;
}

/* Why it can't run, or NULL. */
const char *refuse_batch(const batch &batch)
{
    if (!batch.known_work || !batch.what->known)
        return batch.what->name;
    for (const ncclDevWorkColl &work : batch.collectives)
        if (is_registered(work))
            return "a collective of registered buffers";
        else if (is_profiled(work))
            return "a kernel that counts for a profiler";
    for (const ncclDevWorkP2p &work : batch.sends)
        if (is_registered(work))
            return "a send of registered buffers";
        else if (is_profiled(work))
            return "a kernel that counts for a profiler";
    return nullptr;
}

const char *refused(const void *arguments)
{
    const ncclDevKernelArgs *args = (const ncclDevKernelArgs *)arguments;
    unsigned blocks = (unsigned)__builtin_popcountll(args->channelMask);

    for (unsigned block = 0; block < blocks; block++)
        for (const batch &batch : batches_of(args, block))
            if (const char *reason = refuse_batch(batch))
                return reason;
    return nullptr;
}

/* ---- its execution ---- */

void run_collective(const block &in, const function &what, ncclDevWorkColl *work)
{
    if (work->redOpArgIsPtr) {
        uint64_t value = 0;
        memcpy(&value, (const void *)work->redOpArg, what.reduce.size);
        work->redOpArg = value;
    }
    collective one(in, what.reduce, work, what.protocol);
    (one.*what.run)();
}

/* One half of a send and receive: this channel's part of it. */
void run_half(const block &in, const ncclDevWorkP2p &work, bool send)
{
    static const reduction none;
    size_t bytes = send ? work.sendBytes : work.recvBytes, begin = 0, end = 0, at = 0;
    int parts = send ? work.nSendChannels : work.nRecvChannels;
    int part = ncclP2pChannelToPart(work.nP2pChannels, work.channelBase, in.channel_id);
    int peer = send ? work.sendRank : work.recvRank;
    bool ll = send ? work.sendProtoLL : work.recvProtoLL;
    size_t chunk = u32fp8Decode(send ? work.sendChunkSize_u32fp8 : work.recvChunkSize_u32fp8);

    if (part >= parts)
        return;
    ncclP2pPartBounds(parts, part, bytes, &begin, &end);
    const char *from = (const char *)work.sendAddr + begin;
    char *to = (char *)work.recvAddr + begin;
    if (work.sendRank == in.comm->rank) {
        if (send)
            memmove(to, from, end - begin);
        return;
    }
    primitives p(in, none, 0, ll ? NCCL_PROTO_LL : NCCL_PROTO_SIMPLE, 1, 1, {send ? -1 : peer},
                 {send ? peer : -1}, 1, in.comm->p2pChunkSize);
    do {
        size_t n = std::min(chunk, end - begin - at);
        p.run(!send, send, send ? from + at : nullptr, false, send ? nullptr : to + at, (ssize_t)n,
              false);
        at += n;
    } while (at < end - begin);
    p.end();
}

/* All at once, as the warps of a block: each may wait for any other. */
void run_sends(const block &in, const std::vector<ncclDevWorkP2p> &works)
{
    std::vector<std::thread> threads;
    std::atomic<bool> ended = false;

    for (const ncclDevWorkP2p &work : works)
        for (bool send : {true, false})
            threads.emplace_back([&, send] {
                try {
                    run_half(in, work, send);
                } catch (const aborted &) {
                    ended = true;
                }
            });
    for (std::thread &thread : threads)
        thread.join();
    if (ended)
        throw aborted();
}

/* Up to 2.26 NCCL is told what of its queue of works has been read. */
void tell_read(auto *comm, const ncclDevKernelArgs *args, unsigned number, int channel)
{
    if constexpr (requires { comm->workConsumed; }) {
        if (args->workStorageType != ncclDevWorkStorageTypeFifo)
            return;
        const ncclDevWorkBatch *last = (const ncclDevWorkBatch *)(args + 1) + number;
        while (last->nextJump != 0)
            last += last->nextJump;
        __atomic_store_n(&comm->workConsumed[channel],
                         last->offsetBase +
                             (uint32_t)((64 - __builtin_clzll(last->offsetBitset)) *
                                        ncclDevWorkSize((ncclDevWorkType)last->workType)),
                         __ATOMIC_RELEASE);
    }
}

void run(const void *arguments, unsigned number, int gpu, rig_copies *copies)
{
    const ncclDevKernelArgs *args = (const ncclDevKernelArgs *)arguments;
    std::vector<batch> batches = batches_of(args, number);
    uint64_t mask = args->channelMask;

    for (unsigned block = 0; block < number; block++)
        mask &= mask - 1;
    int channel = __builtin_ctzll(mask);
    block in = {args->comm, &args->comm->channels[channel], channel, gpu, copies};
    tell_read(args->comm, args, number, channel);
    try {
        for (batch &batch : batches) {
            if (!batch.sends.empty())
                run_sends(in, batch.sends);
            for (ncclDevWorkColl &work : batch.collectives)
                run_collective(in, *batch.what, &work);
        }
    } catch (const aborted &) {
    }
}

} // namespace

extern "C" {
extern __attribute__((visibility("default"))) const struct rig_kernels rig_kernels;
const struct rig_kernels rig_kernels = {NCCL_VERSION_CODE, refused, run};
}
