"""The server that a user would write instead of matmuld: aiohttp with NumPy, or with uvloop and PyTorch.

    serve.py --with numpy|torch [--processes 1]

It accepts POST /v1/matmul with raw float32 and with JSON. POST /kept?edge=N multiplies two matrices that stay
on the device, waits for the product, and returns two bytes. Prints "listening on PORT" when all processes are
ready. Each process multiplies in its event loop. SIGTERM ends the server."""

import argparse
import asyncio
import multiprocessing
import multiprocessing.connection
import signal
import socket
import sys
import warnings

import numpy
from aiohttp import web

BODY_BYTES_MAX = 8 << 30
START_MAX_S = 100


def make_multiply(library):
    if library == "numpy":
        return lambda a, b: a @ b
    import torch

    warnings.filterwarnings("ignore", message=".*not writable.*")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return lambda a, b: (torch.from_numpy(a).to(device) @ torch.from_numpy(b).to(device)).cpu().numpy()


def make_multiply_kept(library):
    kept = {}
    if library == "numpy":
        make = lambda edge: numpy.random.rand(edge, edge).astype(numpy.float32)
        wait = lambda: None
    else:
        import torch

        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        make = lambda edge: torch.rand(edge, edge, device=device)
        wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None

    def multiply_kept(edge):
        if edge not in kept:
            kept[edge] = make(edge), make(edge)
        a, b = kept[edge]
        product = a @ b
        wait()
        return product

    return multiply_kept


def make_kept_handler(multiply_kept):
    async def handle(request):
        multiply_kept(int(request.query["edge"]))
        return web.Response(body=b"ok")

    return handle


def make_handler(multiply):
    async def from_json(request):
        fields = await request.json()
        a, b = (numpy.array(fields[name], dtype=numpy.float32) for name in "ab")
        return web.json_response({"c": multiply(a, b).tolist()})

    async def from_raw(request):
        m, k, n = (int(request.query[name]) for name in "mkn")
        body = await request.read()
        a = numpy.frombuffer(body, numpy.float32, m * k).reshape(m, k)
        b = numpy.frombuffer(body, numpy.float32, k * n, offset=4 * m * k).reshape(k, n)
        return web.Response(body=multiply(a, b).tobytes(), content_type="application/octet-stream")

    async def handle(request):
        return await (from_json if request.content_type == "application/json" else from_raw)(request)

    return handle


async def serve(library, port, ready):
    multiply = make_multiply(library)
    multiply(numpy.ones((8, 8), numpy.float32), numpy.ones((8, 8), numpy.float32))
    application = web.Application(client_max_size=BODY_BYTES_MAX)
    application.router.add_post("/v1/matmul", make_handler(multiply))
    application.router.add_post("/kept", make_kept_handler(make_multiply_kept(library)))
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, reuse_port=True, backlog=4096).start()
    ready.release()
    await asyncio.Event().wait()


def run_child(library, port, ready):
    run = asyncio.run
    if library == "torch":
        import uvloop

        run = uvloop.run
    run(serve(library, port, ready))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--with", dest="library", choices=["numpy", "torch"], required=True)
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    # Reserves a port for the child processes. This socket does not listen, so it gets no connections.
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    holder.bind(("127.0.0.1", 0))
    port = holder.getsockname()[1]
    context = multiprocessing.get_context("fork")
    ready = context.Semaphore(0)
    children = [
        context.Process(target=run_child, args=(arguments.library, port, ready), daemon=True)
        for _ in range(arguments.processes)
    ]
    for child in children:
        child.start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    for _ in children:
        if not ready.acquire(timeout=START_MAX_S):
            sys.exit("a process did not serve")
    print(f"listening on {port}", flush=True)
    multiprocessing.connection.wait([child.sentinel for child in children])


if __name__ == "__main__":
    main()
