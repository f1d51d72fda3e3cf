#include "server/http/client.h"

#include "gpu/mutex.h"
#include "server/http/request.h"

#include <string.h>

/* A client can get CHOICES of the 1024 numbers. */
enum { CHOICES = 32, NUMBER_BITS = 10 };
_Static_assert(MM_CLIENTS_MAX - 1 == 1 << NUMBER_BITS, "number 0 is for no client");

void mm_clients_open(struct mm_clients *clients) {
    clients->mutex = MM_MUTEX_INITIALIZER;
}

void mm_clients_close(struct mm_clients *clients) {
    pthread_mutex_destroy(&clients->mutex);
}

/* Returns the whole IPv4 address, whose first 64 bits are zeros, or the first 64 bits of an IPv6 address. */
static uint64_t id_of(const struct mm_address *address) {
    uint64_t id[2];
    memcpy(id, address->bytes, sizeof id);
    return id[0] != 0 ? id[0] : id[1];
}

/* Returns the client's number, or a free number, or the number of another client. Needs the mutex. */
static unsigned find(const struct mm_clients *clients, uint64_t id) {
    /* Only the highest bits of the product depend on all bits of the id. */
    const unsigned first = (unsigned)((id * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - NUMBER_BITS));
    unsigned best = 1 + first;
    for (unsigned choice = CHOICES; choice-- > 0;) {
        const unsigned number = 1 + (first + choice) % (MM_CLIENTS_MAX - 1);
        if (clients->slots[number].requests == 0)
            best = number;
        else if (clients->slots[number].id == id)
            return number;
    }
    return best;
}

void mm_client_acquire(struct mm_request *request) {
    struct mm_clients *clients = &request->server->clients;
    const uint64_t id = request->space != 0 ? request->space : id_of(&request->client);
    pthread_mutex_lock(&clients->mutex);
    const unsigned number = find(clients, id);
    if (clients->slots[number].requests++ == 0)
        clients->slots[number].id = id;
    pthread_mutex_unlock(&clients->mutex);
    request->memory.client = number;
}

void mm_client_release(struct mm_request *request) {
    struct mm_clients *clients = &request->server->clients;
    if (request->memory.client == 0)
        return;
    pthread_mutex_lock(&clients->mutex);
    clients->slots[request->memory.client].requests--;
    pthread_mutex_unlock(&clients->mutex);
    request->memory.client = 0;
}
