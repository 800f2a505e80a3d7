/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_CORE_H
#define ERRAND_CORE_H
/* core: the leaf that everything else stands on.  Nothing here knows what an errand is.
 *
 * One section per file: assert, mem, lock, futex, clock, random, text, list, heap.
 * Threads: each section says; unless it does, a function may be called from any thread on
 * objects that no other thread uses at the time. */
#include <stdarg.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include "errand/base.h"

/* ---- assert: three words, all statements (misuse.c) ------------------------------------ */
/* ERRAND_ASSERT: our own bug; always on, prints and aborts.
 * ERRAND_REQUIRE_ARG: the caller's bug; answers its status in every build and calls the
 * misuse hook with the function's name and the text.
 * ERRAND_REQUIRE_OF: the same in a helper, which names the public function that was called. */
#define ERRAND_ASSERT(condition)                                                         \
    do {                                                                                 \
        if (__builtin_expect(!(condition), 0))                                           \
            errand__assert_failed(__FILE__, __LINE__, #condition);                       \
    } while (0)
#define ERRAND_REQUIRE_ARG(condition, status, text)                                      \
    ERRAND_REQUIRE_OF(__func__, condition, status, text)
#define ERRAND_REQUIRE_OF(function, condition, status, text)                             \
    do {                                                                                 \
        if (__builtin_expect(!(condition), 0))                                           \
            return errand__misuse((status), (function), (text));                         \
    } while (0)
ERRAND_NORETURN void errand__assert_failed(const char *file, int line,
                                           const char *condition);
/* Calls the misuse hook and returns status.  "function: text", and the mend of the status where the
 * text has none; the text is complete where that is to look the call up. */
errand_status errand__misuse(errand_status status, const char *function,
                             const char *text);

/* What seldom runs, or with something few operations have, kept out of its callers: with its registers,
 * buffers and stack guard in them, each job would save, check and restore them for nothing. */
#define ERRAND_COLD  __attribute__((noinline, cold))
#define ERRAND_APART __attribute__((noinline))

/* Clang's thread-safety analysis, where it is. */
#if defined(__clang__)
#define ERRAND_CAPABILITY(x) __attribute__((capability(x)))
#define ERRAND_REQUIRES(x)   __attribute__((requires_capability(x)))
#define ERRAND_ACQUIRES(x)   __attribute__((acquire_capability(x)))
#define ERRAND_RELEASES(x)   __attribute__((release_capability(x)))
#define ERRAND_NO_ANALYSIS   __attribute__((no_thread_safety_analysis))
#else
#define ERRAND_CAPABILITY(x)
#define ERRAND_REQUIRES(x)
#define ERRAND_ACQUIRES(x)
#define ERRAND_RELEASES(x)
#define ERRAND_NO_ANALYSIS
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ERRAND_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ERRAND_SANITIZED 1
#endif
#endif
#ifndef ERRAND_SANITIZED
#define ERRAND_SANITIZED 0
#endif
#define ERRAND_LINE 64 /* bytes of a cache line: what two threads should not share */

/* ---- mem: the only files that know which allocator there is (mem.c, arena.c) ------------ */
/* allocator NULL = the library's own.  All answer NULL when memory runs out, never abort. */
void *errand__mem_alloc(const errand_allocator *allocator, size_t size); /* zeroed */
/* The library's own, with whatever was there before: for what is written whole anyway. */
void *errand__mem_alloc_bare(size_t size);
/* Zeroed, for what is written soon: a large block by hand, since an allocator that has one at hand may give
 * its pages back for it, and take zeroed ones, at each call. */
void *errand__mem_alloc_used(size_t size);
/* Is a block of this size better zeroed by hand? */
static inline bool
errand__mem_zero_by_hand(size_t size)
{
    /* jemalloc's first large class is 16 KiB; what is above 8 MiB it never keeps. */
    return size > ((size_t)14 << 10) && size <= ((size_t)8 << 20);
}
/* Such a block was asked for bare: zeroes it.  Others are zeroed already.  NULL stays NULL. */
static inline void *
errand__mem_zeroed(void *block, size_t size)
{
    return block != NULL && errand__mem_zero_by_hand(size) ? memset(block, 0, size)
                                                           : block;
}
void errand__mem_free(const errand_allocator *allocator, void *block, size_t size);
/* Moves to a larger block, the new tail zeroed; on NULL the old one is untouched. */
void *errand__mem_grow(const errand_allocator *allocator, void *block, size_t size,
                       size_t new_size);
/* Whole zeroed pages straight from the system, touched lazily; never from an allocator. */
void *errand__mem_map(size_t size);
void errand__mem_unmap(void *block, size_t size);
/* Blocks of malloc of at least ERRAND__KEEP_LEAST that were given back while somebody holds this open
 * (keep.c).  Any thread.  take: NULL = none that fits; give: false = it is still the caller's; drop: gives
 * all of them back, false = there was none; shut, once for each open: the last one drops them. */
#define ERRAND__KEEP_LEAST ((size_t)128 << 10)
void *errand__keep_take(size_t size);
bool errand__keep_give(void *block, size_t size);
bool errand__keep_drop(void);
void errand__keep_open(void);
void errand__keep_shut(void);
/* Is mallocx there (weak reference, found in the program)?  Decides where the blocks of
 * arenas come from. */
bool errand__mem_has_jemalloc(void);
/* Test builds: let the n-th allocation from now fail (n >= 1; 0 = none), of every function
 * above and of arenas; answers how many were asked for since the last call.  Any thread. */
uint64_t errand__mem_fail_nth(uint64_t n);
/* One of them asks: is it the one that is to fail? */
bool errand__mem_refused(void);
/* Test builds: bytes live in mem_alloc (all allocators) right now. */
int64_t errand__mem_live_bytes(void);

/* Arenas (arena.c) for errand_job_alloc (O77).  One per worker, made at first use, used by one thread
 * at a time.  An arena keeps a count of live blocks; reset frees everything at once.  Blocks
 * are listed; they come from an arena of jemalloc's own, emptied as a whole when they are
 * many, or else from the C library. */
typedef struct errand__arena errand__arena;
errand__arena *errand__arena_create(void);
void errand__arena_destroy(errand__arena *arena);
void *errand__arena_alloc(errand__arena *arena, size_t size); /* zeroed, 16-aligned */
void errand__arena_free(errand__arena *arena, void *block);
size_t errand__arena_live(const errand__arena *arena); /* blocks handed out, not freed */
void errand__arena_reset(errand__arena *arena);

/* ---- lock: leaf locks and conditions (lock.c) ---------------------------------------- */
/* Test builds keep a thread-local count of locks held and assert that it is 0 on acquire
 * (no lock nests) and where foreign code is entered (errand__lock_none_held). */
typedef struct ERRAND_CAPABILITY("lock") errand__lock {
    /* word: 0 free, 1 held, 2 held with sleepers; a futex mutex, spins shortly.
     * Writers: whoever acquires (0 to 1 or 2, 1 to 2) and the holder (to 0).
     * Readers: the same.
     * Order:   acquire when it is taken, release when it is given back.
     * Pairs:   lock-word (errand__lock_release; errand__lock_acquire, acquire_contended).
     * Why:     what the last holder wrote must be seen by the next; no more is promised. */
    atomic_uint word;
} errand__lock;
void errand__lock_acquire(errand__lock *lock) ERRAND_ACQUIRES(*lock);
void errand__lock_release(errand__lock *lock) ERRAND_RELEASES(*lock);
void errand__lock_none_held(void);

/* futex: sleep while *word == expected; timeout_ns relative, UINT64_MAX = for ever.
 * Returns after a wake, a change, a signal or the timeout: the caller looks again.
 * False only when the timeout passed. */
bool errand__futex_wait(atomic_uint *word, unsigned expected, uint64_t timeout_ns);
void errand__futex_wake(atomic_uint *word, int threads);
/* futex.c: sleep while each word is as expected; shared: another process may change it.  Answers
 * which word's wake it was, or -1: the timeout, a signal, or a word had changed before.
 * has_many: false where the kernel has no such call; then wait_many may not be used. */
enum { ERRAND__FUTEX_MANY = 128 };
typedef struct errand__futex_word {
    atomic_uint *word; /* no atomic of its own: see whose it is */
    unsigned expected;
    bool shared;
} errand__futex_word;
bool errand__futex_has_many(void);
int errand__futex_wait_many(const errand__futex_word *words, unsigned count,
                            uint64_t timeout_ns);

/* ---- bell: a sleep that ends at a ring (bell.c) ---------------------------------------- */
/* Bells are the process's, there are few, and two numbers may have the same one: who was rung looks
 * whether it was for him.  Between listen and leave: read rings, look at what is waited for, await
 * that no more were rung.  Who changes such a thing rings afterwards. */
typedef struct errand__bell errand__bell;
errand__bell *errand__bell_of(uint64_t number, uint64_t more);
void errand__bell_listen(errand__bell *bell);
void errand__bell_leave(errand__bell *bell);
unsigned errand__bell_rings(const errand__bell *bell);
void errand__bell_await(errand__bell *bell, unsigned rings); /* may return earlier */
void errand__bell_ring(errand__bell *bell); /* next to nothing where nobody listens */

/* ---- clock (clock.c) ------------------------------------------------------------------ */
uint64_t errand__clock_now(void);    /* CLOCK_MONOTONIC, ns */
uint64_t errand__clock_coarse(void); /* CLOCK_MONOTONIC_COARSE, ns, cheap, some ms old */
/* The processor's cycle counter (rdtsc, cntvct_el0, else the clock in ns) and how many of
 * its ticks make a microsecond, measured once. */
uint64_t errand__cycles_per_us(void);
static inline uint64_t
errand__cycles(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return errand__clock_now();
#endif
}
static inline void
errand__cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
/* A number of the calling thread, never 0, that no other living thread has: one instruction
 * where the compiler knows how. */
static inline uintptr_t
errand__thread_self(void)
{
#if defined(__has_builtin)
#if __has_builtin(__builtin_thread_pointer) && defined(__x86_64__) && !defined(__clang__)
    return (uintptr_t)__builtin_thread_pointer();
#else
    return (uintptr_t)pthread_self();
#endif
#else
    return (uintptr_t)pthread_self();
#endif
}
/* Fetches a line in order to write it: one transfer from another processor instead of two.  A read
 * of it right after waits for the same transfer.  Nothing is read in the language's sense. */
static inline void
errand__prefetch_own(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1);
#endif
}
unsigned errand__cpus_allowed(void); /* processors that this thread may run on, >= 1 */
/* The processor that the calling thread runs on now (vdso; no system call where possible). */
unsigned errand__cpu_current(void);

