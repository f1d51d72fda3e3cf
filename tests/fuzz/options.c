/* Fuzzes the process's options. The input is lines: those that begin with MATMULD_ are the environment, the
 * others are arguments. What is taken is printed line by line, and comes out the same when the lines are read
 * again; a size is what arithmetic makes of it; what is refused is told in a sentence; no key is ever shown.
 */
#include "server/options.h"

#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS_MAX = 64, VARIABLES_MAX = 64 };

/* Those of the input, or of what was printed, each in memory of its own. */
struct command {
    int count;
    char *arguments[ARGUMENTS_MAX + 1]; /* the first is the program's name */
    int variable_count;
    char *variables[VARIABLES_MAX];
};

/* Put behind each key, so that one which is shown can be told from the same text in another place. */
static const char mark[] = "<|this is secret|>";

static bool begins(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static char *join(const char *first, const char *second, const char *third) {
    char *text = malloc(strlen(first) + strlen(second) + strlen(third) + 1);
    REQUIRE(text != NULL);
    strcpy(stpcpy(stpcpy(text, first), second), third);
    return text;
}

/* Takes the line over. */
static void add_line(struct command *command, char *line) {
    const bool is_variable = begins(line, "MATMULD_") && strchr(line, '=') != NULL;
    if (begins(line, "MATMULD_API_KEY=") || begins(line, "--api-key=")) {
        char *marked = join(line, mark, "");
        free(line);
        line = marked;
    }
    if (is_variable && command->variable_count < VARIABLES_MAX)
        command->variables[command->variable_count++] = line;
    else if (!is_variable && command->count < ARGUMENTS_MAX)
        command->arguments[command->count++] = line;
    else
        free(line);
}

static void begin(struct command *command) {
    *command = (struct command){.count = 1};
    command->arguments[0] = fuzz_copy_text((struct piece){"matmuld", 7});
}

static void end(struct command *command) {
    for (int index = 0; index < command->count; index++)
        free(command->arguments[index]);
    for (int index = 0; index < command->variable_count; index++)
        free(command->variables[index]);
}

static bool parse(struct command *command, struct mm_options *options, struct mm_error *error) {
    clearenv();
    for (int index = 0; index < command->variable_count; index++)
        putenv(command->variables[index]);
    memset(error, 0x7f, sizeof *error);
    const bool good = mm_options_parse(options, command->count, command->arguments, error) == MM_OK;
    if (!good)
        REQUIRE(memchr(error->detail, '\0', sizeof error->detail) != NULL && error->detail[0] != '\0');
    return good;
}

static char *print(const struct mm_options *options) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    REQUIRE(out != NULL);
    mm_options_print(options, out);
    REQUIRE(fclose(out) == 0);
    return text;
}

/* NAME = VALUE becomes the flag that says the same; a secret has none, and is left out. */
static void add_printed(struct command *command, struct piece line) {
    char *text = fuzz_copy_text(line);
    char *value = strstr(text, " = ");
    REQUIRE(value != NULL);
    *value = '\0';
    value += strlen(" = ");
    if (*value != '\0' && strcmp(text, "api-key") != 0) {
        char *name = join("--", text, "=");
        char *flag = join(name, value, "");
        free(name);
        add_line(command, flag);
    }
    free(text);
}

static void require_read_again(const char *printed) {
    struct command command;
    struct mm_options options;
    struct mm_error error;
    struct piece rest = {printed, strlen(printed)};
    begin(&command);
    while (rest.bytes > 0)
        add_printed(&command, fuzz_take(&rest, '\n'));
    REQUIRE(parse(&command, &options, &error));
    char *again = print(&options);
    struct piece first = {printed, strlen(printed)}, second = {again, strlen(again)};
    while (first.bytes > 0) {
        const struct piece x = fuzz_take(&first, '\n'), y = fuzz_take(&second, '\n');
        if (strncmp(x.text, "api-key = ", 10) != 0)
            REQUIRE(x.bytes == y.bytes && memcmp(x.text, y.text, x.bytes) == 0);
    }
    REQUIRE(second.bytes == 0);
    free(again);
    end(&command);
}

/* --max-body=SIZE alone: a long double holds what a size comes to, also beyond 64 bits. */
static void judge_size(const char *argument) {
    static const char units[] = "KMGT";
    struct mm_options options;
    struct mm_error error;
    struct command alone;
    char *end_of_number;
    const long double number = strtold(strchr(argument, '=') + 1, &end_of_number);
    const char *unit = *end_of_number == '\0' ? NULL : strchr(units, *end_of_number);
    begin(&alone);
    add_line(&alone, join(argument, "", ""));
    if (parse(&alone, &options, &error))
        REQUIRE(ldexpl(number, unit == NULL ? 0 : 10 * (int)(unit - units + 1)) ==
                (long double)options.body_bytes_max);
    end(&alone);
}

static void judge(struct command *command) {
    struct mm_options options;
    struct mm_error error;
    if (!parse(command, &options, &error)) {
        REQUIRE(strstr(error.detail, mark) == NULL);
        return;
    }
    if (options.help || options.version)
        return;
    char *printed = print(&options);
    REQUIRE(strstr(printed, mark) == NULL);
    require_read_again(printed);
    free(printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct command command;
    struct piece rest = {(const char *)data, bytes};
    if (memmem(data, bytes, mark, sizeof mark - 1) != NULL)
        return 0;
    begin(&command);
    while (rest.bytes > 0)
        add_line(&command, fuzz_copy_text(fuzz_take(&rest, '\n')));
    judge(&command);
    for (int index = 1; index < command.count; index++)
        if (begins(command.arguments[index], "--max-body="))
            judge_size(command.arguments[index]);
    clearenv();
    end(&command);
    return 0;
}
