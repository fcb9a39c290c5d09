/* shim-lookup.c: dlsym in front of libc's, for programs that get NCCL's functions from dlsym, such
 * as all that use Python's ctypes; and for how NCCL reaches CUDA's driver (shim-driver.c).
 *
 * What dlsym finds depends on its caller (RTLD_NEXT, and RTLD_DEFAULT in a library that was loaded
 * for itself alone), whom libc knows by the return address. So a name that begins with neither
 * "nccl" nor "cuGe" goes on to the next dlsym by a jump, with parameters and stack as they came.
 * Functions of NCCL that have no wrapper, and whatever is in doubt, go the same way in the end.
 *
 * For the others the program gets an entry of ours that stands for this function of this NCCL: it
 * leaves its number in a thread-local word, and jumps to the wrapper. Again the stack is left
 * alone, since ncclUniqueId is passed on it.
 *
 * dlvsym needs no wrapper: NCCL's symbols have no versions, so it finds none of them. */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#include "base/loaded.h"
#include "hook/hook.h"

#if (defined __x86_64__ && defined __LP64__) || defined __aarch64__

/* In two registers. */
struct shim_lookup {
    void *address;
    long done; /* 0: address is the next dlsym, to be called as if by the program */
};

/* SHIM_ENTRY bytes for each wrapper of each copy. */
enum { SHIM_ENTRY = 32 };
extern const char shim_entries[] __attribute__((visibility("hidden")));

/* The program's own scope has our wrapper, also where nobody else has the function: then it is as
 * absent as without us. */
static struct shim_lookup if_there(const char *name)
{
    if (shim_defined_elsewhere(name))
        return (struct shim_lookup){0};
    return (struct shim_lookup){shim_dlsym(RTLD_NEXT, name), 1}; /* NULL, and dlerror says it */
}

static struct shim_lookup look_up(int wrapper, void *handle, const char *name, const void *caller)
{
    static const struct shim_lookup as_without_us = {0};
    struct shim_object object;
    char twin_name[64];
    /* Who defines it too, and looks for the next one, stands between the program and NCCL. */
    if (shim_defines(caller, name))
        return as_without_us;
    if (handle == RTLD_DEFAULT || handle == RTLD_NEXT)
        return if_there(name);
    /* ncclX of a handle of the program's, and pncclX, of which the latter is asked for first:
     * dlerror has to be as the former leaves it. */
    snprintf(twin_name, sizeof(twin_name), "p%s", name);
    void *twin = shim_dlsym(handle, twin_name), *found = shim_dlsym(handle, name);
    if (!found)
        return as_without_us;
    if (shim_is_ours(found))
        return if_there(name);
    /* In another namespace (dlmopen) NCCL does not ask us. */
    if (!shim_object_of(found, &object))
        return as_without_us;
    int entry = shim_bind(wrapper, object.start, found, twin ? twin : found);
    return entry < 0 ? as_without_us
                     : (struct shim_lookup){(char *)shim_entries + entry * SHIM_ENTRY, 1};
}

static __attribute__((noinline)) struct shim_lookup look_at(void *handle, const char *name,
                                                            const void *caller)
{
    struct shim_lookup answer = {0};
    int wrapper = shim_wrapper_number(name), before = errno;
    if (wrapper >= 0)
        answer = look_up(wrapper, handle, name, caller);
    else if ((answer.address = shim_driver_lookup(handle, name, caller)))
        answer.done = 1;
    errno = before;
    return answer;
}

/* Called by our dlsym. caller: where it will return to. */
struct shim_lookup shim_lookup(void *handle, const char *name, const void *caller);

__attribute__((used, visibility("hidden"))) struct shim_lookup
shim_lookup(void *handle, const char *name, const void *caller)
{
    struct shim_lookup answer = {0};
    /* Not strncmp, which can't be called before the shim is relocated. */
    if ((name && ((name[0] == 'n' && name[1] == 'c' && name[2] == 'c' && name[3] == 'l') ||
                  (name[0] == 'c' && name[1] == 'u' && name[2] == 'G' && name[3] == 'e'))) &&
        shim_relocated())
        answer = look_at(handle, name, caller);
    if (!answer.done) {
        answer.address = shim_next_dlsym ? shim_next_dlsym : shim_find_dlsym();
        answer.done = !answer.address;
    }
    return answer;
}

