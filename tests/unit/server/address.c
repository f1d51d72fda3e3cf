/* Tests how addresses and networks are read, and which address of X-Forwarded-For is the client's. */
#include "server/http/address.h"
#include "tests/unit/unit.h"

#include <netinet/in.h>

static struct mm_address read_good(const char *text) {
    struct mm_address address;
    if (!mm_address_read((struct mm_slice){text, strlen(text)}, &address))
        fail_msg("'%s' was refused", text);
    return address;
}

static const char *write(struct mm_address address) {
    static char text[MM_ADDRESS_TEXT_MAX + 1];
    *mm_address_put(text, &address) = '\0';
    return text;
}

static void addresses_are_read_and_written(void **state) {
    static const char same[] = "0.0.0.0|192.0.2.1|255.255.255.255|::|::1|2001:db8::1|fe80::1:2|"
                               "1111:2222:3333:4444:5555:6666:7777:8888";
    static const char bad[] = "|a|1.2.3|1.2.3.4.5|256.1.1.1|1.2.3.4:80|[::1]|::1%eth0|1.2.3.4 | ::1|unknown|"
                              "0000:0000:0000:0000:0000:0000:0000:0000:0000:00000";
    EACH(text, same) {
        assert_string_equal(write(read_good(text)), text);
    }
    assert_string_equal(write(read_good("::ffff:192.0.2.1")), "192.0.2.1");
    assert_string_equal(write(read_good("0000:0000:0000:0000:0000:ffff:192.100.200.100")), "192.100.200.100");
    EACH(text, bad) {
        struct mm_address address;
        if (mm_address_read((struct mm_slice){text, strlen(text)}, &address))
            fail_msg("'%s' was accepted", text);
    }
}

static void sockets_have_addresses(void **state) {
    const struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr = {htonl(0xC0000201)}};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const struct sockaddr local = {.sa_family = AF_UNIX};
    assert_string_equal(write(mm_address_of_socket((const struct sockaddr *)&v4)), "192.0.2.1");
    assert_string_equal(write(mm_address_of_socket((const struct sockaddr *)&v6)), "::1");
    memcpy(&v6.sin6_addr, read_good("10.1.2.3").bytes, 16);
    assert_string_equal(write(mm_address_of_socket((const struct sockaddr *)&v6)), "10.1.2.3");
    assert_string_equal(write(mm_address_of_socket(&local)), "::");
}

static void networks_are_read(void **state) {
    static const char good[] =
        "10.0.0.0/8|10.1.2.3|0.0.0.0/0,::/0|192.0.2.0/32|fd00::/8,::1/128|::ffff:0:0/96";
    static const char bad[] =
        "|,|10.0.0.0/8,|10.0.0.0/33|::/129|10.0.0.0/|10.0.0.0/+8|10.0.0.0/8 |/8|10.0.0/8|"
        "10.0.0.0/99999999999|10.0.0.0/8/8|proxy.example";
    struct mm_networks networks;
    EACH(text, good) {
        if (!mm_networks_read(text, &networks))
            fail_msg("'%s' was refused", text);
    }
    EACH(text, bad) {
        if (mm_networks_read(text, &networks))
            fail_msg("'%s' was accepted", text);
    }
    char list[(MM_NETWORKS_MAX + 1) * sizeof "::1,"] = "::1";
    for (size_t count = 1; count < MM_NETWORKS_MAX; count++)
        strcat(list, ",::1");
    assert_true(mm_networks_read(list, &networks));
    assert_int_equal(networks.count, MM_NETWORKS_MAX);
    assert_false(mm_networks_read(strcat(list, ",::1"), &networks));
}

static void trusted_proxies_name_the_client(void **state) {
    static const struct {
        const char *trusted; /* NULL: none */
        const char *peer, *forwarded, *client;
    } cases[] = {
        {NULL, "10.0.0.1", "192.0.2.1", "10.0.0.1"},
        {"10.0.0.0/8", "10.0.0.1", NULL, "10.0.0.1"},
        {"10.0.0.0/8", "11.0.0.1", "192.0.2.1", "11.0.0.1"},
        {"10.0.0.0/8", "10.255.0.1", "192.0.2.1", "192.0.2.1"},
        {"10.0.0.0/8", "10.0.0.1", "2001:db8::1", "2001:db8::1"},
        {"10.0.0.0/8", "10.0.0.1", "198.51.100.7, 192.0.2.1", "192.0.2.1"},
        {"10.0.0.0/8", "10.0.0.1", "198.51.100.7,192.0.2.1 ,\t10.9.9.9", "192.0.2.1"},
        {"10.0.0.0/8", "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"},
        {"10.0.0.0/8", "10.0.0.1", "nonsense, 192.0.2.1, 10.0.0.2", "192.0.2.1"},
        {"10.0.0.0/8", "10.0.0.1", "192.0.2.1, nonsense, 10.0.0.2", "10.0.0.1"},
        {"10.0.0.0/8", "10.0.0.1", "192.0.2.1,", "10.0.0.1"},
        {"10.0.0.0/8", "10.0.0.1", "", "10.0.0.1"},
        {"10.0.0.0/8", "10.0.0.1", "192.0.2.1:4711", "10.0.0.1"},
        {"192.0.2.128/25", "192.0.2.128", "1.1.1.1", "1.1.1.1"},
        {"192.0.2.128/25", "192.0.2.127", "1.1.1.1", "192.0.2.127"},
        {"192.0.2.1", "192.0.2.1", "1.1.1.1", "1.1.1.1"},
        {"192.0.2.1", "192.0.2.0", "1.1.1.1", "192.0.2.0"},
        {"::1,fd00::/7", "fc00::2", "1.1.1.1", "1.1.1.1"},
        {"::1,fd00::/7", "fa00::2", "1.1.1.1", "fa00::2"},
        {"0.0.0.0/0", "::1", "1.1.1.1", "::1"},
        {"::/0", "10.0.0.1", "1.1.1.1", "1.1.1.1"},
    };
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct mm_networks trusted = {.count = 0};
        assert_true(cases[index].trusted == NULL || mm_networks_read(cases[index].trusted, &trusted));
        const struct mm_address client =
            mm_address_of_client(&trusted, read_good(cases[index].peer), cases[index].forwarded);
        if (strcmp(write(client), cases[index].client) != 0)
            fail_msg("case %zu: %s instead of %s", index, write(client), cases[index].client);
    }
}

RUN_TESTS(addresses_are_read_and_written, sockets_have_addresses, networks_are_read,
          trusted_proxies_name_the_client)
