#include "server/http/origin.h"

#include "api/slice.h"

#include <arpa/inet.h>

struct authority {
    const char *host; /* host with the brackets of an IPv6 address, but without a final dot */
    size_t host_bytes;
    uint64_t port; /* 0 if no port is given */
};

enum { PORT_MAX = 65535 };

static bool cut(struct mm_slice text, struct authority *authority) {
    const char *host_end = text.start, *const end = text.start + text.length;
    if (text.length > 0 && *text.start == '[')
        while (host_end < end && *host_end != ']')
            host_end++;
    while (host_end < end && *host_end != ':')
        host_end++;
    *authority = (struct authority){.host = text.start, .host_bytes = (size_t)(host_end - text.start)};
    if (authority->host_bytes > 1 && host_end[-1] == '.')
        authority->host_bytes--;
    if (end - host_end > 1) {
        const struct mm_slice digits = {host_end + 1, (size_t)(end - host_end) - 1};
        if (!mm_slice_whole(digits, &authority->port, NULL) || authority->port > PORT_MAX)
            return false;
    }
    return authority->host_bytes > 0;
}

/* Splits the value of a header. The value may end with spaces, but not begin with spaces. */
static bool cut_value(const char *value, struct authority *authority) {
    const struct mm_slice trimmed = mm_slice_trim(value, value + strlen(value));
    return trimmed.start == value && cut(trimmed, authority);
}

static bool same_host(const struct authority *left, const struct authority *right) {
    return left->host_bytes == right->host_bytes &&
           strncasecmp(left->host, right->host, left->host_bytes) == 0;
}

/* Whether a host is an IP address or localhost, which other sites cannot use as their names. */
static bool is_own(const struct authority *authority) {
    static const struct authority local = {.host = "localhost", .host_bytes = sizeof "localhost" - 1};
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    const bool is_bracketed = authority->host[0] == '[' && authority->host_bytes >= 2;
    const size_t bytes = authority->host_bytes - 2 * is_bracketed;
    if (same_host(authority, &local))
        return true;
    if (bytes >= sizeof text)
        return false;
    memcpy(text, authority->host + is_bracketed, bytes);
    text[bytes] = '\0';
    return inet_pton(is_bracketed ? AF_INET6 : AF_INET, text, &address) == 1;
}

static bool is_listed(const char *hosts, const struct authority *authority) {
    struct mm_slice rest = mm_slice_of(hosts), host;
    struct authority listed;
    while (mm_slice_next(&rest, ',', &host))
        if (cut(host, &listed) && same_host(&listed, authority))
            return true;
    return false;
}

/* Whether a host looks like a bracketed address, a name or an IPv4 address. */
static bool is_plain(const struct authority *authority) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    if (authority->host[0] != '[')
        return strspn(authority->host, letters) >= authority->host_bytes;
    return authority->host_bytes > 2 &&
           strspn(authority->host + 1, "0123456789abcdefABCDEF:.") == authority->host_bytes - 2 &&
           authority->host[authority->host_bytes - 1] == ']';
}

bool mm_origin_is_list(const char *hosts) {
    struct mm_slice rest = mm_slice_of(hosts), host;
    struct authority listed;
    while (mm_slice_next(&rest, ',', &host))
        if (!cut(host, &listed) || !is_plain(&listed))
            return false;
    return true;
}

enum mm_status mm_origin_check_host(const char *allowed, const char *host, struct mm_error *error) {
    struct authority ours;
    if (host == NULL || (cut_value(host, &ours) && (is_own(&ours) || is_listed(allowed, &ours))))
        return MM_OK;
    return mm_fail(
        error, MM_FORBIDDEN,
        "Host is '%.200s', but must be an IP address, localhost or one of --allowed-hosts, which is "
        "%.200s; add the name there if it is this server's",
        host, allowed == NULL ? "not given" : allowed);
}

static bool is_safe(const char *method) {
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 || strcmp(method, "OPTIONS") == 0;
}

static bool cut_origin(const char *origin, struct authority *authority, unsigned *usual_port) {
    const size_t scheme_bytes = strcspn(origin, ":");
    if (strncmp(origin + scheme_bytes, "://", 3) != 0 || !cut_value(origin + scheme_bytes + 3, authority))
        return false;
    *usual_port = scheme_bytes == 4 && strncasecmp(origin, "http", 4) == 0    ? 80
                  : scheme_bytes == 5 && strncasecmp(origin, "https", 5) == 0 ? 443
                                                                              : 0;
    return true;
}

/* Refuses an origin that names its scheme's usual port, because browsers leave out this port. */
bool mm_origin_is_origin(const char *text) {
    static const char scheme[] = "abcdefghijklmnopqrstuvwxyz0123456789+.-";
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789+.-_:/[]";
    struct authority authority;
    unsigned usual_port;
    const size_t bytes = strlen(text);
    return strspn(text, scheme) > 0 && text[strspn(text, scheme)] == ':' && text[bytes - 1] != ':' &&
           strspn(text, letters) == bytes && cut_origin(text, &authority, &usual_port) &&
           is_plain(&authority) && (authority.port == 0 || authority.port != usual_port);
}

static bool same_site(const char *origin, const char *host) {
    struct authority theirs, ours;
    unsigned usual_port = 0;
    if (host == NULL || !cut_origin(origin, &theirs, &usual_port) || !cut_value(host, &ours))
        return false;
    return same_host(&theirs, &ours) &&
           (theirs.port == 0 ? usual_port : theirs.port) == (ours.port == 0 ? usual_port : ours.port);
}

enum mm_status mm_origin_check(const char *method, const char *origin, const char *host,
                               struct mm_error *error) {
    if (origin == NULL || is_safe(method) || same_site(origin, host))
        return MM_OK;
    return mm_fail(
        error, MM_FORBIDDEN,
        "Origin is '%.200s', but this server takes %s only from its own pages (Host is '%.200s') and from "
        "--cors-origin; add the origin there to allow it",
        origin, method, host == NULL ? "" : host);
}
