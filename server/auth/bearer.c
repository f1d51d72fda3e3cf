#include "server/auth/bearer.h"

#include "api/slice.h"
#include "server/http/request.h"
#include "server/auth/keys.h"
#include "server/http/routes.h"

struct authorization {
    const char *value;
    size_t bytes;
    unsigned count;
};

static enum MHD_Result look(void *seen, enum MHD_ValueKind kind, const char *name, size_t name_bytes,
                            const char *value, size_t value_bytes) {
    static const char wanted[] = MHD_HTTP_HEADER_AUTHORIZATION;
    struct authorization *authorization = seen;
    if (name_bytes != sizeof wanted - 1 || strncasecmp(name, wanted, name_bytes) != 0)
        return MHD_YES;
    authorization->value = value;
    authorization->bytes = value == NULL ? 0 : value_bytes;
    authorization->count++;
    return MHD_YES;
}

/* Spaces after the key do not belong to the header's value (RFC 9112, 5.1). */
size_t mm_bearer_key(const char *value, size_t value_bytes, const char **key) {
    static const char scheme[] = "Bearer ";
    const size_t scheme_bytes = sizeof scheme - 1;
    if (value_bytes < scheme_bytes || strncasecmp(value, scheme, scheme_bytes) != 0)
        return 0;
    const struct mm_slice found = mm_slice_trim(value + scheme_bytes, value + value_bytes);
    *key = found.start;
    return found.length;
}

static bool needs_key(const struct mm_request *request) {
    const enum mm_entry entry = request->route->entry;
    return entry == MM_ENTRY_KEY || (entry == MM_ENTRY_METRICS && !request->server->options->open_metrics);
}

enum mm_status mm_bearer_check(struct mm_request *request) {
    struct mm_keys *keys = request->server->keys;
    if (keys == NULL || !needs_key(request))
        return MM_OK;
    struct authorization authorization = {0};
    const char *key = NULL;
    MHD_get_connection_values_n(request->connection, MHD_HEADER_KIND, look, &authorization);
    if (authorization.count == 0)
        return mm_fail(&request->error, MM_UNAUTHORIZED,
                       "the request has no API key; send one by the header 'Authorization: Bearer KEY'");
    if (authorization.count > 1)
        return mm_fail(&request->error, MM_UNAUTHORIZED, "Authorization appears twice; send it once");
    const size_t bytes = mm_bearer_key(authorization.value, authorization.bytes, &key);
    if (bytes == 0)
        return mm_fail(&request->error, MM_UNAUTHORIZED,
                       "Authorization is not of the form 'Bearer KEY'; send 'Authorization: Bearer KEY'");
    struct mm_key_owner owner;
    if (!mm_keys_admit(keys, key, bytes, &owner))
        return mm_fail(&request->error, MM_UNAUTHORIZED,
                       "the API key in Authorization is not valid here; ask the operator for one");
    request->space = owner.space;
    request->record.account = owner.account;
    strcpy(request->record.key, owner.name);
    return MM_OK;
}