/* ---- random: counter-based streams (random.c) ----------------------------------------- */
/* A draw is a function of (seed, stream, key, ordinal) and of nothing else, so that one draw
 * more anywhere shifts no other (D52).  Streams have fixed numbers. */
typedef enum errand__stream {
    ERRAND__STREAM_SCHEDULE = 1,
    ERRAND__STREAM_BEGIN = 2,
    ERRAND__STREAM_LATENCY = 3,
    ERRAND__STREAM_TIE = 4,
    ERRAND__STREAM_FATE = 5,
    ERRAND__STREAM_APPLICATION = 6,
    ERRAND__STREAM_PICK = 7,
    ERRAND__STREAM_PRIORITY = 8,
    ERRAND__STREAM_CHANGE = 9,
    ERRAND__STREAM_DELAY = 10,
    ERRAND__STREAM_STARVE = 11,
    ERRAND__STREAM_PORTFOLIO = 12
} errand__stream;
/* A word as eight bytes, low byte first, wherever it is written: what is hashed is the same on every
 * machine.  As one store, not eight, so that a hash that reads it need not wait for memory. */
static inline void
errand__word_write(unsigned char *out, uint64_t word)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    __builtin_memcpy(out, &word, sizeof word);
}
uint64_t errand__random_draw(uint64_t seed, errand__stream stream, uint64_t key,
                             uint64_t ordinal);
