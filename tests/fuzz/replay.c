/* Replays a corpus without libFuzzer: runs the target once on each file named, and on each file of the
 * folders named. Prints the name first, so that the last line tells on which one it ended. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool replay_file(const char *path) {
    char *bytes = NULL;
    size_t count = 0;
    FILE *file = fopen(path, "rb");
    FILE *copy = open_memstream(&bytes, &count);
    bool read = file != NULL && copy != NULL;
    for (int byte; read && (byte = getc(file)) != EOF;)
        putc(byte, copy);
    read = read && ferror(file) == 0;
    if (file != NULL)
        fclose(file);
    if (copy != NULL)
        fclose(copy);
    printf("%s: %zu bytes\n", path, count);
    fflush(stdout);
    if (read)
        LLVMFuzzerTestOneInput((const uint8_t *)bytes, count);
    else
        perror(path);
    free(bytes);
    return read;
}

/* Files whose names begin with a dot are no inputs. Returns how many were replayed, or −1. */
static int replay_folder(const char *folder) {
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    int replayed = 0;
    for (int index = 0; index < count; index++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entries[index]->d_name);
        if (entries[index]->d_name[0] != '.' && replayed >= 0)
            replayed = replay_file(path) ? replayed + 1 : -1;
        free(entries[index]);
    }
    if (count >= 0)
        free(entries);
    return count < 0 ? (replay_file(folder) ? 1 : -1) : replayed;
}

int main(int argc, char **argv) {
    int total = 0;
    for (int index = 1; index < argc && total >= 0; index++) {
        int replayed = replay_folder(argv[index]);
        total = replayed < 0 ? -1 : total + replayed;
    }
    if (total <= 0) {
        fprintf(stderr, "nothing was replayed; usage: %s FILE-OR-FOLDER...\n", argv[0]);
        return 1;
    }
    printf("%d inputs replayed\n", total);
    return 0;
}
