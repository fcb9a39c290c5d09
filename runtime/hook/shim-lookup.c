/* shim-lookup.c: dlsym in front of libc's, for programs that get NCCL's functions from dlsym, such
 * as all that use Python's ctypes; and for how NCCL reaches CUDA's driver (driver.h).
 *
 * What dlsym finds depends on its caller (RTLD_NEXT, and RTLD_DEFAULT in a library that was loaded
 * for itself alone), whom libc knows by the return address. So ours calls nobody: a name that
 * begins with neither "nccl" nor "cuGe" goes on to the next dlsym by a jump, with registers and
 * stack as they came. Functions of NCCL that have no wrapper, and whatever is in doubt, go the same
 * way in the end.
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

#include "base/bound.h"
#include "base/symbols.h"
#include "hook/hook.h"

#if (defined __x86_64__ && defined __LP64__) || defined __aarch64__

/* In two registers. */
struct shim_lookup {
    void *address;
    long done; /* 0: the next dlsym is to be called, as if by the program; address means nothing */
};

/* SHIM_ENTRY bytes for each wrapper of each copy. */
enum { SHIM_ENTRY = 32 };
extern const char shim_entries[] __attribute__((visibility("hidden")));

/* ncclX of a handle of the program's, and pncclX, of which the latter is asked for first: dlerror
 * has to be as the former leaves it. */
static void *find(void *handle, const char *name, const void **in)
{
    char twin_name[64];
    snprintf(twin_name, sizeof(twin_name), "p%s", name);
    void *twin = shim_dlsym(handle, twin_name), *found = shim_dlsym(handle, name);
    *in = twin ? twin : found;
    return found;
}

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
    const void *in;
    /* Who defines it too, and looks for the next one, stands between the program and NCCL. */
    if (shim_defines(caller, name))
        return as_without_us;
    if (handle == RTLD_DEFAULT || handle == RTLD_NEXT)
        return if_there(name);
    void *found = find(handle, name, &in);
    if (!found)
        return as_without_us;
    if (shim_is_ours(found))
        return if_there(name);
    /* In another namespace (dlmopen) NCCL does not ask us. */
    if (!shim_object_of(found, &object))
        return as_without_us;
    int entry = shim_bind(wrapper, object.start, found, in);
    return entry < 0 ? as_without_us
                     : (struct shim_lookup){(char *)shim_entries + entry * SHIM_ENTRY, 1};
}

/* Called by our dlsym for names that begin with "nccl" or "cuGe". caller: where dlsym will return
 * to. */
struct shim_lookup shim_lookup(void *handle, const char *name, const void *caller);

__attribute__((used, visibility("hidden"))) struct shim_lookup
shim_lookup(void *handle, const char *name, const void *caller)
{
    struct shim_lookup answer = {0};
    if (!shim_relocated())
        return answer;
    int wrapper = shim_wrapper_number(name), before = errno;
    if (wrapper >= 0)
        answer = look_up(wrapper, handle, name, caller);
    else if ((answer.address = shim_driver_lookup(handle, name, caller)))
        answer.done = 1;
    errno = before;
    return answer;
}

#define SHIM_TEXT_(x) #x
#define SHIM_TEXT(x) SHIM_TEXT_(x)

#ifdef __x86_64__

#define SHIM_CALL(function) /* with dlsym's parameters kept */                                     \
    "    push %rdi\n"                                                                              \
    "    .cfi_adjust_cfa_offset 8\n"                                                               \
    "    push %rsi\n"                                                                              \
    "    .cfi_adjust_cfa_offset 8\n"                                                               \
    "    sub $8, %rsp\n"                                                                           \
    "    .cfi_adjust_cfa_offset 8\n"                                                               \
    "    call " function "\n"                                                                      \
    "    add $8, %rsp\n"                                                                           \
    "    .cfi_adjust_cfa_offset -8\n"                                                              \
    "    pop %rsi\n"                                                                               \
    "    .cfi_adjust_cfa_offset -8\n"                                                              \
    "    pop %rdi\n"                                                                               \
    "    .cfi_adjust_cfa_offset -8\n"

