/* Reads and compares addresses as 16 bytes, so IPv4 needs no code of its own after reading. */
#include "server/http/address.h"

#include "api/number/digits.h"

#include <arpa/inet.h>

static const struct mm_address mapped = {.bytes = {[10] = 0xff, [11] = 0xff}};

enum { MAPPED_BYTES = 12 };

static bool is_mapped(const struct mm_address *address) {
    return memcmp(address->bytes, mapped.bytes, MAPPED_BYTES) == 0;
}

struct mm_address mm_address_of_socket(const struct sockaddr *socket) {
    struct mm_address address = {{0}};
    if (socket->sa_family == AF_INET6) {
        memcpy(address.bytes, &((const struct sockaddr_in6 *)socket)->sin6_addr, sizeof address.bytes);
    } else if (socket->sa_family == AF_INET) {
        address = mapped;
        memcpy(address.bytes + MAPPED_BYTES, &((const struct sockaddr_in *)socket)->sin_addr, 4);
    }
    return address;
}

bool mm_address_read(struct mm_slice text, struct mm_address *address) {
    char copy[MM_ADDRESS_TEXT_MAX];
    struct mm_address read = mapped;
    if (text.length >= sizeof copy)
        return false;
    memcpy(copy, text.start, text.length);
    copy[text.length] = '\0';
    const bool is_read = inet_pton(AF_INET, copy, read.bytes + MAPPED_BYTES) == 1 ||
                         inet_pton(AF_INET6, copy, read.bytes) == 1;
    if (is_read)
        *address = read;
    return is_read;
}

/* Writes IPv4 without inet_ntop, which takes ten times as long, because most log lines have such an address.
 */
char *mm_address_put(char *end, const struct mm_address *address) {
    if (!is_mapped(address)) {
        (void)inet_ntop(AF_INET6, address->bytes, end, MM_ADDRESS_TEXT_MAX);
        return end + strlen(end);
    }
    for (size_t index = MAPPED_BYTES; index < sizeof address->bytes; index++)
        end = mm_put_digits(index > MAPPED_BYTES ? mm_put_text(end, ".") : end, address->bytes[index]);
    return end;
}

static bool read_network(struct mm_slice rest, struct mm_networks *networks) {
    struct mm_address address;
    struct mm_slice first;
    uint64_t bits = 128;
    (void)mm_slice_next(&rest, '/', &first);
    if (networks->count == MM_NETWORKS_MAX || !mm_address_read(first, &address))
        return false;
    if (rest.start != NULL) {
        const bool is_ipv4 = memchr(first.start, ':', first.length) == NULL;
        const unsigned before = is_ipv4 ? 8 * MAPPED_BYTES : 0;
        if (!mm_slice_whole(rest, &bits, NULL) || bits > 128 - before)
            return false;
        bits += before;
    }
    networks->list[networks->count].address = address;
    networks->list[networks->count++].bits = (unsigned)bits;
    return true;
}

bool mm_networks_read(const char *text, struct mm_networks *networks) {
    struct mm_slice rest = mm_slice_of(text), network;
    networks->count = 0;
    while (mm_slice_next(&rest, ',', &network))
        if (!read_network(network, networks))
            return false;
    return true;
}

static bool is_trusted(const struct mm_networks *trusted, const struct mm_address *address) {
    for (size_t index = 0; index < trusted->count; index++) {
        const uint8_t *network = trusted->list[index].address.bytes;
        const unsigned bits = trusted->list[index].bits, bytes = bits / 8, rest = bits % 8;
        if (memcmp(network, address->bytes, bytes) == 0 &&
            (rest == 0 || (network[bytes] ^ address->bytes[bytes]) >> (8 - rest) == 0))
            return true;
    }
    return false;
}

struct mm_address mm_address_of_client(const struct mm_networks *trusted, struct mm_address peer,
                                       const char *forwarded) {
    struct mm_address client = peer;
    const char *end = forwarded == NULL ? NULL : forwarded + strlen(forwarded);
    while (end != NULL && is_trusted(trusted, &client)) {
        const char *comma = memrchr(forwarded, ',', (size_t)(end - forwarded));
        if (!mm_address_read(mm_slice_trim(comma == NULL ? forwarded : comma + 1, end), &client))
            return peer;
        end = comma;
    }
    return client;
}