/* Uniform in 0 .. n-1 without bias, from the same arguments; n >= 1; n = 1 draws nothing. */
uint64_t errand__random_below(uint64_t seed, errand__stream stream, uint64_t key,
                              uint64_t ordinal, uint64_t n);
/* A child's key: (parent's key, label, number of the parent's spawns so far); labels count
 * by content.  An operation's key: (task's key, number of its submissions so far). */
uint64_t errand__key_child(uint64_t parent, const char *label, uint64_t ordinal);
uint64_t errand__key_operation(uint64_t task, uint64_t ordinal);
/* Keyed mix of an audit digest: folds bytes of known length in. */
uint64_t errand__mix_bytes(uint64_t mix, const void *bytes, size_t size);
/* The mix of four words, for what goes into a step as one. */
uint64_t errand__mix_words(uint64_t first, uint64_t second, uint64_t third,
                           uint64_t fourth);
/* What a label counts as there; NULL = 0. */
uint64_t errand__label_hash(const char *label);
/* Real entropy for a seed that nobody gave; never zero. */
uint64_t errand__random_entropy(void);

/* ---- text (text.c) --------------------------------------------------------------------- */
/* Formats into size bytes; longer text is cut at a UTF-8 character's end and ends in the mark
 * "..." (O26).  Always terminated for size >= 1.  Returns the length written. */
