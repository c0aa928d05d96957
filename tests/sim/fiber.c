/* fiber.c: see fiber.h. A context is its stack pointer; what a call must preserve lies on
 * the stack, in the order of the pushes below. */
#include "fiber.h"

#include <stdint.h>
#include <string.h>

void fiber_start(void);
void fiber_jump(void **from, void *to);

/* AddressSanitizer wants to know which stack is in use. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define __sanitizer_start_switch_fiber(fake, stack, size) ((void)(fake))
#define __sanitizer_finish_switch_fiber(fake, stack, size) ((void)(fake))
#define __asan_unpoison_memory_region(stack, size) ((void)(stack))
#endif

#if defined(__x86_64__)

enum { WORDS = 7, ENTRY = 2, ARGUMENT = 3, RETURN = 6 };

__asm__(".text\n"
        ".hidden fiber_jump\n.globl fiber_jump\n.type fiber_jump, @function\n"
        "fiber_jump:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n"
        "    push %r13\n    push %r14\n    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
        "    ret\n"
        ".size fiber_jump, .-fiber_jump\n"
        ".hidden fiber_start\n.type fiber_start, @function\n"
        "fiber_start:\n"
        "    mov %r12, %rdi\n"
        "    call *%r13\n"
        "    ud2\n"
        ".size fiber_start, .-fiber_start\n");

#elif defined(__aarch64__)

enum { WORDS = 20, ENTRY = 1, ARGUMENT = 0, RETURN = 11 };

__asm__(".text\n"
        ".hidden fiber_jump\n.globl fiber_jump\n.type fiber_jump, %function\n"
        "fiber_jump:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp]\n    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n    stp d14, d15, [sp, #144]\n"
        "    mov x2, sp\n    str x2, [x0]\n    mov sp, x1\n"
        "    ldp x19, x20, [sp]\n    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size fiber_jump, .-fiber_jump\n"
        ".hidden fiber_start\n.type fiber_start, %function\n"
        "fiber_start:\n"
        "    mov x0, x19\n    blr x20\n    brk #0\n"
        ".size fiber_start, .-fiber_start\n");

#else
#error "fiber.c knows x86-64 and aarch64"
#endif

Fiber fiber_new(void *stack, size_t size, size_t above, void (*entry)(void *), void *argument)
{
    const uintptr_t end = ((uintptr_t)stack + size - above) & ~(uintptr_t)15;
    uintptr_t *sp = (uintptr_t *)(end - 16) - WORDS;
    memset(sp, 0, WORDS * sizeof *sp);
    sp[ENTRY] = (uintptr_t)entry;
    sp[ARGUMENT] = (uintptr_t)argument;
    sp[RETURN] = (uintptr_t)fiber_start;
    return (Fiber){sp, stack, size};
}

void fiber_entered(Fiber *from)
{
    (void)from;
    __sanitizer_finish_switch_fiber(NULL, &from->stack, &from->size);
}

void fiber_switch(Fiber *from, const Fiber *to)
{
    void *fake = NULL;
    __sanitizer_start_switch_fiber(&fake, to->stack, to->size);
    fiber_jump(&from->sp, to->sp);
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
}

void fiber_forget(void *stacks, size_t size)
{
    (void)size;
    __asan_unpoison_memory_region(stacks, size);
}
