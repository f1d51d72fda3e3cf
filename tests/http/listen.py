"""A server that answers each connection with its stdin, after the first bytes arrive, and closes it. Prints its port.

    listen.py [HOLD]    HOLD: leaves the connections open; with an empty stdin it never answers
"""

import socket
import sys

reply = sys.stdin.buffer.read()
held = []
with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        connection.recv(4096)
        connection.sendall(reply)
        held = held + [connection] if sys.argv[1:] else []
        if not held:
            connection.close()
