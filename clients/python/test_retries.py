"""Tests of what the client sends again, and of its errors: python3 -m unittest, in this folder."""

import gc
import os
import pickle
import re
import socket
import sys
import threading
import time
import unittest
import warnings
import weakref
from unittest import mock

import numpy as np

import matmuld
from test_matmuld import TWO


def reply(status, *headers, body=b""):
    return (
        "\r\n".join([f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "Connection: close", "", ""]).encode() + body
    )


FOUR = reply("200 OK", "Content-Type: application/octet-stream", "Matmul-Shape: 1, 1", "Matmul-Dtype: float32",
             body=np.float32(4).tobytes())  # fmt: skip
BUSY = reply("429 Busy", "Retry-After: 1")
STORED = reply("200 OK", "Content-Type: application/json", 'ETag: "1"', "Matmul-Shape: 1, 1", "Matmul-Dtype: float32", body=b"{}")


class Fake:
    """A server that sends the next of its raw replies to each request, and then closes the connection."""

    def __init__(self, *replies, reads_bodies=True, port=0):
        self.reads_bodies = reads_bodies
        self.listener = socket.create_server(("127.0.0.1", port))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.replies, self.seen = list(replies), []
        threading.Thread(target=self.play, daemon=True).start()

    def play(self):
        for reply in self.replies:
            connection, _ = self.listener.accept()
            with connection, connection.makefile("rb") as file:
                head = b"".join(iter(file.readline, b"\r\n")).decode()
                length = re.search(r"(?i)content-length: (\d+)", head)
                if self.reads_bodies and length:
                    file.read(int(length.group(1)))
                self.seen.append(head)
                connection.sendall(reply)
        self.listener.close()


