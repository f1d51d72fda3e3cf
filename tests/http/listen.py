"""A server that sends its stdin as the reply to each connection and closes the connection. Prints its port.

    listen.py [HOLD]    with HOLD it leaves connections open; with an empty stdin it then never replies
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
