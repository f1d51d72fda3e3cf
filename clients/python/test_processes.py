"""Tests of the client in several processes, and with TLS: MATMULD=PATH python3 -m unittest, in this folder."""

import multiprocessing
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
from unittest import mock

import numpy as np

import matmuld
from test_matmuld import TWO, Server, WithServer

FORK, SPAWN = (multiprocessing.get_context(method) for method in ("fork", "spawn"))


def is_right(edge):
    """Multiplies by matmuld.matmul, whose client the parent process may have used already."""
    return (matmuld.matmul(np.full((1, edge), edge, np.float32), np.ones((edge, 1), np.float32)) == edge * edge).all()


def use(client, handle):
    return client.matmul(TWO, TWO), client.last.shape, (TWO @ handle).get(), client.matmul(TWO, handle)


class Processes(WithServer):
    def test_children_of_a_fork(self):
        with mock.patch.dict(os.environ, MATMULD_URL=self.server.url):
            self.assertTrue(is_right(1))
            with FORK.Pool(4) as pool:
                self.assertEqual(pool.map(is_right, range(1, 401), 1).count(False), 0)

    def test_pickle(self):
        self.client.matmul(TWO, TWO)
        handle = self.client.put(TWO, "pickled")
        self.addCleanup(handle.delete)
        with SPAWN.Pool(1) as pool:
            self.assertEqual(pool.apply(use, (self.client, handle)), (4, (1, 1), 4, 4))


class TwoServers(unittest.TestCase):
    def test_one_dies_and_comes_back(self):
        """Eight threads lose no product while a server is killed and started again, and then the other one."""
        servers = [Server(), Server()]
        client = matmuld.Client([server.url for server in servers])
        a, wrong, done = np.full((64, 64), 2, np.float32), [], threading.Event()
        products = [0] * 8

        def multiply(number):
            try:
                W = client.put(np.full((64, 64), number, np.float32), f"w{number}")
                while not done.is_set():
                    for product, element in (a @ W, 128 * number), (a @ W @ W.T, 8192 * number**2):
                        if not (product.get() == element).all():
                            wrong.append(number)
                    products[number] += 1
            except Exception as error:
                wrong.append(error)

        threads = [threading.Thread(target=multiply, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for number in 0, 1:
            time.sleep(0.5)
            servers[number].process.kill()
            servers[number].process.wait()
            time.sleep(0.5)
            before = sum(products)
            servers[number] = Server("--port", servers[number].url.rpartition(":")[2])
            time.sleep(0.5)
            self.assertGreater(sum(products), before)
        done.set()
        for thread in threads:
            thread.join()
        for server in servers:
            server.stop()
        self.assertEqual(wrong, [])


class Tls(WithServer):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("openssl"):
            raise unittest.SkipTest("there is no openssl, which makes the certificate")
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.pem, key = f"{cls.folder.name}/pem", f"{cls.folder.name}/key"
        subprocess.run(["openssl", "req", "-x509", "-nodes", "-newkey", "rsa:2048", "-days", "2", "-subj", "/CN=test", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cls.pem], check=True, stderr=subprocess.DEVNULL)  # fmt: skip
        cls.OPTIONS = ("--tls-cert", cls.pem, "--tls-key", key)
        super().setUpClass()

    def test_errors_name_the_cause(self):
        with self.assertRaisesRegex(ConnectionError, "certificate is not trusted"):
            matmuld.Client(self.server.url).matmul(TWO, TWO)
        with self.assertRaisesRegex(matmuld.Error, "this port speaks TLS"):
            matmuld.Client(self.server.url.replace("https", "http")).matmul(TWO, TWO)

    def connect(self, server):
        return matmuld.Client(server.url, context=ssl.create_default_context(cafile=self.pem))

    def test_a_child_does_not_disturb_its_parent(self):
        client = self.connect(self.server)
        client.matmul(TWO, TWO)
        [(*_, connection)] = client._transport.servers[0].free
        port = connection.sock.getsockname()

        def in_child():
            assert client.matmul(TWO, TWO) == 4
            client.close()

        child = FORK.Process(target=in_child)
        child.start()
        child.join()
        self.assertEqual(child.exitcode, 0)
        self.assertEqual(client.matmul(TWO, TWO), 4)
        [(*_, connection)] = client._transport.servers[0].free
        self.assertEqual(connection.sock.getsockname(), port)

    def test_a_connection_that_the_server_closed(self):
        server = Server(*self.OPTIONS)
        client = self.connect(server)
        client.matmul(TWO, TWO)
        server.stop()
        server = Server(*self.OPTIONS, "--port", server.url.rpartition(":")[2])
        self.addCleanup(server.stop)
        self.assertEqual(client.matmul(TWO, TWO), 4)

    def test_a_server_that_ends_each_connection(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def end():
                for _ in range(2):  # the client sends the request twice
                    connection, _ = listener.accept()
                    connection.recv(65536)
                    connection.close()

            threading.Thread(target=end, daemon=True).start()
            client = matmuld.Client(f"https://127.0.0.1:{listener.getsockname()[1]}")
            self.assertRaises(ConnectionError, client.matmul, TWO, TWO)


if __name__ == "__main__":
    unittest.main()