size_t errand__text_format(char *out, size_t size, const char *format, ...)
    ERRAND_PRINTF(3, 4);
size_t errand__text_vformat(char *out, size_t size, const char *format, va_list arguments)
    ERRAND_PRINTF(3, 0);
/* The same behind the text that is there, size bytes for both.  Returns the length of both; where
 * size is 0 nothing is looked at. */
size_t errand__text_append(char *out, size_t size, const char *format, ...)
    ERRAND_PRINTF(3, 4);

/* ---- list: intrusive, doubly linked, circular around a head (inline) -------------------- */
typedef struct errand__link {
    struct errand__link *next, *previous;
} errand__link;
static inline void
errand__list_init(errand__link *head)
{
    head->next = head->previous = head;
}
static inline bool
errand__list_empty(const errand__link *head)
{
    return head->next == head;
}
static inline void
errand__list_append(errand__link *head, errand__link *link)
{
    link->previous = head->previous;
    link->next = head;
    head->previous->next = link;
    head->previous = link;
}
static inline void
errand__list_prepend(errand__link *head, errand__link *link)
{
    errand__list_append(head->next, link);
}
/* Unlinks; harmless on a link that is zeroed or unlinked already. */
static inline void
errand__list_unlink(errand__link *link)
{
    if (link->next == NULL)
        return;
    link->next->previous = link->previous;
    link->previous->next = link->next;
    link->next = link->previous = NULL;
}
static inline bool
errand__list_linked(const errand__link *link)
{
    return link->next != NULL;
}
/* Sorts by before, without memory; equal links keep their order (list.c). */
void errand__list_sort(errand__link *head,
                       bool (*before)(const errand__link *a, const errand__link *b));
#define ERRAND__CONTAINER(pointer, type, member)                                         \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* ---- heap: a priority queue by (major, minor, last), smallest first (heap.c) ------------ */
/* Entries are embedded in what they order; an entry knows its place, so removal is
 * O(log n) and immediate (O72).  position 0 = not in a heap. */
typedef struct errand__heap_entry {
    uint64_t major, minor, last;
    size_t position; /* constant while it is in */
} errand__heap_entry;
#define ERRAND__HEAP_LATEST (UINT64_MAX / 2) /* in slots: first words from here on */
typedef struct errand__heap_slot {
    uint64_t major;            /* the entry's, ERRAND__HEAP_LATEST at most; see heap.c */
    errand__heap_entry *entry; /* NULL = nobody stands here */
} errand__heap_slot;
typedef struct errand__heap {
    const errand_allocator *allocator;
    errand__heap_slot *slots; /* a tree of 2 * room; see heap.c */
    uint32_t *places;         /* first those of the entries, then the free ones */
    size_t count, room;
} errand__heap;
void errand__heap_init(errand__heap *heap, const errand_allocator *allocator);
void errand__heap_fini(errand__heap *heap);
/* Makes sure that the heap can hold count entries, so that insert cannot fail. */
bool errand__heap_grow(errand__heap *heap, size_t count); /* it cannot yet */
static inline bool
errand__heap_reserve(errand__heap *heap, size_t count)
{
    return count <= heap->room || errand__heap_grow(heap, count);
}
/* Needs room (reserve first); asserts it. */
void errand__heap_insert(errand__heap *heap, errand__heap_entry *entry);
/* Harmless on an entry that is in no heap. */
void errand__heap_remove(errand__heap *heap, errand__heap_entry *entry);
/* Those that were inserted since the last question take their part in the order. */
void errand__heap_play(const errand__heap *heap);
static inline errand__heap_entry *
errand__heap_first(const errand__heap *heap)
{
    if (heap->count == 0)
        return NULL;
    if (heap->slots[0].major != heap->count)
        errand__heap_play(heap);
    return heap->slots[1].entry;
}
/* Its major; UINT64_MAX = there is none. */
static inline uint64_t
errand__heap_next(const errand__heap *heap)
{
    const errand__heap_entry *first = errand__heap_first(heap);

    if (first == NULL)
        return UINT64_MAX;
    return __builtin_expect(heap->slots[1].major < ERRAND__HEAP_LATEST, 1)
               ? heap->slots[1].major
               : first->major;
}
/* All of them, in no order: the entry at the first place from *place on, which steps behind it;
 * begin with 0.  NULL = no more. */
errand__heap_entry *errand__heap_walk(const errand__heap *heap, size_t *place);
#endif
