"""The model card, from the manifests alone: recipe, data, numbers with intervals, limits, the chain of digests.

Text that came from outside (warnings, names, settings) is made safe for Markdown: it may hold model output.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import yaml

from r1pipe import __version__
from r1pipe.cli.terminal import clean, duration
from r1pipe.export.source import Source
from r1pipe.manifest import Manifest

METRICS = ("accuracy", "format", "language", "tokens", "truncated", "refusal_unsafe", "refusal_safe")
TRAINER = (
    "learning_rate", "lr_scheduler_type", "max_steps", "num_train_epochs", "per_device_train_batch_size",
    "gradient_accumulation_steps", "max_length", "num_generations", "max_completion_length", "temperature", "beta",
    "epsilon", "loss_type",
)  # fmt: skip
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


def text(source: Source, *, kind: str, notes: Iterable[str] = (), files: Iterable[str] = ()) -> str:
    """The card of an export. `kind`: hf, merged or gguf; `notes`: what the export itself has to say."""
    parts = [_front(source, kind), f"# {plain(source.name)}\n", *_use(source, kind, list(files))]
    if source.chain:
        parts += [*_made(source), *_numbers(source), *_data(source)]
    else:
        parts.append("No manifest came with this model: what it was trained on, and how, is not on record here.\n")
    parts += [*_limits(source, list(notes)), *_chain(source)]
    return "\n".join(parts).rstrip() + "\n"


def plain(value: Any) -> str:
    """One line that Markdown and HTML take as text."""
    line = " ".join(clean(str(value)).split())
    return re.sub(r"([\\`*_{}\[\]<>|#!~])", r"\\\1", line)


def code(value: Any) -> str:
    """One line in a code span."""
    line = " ".join(clean(str(value)).split()).replace("`", "'").replace("|", "\\|")
    return f"`{line}`" if line else ""


def _front(source: Source, kind: str) -> str:
    values: dict[str, Any] = {
        "library_name": "gguf" if kind == "gguf" else "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["r1pipe", "reasoning", "trl", *(["gguf"] if kind == "gguf" else [])],
    }
    base = _base(source)
    if base and HUB_ID.fullmatch(base):
        values |= {"base_model": base, "base_model_relation": "finetune"}
    sets = sorted({s for s in _sources(source) if HUB_ID.fullmatch(s)})
    if sets:
        values["datasets"] = sets
    return "---\n" + yaml.safe_dump(values, sort_keys=False, allow_unicode=True) + "---\n"


def _base(source: Source) -> str | None:
    for _, manifest in source.chain:
        model = manifest.config.get("base_model")
        if isinstance(model, dict):
            return str(model.get("path"))
    return None


def _sources(source: Source) -> list[str]:
    return [str(spec.get("source")) for _, m in source.chain for spec in _specs(m.config)]


def _specs(config: Any) -> Iterable[dict[str, Any]]:
    """Every data spec of a step's settings, evaluation apart."""
    if isinstance(config, dict):
        if "source" in config and "split" in config:
            yield config
            return
        for key, value in config.items():
            if key != "evaluation":
                yield from _specs(value)
    elif isinstance(config, list):
        for value in config:
            yield from _specs(value)


def _use(source: Source, kind: str, files: list[str]) -> list[str]:
    tags = next((m.config.get("chat", {}).get("tags") for _, m in reversed(source.chain)), None) or {}
    form = (
        f"It writes its reasoning between {code(tags.get('think_open', '<think>'))} and "
        f"{code(tags.get('think_close', '</think>'))}, and the answer between "
        f"{code(tags.get('answer_open', '<answer>'))} and {code(tags.get('answer_close', '</answer>'))}."
    )
    base = _base(source)
    lines = [
        f"Made with [r1pipe](https://pypi.org/project/r1pipe/) {__version__}, after DeepSeek-R1 (arXiv 2501.12948)"
        + (f", from {code(base)}" if base else "")
        + ".",
        form if source.chain else "",
        "",
        "```",
    ]
    if kind == "gguf":
        lines.append(f"llama-cli -m {files[0] if files else 'model.gguf'} --jinja --temp 0.6 --top-p 0.95")
    else:
        lines.append("vllm serve . --host 127.0.0.1 --reasoning-parser deepseek_r1")
    return [*lines, "```", ""]


