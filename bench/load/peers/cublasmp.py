"""One product on several GPUs by NVIDIA's cuBLASMp, with one process for each GPU: the peer of `devices=all`.

    cublasmp.py [--edge 16384] [--gpus 2] [--repeats 5]

Prints a line for each case, first by one GPU, then by all: EDGE DTYPE GPUS LAYOUT MILLISECONDS TFLOP/S.
A repeat begins when all processes have passed a barrier, and ends when the stream of the slowest process is idle.
The operands are on the GPUs before, and the result stays there. cuBLASMp stores matrices by columns. The layouts:
- rows: A, B and C are divided by rows. Each GPU has one block of rows, as in the service.
- cyclic: as rows, but B has 16 blocks of rows for each GPU, and the GPUs take turns.
- gather: A and C are divided by rows, and B by columns. For this layout, cuBLASMp copies parts of B while it
  multiplies. A is stored by rows, so cuBLASMp sees a transposed matrix.
Needs PyTorch, NCCL, NVSHMEM, and cuBLASMp 0.7.0 (nvidia-cublasmp-cu13). Later versions need NCCL 2.29.2.
Exit status 77 means that a library is missing. Status 1 means that a call failed or a result is wrong."""

import argparse
import ctypes
import multiprocessing.connection
import os
import pathlib
import statistics
import sys
import time

CASES = [(dtype, layout) for layout in ("rows", "cyclic", "gather") for dtype in ("bfloat16", "float32")]
# The cudaDataType_t, and the largest error allowed, relative to the largest element of C. TF32 exceeds the limit of
# float32. A bfloat16 sum may be rounded after each block of B.
TYPES = {"float32": (0, 1e-5), "bfloat16": (14, 5e-2)}
COMPUTE_32F, BY_COLUMNS, BY_ROWS = 68, 0, 1
TRANSPOSES_A, ALGORITHM, SPLIT_P2P = 0, 3, 1  # two attributes of a product, and an algorithm without multicast
STATUSES = "OK NOT_INITIALIZED ALLOCATION_FAILED INVALID_VALUE ARCHITECTURE_MISMATCH EXECUTION_FAILED INTERNAL_ERROR NOT_SUPPORTED"
MADE = object()


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


def load(name):
    """Returns the library that PyTorch or LD_LIBRARY_PATH has, or else the one in a Python package."""
    places = [(folder, depth) for folder in sys.path for depth in ("*", "*/*")]
    for path in [name, *(path for folder, depth in places for path in pathlib.Path(folder).glob(f"nvidia/{depth}/lib/{name}"))]:
        try:
            return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            reason = error
    raise ImportError(reason)


class Library:
    def __init__(self):
        # The last library needs the others.
        names = ("libnccl.so.2", "libnvshmem_host.so.3", "libcublasLt.so.13", "libcublas.so.13", "libcublasmp.so.0")
        self.nccl, self.nvshmem, _, _, self.cublasmp = map(load, names)
        self.nccl.ncclGetErrorString.restype = ctypes.c_char_p
        self.nvshmem.nvshmem_malloc.restype = ctypes.c_void_p

    def call(self, name, *values):
        """Calls a function of NCCL or cuBLASMp. The function writes a pointer in the place of MADE, which is returned.
        All integers have 64 bits, which also suits 32-bit parameters."""
        made = ctypes.c_void_p()
        values = [ctypes.byref(made) if value is MADE else value for value in values]
        library = self.nccl if name.startswith("nccl") else self.cublasmp
        status = getattr(library, name)(*(ctypes.c_int64(value) if isinstance(value, int) else value for value in values))
        if status:
            text = library.ncclGetErrorString(status).decode() if library is self.nccl else STATUSES.split()[status]
            raise RuntimeError(f"{name}: {text}")
        return made


def divide(layout, a, b, gpus, rank, tall, wide):
    """Returns this process's elements of A and B in cuBLASMp's order. Also returns, for each of A, B and C, the rows
    and columns in a block, the leading dimension, and the grid of processes."""
    edge, share = len(a), len(a) // gpus
    mine = slice(rank * share, (rank + 1) * share)
    if layout == "gather":
        divided = (edge, share, edge, wide)
        return a[mine].contiguous(), b[:, mine].T.contiguous(), divided, divided, (share, share, share, tall)
    block = share // 16 if layout == "cyclic" else share
    b = b.view(-1, block, edge)[rank::gpus].reshape(share, edge)
    blocks = (share, block, share, tall), (block, edge, share, tall), (share, edge, share, tall)
    return a[mine].T.contiguous(), b.T.contiguous(), *blocks