#define SHIM_TEXT_(x) #x
#define SHIM_TEXT(x) SHIM_TEXT_(x)

/* dlsym: asks shim_lookup, with its own parameters kept, and jumps to the next dlsym. */
#ifdef __x86_64__

#define SHIM_DLSYM                                                                                 \
    "    endbr64\n"                                                                                \
    "    mov (%rsp), %rdx\n"                                                                       \
    "    push %rdi\n"                                                                              \
    "    .cfi_adjust_cfa_offset 8\n"                                                               \
    "    push %rsi\n"                                                                              \
    "    .cfi_adjust_cfa_offset 8\n"                                                               \
    "    sub $8, %rsp\n"                                                                           \
    "    .cfi_adjust_cfa_offset 8\n"                                                               \
    "    call shim_lookup\n"                                                                       \
    "    add $8, %rsp\n"                                                                           \
    "    .cfi_adjust_cfa_offset -8\n"                                                              \
    "    pop %rsi\n"                                                                               \
    "    .cfi_adjust_cfa_offset -8\n"                                                              \
    "    pop %rdi\n"                                                                               \
    "    .cfi_adjust_cfa_offset -8\n"                                                              \
    "    test %rdx, %rdx\n"                                                                        \
    "    jz 1f\n"                                                                                  \
    "    ret\n"                                                                                    \
    "1:  jmp *%rax\n"

#define SHIM_ENTRY_OF(wrapper)                                                                     \
    "    .balign 32\n"                                                                             \
    "    .set shim_entry, shim_entry + 1\n"                                                        \
    "    endbr64\n"                                                                                \
    "    mov shim_bound_entry@gottpoff(%rip), %r11\n"                                              \
    "    movl $shim_entry, %fs:(%r11)\n"                                                           \
    "    jmp " #wrapper "\n"

#else

#define SHIM_DLSYM                                                                                 \
    "    hint #34\n" /* bti c */                                                                   \
    "    stp x29, x30, [sp, #-32]!\n"                                                              \
    "    .cfi_adjust_cfa_offset 32\n"                                                              \
    "    .cfi_offset 29, -32\n"                                                                    \
    "    .cfi_offset 30, -24\n"                                                                    \
    "    mov x29, sp\n"                                                                            \
    "    stp x0, x1, [sp, #16]\n"                                                                  \
    "    mov x2, x30\n"                                                                            \
    "    bl shim_lookup\n"                                                                         \
    "    mov x16, x0\n"                                                                            \
    "    mov x9, x1\n"                                                                             \
    "    ldp x0, x1, [sp, #16]\n"                                                                  \
    "    ldp x29, x30, [sp], #32\n"                                                                \
    "    .cfi_adjust_cfa_offset -32\n"                                                             \
    "    .cfi_restore 29\n"                                                                        \
    "    .cfi_restore 30\n"                                                                        \
    "    cbz x9, 1f\n"                                                                             \
    "    mov x0, x16\n"                                                                            \
    "    ret\n"                                                                                    \
    "1:  br x16\n"

#define SHIM_ENTRY_OF(wrapper)                                                                     \
    "    .balign 32\n"                                                                             \
    "    .set shim_entry, shim_entry + 1\n"                                                        \
    "    hint #34\n"                                                                               \
    "    mrs x16, tpidr_el0\n"                                                                     \
    "    adrp x17, :gottprel:shim_bound_entry\n"                                                   \
    "    ldr x17, [x17, #:gottprel_lo12:shim_bound_entry]\n"                                       \
    "    mov w9, #shim_entry\n"                                                                    \
    "    str w9, [x16, x17]\n"                                                                     \
    "    b " #wrapper "\n"

#endif

__asm__(".pushsection .text\n"
        ".balign 16\n"
        ".globl dlsym\n"
        ".type dlsym, %function\n"
        "dlsym:\n"
        ".cfi_startproc\n" SHIM_DLSYM ".cfi_endproc\n"
        ".size dlsym, . - dlsym\n"
        ".balign 32\n"
        ".globl shim_entries\n"
        ".hidden shim_entries\n"
        ".set shim_entry, 0\n"
        "shim_entries:\n"
        ".rept " SHIM_TEXT(SHIM_BOUND_COPIES) "\n" SHIM_WRAPPED(SHIM_ENTRY_OF) ".endr\n"
                                                                               ".balign 32\n"
                                                                               ".popsection\n");

#endif
