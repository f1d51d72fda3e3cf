/* Tests limits of control groups. The smallest limit from the process's group up to the root applies. */
#include "gpu/cpu/control_group.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <math.h>

enum { FILES_MAX = 6, PATH_BYTES = 256 };

struct group_file {
    const char *path; /* relative to /sys/fs/cgroup/ */
    const char *text;
};

struct group_case {
    const char *name;
    const char *own; /* text of /proc/self/cgroup; NULL if the file is missing */
    struct group_file files[FILES_MAX];
    double expected;
};

static const struct group_case *present;

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);

/* Replaces repeated slashes by one. */
static void put_plain(char *plain, const char *path) {
    for (; *path != '\0'; path++)
        if (path[0] != '/' || path[1] != '/')
            *plain++ = *path;
    *plain = '\0';
}

/* Opens the current case's files instead of real ones. */
FILE *__wrap_fopen(const char *path, const char *mode) {
    static const char root[] = "/sys/fs/cgroup/";
    char plain[PATH_BYTES];
    const char *text = NULL;
    if (present == NULL)
        return __real_fopen(path, mode);
    assert_true(strlen(path) < sizeof plain);
    put_plain(plain, path);
    if (strcmp(plain, "/proc/self/cgroup") == 0)
        text = present->own;
    for (const struct group_file *file = present->files; text == NULL && file->path != NULL; file++)
        if (strncmp(plain, root, strlen(root)) == 0 && strcmp(plain + strlen(root), file->path) == 0)
            text = file->text;
    errno = ENOENT;
    return text == NULL ? NULL : fmemopen((void *)(uintptr_t)text, strlen(text), "r");
}

static double read_number(const char *text) {
    return strncmp(text, "max", 3) == 0 ? (double)INFINITY : strtod(text, NULL);
}

static const struct mm_control control = {
    .file = "memory.max", .controller = "memory", .controller_file = "memory.limit", .read = read_number};

#define NONE ((double)INFINITY)
static const struct group_case cases[] = {
    {"no groups", NULL, {{"memory.max", "5"}}, NONE},
    {"no limit", "0::/a\n", {{"a/memory.max", "max\n"}}, NONE},
    {"no file", "0::/a\n", {{NULL, NULL}}, NONE},
    {"a container's own", "0::/\n", {{"memory.max", "5\n"}}, 5.0},
    {"of the group itself", "0::/a/b\n", {{"a/b/memory.max", "5\n"}, {"a/memory.max", "7\n"}}, 5.0},
    {"of an ancestor",
     "0::/a/b/c\n",
     {{"a/b/c/memory.max", "9"}, {"a/b/memory.max", "max"}, {"a/memory.max", "5"}, {"memory.max", "7"}},
     5.0},
    {"of the root", "0::/a\n", {{"memory.max", "5"}}, 5.0},
    {"of another group", "0::/a\n", {{"b/memory.max", "5"}}, NONE},
    {"without a line's end", "0::/a", {{"a/memory.max", "5"}}, 5.0},
    {"a path with colons", "0::/a:b\n", {{"a:b/memory.max", "5"}}, 5.0},
    {"version 1",
     "3:cpu:/x\n2:memory:/a\n",
     {{"memory/a/memory.limit", "5"}, {"memory/x/memory.limit", "3"}},
     5.0},
    {"version 1, of the root", "2:memory:/a/b\n", {{"memory/memory.limit", "5"}}, 5.0},
    {"version 1, first of several", "2:memory,cpu:/a\n", {{"memory/a/memory.limit", "5"}}, 5.0},
    {"version 1, last of several", "2:cpu,memory:/a\n", {{"memory/a/memory.limit", "5"}}, 5.0},
    {"names that are like it",
     "4:memory2:/a\n3:mem:/a\n2:xmemory,name=memory:/a\n",
     {{"memory/a/memory.limit", "5"}},
     NONE},
    {"both versions", "2:memory:/a\n0::/a\n", {{"memory/a/memory.limit", "5"}, {"a/memory.max", "7"}}, 5.0},
    {"both versions, the other way round",
     "2:memory:/a\n0::/a\n",
     {{"memory/a/memory.limit", "7"}, {"a/memory.max", "5"}},
     5.0},
    {"both versions, the lower line first",
     "0::/a\n2:memory:/a\n",
     {{"memory/a/memory.limit", "7"}, {"a/memory.max", "5"}},
     5.0},
    {"each version's own file",
     "2:memory:/a\n0::/a\n",
     {{"memory/a/memory.max", "5"}, {"a/memory.limit", "5"}},
     NONE},
    {"lines that are none", "\nmemory\n0:/a\n0::/b\n", {{"b/memory.max", "5"}}, 5.0},
    {"more than a number",
     "0::/a\n",
     {{"a/memory.max", "5                                                                  6"}},
     5.0},
};

static void the_least_limit_counts(void **state) {
    for (size_t index = 0; index < COUNT(cases); index++) {
        present = &cases[index];
        const double lowest = mm_control_group_lowest(&control);
        present = NULL;
        if (lowest < cases[index].expected || lowest > cases[index].expected)
            fail_msg("%s: expected %g, got %g", cases[index].name, cases[index].expected, lowest);
    }
}

RUN_TESTS(the_least_limit_counts)
