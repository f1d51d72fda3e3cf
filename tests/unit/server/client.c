/* Tests the numbers of clients. */
#include "server/http/client.h"
#include "server/http/request.h"
#include "tests/unit/unit.h"

enum { REQUESTS = 2048 };

static struct mm_server server;
static struct mm_request requests[REQUESTS];

/* Makes a request of the IPv4 address 10.0.A.B. A and B are the bytes of `address`. */
static unsigned acquire(struct mm_request *request, unsigned address) {
    *request = (struct mm_request){
        .server = &server,
        .client.bytes = {
            [10] = 0xff, [11] = 0xff, [12] = 10, [14] = (uint8_t)(address >> 8), [15] = (uint8_t)address}};
    mm_client_acquire(request);
    assert_in_range(request->memory.client, 1, MM_CLIENTS_MAX - 1);
    return request->memory.client;
}

static int open_clients(void **state) {
    mm_clients_open(&server.clients);
    return 0;
}

static int close_clients(void **state) {
    for (int index = 0; index < REQUESTS; index++)
        if (requests[index].server != NULL)
            mm_client_release(&requests[index]);
    for (int number = 0; number < MM_CLIENTS_MAX; number++)
        assert_int_equal(server.clients.slots[number].requests, 0);
    mm_clients_close(&server.clients);
    return 0;
}

/* Addresses of one network differ only in their last bytes. */
static void clients_have_different_numbers(void **state) {
    static bool is_used[MM_CLIENTS_MAX];
    for (unsigned address = 0; address < 512; address++) {
        const unsigned number = acquire(&requests[address], address);
        assert_false(is_used[number]);
        is_used[number] = true;
        assert_int_equal(acquire(&requests[512 + address], address), number);
    }
}

/* A key's namespace counts more than the address. Of an IPv6 address the first 64 bits count. */
static void namespaces_and_long_prefixes_count(void **state) {
    const unsigned number = acquire(&requests[0], 1);
    requests[1] = (struct mm_request){.server = &server, .space = 7, .client = requests[0].client};
    mm_client_acquire(&requests[1]);
    assert_int_not_equal(requests[1].memory.client, number);
    for (int index = 2; index < 5; index++) {
        requests[index] = (struct mm_request){.server = &server, .client.bytes = {0x20, 1, 0xd, 0xb8}};
        requests[index].client.bytes[index == 4 ? 7 : 15] = (uint8_t)index;
        mm_client_acquire(&requests[index]);
    }
    assert_int_equal(requests[2].memory.client, requests[3].memory.client);
    assert_int_not_equal(requests[2].memory.client, requests[4].memory.client);
}

static void too_many_clients_share(void **state) {
    for (unsigned address = 0; address < REQUESTS; address++)
        acquire(&requests[address], address);
}

RUN_TESTS_BETWEEN(open_clients, close_clients, clients_have_different_numbers,
                  namespaces_and_long_prefixes_count, too_many_clients_share)
