/* Gives each client with requests a number, by which the queue and the memory budget treat clients fairly. A
 * client is an API key's namespace. Without API keys it is an IPv4 address, or the first 64 bits of an IPv6
 * address, because a site usually has all addresses with equal first 64 bits. */
#pragma once

#include "gpu/queue/work.h"

#include <pthread.h>

struct mm_request;

struct mm_clients {
    pthread_mutex_t mutex; /* acquire no lock while holding it */
    struct {
        uint64_t id;
        unsigned requests; /* 0: the number is free */
    } slots[MM_CLIENTS_MAX];
};

void mm_clients_open(struct mm_clients *clients);

void mm_clients_close(struct mm_clients *clients);

/* Sets request->memory.client. All requests that a client has at one time have the same number. If the few
 * numbers that are possible for a client belong to others, it shares one of them. This is rare below half of
 * MM_CLIENTS_MAX clients. The caller has checked the API key. Call it on the connection's thread. */
void mm_client_acquire(struct mm_request *request);

/* Frees the number if no other request of the client uses it. Does nothing if the request has no number. The
 * request has no memory and no work. Any thread that works on the request may call it. */
void mm_client_release(struct mm_request *request);
