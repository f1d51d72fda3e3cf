"""Runs the Python blocks of docs/python.md and README.md, each as a program of its own, and compares what a program
prints with the comments behind `print`, where … stands for any text. Also runs shell blocks with `python3 -m matmuld`.
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from test_matmuld import Server

HERE = pathlib.Path(__file__).resolve().parent
OPTIONAL = "dask", "torch"


def blocks(page):
    """Yields the line, the language and the text of each block to run."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^```(python|sh)\n(.*?)^```$", text, re.M | re.S):
        if found[1] == "python" or "-m matmuld" in found[2]:
            yield text.count("\n", 0, found.start(2)) + 1, found[1], found[2]


class Recipes(unittest.TestCase):
    def run_block(self, place, language, text, servers):
        missing = [name for name in OPTIONAL if re.search(rf"^import {name}\b", text, re.M) and not importlib.util.find_spec(name)]
        if missing:
            print(f"{place} is not run: there is no {missing[0]}", file=sys.stderr)
            self.skipTest(f"there is no {missing[0]}")
        for port, server in zip((8080, 8081), servers):
            text = text.replace(f"http://127.0.0.1:{port}", server.url)
        path = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
        environment = {
            **os.environ,
            "MATMULD_URL": servers[0].url,
            "PYTHONPATH": str(HERE),
            "PYTHONIOENCODING": "utf-8",
            "PATH": path,
        }
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "block")
            program.write_text(text, encoding="utf-8")
            command = [sys.executable] if language == "python" else ["sh", "-e"]
            ran = subprocess.run(
                [*command, program], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300
            )
        self.assertEqual(ran.returncode, 0, ran.stderr.decode())
        if language == "python":
            comments = re.findall(r"^ *print\(.*\)  # (.*)$", text, re.M)
            printed = ran.stdout.decode().splitlines()
            self.assertEqual(len(printed), len(comments), printed)
            for line, comment in zip(printed, comments):
                self.assertRegex(line, f"^{'.*'.join(map(re.escape, comment.split('…')))}$")

    def test_pages(self):
        servers = Server(), Server()
        for server in servers:
            self.addCleanup(server.stop)
        for page in HERE.parents[1] / "docs/python.md", HERE / "README.md":
            for line, language, text in blocks(page):
                place = f"{page.name}:{line}"
                with self.subTest(place):
                    self.run_block(place, language, text, servers)


if __name__ == "__main__":
    unittest.main()
