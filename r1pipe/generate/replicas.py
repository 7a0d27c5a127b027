"""Data parallel sampling: several vLLM engines, each in a process of its own, fed from one queue.

`vllm.LLM` refuses `data_parallel_size` in one process. Sampling needs no more than copies of the engine that share
the prompts: each replica has its devices (`tensor_parallel_size` x `pipeline_parallel_size` of them; on a CPU its
cores) and takes the next prompts when it has room for them.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from r1pipe.chat import ChatConfig
from r1pipe.errors import UserError
from r1pipe.generate.base import Ask, Made, Streaming
from r1pipe.generate.vllm_engine import CORES, VllmSampler
from r1pipe.settings import SamplingConfig

PIECE = 32  # prompts handed over at once: little is left to one replica alone at the end


class ReplicaSampler(Streaming):
    """See `Sampler`. `options` are those of `vllm.LLM`, with data_parallel_size above 1."""

    name = "vllm"

    def __init__(self, model_dir: str | Path, chat: ChatConfig, *, dtype: str, options: dict[str, Any]) -> None:
        size = int(options["data_parallel_size"])
        rest = {name: value for name, value in options.items() if name != "data_parallel_size"}
        each = int(rest.get("tensor_parallel_size", 1)) * int(rest.get("pipeline_parallel_size", 1))
        context = get_context("spawn")
        self.ends: list[Any] = []
        self.processes: list[Any] = []
        for place in _places(size, each):
            mine, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(theirs, place, os.getpid(), str(model_dir), chat, dtype, rest), daemon=False
            )
            process.start()
            theirs.close()
            self.ends.append(mine)
            self.processes.append(process)
        try:
            facts = [self._hear(number)[1] for number in range(size)]
        except BaseException:
            self.close()
            raise
        self.facts: dict[str, Any] = facts[0] | {"data_parallel_size": size}

    def _hear(self, number: int) -> tuple[str, Any]:
        """The next message of a replica. Raises what it failed with."""
        try:
            kind, value = self.ends[number].recv()
        except (EOFError, OSError):
            raise self._gone(number) from None
        if kind == "failed":
            raise value
        return kind, value

    def _tell(self, number: int, value: Any) -> None:
        try:
            self.ends[number].send(value)
        except OSError:
            raise self._gone(number) from None

    def _gone(self, number: int) -> RuntimeError:
        return RuntimeError(f"vllm replica {number} (process {self.processes[number].pid}) ended: the log says why")

    def stream(self, groups: Iterable[list[Ask]], sampling: SamplingConfig) -> Iterator[Made]:
        """See `Sampler`."""
        pieces = (asks[at : at + PIECE] for asks in groups for at in range(0, len(asks), PIECE))
        lock = threading.Lock()  # `groups` belongs to the caller: one thread at a time goes on with it
        heard: queue.Queue[Made | BaseException | None] = queue.Queue()

        def attend(number: int) -> None:
            """Answers a replica that asks for prompts, and passes its samples on."""
            try:
                self._tell(number, sampling)
                while True:
                    kind, value = self._hear(number)
                    if kind == "made":
                        heard.put(value)
                    elif kind == "more":
                        with lock:
                            piece = next(pieces, None)
                        self._tell(number, piece)
                    else:
                        return heard.put(None)
            except BaseException as error:  # noqa: BLE001 (raised where the samples are read)
                heard.put(error)

        for number in range(len(self.ends)):
            threading.Thread(target=attend, args=(number,), daemon=True, name=f"r1pipe-replica-{number}").start()
        running = len(self.ends)
        while running:
            item = heard.get()
            if item is None:
                running -= 1
            elif isinstance(item, BaseException):
                self.close()
                raise item
            else:
                yield item

    def close(self) -> None:
        """Ends the replicas."""
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join(10)
            if process.is_alive():
                process.kill()
                process.join()


def _places(size: int, each: int) -> list[dict[str, str]]:
    """The environment of each replica: its devices, or its cores. Raises UserError where there are too few."""
    import torch

    if torch.cuda.is_available():
        named = os.environ.get("CUDA_VISIBLE_DEVICES")
        devices = named.split(",") if named else [str(n) for n in range(torch.cuda.device_count())]
        what, variable, joint, per = "GPUs", "CUDA_VISIBLE_DEVICES", ",", each
    else:
        devices = [str(n) for n in CORES]
        what, variable, joint, per = "cores", "VLLM_CPU_OMP_THREADS_BIND", ",", max(each, len(devices) // size)
    if len(devices) < size * per:
        raise UserError(
            f"engine.options asks for {size} replicas of {per} {what} each; there are {len(devices)}",
            hint="lower data_parallel_size, tensor_parallel_size or pipeline_parallel_size",
        )
    return [{variable: joint.join(devices[n * per : (n + 1) * per])} for n in range(size)]


def _serve(
    end: Any, place: dict[str, str], parent: int, model_dir: str, chat: ChatConfig, dtype: str, options: dict[str, Any]
) -> None:
    """A replica: one engine, one stream after the other. Everything it prints goes to the log of its parent."""
    from r1pipe import process

    process.die_with(parent)
    os.environ.update(place)
    try:
        sampler = VllmSampler(model_dir, chat, dtype=dtype, options=options)
        end.send(("facts", sampler.facts))

        def groups() -> Iterator[list[Ask]]:
            end.send(("more", None))
            while (asks := end.recv()) is not None:
                yield asks
                end.send(("more", None))

        while True:
            sampling = end.recv()
            for made in sampler.stream(groups(), sampling):
                end.send(("made", made))
            end.send(("done", None))
    except (EOFError, BrokenPipeError):
        return  # the parent is done
    except BaseException as error:
        with suppress(OSError, TypeError):
            end.send(("failed", error if isinstance(error, UserError) else RuntimeError(f"a vllm replica: {error}")))
        raise
