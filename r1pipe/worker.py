"""The child that runs one step: `python -m r1pipe.worker REQUEST`, or `--wait STAGE` to import first and read the
request's path from stdin. Several requests (a dry run) are worked through in one process.

Everything that it and the libraries print goes to the step's log. It writes result.json as its last act; the
runner seals. It ends when the runner ends.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

_BEGAN = time.monotonic()


def main(argv: list[str]) -> int:
    from r1pipe import process, stage

    stage.search_code()
    runner = int(os.environ.get("R1PIPE_RUNNER_PID", "0"))
    if runner:
        process.die_with(runner)
    if os.environ.get("R1PIPE_RUNNER_PID") == str(os.getppid()):
        process.die_with_parent()
    if argv[0] == "--wait":
        _preload(argv[1])
        line = sys.stdin.readline().strip()
        if not line:
            return 0  # not needed after all
        argv = [line]
        global _BEGAN
        _BEGAN = time.monotonic()  # what came before was overlapped with the step above
    code = 0
    for path in argv:
        code = _run(Path(path)) or code
    sys.stdout.flush()
    sys.stderr.flush()
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        os._exit(code)  # finished and durable: interpreter shutdown with torch threads costs a second
    return code


def _preload(stage: str) -> None:
    """The slow imports of a stage, ahead of its turn. A failure shows when the step runs."""
    from r1pipe import stage as stages

    preload = getattr(stages.load(stage), "preload", None)
    if preload is not None:
        preload()


def _run(request_path: Path) -> int:
    from r1pipe import process
    from r1pipe.store import Attempt, read_json

    request = read_json(request_path)
    attempt = Attempt(Path(request["folder"]))
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    _to_log(attempt.log)
    lock = None
    if rank == 0:
        try:
            lock = process.acquire(attempt.lock)
        except process.Held as held:
            print(f"r1pipe: {held}", file=sys.stderr, flush=True)  # noqa: T201
            return 75
        except OSError as error:
            sys.stderr.write(f"r1pipe: cannot write {attempt.lock}: {error.strerror}\n")
            return 74
    job = Job(request, attempt, rank, world)
    try:
        return job.run()
    finally:
        if lock is not None:
            lock.close()


def _to_log(path: Path) -> None:
    with path.open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)


def _where() -> dict[str, Any]:
    """Device and threads of a step that used torch: both are part of what its numbers are."""
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    device = torch.cuda.get_device_name() if torch.cuda.is_initialized() else "cpu"
    return {"device": device, "threads": torch.get_num_threads()}


class Job:
    """One step in this process."""

    def __init__(self, request: dict[str, Any], attempt: Any, rank: int, world: int) -> None:
        self.request = request
        self.attempt = attempt
        self.rank = rank
        self.world = world
        self.timing: dict[str, float] = {}
        self._last_emit = 0.0

    def run(self) -> int:
        from r1pipe.errors import StepFailed, UserError
        from r1pipe.store import write_json

        result: dict[str, Any]
        code = 1
        try:
            result = self._work()
            code = 0
        except UserError as error:
            traceback.print_exc()
            kind = "failed" if isinstance(error, StepFailed) else "user"
            result = {"error": error.message, "hint": error.hint, "kind": kind}
        except MemoryError:
            traceback.print_exc()
            result = {"error": "out of memory", "hint": "smaller batches or shorter completions", "kind": "memory"}
        except Exception as error:  # noqa: BLE001  the boundary: told to the runner with its type, log has the rest
            traceback.print_exc()
            result = {"error": f"{type(error).__name__}: {error}", "hint": None, "kind": "crash"}
            if "out of memory" in str(error).lower() or "DefaultCPUAllocator" in str(error):
                result |= {"kind": "memory", "hint": "smaller batches, shorter completions, LoRA or more devices"}
            if isinstance(error, OSError) and error.errno == 28:
                result |= {"kind": "disk", "error": f"no space left on the disk of {self.attempt.path}",
                           "hint": "free space (r1pipe prune), then run again: it resumes"}  # fmt: skip
        if self.rank == 0:
            try:
                write_json(self.attempt.result, result)
            except UserError as error:  # the log is what is left to say it in
                sys.stderr.write(f"r1pipe: {result.get('error', error.message)}\n")
                return 74
        elif code:
            print(f"r1pipe: rank {self.rank} failed: {result['error']}", file=sys.stderr, flush=True)  # noqa: T201
        return code

    def _work(self) -> dict[str, Any]:
        from r1pipe import stage as stages
        from r1pipe.stage import POLICY, Input, StageContext

        request = self.request
        module = stages.load(request["stage"])
        config = module.Config.model_validate(request["config"])
        ctx = StageContext(
            step=request["step"],
            seed=config.seed,
            inputs={port: Input(path=Path(i.pop("path")), **i) for port, i in request["inputs"].items()},
            outputs={name: self.attempt.output(name) for name in module.OUTPUTS},
            work=self.attempt.work,
            is_main=self.rank == 0,
            world_size=self.world,
            resume=request["resume"],
            emit=self._emit,
        )
        self._clock("startup", _BEGAN)
        self._emit({"event": "started", "pid": os.getpid()})
        began = time.monotonic()
        if config.threads:
            import torch

            torch.set_num_threads(config.threads)
        if request["mode"] == "evaluate":
            evaluation = self._evaluate(module, config, ctx)
            self._clock("evaluate", began)
            return {
                "evaluation": evaluation,
                "counts": ctx.counts,
                "facts": ctx.facts,
                "warnings": ctx.warnings,
                "timing": self.timing,
            }
        facts = module.check(ctx, config)
        ctx.facts.update(facts or {})
        if request["mode"] == "check":
            return {"facts": ctx.facts, "warnings": ctx.warnings}
        metrics = module.run(ctx, config) or {}
        ctx.facts |= _where()
        began = self._clock("run", began)
        wanted = any(kind == POLICY for kind in module.OUTPUTS.values()) and config.evaluate and config.evaluation.sets
        apart = wanted and self._needs_room()
        evaluation = self._evaluate(module, config, ctx) if wanted and not apart else {}
        self._clock("evaluate", began)
        return {
            "metrics": metrics,
            "evaluation": evaluation,
            "evaluate_apart": bool(apart),
            "counts": ctx.counts,
            "facts": ctx.facts,
            "warnings": ctx.warnings,
            "meta": ctx.meta,
            "timing": self.timing,
            "tokens": int(metrics.get("tokens", 0) or 0),
        }

    def _needs_room(self) -> bool:
        """Must the evaluation have a process of its own? Where a trainer, or its vLLM, still holds the GPU, or
        where this is one rank of several."""
        if self.world > 1:
            return True
        torch = sys.modules.get("torch")
        return bool(torch and torch.cuda.is_available() and torch.cuda.memory_allocated())

    def _evaluate(self, module: Any, config: Any, ctx: Any) -> dict[str, Any]:
        """Evaluates the policy that the step made, with the verifiers of training."""
        from r1pipe import evaluate
        from r1pipe.data.load import write_rows
        from r1pipe.manifest import DATA_FILE
        from r1pipe.stage import POLICY

        name = next(name for name, kind in module.OUTPUTS.items() if kind == POLICY)
        ctx.phase("evaluating")
        metrics, records = evaluate.run(
            ctx.outputs[name], config.evaluation, chat=config.chat, engine=config.engine, seed=config.seed, ctx=ctx
        )
        folder = self.attempt.output("evaluation")
        folder.mkdir(parents=True, exist_ok=True)
        write_rows(folder / DATA_FILE, records)
        return metrics

    def _emit(self, event: dict[str, Any]) -> None:
        if self.rank != 0:
            return
        from r1pipe.store import append_json

        append_json(self.attempt.events, {"time": time.time(), **event})

    def _clock(self, name: str, since: float) -> float:
        now = time.monotonic()
        self.timing[name] = round(now - since, 3)
        return now


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
