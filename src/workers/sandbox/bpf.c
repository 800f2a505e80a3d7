/* SPDX-License-Identifier: MIT */
/* Design notes
 * - Written here and not by libseccomp, although that is a well-kept library: where memory runs out while it
 *   makes a program it frees twice, or never returns (2.5.4), and this runs in the host.  Here memory is
 *   asked for before the first instruction and after the last.  libseccomp still knows the calls'
 *   numbers.
 * - One call's part: is it that number, else behind the part; its rules; the action of what no rule
 *   matched.  While numbers are asked for the accumulator holds the call's, so a part never runs into the
 *   next one, and a second part of one call is never reached.
 * - One rule: each half of an argument that its tests look at is loaded, masked and compared; whichever
 *   differs jumps to the next rule.
 * - Jumps are forward, and their distance is a byte: a part that were longer is E2BIG, as is a
 *   program that the kernel would not take. */
#include "workers/sandbox/bpf.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>

#define X32_CALLS 0x40000000u
#define JUMP_MOST 255u
#define ROOM      ((size_t)BPF_MAXINSNS * sizeof(struct sock_filter))
/* Of a word of 64 bits the lower half is the first, or the second. */
#define LOWER_AT (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4u : 0u)

static void
put(errand__bpf *self, uint16_t code, uint32_t value, uint8_t yes, uint8_t no)
{
    if (self->error == 0 && self->length == BPF_MAXINSNS)
        self->error = E2BIG;
    if (self->error == 0)
        self->code[self->length++] = (struct sock_filter){code, yes, no, value};
}

static void
put_load(errand__bpf *self, size_t at)
{
    put(self, BPF_LD | BPF_W | BPF_ABS, (uint32_t)at, 0, 0);
}

static void
put_end(errand__bpf *self, uint32_t action)
{
    put(self, BPF_RET | BPF_K, action, 0, 0);
}

/* Where the comparison at does not hold the program goes on here. */
static void
land(errand__bpf *self, uint32_t at)
{
    uint32_t distance = self->length - at - 1;

    if (self->error != 0)
        return;
    if (distance > JUMP_MOST)
        self->error = E2BIG;
    else
        self->code[at].jf = (uint8_t)distance;
}

static void
close_call(errand__bpf *self)
{
    if (self->opened == 0)
        return;
    if (!self->decided)
        put_end(self, self->otherwise);
    land(self, self->opened);
    self->opened = 0;
}

void
errand__bpf_begin(errand__bpf *self, uint32_t machine, uint32_t newer, uint32_t otherwise)
{
    *self = (errand__bpf){.otherwise = otherwise, .code = errand__mem_alloc(NULL, ROOM)};
    if (self->code == NULL)
        self->error = ENOMEM;
    put_load(self, offsetof(struct seccomp_data, arch));
    put(self, BPF_JMP | BPF_JEQ | BPF_K, machine, 1, 0);
    put_end(self, SECCOMP_RET_KILL_PROCESS);
    put_load(self, offsetof(struct seccomp_data, nr));
    put(self, BPF_JMP | BPF_JGE | BPF_K, ERRAND__BPF_CALLS, 0, 3);
    put(self, BPF_JMP | BPF_JGE | BPF_K, X32_CALLS, 0, 1);
    put_end(self, SECCOMP_RET_KILL_PROCESS);
    put_end(self, newer);
}

void
errand__bpf_call(errand__bpf *self, int number)
{
    close_call(self);
    if (number < 0 || number >= ERRAND__BPF_CALLS)
        return;
    self->decided = false;
    self->opened = self->length;
    put(self, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 0);
}

void
errand__bpf_rule(errand__bpf *self, uint32_t action, unsigned count,
                 const errand__bpf_test *tests)
{
    uint32_t differs[2 * ERRAND__BPF_TESTS];
    unsigned halves = 0;

    ERRAND_ASSERT(count <= ERRAND__BPF_TESTS);
    if (self->opened == 0 || self->decided)
        return;
    for (unsigned i = 0; i < 2 * count; i++) {
        const errand__bpf_test *test = &tests[i / 2];
        unsigned shift = i % 2 == 0 ? 0 : 32;
        uint32_t mask = (uint32_t)(test->mask >> shift);

        ERRAND_ASSERT((test->value & ~test->mask) == 0);
        if (mask == 0)
            continue;
        put_load(self, offsetof(struct seccomp_data, args) +
                           test->argument * sizeof(uint64_t) +
                           (shift == 0 ? LOWER_AT : 4 - LOWER_AT));
        if (mask != UINT32_MAX)
            put(self, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
        differs[halves++] = self->length;
        put(self, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(test->value >> shift), 0, 0);
    }
    put_end(self, action);
    self->decided = halves == 0;
    while (halves > 0)
        land(self, differs[--halves]);
}

int
errand__bpf_finish(errand__bpf *self, struct sock_filter **out_program,
                   uint32_t *out_length)
{
    size_t size;

    close_call(self);
    put_end(self, self->otherwise);
    size = self->length * sizeof *self->code;
    if (self->error == 0) {
        *out_program = errand__mem_alloc_bare(size);
        if (*out_program == NULL)
            self->error = ENOMEM;
    }
    if (self->error == 0) {
        memcpy(*out_program, self->code, size);
        *out_length = self->length;
    }
    if (self->code != NULL)
        errand__mem_free(NULL, self->code, ROOM);
    self->code = NULL;
    return self->error;
}