def measure(torch, library, handle, grids, case, options, gpus, rank, barrier, stream):
    """Returns the milliseconds of each repeat in this process."""
    (dtype, layout), edge, share, device = case, options.edge, options.edge // gpus, f"cuda:{rank}"
    kind, error_max = TYPES[dtype]
    random = torch.Generator(device).manual_seed(1)  # all processes generate equal matrices
    whole = [(torch.rand(edge, edge, device=device, generator=random) * 2 - 1).to(getattr(torch, dtype)) for _ in "ab"]
    a, b, *blocks = divide(layout, *whole, gpus, rank, *grids)
    c = torch.zeros(edge, share, device=device, dtype=a.dtype)  # `share` rows, stored by columns
    descriptors = [
        library.call("cublasMpMatrixDescriptorCreate", edge, edge, rows, columns, 0, 0, leading, kind, grid, MADE)
        for rows, columns, leading, grid in blocks
    ]
    product = library.call("cublasMpMatmulDescriptorCreate", MADE, COMPUTE_32F)
    for name, value in ((TRANSPOSES_A, 1), (ALGORITHM, SPLIT_P2P)) if layout == "gather" else ():
        library.call("cublasMpMatmulDescriptorAttributeSet", product, name, ctypes.byref(ctypes.c_int(value)), 4)
    matrix_a, matrix_b, matrix_c = [(m.data_ptr(), 1, 1, made) for m, made in zip((a, b, c), descriptors)]
    one, zero = ctypes.byref(ctypes.c_float(1)), ctypes.byref(ctypes.c_float(0))
    # C is alpha A B + beta times a matrix that is not needed, because beta is 0.
    values = [handle, product, edge, edge, edge, one, *matrix_a, *matrix_b, zero, 0, 1, 1, descriptors[2], *matrix_c]
    sizes = ctypes.c_size_t(), ctypes.c_size_t()
    library.call("cublasMpMatmul_bufferSize", *values, *map(ctypes.byref, sizes))
    on_device, on_host = (size.value for size in sizes)
    workspace = library.nvshmem.nvshmem_malloc(ctypes.c_size_t(on_device)) if on_device else 0
    if workspace is None:
        raise RuntimeError(f"nvshmem_malloc: no memory for {on_device} bytes")
    values += [workspace, on_device, ctypes.create_string_buffer(on_host + 1), on_host]
    torch.cuda.synchronize()
    times = []
    for _ in range(1 + options.repeats):  # the first warms up
        barrier.wait()
        begin = time.perf_counter()
        library.call("cublasMpMatmul", *values)
        stream.synchronize()
        times.append((time.perf_counter() - begin) * 1e3)
    wanted = whole[0][rank * share : (rank + 1) * share : share // 8].double() @ whole[1].double()  # eight rows
    error = ((c.T[:: share // 8].double() - wanted).abs().max() / wanted.abs().max()).item()
    if not error <= error_max:
        raise RuntimeError(f"{dtype}, {layout}: C is wrong by {error:.1e} of its largest element, not at most {error_max:.0e}")
    barrier.wait()
    if workspace:
        library.nvshmem.nvshmem_free(ctypes.c_void_p(workspace))
    return times[1:]


def multiply(rank, gpus, options, unique, barrier, results):
    import torch

    torch.cuda.set_device(rank)
    stream, library = torch.cuda.Stream(), Library()
    if rank == 0:
        library.call("ncclGetUniqueId", unique)
    barrier.wait()
    communicator = library.call("ncclCommInitRank", MADE, gpus, UniqueId.from_buffer_copy(unique), rank)
    handle = library.call("cublasMpCreate", MADE, ctypes.c_void_p(stream.cuda_stream))
    tall = library.call("cublasMpGridCreate", gpus, 1, BY_COLUMNS, communicator, MADE)
    wide = library.call("cublasMpGridCreate", 1, gpus, BY_ROWS, communicator, MADE)
    for case in CASES if gpus > 1 else CASES[:2]:
        times = measure(torch, library, handle, (tall, wide), case, options, gpus, rank, barrier, stream)
        results.put((case, times))
    barrier.wait()


def work(rank, gpus, *shared):
    """Runs one process, and ends it without exit handlers, which would wait for other processes after a failure."""
    try:
        multiply(rank, gpus, *shared)
        os._exit(0)
    except Exception as error:
        print(f"cublasmp.py: GPU {rank} of {gpus}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(77 if isinstance(error, ImportError) else 1)


def run(gpus, options):
    """Starts a process for each GPU. Prints the cases that all processes measured, and returns the exit status."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(gpus), context.SimpleQueue()
    shared = options, context.Array("c", ctypes.sizeof(UniqueId), lock=False), barrier, results
    workers = [context.Process(target=work, args=(rank, gpus, *shared)) for rank in range(gpus)]
    for worker in workers:
        worker.start()
    alive = workers
    while alive and not any(worker.exitcode for worker in workers):
        multiprocessing.connection.wait([worker.sentinel for worker in alive])
        alive = [worker for worker in alive if worker.is_alive()]
    status = next((worker.exitcode for worker in workers if worker.exitcode), 0)
    if status < 0:
        print(f"cublasmp.py: signal {-status} ended a process", file=sys.stderr)
    for worker in workers:
        worker.kill()  # after a failure, the other processes wait
        worker.join()
    measured = {}
    while not results.empty():
        case, times = results.get()
        measured.setdefault(case, []).append(times)
    for (dtype, layout), times in measured.items():
        if len(times) == gpus:
            ms = statistics.median(map(max, zip(*times)))
            print(options.edge, dtype, gpus, layout, f"{ms:.3f} {2 * options.edge**3 / ms / 1e9:.1f}", flush=True)
    return 1 if status < 0 else status


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("edge", 16384), ("gpus", 2), ("repeats", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    if options.edge % (16 * options.gpus):
        parser.error("--edge must be a multiple of 16 times the number of GPUs")
    # Owners of shared hosts forbid NVLink multicast, because a fault in it can stop all GPUs of the host.
    os.environ.update(NCCL_NVLS_ENABLE="0", NVSHMEM_DISABLE_NVLS="1", TORCH_SYMM_MEM_DISABLE_MULTICAST="1")
    os.environ.setdefault("NVSHMEM_REMOTE_TRANSPORT", "none")  # all GPUs are in this host
    os.environ.setdefault("CUBLASMP_LOG_LEVEL", "1")  # cuBLASMp prints why a call failed
    sys.exit(run(1, options) or run(options.gpus, options))


if __name__ == "__main__":
    main()
