"""A program on simulated ranks: in this process where PyTorch has the local-tensor mode, otherwise
a process for each, which talk by gloo."""
from __future__ import annotations

import contextlib
import datetime
import multiprocessing
import multiprocessing.connection
import pickle
import tempfile
from typing import (Any, Callable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple,
                    Union)

from .._library import Error
from .tap import Tap

MeshLike = Union[None, Sequence[int], Mapping[str, int]]


class _Result(NamedTuple):
    """What a rank's process sends: its data, pickled, or why it failed, and whether that is because
    of others."""

    rank: int
    why: str = ""
    by_others: bool = False
    data: bytes = b""
    label: str = "torch_ranks"


class Ranks:
    """What `ranks` returns."""

    def __init__(self, count: int, mesh: Mapping[str, int], processes: bool) -> None:
        self.count, self.mesh, self.processes = count, dict(mesh), processes

    def run(self, program: Callable[..., Any], *arguments: Any) -> Any:
        """Calls program(mesh, *arguments) on all ranks, without gradients. Returns what rank 0
        returns; a Tap has what all ranks saw. In one process a plain tensor is that of every
        rank, and those of a model made by the program are alike on all; in several, seed them.
        Raises Error torch_ranks for what fails on a rank's process, and an Error of a rank's as it
        is."""
        return self._run_processes(program, arguments) if self.processes else \
            self._run_here(program, arguments)

    def _run_here(self, program: Callable[..., Any], arguments: Tuple[Any, ...]) -> Any:
        import torch
        from torch.distributed._local_tensor import LocalTensorMode

        with _fake_group(self.count), LocalTensorMode(self.count), torch.no_grad():
            result = program(_mesh(self.mesh), *arguments)
            return result.detached() if isinstance(result, Tap) else result

    def _run_processes(self, program: Callable[..., Any], arguments: Tuple[Any, ...]) -> Any:
        context = multiprocessing.get_context("fork")  # so that programs may be closures
        with tempfile.TemporaryDirectory() as folder:
            pipes, children = [], []
            for rank in range(self.count):
                receive, send = context.Pipe(duplex=False)
                child = context.Process(target=self._work, daemon=True,
                                        args=(rank, folder, send, program, arguments))
                child.start()
                send.close()
                pipes.append(receive)
                children.append(child)
            results = list(_received(pipes))
            for child in children:
                child.join()
        # Where a rank fails, those that wait for it lose their connection: that is no cause. Of
        # those that are, the lowest rank's is said, otherwise the earliest.
        failed = sorted((one for one in results if one.why),
                        key=lambda one: (one.by_others, 0 if one.by_others else one.rank))
        if failed:
            raise Error(failed[0].label, failed[0].why)
        results.sort(key=lambda one: one.rank)
        values = [pickle.loads(one.data) for one in results]  # of our own children
        return values[0].join(values[1:]) if isinstance(values[0], Tap) else values[0]

    def _work(self, rank: int, folder: str, send: Any, program: Callable[..., Any],
              arguments: Tuple[Any, ...]) -> None:
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)  # a forked process has none of its parent's threads
        try:
            dist.init_process_group("gloo", init_method=f"file://{folder}/ranks", rank=rank,
                                    world_size=self.count, timeout=datetime.timedelta(minutes=2))
            with torch.no_grad():
                result = program(_mesh(self.mesh), *arguments)
            kept = result if rank == 0 or isinstance(result, Tap) else None
            send.send(_Result(rank, data=pickle.dumps(kept)))
            dist.barrier()
            dist.destroy_process_group()
        except BaseException as error:  # whatever it is, the parent says it
            if isinstance(error, Error):
                send.send(_Result(rank, f"rank {rank}: {error.message}", label=error.label))
            else:
                why = f"rank {rank}: {type(error).__name__}: {error}".split("\n")[0]
                send.send(_Result(rank, why, _by_others(error)))


def ranks(count: int, mesh: MeshLike = None, *, processes: Optional[bool] = None) -> Ranks:
    """Simulated ranks on a mesh: {"dp": 2, "tp": 4}, or sizes; one dim "tp" of all if it is left
    out. `processes`: whether each is a process; if left out, only where PyTorch has no
    local-tensor mode. Raises Error torch_ranks for a mesh of another number of ranks, and without
    that mode for processes=False."""
    if mesh is None:
        mesh = {"tp": count}
    elif not isinstance(mesh, Mapping):
        names: List[str] = ["tp"] if len(mesh) == 1 else [f"mesh{i}" for i in range(len(mesh))]
        mesh = dict(zip(names, mesh))
    product = 1
    for size in mesh.values():
        product *= int(size)
    if product != count or not 1 <= count <= 4096:
        raise Error("torch_ranks", f"a mesh of {'x'.join(map(str, mesh.values()))} for {count} "
                                   "ranks: their numbers must be equal, at most 4096")
    here = has_local_tensors()
    if processes is False and not here:
        raise Error("torch_ranks", "this PyTorch cannot simulate ranks in one process, which needs "
                                   "the local-tensor mode of 2.10: leave processes=False out")
    return Ranks(count, mesh, not here if processes is None else processes)


def has_local_tensors() -> bool:
    """Whether PyTorch can simulate ranks in one process."""
    try:
        from torch.distributed._local_tensor import LocalTensorMode  # noqa: F401
        from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: F401
    except ImportError:
        return False
    return True


@contextlib.contextmanager
def _fake_group(count: int) -> Iterator[None]:
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    if dist.is_initialized():
        raise Error("torch_ranks", "torch.distributed is in use already: run simulated ranks in a "
                                   "process of their own, or after destroy_process_group()")
    dist.init_process_group("fake", rank=0, world_size=count, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()


def _mesh(mesh: Mapping[str, int]) -> Any:
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh("cpu", tuple(mesh.values()), mesh_dim_names=tuple(mesh))


def _received(pipes: Sequence[Any]) -> Iterator[_Result]:
    """What the ranks send, in the order in which it arrives."""
    waiting = dict(enumerate(pipes))
    while waiting:
        ready = multiprocessing.connection.wait(list(waiting.values()))
        for rank in [rank for rank, pipe in waiting.items() if pipe in ready]:
            try:
                yield waiting.pop(rank).recv()
            except EOFError:
                yield _Result(rank, f"rank {rank}: its process ended without a word")


def _by_others(error: BaseException) -> bool:
    """Whether an error says that another rank is gone, or does not come."""
    return (isinstance(error, ConnectionError)
            or type(error).__module__.startswith("torch.distributed")
            or type(error).__name__.startswith("Dist")
            or any(word in str(error).lower() for word in ("gloo", "connection closed", "timed out",
                                                           "connection reset")))
