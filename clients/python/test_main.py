"""Tests of the command line: MATMULD=PATH python3 -m unittest, in this folder."""

import contextlib
import io
import os
import pty
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

from matmuld import __main__ as command_line
from test_matmuld import WithServer


class CommandLine(WithServer):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.a, self.b = self.whole(4, 3), self.whole(3, 2)
        np.save(self.path("a.npy"), self.a)
        np.savetxt(self.path("b.csv"), self.b, "%d", ",")
        np.savez(self.path("two.npz"), a=self.a, b=self.b)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_main(self, *arguments, status=0):
        """Arguments with a dot are files of the folder. Returns what is printed, or the complaint."""
        arguments = [self.path(text) if text.endswith((".npy", ".csv", ".npz")) else text for text in arguments]
        with mock.patch.object(sys, "argv", ["matmuld", *arguments]), mock.patch.dict(os.environ, MATMULD_URL=self.server.url):
            with mock.patch("sys.stdout", io.StringIO()) as printed, mock.patch("sys.stderr", io.StringIO()) as complaint:
                self.assertEqual(command_line.main(), status, complaint.getvalue())
        return (complaint if status else printed).getvalue()

    def test_multiply(self):
        self.run_main("multiply", "a.npy", "b.csv", "-o", "c.npy", "--variant", "naive")
        np.testing.assert_array_equal(np.load(self.path("c.npy")), self.a @ self.b)
        np.savetxt(self.path("bias.csv"), [[-1, 2]], "%d", ",")
        arguments = "a.npy b.csv -o d.csv -c c.npy --alpha -2 --beta 3 --bias bias.csv --activation relu --dtype int32".split()
        self.run_main("multiply", *arguments)
        expected = np.maximum(self.a @ self.b + [-1, 2], 0)
        np.testing.assert_array_equal(np.loadtxt(self.path("d.csv"), delimiter=",", dtype=int), expected)

    def test_stored(self):
        printed = self.run_main("put", "two.npz", "--prefix", "two-", "--ttl", "60")
        self.assertEqual(printed, self.run_main("list"))
        self.assertRegex(printed, r"name +shape +type +bytes\ntwo-a +4×3 +float32 +48\ntwo-b +3×2 +float32 +24\n")
        self.run_main("put", "b.csv", "--name", "b")
        self.run_main("multiply", "@two-b", "@two-a", "-o", "c.npy", "--transpose-a", "--transpose-b")
        np.testing.assert_array_equal(np.load(self.path("c.npy")), (self.a @ self.b).T)
        part = "".join(f"{x}\n" for x in self.b[1:, 0].astype(float))
        self.assertEqual(self.run_main("get", "b", "--rows", "1:", "--cols", ":1"), part)
        for name in "two-a", "two-b", "b":
            self.run_main("delete", name)
        self.assertEqual(self.run_main("list").count("\n"), 1)

    def test_results_as_csv(self):
        for result, text in [(np.float32([[0.1, 2], [-3, np.inf]]), "0.1,2.0\n-3.0,inf\n"), (np.array([True, False]), "1\n0\n"),
                             (np.int32(7), "7\n"), (np.zeros((0, 2)), "")]:  # fmt: skip
            with mock.patch("sys.stdout", io.StringIO()) as printed:
                command_line._write(result, None)
            self.assertEqual(printed.getvalue(), text)

    def test_complaints(self):
        """One line, and no traceback."""
        np.save(self.path("stack.npy"), np.ones((2, 3, 3)))
        for arguments, words in [
            ("multiply a.npy none.npy", "No such file"),
            ("multiply a.npy a.npy", "bad_shape: "),
            ("multiply a.npy two.npz", "more than one array"),
            ("multiply stack.npy stack.npy -o c.csv", "write a .npy file"),
            ("multiply a.npy b.csv --variant nave", "did you mean 'naive'"),
            ("get none", "no_such_matrix: "),
            ("list --url http://127.0.0.1:1", "http://127.0.0.1:1: nothing listens"),
            ("list --url localhost", "no address of a server"),
        ]:
            complaint = self.run_main(*arguments.split(), status=1)
            self.assertRegex(complaint, f"^matmuld: .*{words}.*\n$")
        for arguments in "", "multiply a.npy", "multiply a.npy a.npy -o c.txt", "bench 1 2", "bench x", "get b --dtype x":
            with self.assertRaises(SystemExit) as ended:
                self.run_main(*arguments.split())
            self.assertEqual(ended.exception.code, 2)

    def test_help(self):
        for name in "multiply", "put", "get", "list", "delete", "bench":
            with self.assertRaises(SystemExit) as ended:
                self.run_main(name, "--help")
            self.assertEqual(ended.exception.code, 0)

    def start_upload(self, url):
        """Starts an upload of 64 MiB with a terminal as its standard error. Returns the process and the terminal's other end."""
        np.save(self.path("large.npy"), np.zeros((4096, 2048)))
        shown, terminal = pty.openpty()
        command = [sys.executable, "-m", "matmuld", "put", self.path("large.npy"), "--url", url]
        process = subprocess.Popen(command, stderr=terminal, stdout=subprocess.DEVNULL)
        os.close(terminal)
        return process, open(shown, "rb", buffering=0)

    def read(self, shown):
        """Returns what the process writes until its end."""
        text = b""
        with contextlib.suppress(OSError):  # a terminal's way to say that nobody has it open
            while True:
                text += shown.read(1000)
        return text.decode()

    BEGIN, ERASE = r"^\rupload \[\.{24}\] 1 %, 1\.0 of 67\.1 MB\x1b\[K", r"\r\x1b\[K$"

    def test_progress_on_a_terminal(self):
        process, shown = self.start_upload(self.server.url)
        with shown:
            self.assertRegex(self.read(shown), f"{self.BEGIN}[^\n]*{self.ERASE}")
        self.assertEqual(process.wait(60), 0)
        self.client.delete("large")
        with mock.patch("sys.stderr", io.StringIO()) as shown:
            bar = command_line._Bar()
            bar("download", 1, 2)
            bar("download", 2, 2)
            self.assertRegex(shown.getvalue(), self.ERASE)  # before the result is printed

    def test_interrupt(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            process, shown = self.start_upload(f"http://127.0.0.1:{silent.getsockname()[1]}")
            with shown:
                begin = shown.read(1000).decode()
                process.send_signal(signal.SIGINT)
                self.assertRegex(begin + self.read(shown), f"{self.BEGIN}[^\n]*{self.ERASE}")
            self.assertEqual(process.wait(60), 130)


if __name__ == "__main__":
    unittest.main()
