/* GET /, /docs and /page/NAME: the page for people, whose files the build made a part of the program
 * (server/page). */
#include "api/embedded.h"
#include "server/http/reply.h"
#include "server/http/routes.h"

#include <string.h>

/* The files of server/page, and chart.js, by name. */
extern const struct mm_embedded_files mm_page_files;

static const char *type_of(const char *name) {
    static const struct {
        const char *end;
        const char *type;
    } types[] = {{".html", "text/html; charset=utf-8"},
                 {".css", "text/css; charset=utf-8"},
                 {".js", "text/javascript; charset=utf-8"}};
    const char *end = strrchr(name, '.');
    size_t row = 0;
    while (strcmp(types[row].end, end) != 0)
        row++;
    return types[row].type;
}

static enum mm_status reply_file(struct mm_request *request, const char *name) {
    const struct mm_embedded_file *file = mm_embedded_find(&mm_page_files, name);
    if (file == NULL)
        return mm_fail(&request->error, MM_NOT_FOUND, "the page has no file of this name; the page is at /");
    return mm_reply_page(request, file, type_of(name));
}

enum mm_status mm_page_index(struct mm_request *request) {
    return reply_file(request, "index.html");
}

enum mm_status mm_page_docs(struct mm_request *request) {
    return reply_file(request, "docs.html");
}

enum mm_status mm_page_file(struct mm_request *request) {
    return reply_file(request, request->path + strlen("/page/"));
}