class Retries(unittest.TestCase):
    def play(self, *replies, **options):
        self.fake = Fake(*replies)
        return matmuld.Client(self.fake.url, **options)

    def add(self, client):
        """Adds to the matrix c of the server, which the replies make up."""
        return client.product(TWO, TWO).store("c", c=matmuld.Stored(client, "c", TWO))

    def test_retry_after(self):
        client = self.play(BUSY, reply("503 Stopping", "Retry-After: 1"), FOUR)
        begun = time.monotonic()
        self.assertEqual(client.matmul(TWO, TWO), 4)
        self.assertGreaterEqual(time.monotonic() - begun, 2)
        self.assertEqual(self.fake.seen[0], self.fake.seen[2])

    def test_a_rejected_sum_is_repeated(self):
        self.add(self.play(BUSY, STORED))
        self.assertEqual(len(self.fake.seen), 2)

    def test_no_longer_than_allowed(self):
        for answer in reply("429 Busy", "Retry-After: 2"), reply("503 Down"), reply("500 Wrong", "Retry-After: 0"):
            with self.assertRaises(matmuld.Error) as caught:
                self.play(answer, FOUR, retry_s=1.5).matmul(TWO, TWO)
            self.assertEqual(caught.exception.code, "http_" + answer[9:12].decode())
            self.assertEqual(len(self.fake.seen), 1)

    def test_another_server(self):
        for body, text in (b"<!DOCTYPE HTML>...", "404: Not Found: .* check the URL"), (b"TLS only", "404: TLS only"):
            with self.assertRaisesRegex(matmuld.Error, text):
                self.play(reply("404 Not Found", body=body)).matmul(TWO, TWO)

    def test_broken_connections(self):
        for broken in b"", FOUR[:-1], FOUR[:50], reply("502 Bad Gateway"):
            self.assertEqual(self.play(broken, broken, FOUR).matmul(TWO, TWO), 4)
            self.assertEqual(self.fake.seen[0], self.fake.seen[2])
            client = self.play(*[broken] * 9, retry_s=0.35)  # the second wait is 0.4 s
            self.assertRaisesRegex((ConnectionError, matmuld.Error), f"{self.fake.url}|502", client.matmul, TWO, TWO)
            self.assertEqual(len(self.fake.seen), 2)

    def test_half_a_head(self):
        whole = STORED.replace(b"{}", b"")
        client = self.play(whole[: whole.index(b"1\r\nMatmul-Dtype")], whole)
        self.assertEqual(client.stored("b").shape, (1, 1))

    def test_refused_before_the_body_is_read(self):
        fake = Fake(reply("413 Too large"), reads_bodies=False)
        with self.assertRaises(matmuld.Error) as caught:
            matmuld.Client(fake.url).matmul(np.zeros((2000, 2000)), np.zeros((2000, 2000)))
        self.assertEqual(caught.exception.status, 413)

    def test_a_sum_is_not_added_twice(self):
        """Only if its bytes have left: a refused connection is tried again."""
        for broken in b"", reply("502 Bad Gateway"):
            self.assertRaises((ConnectionError, matmuld.Error), self.add, self.play(broken, STORED))
            self.assertEqual(len(self.fake.seen), 1)
            self.play(broken, STORED).product(TWO, TWO).store("d")
            self.assertEqual(len(self.fake.seen), 2)
        here = Fake(STORED, STORED)
        self.add(matmuld.Client(["http://127.0.0.1:1", here.url]))
        self.add(matmuld.Client(f"http://127.0.0.1:1, {here.url}"))
        self.assertEqual(len(here.seen), 2)

    def test_affinity(self):
        """Requests about stored matrices have the client's text, also if a copy of the client sends them."""
        ok, texts = STORED, []
        for affinity in None, None, "team", "":
            client = self.play(ok, ok, FOUR, ok, FOUR, ok, FOUR, reply("204 Gone"), FOUR, affinity=affinity)
            handle = client.put(TWO, "b")
            pickle.loads(pickle.dumps(client)).stored("b")
            (TWO @ handle).get(), client.product(TWO, TWO).store("c"), client.matmul(TWO, TWO, bias=handle)
            handle.sync(), handle.get(), handle.delete(), client.matmul(TWO, TWO)
            *stored, other = [re.findall(r"(?im)^matmul-affinity: (\S+)", head) for head in self.fake.seen]
            self.assertEqual((len(stored), stored), (8, 8 * stored[:1]))
            self.assertEqual(other, [])
            texts.append(stored[0])
        self.assertEqual(texts[2:], [["team"], []])
        self.assertEqual(len({text for [text] in texts[:2]}), 2)

    def test_replies_that_are_no_replies(self):
        for answer in b"HTTP", b"\x15\3\1\0\2\2\x50", FOUR.replace(b"1, 1", b"2, 2"):
            self.assertRaisesRegex(ConnectionError, "reply", self.play(answer, FOUR).matmul, TWO, TWO)
            self.assertEqual(len(self.fake.seen), 1)

    def test_old_connections_carry_no_result_to_store(self):
        client = matmuld.Client("http://127.0.0.1:1")
        for repeatable, age_s, is_reused in (True, 60, True), (False, 1, True), (False, 60, False):
            connection = client._transport.servers[0].acquire(True)
            client._transport.servers[0].free.append((os.getpid(), time.monotonic() - age_s, connection))
            self.assertIs(client._transport.servers[0].acquire(repeatable) is connection, is_reused)

    def test_threads_that_close_a_client(self):
        client = matmuld.Client("http://127.0.0.1:1")
        connection = client._transport.servers[0].acquire(True)
        client._transport.servers[0].free.extend([(0, 0.0, connection)] * 100_000)
        failed = []

        def close():
            try:
                client.close()
            except IndexError as error:
                failed.append(error)

        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)
        threads = [threading.Thread(target=close) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])

    def test_the_next_server(self):
        """A product goes to the next server; one with a stored matrix waits for its server, unless that is gone."""
        for first, with_handle, counts in [(BUSY, False, (1, 1)), (b"", False, (1, 1)), (BUSY, True, (2, 0)), (b"", True, (1, 1))]:
            servers = Fake(first, FOUR), Fake(FOUR)
            client = matmuld.Client([server.url for server in servers])
            operand = matmuld.Stored(client, "b", TWO) if with_handle else TWO
            self.assertEqual(client.matmul(TWO, operand), 4)
            self.assertEqual(tuple(len(server.seen) for server in servers), counts)
            self.assertEqual(client.url, servers[counts[1]].url)

    def test_an_idle_connection_that_the_server_closes(self):
        """The server still has the stored matrices."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def play():
            for _ in range(2):
                with listener.accept()[0] as connection:
                    connection.recv(65536)
                    connection.sendall(FOUR.replace(b"Connection: close\r\n", b""))

        threading.Thread(target=play, daemon=True).start()
        client = matmuld.Client(["http://127.0.0.1:%d" % listener.getsockname()[1], Fake(FOUR).url])
        for _ in range(2):
            self.assertEqual(matmuld.Stored(client, "b").get(), 4)
            time.sleep(0.1)
            self.assertEqual(client.url, client._transport.servers[0].url)

    def test_long_retries(self):
        client = matmuld.Client("http://127.0.0.1:1", retry_s=60)
        client._transport._has_answered = True
        waits = mock.patch("threading.Event.wait", side_effect=[False] * 2000 + [True])
        with mock.patch("time.monotonic", return_value=0.0), waits:
            self.assertRaises(ConnectionAbortedError, client.variants)

    def test_a_proxy_that_knows_no_head(self):
        client = self.play(reply("405 No"), FOUR, reply("405 No"), FOUR, retry_s=0)
        self.assertRaisesRegex(matmuld.Error, "405", client.stored, "b")
        self.assertEqual(len(self.fake.seen), 3)

    def test_a_password_is_not_shown(self):
        with self.assertRaisesRegex(ValueError, "^[^@]*$"):
            matmuld.Client("http://user:password@127.0.0.1")

    def test_a_broken_key_is_not_shown(self):
        for key in "sec\nret", "sec\u20acret":
            with self.assertRaises(ValueError) as caught:
                matmuld.Client(key=key).variants()
            self.assertNotRegex(str(caught.exception), "sec")

    def test_a_restart(self):
        """A server that has answered may be gone for a while. One that never answered is an error at once."""
        fake = Fake(FOUR)
        client = matmuld.Client(fake.url)
        client.matmul(TWO, TWO)
        port = int(fake.url.rpartition(":")[2])
        threading.Timer(0.5, lambda: Fake(FOUR, port=port)).start()
        self.assertEqual(client.matmul(TWO, TWO), 4)

    def test_errors_keep_no_arrays(self):
        """Without the garbage collector too, which may come late."""
        gc.disable()
        self.addCleanup(gc.enable)
        for replies in ([reply("400 Bad")], [BUSY] * 2, [b""] * 9):
            client, array = self.play(*replies, retry_s=0.05), np.ones((2, 2))
            alive = weakref.ref(array)
            self.assertRaises((matmuld.Error, OSError), client.matmul, array, array)
            del array
            self.assertIsNone(alive())

    def test_errors_name_the_address_and_the_cause(self):
        begun = time.monotonic()
        for url, cause in [("http://127.0.0.1:1", "nothing listens"), ("http://nowhere.invalid", "name 'nowhere.invalid' is unknown"),
                           (Fake(b"\x15\3\1\0\2\2\x50").url, "needs https://")]:  # fmt: skip
            with self.assertRaisesRegex(ConnectionError, re.escape(url) + ": .*" + cause):
                matmuld.Client(url).matmul(TWO, TWO)
        with self.assertRaisesRegex(ConnectionError, "127.0.0.1:2.*nothing listens"):
            matmuld.Client(["http://127.0.0.1:1", "http://127.0.0.1:2"]).matmul(TWO, TWO)
        self.assertLess(time.monotonic() - begun, 10)

    def test_another_version(self):
        for version, count in ("matmuld/0.1.7", 0), ("matmuld/0.0.1", 1), ("nginx/1.0", 0):
            client = self.play(FOUR.replace(b"Matmul-Shape", f"Server: {version}\r\nMatmul-Shape".encode()))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                client.matmul(TWO, TWO)
            self.assertEqual(len(caught), count)

    def test_progress(self):
        seen = []
        client = self.play(FOUR, progress=lambda *facts: seen.append(facts))
        client.matmul(np.zeros((1, 1 << 20), np.float32), np.zeros((1 << 20, 1), np.float32))
        mib = 1 << 20
        self.assertEqual(seen, [("upload", i * mib, 8 * mib) for i in range(1, 9)] + [("download", 4, 4)])

    def test_silence(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        client = matmuld.Client("http://127.0.0.1:%d" % listener.getsockname()[1], timeout_s=0.2)
        self.assertRaises(socket.timeout, client.matmul, TWO, TWO)


if __name__ == "__main__":
    unittest.main()
