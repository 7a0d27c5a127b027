"""The plan of a pipeline as one JSON-able report: per step what, why, how much, how long, what price, does it fit."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from r1pipe.config import Profile
from r1pipe.estimate import advice, clock
from r1pipe.estimate.device import Device
from r1pipe.estimate.work import Estimator, Facts, Work
from r1pipe.manifest import Manifest
from r1pipe.plan import Action, Decision

MEASURED, UNMEASURED = "measured on this machine (--probe)", "unmeasured: from the device's data sheet"


def facts_of(manifests: Iterable[tuple[str, Manifest]], rates: clock.Rates | None) -> Facts:
    """Mean completion lengths that sealed steps of the run found, and the probe's."""
    found = Facts(any_completion=rates.completion if rates else None)
    for step, manifest in manifests:
        lengths = [
            mode["tokens"]["value"]
            for modes in manifest.evaluation.values()
            for mode in modes.values()
            if isinstance(mode.get("tokens"), dict) and mode["tokens"].get("value")
        ]
        if lengths:
            found.completion[step] = sum(lengths) / len(lengths)
        elif manifest.metrics.get("mean_tokens"):
            found.completion[step] = float(manifest.metrics["mean_tokens"])
    return found


def make(
    profile: Profile, decisions: list[Decision], estimator: Estimator, device: Device, count: int | None,
    rates: clock.Rates | None, folder: Path,
) -> dict[str, Any]:  # fmt: skip
    """{"steps": [...], "total": {...}, "device": {...}, "time_is": ...}. `count` devices are rented for all of it."""
    works = [(d, estimator.work(d.step)) for d in decisions]
    ways = count or max((w.processes for _, w in works), default=1)
    steps = [_step(profile, d, w, estimator, device, ways, rates) for d, w in works]
    to_do = [s for s in steps if s["action"] != Action.SKIP]
    seconds = sum(s["seconds"] for s in to_do)
    disk = sum(s["disk_bytes"] for s in to_do)
    free = shutil.disk_usage(_existing(folder)).free
    return {
        "device": {"key": device.key, "name": device.name, "count": ways, "memory_bytes": round(device.memory),
                   "price": device.price},
        "time_is": MEASURED if rates else UNMEASURED,
        "assumed": {"mfu": device.mfu, "mfu_prefill": device.mfu_prefill, "mbu": device.mbu, "mbu_hf": device.mbu_hf,
                    "reserved": device.reserved},
        "steps": steps,
        "total": {
            "steps": len(to_do),
            "seconds": round(seconds, 1),
            "price": round(seconds / 3600 * device.price * ways, 2),
            "flops": sum(s["flops"] for s in to_do),
            "tokens_trained": sum(s["tokens"]["trained"] for s in to_do),
            "tokens_generated": sum(s["tokens"]["generated"] for s in to_do),
            "disk_bytes": disk,
            "disk_free": free,
            "fits": all(s["fits"] for s in to_do) and disk <= free,
        },
    }  # fmt: skip


def _existing(folder: Path) -> Path:
    path = folder.absolute()
    while not path.exists():
        path = path.parent
    return path


def _step(
    profile: Profile, decision: Decision, work: Work, estimator: Estimator, device: Device, ways: int,
    rates: clock.Rates | None,
) -> dict[str, Any]:  # fmt: skip
    skipped = decision.action is Action.SKIP
    times = clock.of(work, device, rates)
    phase = advice.peak(work, device)
    faults = list(work.faults)
    if work.processes > ways:
        faults.append(f"it needs {work.processes} devices, and there are {ways} (--devices)")
    fits = not faults and advice.fits(work, device)
    seconds = decision.manifest.seconds if skipped and decision.manifest else sum(times.values())
    return {
        "step": decision.step,
        "stage": decision.stage,
        "action": str(decision.action),
        "why": str(decision.why),
        "reason": decision.text,
        "model": work.model,
        "parameters": work.parameters,
        "trained": work.trained,
        "processes": work.processes,
        "sharding": work.sharding,
        "updates": work.updates,
        "tokens": {k: round(v) for k, v in work.tokens.items()},
        "flops": work.flops,
        "memory_bytes": round(phase.total(device)) if phase else 0,
        "memory_at": phase.name if phase else None,
        "phases": [
            {"name": p.name, "bytes": round(p.total(device)), "parts": {k: round(v) for k, v in p.parts.items()},
             **({"vllm_share": p.share} if p.share else {}), **({"note": p.note} if p.note else {})}
            for p in work.phases
        ],
        "fits": skipped or fits,
        "faults": faults,
        "suggestions": [] if skipped or fits else [
            c.as_json() for c in advice.suggest(profile, decision.step, device, estimator, ways)
        ],
        "disk_bytes": round(sum(work.disk.values())),
        "disk": {k: round(v) for k, v in work.disk.items()},
        "seconds": round(seconds, 1),
        "seconds_of": {} if skipped else {k: round(v, 1) for k, v in times.items()},
        "price": round(seconds / 3600 * device.price * ways, 2),
        "notes": work.notes,
    }  # fmt: skip
