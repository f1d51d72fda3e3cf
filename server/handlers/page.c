/* GET /, /docs and /page/NAME: the web page, whose files (server/page) are built into the program. */
#include "api/embedded.h"
#include "api/slice.h"
#include "server/http/reply.h"
#include "server/http/routes.h"

#include <stdio.h>
#include <string.h>

/* Files of server/page and docs/lessons, and chart.js, by name. Compressed files have the name NAME.gz. */
extern const struct mm_embedded_files mm_page_files;

enum { NAME_MAX_BYTES = 64 };

static const char *type_of(const char *name) {
    static const struct {
        const char *end;
        const char *type;
    } types[] = {{".html", "text/html; charset=utf-8"},
                 {".css", "text/css; charset=utf-8"},
                 {".js", "text/javascript; charset=utf-8"},
                 {".md", "text/plain; charset=utf-8"}};
    const char *end = strrchr(name, '.');
    for (size_t row = 0; end != NULL && row < sizeof types / sizeof types[0]; row++)
        if (strcmp(types[row].end, end) == 0)
            return types[row].type;
    return NULL;
}

/* Splits the header at commas, which works because codings have no quotes (RFC 9110, 12.5.3). */
static bool takes_gzip(struct mm_request *request) {
    const char *codings =
        MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT_ENCODING);
    struct mm_slice rest = mm_slice_of(codings), coding;
    while (mm_slice_next(&rest, ',', &coding))
        if (mm_slice_is_any_case(mm_slice_trim(coding.start, coding.start + coding.length), "gzip"))
            return true;
    return false;
}

static enum mm_status reply_file(struct mm_request *request, const char *name) {
    char compressed[NAME_MAX_BYTES]; /* a longer name is cut off, and matches no file */
    snprintf(compressed, sizeof compressed, "%s.gz", name);
    const char *type = type_of(name), *coding = takes_gzip(request) ? "gzip" : NULL;
    const struct mm_embedded_file *file =
        type == NULL ? NULL : mm_embedded_find(&mm_page_files, coding != NULL ? compressed : name);
    if (file == NULL)
        return mm_fail(&request->error, MM_NOT_FOUND, "the page has no file of this name; the page is at /");
    return mm_reply_page(request, file, type, coding);
}

enum mm_status mm_page_get(struct mm_request *request) {
    const char *path = request->path;
    return reply_file(request, strcmp(path, "/") == 0       ? "index.html"
                               : strcmp(path, "/docs") == 0 ? "docs.html"
                                                            : path + strlen("/page/"));
}
