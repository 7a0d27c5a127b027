"""`r1pipe verify RUN`: digests every artifact again and follows the chain of manifests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r1pipe.cli import options as o
from r1pipe.cli import runs, terminal
from r1pipe.errors import UserError

if TYPE_CHECKING:
    from r1pipe.manifest import Artifact, Manifest
    from r1pipe.store import Attempt, Store


@dataclass
class Report:
    """What was looked at, and every fault as `where: what`."""

    manifests: int = 0
    artifacts: int = 0
    files: int = 0
    size: int = 0  # bytes
    inputs: int = 0
    evaluations: int = 0
    unsealed: int = 0
    faults: list[str] = field(default_factory=list)


def verify(
    run: Annotated[str, typer.Argument(help="Name or path of a run.")],
    runs_dir: o.RunsDir = Path("runs"),
    json: o.Json = False,
    debug: o.Debug = False,
) -> int:
    """Digest every artifact of a run again; check the chain of manifests."""
    store = runs.open_run(run, runs_dir)
    with _ticker(json) as tick:
        report = check(store, tick)
    if not report.manifests and not report.faults:
        raise UserError(f"{store.root} holds no sealed step: there is nothing to verify", hint="r1pipe status --why")
    if json:
        import json as js
        from dataclasses import asdict

        value = {"run": store.run, "folder": str(store.root), "ok": not report.faults} | asdict(report)
        sys.stdout.write(js.dumps(value, ensure_ascii=False, indent=2) + "\n")
    else:
        _show(store, report)
    return 1 if report.faults else 0


def check(store: Store, tick: Callable[[str], None] = lambda name: None) -> Report:
    """Verifies every sealed step of a run; `tick` is told each file before it is read."""
    from r1pipe import manifest as mf

    report = Report()
    sealed: list[tuple[str, Attempt, Manifest]] = []
    for step, attempt in runs.attempts(store):
        if not attempt.sealed:
            report.unsealed += 1
            continue
        try:
            sealed.append((step, attempt, mf.load(attempt)))
        except UserError as error:
            report.faults.append(error.message)
    for step, attempt, manifest in sealed:
        report.manifests += 1
        report.faults += _itself(step, attempt, manifest)
        for name, artifact in manifest.outputs.items():
            report.artifacts += 1
            report.files += len(artifact.files)
            report.size += sum(entry.size for entry in artifact.files)
            report.faults += _artifact(attempt.output(name), artifact, f"{step}/{attempt.path.name} {name}", tick)
        for port, record in manifest.inputs.items():
            report.inputs += 1
            report.faults += _link(store, f"{step}/{attempt.path.name} input {port}", record)
    _evaluations(store, report, tick)
    return report


def _evaluations(store: Store, report: Report, tick: Callable[[str], None]) -> None:
    """The sealed results of `r1pipe evaluate`; one that was never finished has no result.json, and is made again."""
    from r1pipe import digest as dg
    from r1pipe import manifest as mf
    from r1pipe.evaluate import results

    for path in sorted((store.root / results.FOLDER).glob(f"model-*/*/{results.RESULT}")):
        folder = path.parent
        try:
            result = results.load(folder)
        except UserError as error:
            report.faults.append(error.message)
            continue
        report.evaluations += 1
        report.files += len(result.files.files)
        report.size += sum(entry.size for entry in result.files.files)
        tick(folder.relative_to(store.root).as_posix())
        report.faults += mf.faults(result.files, folder, deep=True)
        if dg.value_digest(result.key_of) != result.key:
            report.faults.append(f"{path}: its key is not the digest of its key_of")


def _itself(step: str, attempt: Attempt, manifest: Manifest) -> list[str]:
    """Does the manifest belong where it lies, and is its fingerprint the digest of what it lists?"""
    from r1pipe import digest as dg
    from r1pipe import manifest as mf

    found = []
    if text := mf.changed(attempt):
        found.append(text)
    if manifest.step != step:
        found.append(f"{attempt.manifest} is of step {manifest.step}, but lies in the folder of {step}")
    if not attempt.path.name.startswith(manifest.fingerprint[:8]):
        found.append(f"{attempt.manifest} has fingerprint {manifest.fingerprint[:8]}…, its folder says another")
    if dg.value_digest(manifest.fingerprint_of) != manifest.fingerprint:
        found.append(f"{attempt.manifest}: its fingerprint is not the digest of its fingerprint_of")
    policies = [a for a in manifest.outputs.values() if a.kind == "policy"]
    for key in ("chat_template_digest", "tokenizer_digest"):
        if policies and getattr(manifest, key) not in {a.meta.get(key) for a in policies}:
            found.append(f"{attempt.manifest}: {key} is not that of the policy which it seals")
    return found


def _artifact(folder: Path, artifact: Artifact, where: str, tick: Callable[[str], None]) -> list[str]:
    """Faults of the files, then of what the manifest says about them as a whole."""
    from r1pipe import digest as dg
    from r1pipe import manifest as mf
    from r1pipe.chat import template_digest
    from r1pipe.stage import DATASET, POLICY, REWARD_MODEL

    found = mf.faults(artifact, folder, deep=True, tick=lambda name: tick(f"{where}/{name}"))
    if found:
        return found  # the digests below would only repeat them
    if artifact.kind == DATASET:
        with (folder / mf.DATA_FILE).open(encoding="utf-8", newline="\n") as lines:
            digest, rows = dg.rows_digest(lines)
        if artifact.meta.get("rows", rows) != rows:
            found.append(f"{where}: {rows} rows, its manifest sealed {artifact.meta['rows']}")
    else:
        digest = dg.files_digest((e.name, e.sha256) for e in artifact.files)
    if digest != artifact.digest:
        found.append(f"{where}: digest is {digest[:12]}…, its manifest sealed {artifact.digest[:12]}…")
    if artifact.kind in (POLICY, REWARD_MODEL):
        actual = {
            "chat_template_digest": template_digest(dg.chat_template(folder)),
            "tokenizer_digest": dg.tokenizer_digest(folder),
        }
        found += [
            f"{where}: {key.replace('_', ' ')} is {value}, its manifest sealed {artifact.meta.get(key)}"
            for key, value in actual.items()
            if artifact.meta.get(key) != value
        ]
    return found


def _link(store: Store, where: str, record: Any) -> list[str]:
    """Does an input record name a sealed result, the manifest that vouched for it, and the digest that it has?"""
    from r1pipe import digest as dg
    from r1pipe import manifest as mf
    from r1pipe.store import Attempt

    producer = Attempt(store.root / record.producer)
    if not producer.sealed:
        return [f"{where}: made from {record.producer}, which has no manifest any more"]
    if dg.file_digest(producer.manifest) != record.manifest_digest:
        return [f"{where}: {producer.manifest} is not the manifest it was made from (its sha256 has changed)"]
    try:
        outputs = mf.load(producer).outputs
    except UserError as error:
        return [f"{where}: {error.message}"]
    output = outputs.get(Path(record.uri).name)
    if output is None:
        return [f"{where}: {record.producer} has no output {Path(record.uri).name}"]
    if (output.kind, output.digest) != (record.kind, record.digest):
        return [f"{where}: read {record.kind} {record.digest[:12]}…, {record.producer} sealed "
                f"{output.kind} {output.digest[:12]}…"]  # fmt: skip
    return []


def _ticker(json: bool) -> Any:
    """A context that gives a function showing which file is read, on a terminal's stderr."""
    import contextlib

    @contextlib.contextmanager
    def ticking() -> Any:
        err = terminal.err_console()
        if json or not err.is_terminal:
            yield lambda name: None
            return
        with err.status("verifying") as status:
            yield lambda name: status.update(f"verifying {terminal.safe(name)}")

    return ticking()


def _show(store: Store, report: Report) -> None:
    out = terminal.console()
    for fault in report.faults:
        out.print(f"[red]{'✗' if terminal.fancy(out) else 'x'}[/] {terminal.safe(fault)}", soft_wrap=True)
    looked = (
        f"{report.manifests} manifests, {report.artifacts} artifacts, {report.files} files "
        f"({terminal.size(report.size)}), {report.inputs} links"
        + (f", {report.evaluations} evaluations" if report.evaluations else "")
    )
    unsealed = f"; {report.unsealed} unsealed attempts not looked at" if report.unsealed else ""
    if report.faults:
        out.print(f"[bold red]{len(report.faults)} faults[/] in {looked}{unsealed}", soft_wrap=True)
        out.print("  → r1pipe pipeline … --force makes a step again in a new folder", soft_wrap=True)
    else:
        out.print(f"[green]intact[/]: {looked}{unsealed}", soft_wrap=True)
