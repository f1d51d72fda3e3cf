/* Runs a fuzz target without libFuzzer on files, or on all files of folders. Prints the name of each file
 * first, so the last line names the input that failed. */
#include "tests/fuzz/fuzz.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned replayed;

static int replay_file(const char *path, const struct stat *status, int type, struct FTW *place) {
    if (type != FTW_F || path[place->base] == '.')
        return 0;
    const size_t bytes = (size_t)status->st_size;
    char *input = malloc(bytes + 1);
    FILE *file = fopen(path, "rb");
    REQUIRE(input != NULL && file != NULL && fread(input, 1, bytes + 1, file) == bytes);
    fclose(file);
    printf("%s: %zu bytes\n", path, bytes);
    fflush(stdout);
    LLVMFuzzerTestOneInput((const uint8_t *)input, bytes);
    free(input);
    replayed++;
    return 0;
}

int main(int argc, char **argv) {
    for (int index = 1; index < argc; index++)
        if (nftw(argv[index], replay_file, 16, 0) != 0)
            perror(argv[index]);
    printf("%u inputs replayed\n", replayed);
    return replayed == 0;
}
