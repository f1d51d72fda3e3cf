/* Little-endian float32 bytes from and to text, and test data, for the scripts of this folder: shells
 * hold no bytes. It knows nothing of HTTP or of the product.
 *
 *   float32 encode           numbers on stdin, separated by space, as bytes on stdout
 *   float32 decode           bytes on stdin as numbers on stdout, one a line; nine digits tell all apart
 *   float32 fill COUNT X     COUNT times the number X as bytes */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_bits(uint32_t bits) {
    for (int byte = 0; byte < 4; byte++) {
        putchar((int)(bits >> (8 * byte) & 0xff));
    }
}

static void write_number(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    write_bits(bits);
}

static int encode(void) {
    char word[128];
    while (scanf("%127s", word) == 1) {
        char *end = word;
        float number = strtof(word, &end);
        if (*end != '\0') {
            fprintf(stderr, "float32: '%s' is no number\n", word);
            return 1;
        }
        write_number(number);
    }
    return 0;
}

static int decode(void) {
    unsigned char bytes[4];
    size_t count;
    while ((count = fread(bytes, 1, sizeof bytes, stdin)) == sizeof bytes) {
        uint32_t bits =
            bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
        float number;
        memcpy(&number, &bits, sizeof number);
        /* The sign of a NaN is left to the hardware. */
        if (isnan(number)) {
            puts("NaN");
        } else {
            printf("%.9g\n", (double)number);
        }
    }
    if (count != 0) {
        printf("and %zu bytes that make no number\n", count);
    }
    return 0;
}

static int fill(unsigned long count, float number) {
    for (unsigned long i = 0; i < count; i++) {
        write_number(number);
    }
    return 0;
}

int main(int argc, char **argv) {
    int status = 2;
    if (argc == 2 && strcmp(argv[1], "encode") == 0) {
        status = encode();
    } else if (argc == 2 && strcmp(argv[1], "decode") == 0) {
        status = decode();
    } else if (argc == 4 && strcmp(argv[1], "fill") == 0) {
        status = fill(strtoul(argv[2], NULL, 10), strtof(argv[3], NULL));
    } else {
        fputs("usage: float32 encode|decode|fill COUNT X\n", stderr);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("float32: stdout");
        return 1;
    }
    return status;
}