__asm__(".pushsection .text\n"
        ".balign 16\n"
        ".globl dlsym\n"
        ".type dlsym, @function\n"
        "dlsym:\n"
        ".cfi_startproc\n"
        "    endbr64\n"
        "    test %rsi, %rsi\n"
        "    jz 1f\n"
        "    cmpb $'n', (%rsi)\n"
        "    jne 5f\n"
        "    cmpb $'c', 1(%rsi)\n"
        "    jne 1f\n"
        "    cmpb $'c', 2(%rsi)\n"
        "    jne 1f\n"
        "    cmpb $'l', 3(%rsi)\n"
        "    je 3f\n"
        "    jmp 1f\n"
        "5:  cmpb $'c', (%rsi)\n"
        "    jne 1f\n"
        "    cmpb $'u', 1(%rsi)\n"
        "    jne 1f\n"
        "    cmpb $'G', 2(%rsi)\n"
        "    jne 1f\n"
        "    cmpb $'e', 3(%rsi)\n"
        "    je 3f\n"
        "1:  mov shim_next_dlsym(%rip), %rax\n"
        "    test %rax, %rax\n"
        "    jz 4f\n"
        "2:  jmp *%rax\n"
        "3:  mov (%rsp), %rdx\n" SHIM_CALL(
            "shim_lookup") "    test %rdx, %rdx\n"
                           "    jz 1b\n"
                           "    ret\n"
                           "4:\n" SHIM_CALL("shim_find_dlsym") "    test %rax, %rax\n"
                                                               "    jnz 2b\n"
                                                               "    ret\n"
                                                               ".cfi_endproc\n"
                                                               ".size dlsym, . - dlsym\n"
                                                               ".popsection\n");

#define SHIM_ENTRY_OF(wrapper)                                                                     \
    "    .balign 32\n"                                                                             \
    "    .set shim_entry, shim_entry + 1\n"                                                        \
    "    endbr64\n"                                                                                \
    "    mov shim_bound_entry@gottpoff(%rip), %r11\n"                                              \
    "    movl $shim_entry, %fs:(%r11)\n"                                                           \
    "    jmp " #wrapper "\n"

#else

__asm__(".pushsection .text\n"
        ".balign 16\n"
        ".globl dlsym\n"
        ".type dlsym, %function\n"
        "dlsym:\n"
        ".cfi_startproc\n"
        "    hint #34\n" /* bti c */
        "    cbz x1, 1f\n"
        "    ldrb w9, [x1]\n"
        "    cmp w9, #'n'\n"
        "    b.ne 5f\n"
        "    ldrb w9, [x1, #1]\n"
        "    cmp w9, #'c'\n"
        "    b.ne 1f\n"
        "    ldrb w9, [x1, #2]\n"
        "    cmp w9, #'c'\n"
        "    b.ne 1f\n"
        "    ldrb w9, [x1, #3]\n"
        "    cmp w9, #'l'\n"
        "    b.eq 3f\n"
        "    b 1f\n"
        "5:  cmp w9, #'c'\n"
        "    b.ne 1f\n"
        "    ldrb w9, [x1, #1]\n"
        "    cmp w9, #'u'\n"
        "    b.ne 1f\n"
        "    ldrb w9, [x1, #2]\n"
        "    cmp w9, #'G'\n"
        "    b.ne 1f\n"
        "    ldrb w9, [x1, #3]\n"
        "    cmp w9, #'e'\n"
        "    b.eq 3f\n"
        "1:  adrp x16, shim_next_dlsym\n"
        "    ldr x16, [x16, #:lo12:shim_next_dlsym]\n"
        "    cbz x16, 4f\n"
        "2:  br x16\n"
        "3:  stp x29, x30, [sp, #-32]!\n"
        "    .cfi_adjust_cfa_offset 32\n"
        "    .cfi_offset 29, -32\n"
        "    .cfi_offset 30, -24\n"
        "    mov x29, sp\n"
        "    stp x0, x1, [sp, #16]\n"
        "    mov x2, x30\n"
        "    bl shim_lookup\n"
        "    mov x9, x0\n"
        "    mov x10, x1\n"
        "    ldp x0, x1, [sp, #16]\n"
        "    ldp x29, x30, [sp], #32\n"
        "    .cfi_adjust_cfa_offset -32\n"
        "    .cfi_restore 29\n"
        "    .cfi_restore 30\n"
        "    cbz x10, 1b\n"
        "    mov x0, x9\n"
        "    ret\n"
        "4:  stp x29, x30, [sp, #-32]!\n"
        "    .cfi_adjust_cfa_offset 32\n"
        "    .cfi_offset 29, -32\n"
        "    .cfi_offset 30, -24\n"
        "    mov x29, sp\n"
        "    stp x0, x1, [sp, #16]\n"
        "    bl shim_find_dlsym\n"
        "    mov x16, x0\n"
        "    ldp x0, x1, [sp, #16]\n"
        "    ldp x29, x30, [sp], #32\n"
        "    .cfi_adjust_cfa_offset -32\n"
        "    .cfi_restore 29\n"
        "    .cfi_restore 30\n"
        "    cbnz x16, 2b\n"
        "    mov x0, #0\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size dlsym, . - dlsym\n"
        ".popsection\n");

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
        ".balign 32\n"
        ".globl shim_entries\n"
        ".hidden shim_entries\n"
        ".set shim_entry, 0\n"
        "shim_entries:\n"
        ".rept " SHIM_TEXT(SHIM_BOUND_COPIES) "\n" SHIM_WRAPPED(SHIM_ENTRY_OF) ".endr\n"
                                                                               ".balign 32\n"
                                                                               ".popsection\n");

#endif
