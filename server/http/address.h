/* Addresses of clients, and the networks of proxies that say for whom they ask. This file knows neither
 * libmicrohttpd nor requests. Any thread may call these functions. */
#pragma once

#include "api/slice.h"

#include <stdint.h>
#include <sys/socket.h>

enum {
    MM_ADDRESS_TEXT_MAX = 46, /* with a NUL */
    MM_NETWORKS_MAX = 64
};

/* An IPv6 address in network order, or an IPv4 address as IPv6 maps it (::ffff:a.b.c.d; RFC 4291, 2.5.5.2).
 * All zeros: unknown. */
struct mm_address {
    uint8_t bytes[16];
};

/* A list of networks. All zeros are an empty list. */
struct mm_networks {
    struct {
        struct mm_address address;
        unsigned bits; /* leading bits of `address` that all addresses of the network have, up to 128 */
    } list[MM_NETWORKS_MAX];
    size_t count;
};

/* Returns the address of a socket. It is unknown if the socket has neither IPv4 nor IPv6. */
struct mm_address mm_address_of_socket(const struct sockaddr *socket);

/* Reads an IPv4 or IPv6 address without brackets, port and zone. On failure it returns false and leaves
 * *address untouched. */
bool mm_address_read(struct mm_slice text, struct mm_address *address);

/* Writes an address, as in "192.0.2.1" or "2001:db8::1", and returns the end. Adds no NUL, but uses up to
 * MM_ADDRESS_TEXT_MAX bytes. */
char *mm_address_put(char *end, const struct mm_address *address);

/* Reads ADDRESS or ADDRESS/BITS, separated by commas. Bits of ADDRESS after the first BITS do not count.
 * Returns false if the list is empty, malformed or longer than MM_NETWORKS_MAX. */
bool mm_networks_read(const char *text, struct mm_networks *networks);

/* Returns the client for whom a peer sent a request. `forwarded` is the value of X-Forwarded-For, or NULL. If
 * the peer is in `trusted`, the client is the last address of `forwarded` that is not in `trusted`, or the
 * first address if all are. Otherwise, or if an address that is read on the way is malformed, the client is
 * the peer. */
struct mm_address mm_address_of_client(const struct mm_networks *trusted, struct mm_address peer,
                                       const char *forwarded);