def _made(source: Source) -> list[str]:
    lines = [
        "## How it was made", "",
        "| step | stage | from | settings | tokens | time |", "| --- | --- | --- | --- | ---: | ---: |",
    ]  # fmt: skip
    for _, manifest in source.chain:
        start = ", ".join(dict.fromkeys(r.producer.partition("/")[0] for r in manifest.inputs.values()))
        cells = [
            plain(manifest.step), plain(manifest.stage), plain(start), _settings(manifest),
            f"{manifest.tokens:,}" if manifest.tokens else "", duration(manifest.seconds),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _settings(manifest: Manifest) -> str:
    config = manifest.config
    trainer = config.get("trainer") or {}
    said = [f"{key} {trainer[key]}" for key in TRAINER if trainer.get(key) is not None]
    if config.get("steps"):
        said.append(f"steps {config['steps']}")
    if config.get("lora"):
        said.append(f"LoRA r {config['lora'].get('r', 8)}")
    if config.get("quantization"):
        said.append("quantized base")
    rewards = config.get("rewards")
    if isinstance(rewards, dict):
        said.append("rewards " + ", ".join(f"{n} x {r.get('weight', 1.0):g}" for n, r in rewards.items()))
    sampling = config.get("sampling")
    if isinstance(sampling, dict):
        said.append(f"{sampling.get('n')} samples a prompt, T {sampling.get('temperature')}")
    said.append(f"seed {manifest.seed}")
    return "; ".join(code(s) for s in said)


def _numbers(source: Source) -> list[str]:
    """This model and the steps it came from: every set, the value and its 95 % interval."""
    rows = [
        (manifest.step, name, mode, found)
        for _, manifest in source.chain
        for name, modes in manifest.evaluation.items()
        for mode, found in modes.items()
    ]
    shown = [m for m in METRICS if any(_number(found.get(m)) for *_, found in rows)]
    if not shown:
        return ["## Numbers", "", "This model was not evaluated.", ""]
    lines = [
        "## Numbers", "",
        "Value and 95 % bootstrap interval, clustered by problem; n problems. `sample` is the mean over samples at "
        "the evaluation's temperature, `greedy` is temperature 0. The verifiers are those of training.", "",
        f"| step | set | mode | n | {' | '.join(plain(m) for m in shown)} |",
        f"| --- | --- | --- | ---: |{' ---: |' * len(shown)}",
    ]  # fmt: skip
    for step, name, mode, found in rows:
        mark = "**" if step == source.step else ""
        numbers = " | ".join(_number(found.get(m)) for m in shown)
        count = found.get("problems", "")
        lines.append(f"| {mark}{plain(step)}{mark} | {plain(name)} | {plain(mode)} | {count} | {numbers} |")
    return [*lines, ""]


def _number(value: Any) -> str:
    if not isinstance(value, dict) or value.get("value") is None:
        return ""
    low, high = value.get("low"), value.get("high")
    return f"{value['value']:.3g}" + (f" ({low:.3g} to {high:.3g})" if low is not None and high is not None else "")


def _data(source: Source) -> list[str]:
    lines = ["## Data", "", "| step | source | split | rows | revision |", "| --- | --- | --- | ---: | --- |"]
    for _, manifest in source.chain:
        for spec in _specs(manifest.config):
            name = str(spec.get("source"))
            if not HUB_ID.fullmatch(name) and not name.startswith("generated:"):
                name = name.rpartition("/")[2]  # a local file: its place on the maker's disk is nobody's business
            revision = code(spec.get("revision") or "")
            rows = spec.get("rows") or "all"
            split = plain(spec.get("split"))
            lines.append(f"| {plain(manifest.step)} | {code(name)} | {split} | {rows} | {revision} |")
    dropped = [
        f"- {plain(m.step)}: {code(name)} {count:g}"
        for _, m in source.chain for name, count in sorted(m.counts.items()) if count
    ]  # fmt: skip
    if dropped:
        lines += ["", "What was dropped, cut or skipped:", "", *dropped]
    return [*lines, ""]


def _limits(source: Source, notes: list[str]) -> list[str]:
    lines = ["## Limits", ""]
    last = source.manifest
    if last is None or not last.evaluation:
        lines.append("- This model has no evaluation on record.")
    else:
        sets = ", ".join(plain(name) for name in last.evaluation)
        lines.append(f"- It was measured on {sets} and on nothing else; the numbers say nothing about other tasks.")
        if not any("refusal_unsafe" in mode for modes in last.evaluation.values() for mode in modes.values()):
            lines.append("- Its safety was not measured.")
    lines.append("- Its reasoning is what it was rewarded for writing; it need not be how it arrives at an answer.")
    lines.append("- The licences of the base model and of the data apply; look at them before you pass it on.")
    lines += [f"- {plain(note)}" for note in notes]
    for _, manifest in source.chain:
        lines += [f"- {plain(manifest.step)} warned: {plain(warning)[:500]}" for warning in manifest.warnings]
    if last is not None:
        versions = last.environment.get("packages") or {}
        known = ", ".join(f"{plain(k)} {plain(v)}" for k, v in versions.items())
        device = last.facts.get("evaluation/engine", {})
        where = f" on {plain(device.get('device'))}" if isinstance(device, dict) and device.get("device") else ""
        lines.append(f"- Made with {known}{where}." if known else "- The environment it was made in is not on record.")
    return [*lines, ""]


def _chain(source: Source) -> list[str]:
    if not source.chain:
        return []
    lines = [
        "## Chain of digests", "",
        "Each step's manifest is sealed last and names the manifests it was made from (sha256).", "",
        "| step | fingerprint | manifest | outputs |", "| --- | --- | --- | --- |",
    ]  # fmt: skip
    for digest, manifest in source.chain:
        outputs = ", ".join(f"{plain(n)} {code(a.digest[:16])}" for n, a in manifest.outputs.items())
        lines.append(
            f"| {plain(manifest.step)} | {code(manifest.fingerprint[:16])} | {code(digest[:16])} | {outputs} |"
        )
    if source.manifest is not None:
        lines += ["", "Files of this model:", ""]
        lines += [
            f"- {code(entry.name)} {code(entry.sha256)}" for entry in source.manifest.outputs[source.output].files
        ]
    return [*lines, ""]
