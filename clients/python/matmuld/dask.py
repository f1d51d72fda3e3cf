"""Products of Dask arrays, computed by servers of matmuld.

    import matmuld.dask
    a = matmuld.dask.from_npy("a.npy", chunks=4096)                 # or any other Dask arrays
    c = matmuld.dask.matmul(a, b, servers=["http://host1:8080", "http://host2:8080"])
    c.to_zarr("c.zarr")

One task computes one block of C. It stores the blocks of A and B that its server lacks, adds up their products on
the server, and fetches the sum. Nothing is sent before Dask computes C.
"""

# mypy: allow-untyped-calls
# The functions of Dask have no types.

from __future__ import annotations

import contextlib
import functools
import os
import random
import re
import secrets
import socket
import sys
import threading
import time
import zlib
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from . import Client, Error, Stored
from ._arrays import as_array
from ._handles import _RESULTS
from ._http import RAW, Body

try:
    import cloudpickle
    import dask.array as da
    from dask.base import optimize, tokenize
    from dask.core import get_dependencies
    from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
    from dask.local import get_sync
    from dask.sizeof import sizeof
except ImportError as error:
    raise ImportError("matmuld.dask needs Dask: pip install './clients/python[dask]'") from error

# After this time the servers delete what a computation stored, if its last task could not.
TTL_S = 3600

# How often a task tries a step again because its server has lost a matrix or has no memory for one.
TRIES = 16

# The most tasks and bytes of a recipe. Tasks that read a block from a file are a recipe; tasks with its numbers are none.
RECIPE_TASKS, RECIPE_BYTES = 8, 16384

# Threads that need the same block wait for one upload.
_LOCKS = [threading.Lock() for _ in range(64)]


def matmul(a: Any, b: Any, servers: Sequence[str]) -> da.Array:
    """Returns a·b as a Dask array. a and b are matrices as Dask arrays of any chunks, or what Dask makes an array
    of. Types are those of matmuld.matmul.

    A worker sends its requests to one of `servers`, by the number at the end of the worker's name, and to the next
    one if that does not answer. The workers' environment variable MATMULD_API_KEY is the key.

    A block that Dask can read or make by a few tasks, for example from Zarr, is in a worker's memory only while
    it is uploaded. Other blocks are inputs of the tasks, so a worker has a row of blocks of A and a column of blocks
    of B in memory. If a server has no memory for another block, the task deletes blocks that it does not need.
    """
    if isinstance(servers, str) or not servers:
        raise ValueError(f"servers is {servers!r}: it must be a list of at least one URL")
    a, b = da.asarray(a), da.asarray(b)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"a has the shape {a.shape} and b {b.shape}: they must be (m, k) and (k, n)")
    dtype = np.result_type(a.dtype, b.dtype)
    sent = as_array(np.empty((0, 0), dtype), "the operand").dtype.name
    a, b = a.astype(dtype), b.astype(dtype).rechunk({0: a.chunks[1]})
    token = secrets.token_hex(8)
    name = f"matmuld-{token}"
    graph: Dict[Any, Any] = {}
    a_keys, b_keys = _operand(a, f"{name}-a", graph), _operand(b, f"{name}-b", graph)
    compute = functools.partial(_product_block, tuple(servers), token)
    steps = range(a.numblocks[1])
    for i, j in np.ndindex(a.numblocks[0], b.numblocks[1]):
        graph[name, i, j] = (compute, f"{i}", f"{j}", [a_keys[i, k] for k in steps], [b_keys[k, j] for k in steps])
    layer = _Layer(graph, name, functools.partial(_finish, tuple(servers), token))
    return da.Array(
        HighLevelGraph.from_collections(name, layer, dependencies=[a, b]),
        name,
        (a.chunks[0], b.chunks[1]),
        np.dtype(_RESULTS.get(sent, sent)),
    )


def from_npy(path: str, chunks: Any = "auto") -> da.Array:
    """Returns the array of a .npy file as a Dask array. Each task reads its chunk, so the workers need the file
    under the same path."""
    path, facts = os.path.abspath(path), os.stat(path)
    name = "npy-" + tokenize(path, facts.st_mtime_ns, facts.st_size)
    array: da.Array = da.from_array(_Npy(path), chunks, name=name, inline_array=True)
    return array


