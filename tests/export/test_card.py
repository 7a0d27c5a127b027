"""The card: from real manifests, whole, and safe against what a model or a file name may hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from r1pipe.cli import runs
from r1pipe.errors import UserError
from r1pipe.export import card, source
from tests.cli.conftest import Made, made  # noqa: F401  a fixture


def found(made: Made, step: str | None = None) -> source.Source:  # noqa: F811
    return source.find("tiny-full", step, made.store.runs_dir)


def test_the_chain_is_whole_and_ends_with_the_model(made: Made) -> None:  # noqa: F811
    given = found(made)
    assert [m.step for _, m in given.chain] == ["base", "sft", "rl", "samples", "resft"]
    assert given.step == "resft"
    text = card.text(given, kind="hf")
    for digest, manifest in given.chain:
        assert digest[:16] in text
        assert manifest.fingerprint[:16] in text
    assert "**resft**" in text
    assert "0.85 (0.83 to 0.87)" in text
    for entry in given.manifest.outputs["model"].files:  # type: ignore[union-attr]
        assert entry.sha256 in text


def test_a_step_has_the_card_of_its_own_ancestors(made: Made) -> None:  # noqa: F811
    assert [m.step for _, m in found(made, "rl").chain] == ["base", "sft", "rl"]
    with pytest.raises(UserError, match='did you mean "rl"'):
        found(made, "r1")


def test_a_manifest_that_was_changed_stops_the_export(made: Made) -> None:  # noqa: F811
    attempt, _ = made.sealed["sft"]
    attempt.manifest.write_text(attempt.manifest.read_text().replace('"seed": 42', '"seed": 43'))
    with pytest.raises(UserError, match=r"manifest of sft/\w+ is not the one"):
        found(made)
    attempt.manifest.unlink()
    with pytest.raises(UserError, match="whose manifest is gone"):
        found(made)


def test_a_model_that_was_changed_stops_the_export(made: Made) -> None:  # noqa: F811
    attempt, _ = made.sealed["resft"]
    (attempt.output("model") / "config.json").write_text("{}")
    with pytest.raises(UserError, match="is not what was sealed"):
        found(made)


HOSTILE = "\x1b]0;t\x07<script>alert(1)</script> | [x](javascript:y)\n# heading `code`"


def test_text_from_outside_is_text(tmp_path: Path) -> None:
    run = Made(tmp_path / "runs")
    config = {
        "base_model": {"path": "Qwen/Qwen2.5-0.5B"},
        "data": [{"source": "/home/somebody/secret/rows.jsonl", "split": "train", "rows": 3, "revision": None},
                 {"source": "openai/gsm8k", "split": "train", "rows": None, "revision": "abc"}],
        "trainer": {"learning_rate": HOSTILE},
    }  # fmt: skip
    run.step("base", config=config, warnings=[HOSTILE], counts={HOSTILE: 3.0})
    text = card.text(source.find("tiny-full", None, run.store.runs_dir), kind="hf", notes=[HOSTILE])
    assert "\x1b" not in text
    assert "<script>" not in text.replace("`", "")[:0] + "".join(
        line for line in text.splitlines() if "learning" not in line and "dropped" not in line and "`" not in line
    )
    assert "\n# heading" not in text
    assert "/home/somebody" not in text
    assert "`rows.jsonl`" in text
    front = yaml.safe_load(text.split("---")[1])
    assert front["base_model"] == "Qwen/Qwen2.5-0.5B"
    assert front["datasets"] == ["openai/gsm8k"]


@pytest.mark.parametrize("value", [HOSTILE, "a|b", "*x*", "<b>", "`", "a\nb", ""])
def test_plain_is_one_harmless_line(value: str) -> None:
    for made_text in (card.plain(value), card.code(value)):
        assert "\n" not in made_text and "\x1b" not in made_text
    assert "<" not in card.plain(value).replace("\\<", "")


def test_a_folder_without_a_run_says_that_nothing_is_on_record(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    text = card.text(source.find(str(tmp_path), None, tmp_path), kind="hf")
    assert "No manifest came with this model" in text
    assert "no evaluation on record" in text
    with pytest.raises(UserError, match="--step has no meaning"):
        source.find(str(tmp_path), "sft", tmp_path)


def test_no_run_and_no_model(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no run"):
        source.find("nothing", None, tmp_path)
    empty: Any = Made(tmp_path / "runs")
    with pytest.raises(UserError, match="holds no finished model"):
        source.find("tiny-full", None, empty.store.runs_dir)
    assert runs.sealed_steps(empty.store) == {}
