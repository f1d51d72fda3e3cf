/* A library for LD_PRELOAD that makes chosen allocations of a process fail, in any library and thread.
 * Starting a thread counts as an allocation, because a thread needs a stack. Without the variable
 * MATMULD_TEST_FAULTS no allocation fails. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Shared with malloc.py in the file that MATMULD_TEST_FAULTS names. Access here is by __atomic. */
struct control {
    uint64_t armed; /* while this is 0, no allocation is counted or fails */
    uint64_t bytes; /* smaller allocations are neither counted nor fail */
    uint64_t first; /* number of the first allocation that fails, counted from 1 */
    uint64_t last;
    uint64_t seen;
    uint64_t failed;
};

static struct control *control; /* NULL if no allocation must fail */

/* True after the thread's start function began. Earlier allocations of a sanitizer must succeed. */
static _Thread_local bool is_counted __attribute__((tls_model("initial-exec")));

/* Allocations of these libraries must succeed, because these libraries end the process if memory runs out. */
static const char *const spared_names[] = {"libopenblas", "libgmp", "libtasn1"};
enum { SPARED = sizeof spared_names / sizeof spared_names[0] };
static struct { uintptr_t from, to; } spared[SPARED];

static int find_spared(struct dl_phdr_info *library, size_t bytes, void *argument) {
    (void)bytes;
    (void)argument;
    for (unsigned which = 0; which < SPARED; which++) {
        if (strstr(library->dlpi_name, spared_names[which]) == NULL)
            continue;
        for (unsigned index = 0; index < library->dlpi_phnum; index++) {
            const ElfW(Phdr) *part = &library->dlpi_phdr[index];
            if (part->p_type != PT_LOAD || (part->p_flags & PF_X) == 0)
                continue;
            spared[which].from = library->dlpi_addr + part->p_vaddr;
            spared[which].to = spared[which].from + part->p_memsz;
        }
    }
    return 0;
}

static bool is_spared(const void *caller) {
    for (unsigned which = 0; which < SPARED; which++)
        if ((uintptr_t)caller >= spared[which].from && (uintptr_t)caller < spared[which].to)
            return true;
    return false;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("MATMULD_TEST_FAULTS");
    const int file = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return;
    dl_iterate_phdr(find_spared, NULL);
    is_counted = true;
    void *memory = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory != MAP_FAILED)
        __atomic_store_n(&control, memory, __ATOMIC_RELEASE);
}

/* A thread's stack counts as an allocation of this size, because its real size is unknown here. */
enum { THREAD_BYTES = 1 << 16 };

static bool fails(size_t bytes, const void *caller) {
    struct control *told = __atomic_load_n(&control, __ATOMIC_ACQUIRE);
    if (!is_counted || told == NULL || __atomic_load_n(&told->armed, __ATOMIC_ACQUIRE) == 0)
        return false;
    const uint64_t least_bytes = __atomic_load_n(&told->bytes, __ATOMIC_RELAXED);
    if (bytes < least_bytes || (least_bytes == 0 && is_spared(caller)))
        return false;
    const uint64_t index = __atomic_add_fetch(&told->seen, 1, __ATOMIC_RELAXED);
    if (index < __atomic_load_n(&told->first, __ATOMIC_RELAXED) ||
        index > __atomic_load_n(&told->last, __ATOMIC_RELAXED))
        return false;
    __atomic_add_fetch(&told->failed, 1, __ATOMIC_RELAXED);
    errno = ENOMEM;
    return true;
}

#define fails_here(bytes) fails(bytes, __builtin_return_address(0))

/* Sets `next` to the replaced function. A constructor is too late, because programs allocate earlier. */
#define FIND_NEXT(name)                                                                                      \
    static __typeof__(name) *found;                                                                          \
    __typeof__(name) *next = __atomic_load_n(&found, __ATOMIC_RELAXED);                                      \
    if (next == NULL) {                                                                                      \
        next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);                                                  \
        __atomic_store_n(&found, next, __ATOMIC_RELAXED);                                                    \
    }

#define WRAP(type, name, parameters, arguments, bytes, failure)                                              \
    type name parameters {                                                                                   \
        FIND_NEXT(name)                                                                                      \
        return fails_here(bytes) ? (failure) : next arguments;                                               \
    }

/* strdup does not call malloc in a sanitizer. mmap64 is mmap for programs with large-file support. */
/* clang-format off */
WRAP(void *, malloc, (size_t bytes), (bytes), bytes, NULL)
WRAP(void *, calloc, (size_t count, size_t bytes), (count, bytes), count * bytes, NULL)
WRAP(void *, realloc, (void *memory, size_t bytes), (memory, bytes), bytes, NULL)
WRAP(void *, reallocarray, (void *memory, size_t count, size_t bytes), (memory, count, bytes), count * bytes, NULL)
WRAP(void *, aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes), bytes, NULL)
WRAP(void *, memalign, (size_t alignment, size_t bytes), (alignment, bytes), bytes, NULL)
WRAP(int, posix_memalign, (void **memory, size_t alignment, size_t bytes), (memory, alignment, bytes), bytes, ENOMEM)
WRAP(char *, strdup, (const char *text), (text), strlen(text) + 1, NULL)
WRAP(char *, strndup, (const char *text, size_t bytes), (text, bytes), bytes, NULL)
WRAP(void *, mmap, (void *address, size_t bytes, int protection, int flags, int file, off_t offset), (address, bytes, protection, flags, file, offset), bytes, MAP_FAILED)
WRAP(void *, mmap64, (void *address, size_t bytes, int protection, int flags, int file, off64_t offset), (address, bytes, protection, flags, file, offset), bytes, MAP_FAILED)
/* clang-format on */

struct start {
    void *(*run)(void *);
    void *argument;
};

static void *run_counted(void *argument) {
    const struct start start = *(struct start *)argument;
    free(argument);
    is_counted = true;
    return start.run(start.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument) {
    FIND_NEXT(pthread_create)
    if (fails_here(THREAD_BYTES))
        return EAGAIN;
    const bool was_counted = is_counted;
    is_counted = false;
    struct start *start = malloc(sizeof *start);
    if (start == NULL)
        abort();
    *start = (struct start){run, argument};
    const int failure = next(thread, attributes, run_counted, start);
    if (failure != 0)
        free(start);
    is_counted = was_counted;
    return failure;
}
