#include "timeline.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>

/* Declares a function of CUDA, and the function that the linker puts in its place (--wrap). */
#define WRAPPED(NAME, ...)                                                                                   \
    cudaError_t __real_##NAME(__VA_ARGS__);                                                                  \
    cudaError_t __wrap_##NAME(__VA_ARGS__)
WRAPPED(cudaMemcpyAsync, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
        cudaStream_t stream);
WRAPPED(cudaMemcpy2DAsync, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t row_bytes,
        size_t rows, enum cudaMemcpyKind kind, cudaStream_t stream);
WRAPPED(cudaLaunchKernel, const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
        cudaStream_t stream);
WRAPPED(cudaLaunchKernelExC, const cudaLaunchConfig_t *launch, const void *kernel, void **arguments);

enum { NOTES_MAX = 1 << 14 };

/* A copy or a kernel, between two events of its stream. */
static struct note {
    const char *what;
    size_t bytes;
    cudaEvent_t begun;
    cudaEvent_t ended;
} notes[NOTES_MAX];

static int count = -1; /* -1 if nothing is noted */

void timeline_begin(void) {
    count = 0;
}

/* Returns NULL if the operation is not noted. */
static struct note *begin(const char *what, size_t bytes, cudaStream_t stream) {
    if (count < 0 || count == NOTES_MAX)
        return NULL;
    struct note *note = &notes[count];
    note->what = what;
    note->bytes = bytes;
    if (cudaEventCreate(&note->begun) != cudaSuccess || cudaEventCreate(&note->ended) != cudaSuccess ||
        cudaEventRecord(note->begun, stream) != cudaSuccess)
        return NULL;
    count++;
    return note;
}

static cudaError_t end(const struct note *note, cudaStream_t stream, cudaError_t code) {
    return note == NULL || code != cudaSuccess ? code : cudaEventRecord(note->ended, stream);
}

static const char *word(enum cudaMemcpyKind kind) {
    if (kind == cudaMemcpyHostToDevice)
        return "upload";
    return kind == cudaMemcpyDeviceToHost ? "download" : "copy";
}

cudaError_t __wrap_cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                                   cudaStream_t stream) {
    const struct note *note = begin(word(kind), bytes, stream);
    return end(note, stream, __real_cudaMemcpyAsync(to, from, bytes, kind, stream));
}

cudaError_t __wrap_cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                     size_t row_bytes, size_t rows, enum cudaMemcpyKind kind,
                                     cudaStream_t stream) {
    const struct note *note = begin(word(kind), row_bytes * rows, stream);
    return end(note, stream,
               __real_cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, row_bytes, rows, kind, stream));
}

cudaError_t __wrap_cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                                    size_t shared_bytes, cudaStream_t stream) {
    const struct note *note = begin("kernel", 0, stream);
    return end(note, stream, __real_cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream));
}

cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *launch, const void *kernel,
                                       void **arguments) {
    const struct note *note = begin("kernel", 0, launch->stream);
    return end(note, launch->stream, __real_cudaLaunchKernelExC(launch, kernel, arguments));
}

int timeline_write(const char *path) {
    FILE *file = fopen(path, "w");
    bool is_written = file != NULL && fprintf(file, "what,begin_ms,end_ms,bytes\n") > 0;
    for (int index = 0; index < count && is_written; index++) {
        const struct note *note = &notes[index];
        float begun_ms = 0.0F, ended_ms = 0.0F;
        is_written = cudaEventElapsedTime(&begun_ms, notes[0].begun, note->begun) == cudaSuccess &&
                     cudaEventElapsedTime(&ended_ms, notes[0].begun, note->ended) == cudaSuccess &&
                     fprintf(file, "%s,%.3f,%.3f,%zu\n", note->what, (double)begun_ms, (double)ended_ms,
                             note->bytes) > 0;
    }
    is_written = file != NULL && fclose(file) == 0 && is_written;
    return is_written ? count : -1;
}
