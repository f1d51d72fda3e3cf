/* Usage: hold MIB_LEFT. Allocates all free memory of a GPU except MIB_LEFT MiB, prints a line, and exits when
 * stdin ends. */
#include <cstdio>
#include <cstdlib>

static bool take(size_t bytes) {
    void *taken = nullptr;
    return cudaMalloc(&taken, bytes) == cudaSuccess;
}

int main(int argc, char **argv) {
    constexpr size_t MIB = size_t{1} << 20;
    const size_t left = argc == 2 ? std::strtoul(argv[1], nullptr, 10) * MIB : 0;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    if (argc != 2)
        return 2;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess)
        return 77;
    for (size_t piece = total_bytes; piece >= 2 * MIB; piece /= 2)
        while (cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess && free_bytes >= left + piece &&
               take(piece))
            continue;
    std::printf("%zu MiB are free\n", free_bytes / MIB);
    std::fflush(stdout);
    while (std::getchar() != EOF)
        continue;
    return 0;
}
