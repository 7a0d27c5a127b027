"""The base model, made ready for the pipeline (no training).

Reads   a pretrained model: `builtin:tiny-base`, a folder, or a hub id with its revision.
Writes  model: the same weights (a hub model's are linked where that can be), with the run's chat template, a pad
        token that ends nothing, and a generation config that stops at the end of a turn.
Paper   DeepSeek-V3-Base stands here. A chat template that drops the reasoning of an assistant's turn (R1's own
        does) is refused: training would never see it. What each model family gets: r1pipe/training/README.md.
Try     r1pipe run-stage base-model --profile tiny
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from pydantic import Field

from r1pipe.resources import configs_dir
from r1pipe.settings import ModelConfig, StepConfig
from r1pipe.stage import POLICY, Port, StageContext
from r1pipe.training import hub, template
from r1pipe.training import model as models

NAME = "base-model"
VERSION = "1"
PREPARES = True  # others simply need it


class Config(StepConfig):
    """Which model, and how its conversations are written."""

    base_model: ModelConfig = Field(ModelConfig(path="builtin:tiny-base"), description="The pretrained model.")


INPUTS: dict[str, Port] = {}
OUTPUTS = {"model": POLICY}


def check(ctx: StageContext, config: Config) -> dict[str, Any]:
    """Where the model would come from; builds it on the meta device where its config is at hand."""
    found = hub.local(config.base_model)
    if found is None:
        fixture = configs_dir() / "models" / config.base_model.path.replace("/", "--")
        built = models.meta_check(fixture) if (fixture / "config.json").is_file() else {}
        return {"source": f"{config.base_model.path} (hub; not in the local cache)", **built}
    return {"source": str(found), **models.meta_check(found)}


def run(ctx: StageContext, config: Config) -> dict[str, Any]:
    source, revision = hub.fetch(config.base_model, ctx)
    ctx.fact("source", config.base_model.path)
    ctx.fact("revision", revision)
    if not ctx.is_main:
        return {}
    out = ctx.outputs["model"]
    weights = hub.weights(source)
    for path in weights:
        hub.link(path, out / path.name, ours=revision is None)
    shutil.copyfile(source / "config.json", out / "config.json")
    models.copy_side_files(source, out)
    _set_up_tokenizer(source, out, config, ctx)
    sizes = [path.stat().st_size for path in weights if path.suffix == ".safetensors"]
    return {"weights_bytes": sum(sizes), "weights_files": len(sizes)}


def _set_up_tokenizer(source: Path, out: Path, config: Config, ctx: StageContext) -> None:
    """Template, pad token and turn end, written only where the base's own are not already right."""
    tokenizer = models.load_tokenizer(source)
    before = tokenizer.chat_template, tokenizer.pad_token, tokenizer.eos_token
    found = template.prepare(tokenizer, config.chat, _embeddings(out))
    for name, value in found.facts.items():
        ctx.fact(name, value)
    for said in found.warnings:
        ctx.warn(said)
    ctx.fact("turn_end", tokenizer.convert_ids_to_tokens(found.end))
    ctx.fact("pad_token", tokenizer.pad_token)
    if before != (tokenizer.chat_template, tokenizer.pad_token, tokenizer.eos_token):
        for name in models.OLD_TOKENIZER_FILES:
            (out / name).unlink(missing_ok=True)
        tokenizer.save_pretrained(out)
    _generation_config(out, found.end, tokenizer.pad_token_id)
    models.clean(out)


def _embeddings(folder: Path) -> int | None:
    """How many tokens the model has embeddings for."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return config.get("vocab_size") or config.get("text_config", {}).get("vocab_size")


def _generation_config(out: Path, end: int, pad: int) -> None:
    """Generation stops at the end of a turn, and at whatever the base stopped at."""
    path = out / "generation_config.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    stops = found.get("eos_token_id")
    stops = [] if stops is None else [stops] if isinstance(stops, int) else list(stops)
    if end in stops and found.get("pad_token_id") == pad:
        return
    found |= {"eos_token_id": [end, *(s for s in stops if s != end)], "pad_token_id": pad}
    path.unlink(missing_ok=True)
    path.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")