class _Npy:
    """The array of a file, read by slices. Its pickle has none of the numbers, unlike the pickle of a numpy.memmap."""

    def __init__(self, path: str) -> None:
        array = np.load(path, mmap_mode="r")
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim
        order = "F" if np.isfortran(array) else "C"
        self._map = functools.partial(np.memmap, path, array.dtype, "r", array.offset, array.shape, order)

    def __getitem__(self, part: Any) -> np.ndarray[Any, Any]:
        result: np.ndarray[Any, Any] = np.empty_like(self._map()[part], subok=False)
        if result.ndim == 0:
            result[()] = self._map()[part]
            return result
        # Mapped pages count as the worker's memory, and the system maps up to 64 KiB around what is read. So each few
        # rows are mapped anew.
        rows = max(1, (16 << 20) // max(result[:1].nbytes, 64 << 10))
        for row in range(0, len(result), rows):
            result[row : row + rows] = self._map()[part][row : row + rows]
        return result


class _Layer(MaterializedLayer):  # type: ignore[misc, unused-ignore]
    """The tasks of a product. The last block that Dask computes waits for the others, and then deletes what the
    tasks stored. Which blocks Dask computes is known in `cull`."""

    def __init__(self, graph: Dict[Any, Any], name: str, finish: Any) -> None:
        super().__init__(graph)
        self.name, self.finish = name, finish

    def cull(self, keys: Any, all_hlg_keys: Any) -> Any:
        graph = dict(self.mapping)
        *others, last = sorted(key for key in keys if key in graph and key[0] == self.name) or [None]
        if last:
            ends = {(f"{self.name}-end", *key[1:]): (_forget, key) for key in others}
            graph.update(ends)
            graph[last] = (self.finish, graph[last], list(ends))
        return MaterializedLayer(graph).cull(keys, {*all_hlg_keys, *graph})


def _forget(_: Any) -> None:
    """A task that ends after its input, and keeps nothing of it."""


def _finish(servers: Tuple[str, ...], token: str, block: Any, _: List[None]) -> Any:
    """Deletes what the tasks stored, on each server that answers. Returns the block."""
    for url in servers:
        with contextlib.suppress(Error, OSError), Client(url, timeout_s=10, retry_s=0) as client:
            _delete(client, token)
    return block


def _delete(client: Client, prefix: str, keep: Tuple[str, ...] = ()) -> None:
    for matrix in client.list():
        if matrix.name.startswith(prefix) and matrix.name not in keep:
            matrix.delete()


def _operand(x: da.Array, name: str, graph: Dict[Any, Any]) -> Dict[Tuple[int, ...], Any]:
    """Adds the recipes of x's blocks to the graph. Returns a key for each block: of its recipe, or of itself."""
    source = dict(optimize(x)[0].__dask_graph__())
    keys: Dict[Tuple[int, ...], Any] = {}
    for index in np.ndindex(x.numblocks):
        keys[index] = (x.name, *index)
        recipe = _recipe(source, keys[index])
        if recipe:
            keys[index] = (name, *index)
            graph[keys[index]] = recipe
    return keys


def _recipe(source: Dict[Any, Any], key: Any) -> Optional[bytes]:
    """Returns a pickle of the tasks that make the block, or None if they are many, contain much or are a product."""
    tasks: Dict[Any, Any] = {}
    todo = [key]
    while todo:
        found = todo.pop()
        # A task that is missing is a result on the cluster, as of persist().
        if found not in source or len(tasks) == RECIPE_TASKS or sizeof(source[found]) > RECIPE_BYTES:
            return None
        tasks[found] = source[found]
        todo += get_dependencies(source, found) - tasks.keys() - set(todo)
    try:
        recipe: bytes = cloudpickle.dumps((tasks, key))
    except Exception:  # open files and locks have no pickle, and raise various exceptions
        return None
    # A product is no recipe, because each task would compute it again.
    return recipe if len(recipe) <= RECIPE_BYTES and _product_block.__name__.encode() not in recipe else None


def _product_block(servers: Tuple[str, ...], token: str, i: str, j: str, row: List[Any], column: List[Any]) -> Any:
    """Returns the block i, j of C: the sum of the products of a row of A's blocks by a column of B's."""
    client = _client(_own_first(servers))
    step, total, tries, begun = 0, None, 0, 0
    while True:
        a_name, b_name = f"{token}-block-a-{i}-{step}", f"{token}-block-b-{step}-{j}"
        try:
            product = _put(client, a_name, row[step]) @ _put(client, b_name, column[step])
            if step < len(row) - 1:
                # A new name for each sum: a request that is sent twice then adds once.
                result: Any = product.store(f"{token}-sum-{secrets.token_hex(8)}", ttl_s=TTL_S, c=total)
            else:
                result = product.get(c=total)
            if total:
                total.delete()
            if step == len(row) - 1:
                return result
            step, total = step + 1, result
            if step > begun:
                begun, tries = step, 0
        except socket.timeout:
            # The client goes on with the next server. Each may be silent once.
            tries += TRIES // len(servers) + 1
            if tries > TRIES:
                raise
        except Error as error:
            tries += 1
            if tries > TRIES or error.code not in ("no_such_matrix", "store_full"):
                raise
            if error.code == "store_full":
                _delete(client, f"{token}-block-", keep=(a_name, b_name))
                time.sleep(random.random() * 2**tries / 10000)  # other tasks need memory too
            elif error.problem.get("field") == "c_from":
                step, total = 0, None  # the sum is on a server that does not answer


def _put(client: Client, name: str, block: Any) -> Stored:
    """Stores an array or what its recipe makes, unless the server has it. Client.put would also compute a digest,
    which takes longer than to send the block."""
    with _LOCKS[hash(name) % len(_LOCKS)]:
        if not _has(client, name):
            array = as_array(get_sync(*cloudpickle.loads(block)) if isinstance(block, bytes) else block, "the block")
            query = {"shape": ",".join(map(str, array.shape)), "dtype": array.dtype.name, "ttl_s": TTL_S}
            body = Body()
            body.add(array)
            client._send("PUT", name, query, body, {"Content-Type": RAW})
    return Stored(client, name)


def _has(client: Client, name: str) -> bool:
    # The exception refers to the frames that it has left, so it must not reach the frame that has the block.
    try:
        client._send("HEAD", name, headers={"Accept": RAW})
    except Error as error:
        if error.status != 404:
            raise
        return False
    return True


@functools.lru_cache(maxsize=None)
def _client(servers: Tuple[str, ...]) -> Client:
    return Client(servers)


def _own_first(servers: Tuple[str, ...]) -> Tuple[str, ...]:
    """Returns the servers, beginning with the server of this worker, or of this thread if there are no workers."""
    name = threading.current_thread().name
    if "distributed" in sys.modules:
        with contextlib.suppress(ValueError):
            name = str(sys.modules["distributed"].get_worker().name)
    number = re.search(r"\d+$", name)
    first = (int(number.group()) if number else zlib.crc32(name.encode())) % len(servers)
    return servers[first:] + servers[:first]
