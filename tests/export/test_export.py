"""`r1pipe export`: folders, merged adapters, GGUF opened again by transformers (and llama.cpp, slowly), the hub."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from r1pipe import digest as dg
from r1pipe.errors import UserError
from r1pipe.export import folder, gguf_file, push, source
from r1pipe.resources import data_dir
from tests.cli.conftest import Made, call  # noqa: F401  a fixture
from tests.generate import tiny

has_gguf = pytest.mark.skipif(importlib.util.find_spec("gguf") is None, reason="gguf is not installed (extra gguf)")
PROMPT = "What is 2 plus 3?"
# family -> the rule that its tokenizer cuts text by (transformers gives every Qwen2 folder Qwen2's, whatever it says)
FAMILIES = {"qwen2": "qwen2", "qwen3": "gpt-2", "llama": "llama-bpe", "mistral": "gpt-2"}


def policy(path: Path, family: str = "qwen3", dtype: str = "float32", **options: Any) -> Path:
    """A random small model of a family, with a byte-level BPE tokenizer that cuts text by the family's rule."""
    import torch
    import transformers
    from tokenizers import Regex, pre_tokenizers

    tokenizer = tiny.tokenizer()
    pattern = gguf_file.RULES[FAMILIES[family]]
    if pattern is not None:
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]
        )
    torch.manual_seed(0)
    values = {
        "vocab_size": len(tokenizer), "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128, "initializer_range": 0.3,
        "pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id, "bos_token_id": None,
        "tie_word_embeddings": False, "rope_theta": 5000.0, **options,
    }  # fmt: skip
    config = transformers.CONFIG_MAPPING[family](**values)
    model: Any = transformers.AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype))
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def greedy(model: Any, tokenizer: Any, prompt: str, tokens: int = 24) -> str:
    import torch

    ids = tokenizer(prompt, return_tensors="pt", add_special_tokens=False).input_ids
    with torch.no_grad():
        out = model.generate(ids, max_new_tokens=tokens, do_sample=False, pad_token_id=0, eos_token_id=None)
    return str(tokenizer.decode(out[0, ids.shape[1] :]))


def opened(path: Path, name: str | None = None, config: Path | None = None) -> tuple[Any, Any]:
    """Model and tokenizer of a folder, or of a GGUF in it (`config`: the folder whose config.json goes with it)."""
    import torch
    import transformers

    more: dict[str, Any] = {"gguf_file": name} if name else {}
    shape = {"config": transformers.AutoConfig.from_pretrained(config)} if config else {}
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, **more, **shape)
    return model.eval(), transformers.AutoTokenizer.from_pretrained(path, **more)


def test_hf_is_the_sealed_files_and_a_card(call: Any, tmp_path: Path) -> None:  # noqa: F811
    run = Made(tmp_path / "runs")
    attempt, manifest = run.step("base", model=data_dir() / "tiny-base")
    code, out, err = call("export", "tiny-full", "--json")
    assert code == 0, err
    made = json.loads(out)
    place = Path(made["folder"])
    assert place == tmp_path / "exports" / "tiny-full-base-hf"
    for entry in manifest.outputs["model"].files:
        assert dg.file_digest(place / entry.name) == entry.sha256
    assert "# tiny-full-base" in (place / "README.md").read_text()
    assert {p.name for p in place.iterdir()} == {*(e.name for e in manifest.outputs["model"].files), "README.md"}
    assert attempt.sealed


def test_an_export_replaces_nothing_without_force_and_is_whole_or_not_there(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    run = Made(tmp_path / "runs")
    run.step("base", model=data_dir() / "tiny-base")
    assert call("export", "tiny-full", "--out", "there")[0] == 0
    (tmp_path / "there" / "mine.txt").write_text("mine")
    code, _, err = call("export", "tiny-full", "--out", "there")
    assert code == 2 and "is there already" in err and "--force" in err
    assert (tmp_path / "there" / "mine.txt").is_file()

    def broken(*_: Any, **__: Any) -> str:
        raise UserError("no card")

    with monkeypatch.context() as patch:
        patch.setattr("r1pipe.export.card.text", broken)
        assert call("export", "tiny-full", "--out", "there", "--force")[0] == 2
        assert call("export", "tiny-full", "--out", "other")[0] == 2
    assert (tmp_path / "there" / "mine.txt").is_file()
    assert not (tmp_path / "other").exists()
    assert call("export", "tiny-full", "--out", "there", "--force")[0] == 0
    assert not (tmp_path / "there" / "mine.txt").exists()
    assert not list(tmp_path.glob(".*.partial")) and not list(tmp_path.glob(".*.old"))


def test_merged_says_so_where_there_is_nothing_to_merge(call: Any, tmp_path: Path) -> None:  # noqa: F811
    run = Made(tmp_path / "runs")
    run.step("base", model=data_dir() / "tiny-base")
    code, out, _ = call("export", "tiny-full", "--to", "merged")
    assert code == 0
    assert "no adapter to merge" in out


def test_an_adapter_is_merged_into_its_base(tmp_path: Path, call: Any) -> None:  # noqa: F811
    import peft
    import torch

    base = policy(tmp_path / "base")
    model, tokenizer = opened(base)
    adapted = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", r=4, target_modules="all-linear"))
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    adapted.save_pretrained(tmp_path / "adapter")
    assert call("export", str(tmp_path / "adapter"), "--to", "hf")[0] == 2
    code, _, err = call("export", str(tmp_path / "adapter"), "--to", "merged", "--out", "whole")
    assert code == 0, err
    whole, own = opened(tmp_path / "whole")
    assert not (tmp_path / "whole" / "adapter_config.json").exists()
    assert greedy(whole, own, PROMPT) == greedy(adapted.eval(), tokenizer, PROMPT)
    assert greedy(whole, own, PROMPT) != greedy(*opened(base), PROMPT)
    shutil.rmtree(base)
    code, _, err = call("export", str(tmp_path / "adapter"), "--to", "merged", "--out", "again")
    assert code == 2 and "no folder with a config.json" in err


@has_gguf
@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("tied", [False, True])
def test_gguf_opened_again_says_the_same(family: str, tied: bool, tmp_path: Path) -> None:
    given = policy(tmp_path / "model", family, tie_word_embeddings=tied)
    made = gguf_file.write(source.Source("small", given), tmp_path)
    assert (made.rule, made.notes, made.dtype) == (FAMILIES[family], [], "f32")
    model, tokenizer = opened(given)
    again, other = opened(tmp_path, made.name)
    for text in (PROMPT, "二加三等于五。", "<think>\nok\n</think>  x  "):
        assert other(text).input_ids == tokenizer(text).input_ids
    assert greedy(again, other, PROMPT) == greedy(model, tokenizer, PROMPT)
    for name in ("<think>", "<|im_end|>"):
        assert other.convert_tokens_to_ids(name) == tokenizer.convert_tokens_to_ids(name)
    assert other.eos_token_id == tokenizer.eos_token_id
    assert other.chat_template == tokenizer.chat_template


@has_gguf
@pytest.mark.parametrize(("stored", "dtype", "kept"), [
    ("bfloat16", "auto", "bf16"), ("float16", "auto", "f16"), ("float32", "f16", "f16"), ("float32", "bf16", "bf16"),
    ("bfloat16", "f32", "f32"),
])  # fmt: skip
def test_weights_are_kept_in_the_type_asked_for(stored: str, dtype: str, kept: str, tmp_path: Path) -> None:
    import torch

    given = policy(tmp_path / "model", "qwen2", stored)
    made = gguf_file.write(source.Source("small", given), tmp_path, dtype)
    assert made.dtype == kept
    model, _ = opened(given)
    again, _ = opened(tmp_path, made.name)
    close = {"f32": 0.0, "f16": 1e-3, "bf16": 1e-2}[kept] if dtype != "auto" else 0.0
    for (name, a), (_, b) in zip(sorted(model.state_dict().items()), sorted(again.state_dict().items()), strict=True):
        assert torch.allclose(a, b, atol=close, rtol=close), name


@has_gguf
def test_the_embedded_model_says_the_same_from_its_own_token_ids(tmp_path: Path) -> None:
    """Its tokenizer cuts text by a rule that llama.cpp does not have: told, and the weights are the same."""
    import torch

    given = data_dir() / "tiny-base"
    made = gguf_file.write(source.Source("tiny", given), tmp_path)
    assert made.rule in gguf_file.RULES
    assert "llama.cpp has no rule" in made.notes[0]
    assert "heads of 128" in made.notes[1]
    model, tokenizer = opened(given)
    again, other = opened(tmp_path, made.name, config=given)
    messages = [{"role": "user", "content": "What is 12 plus 30?"}]
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt").input_ids
    with torch.no_grad():
        a, b = (m.generate(ids, max_new_tokens=40, do_sample=False) for m in (model, again))
    assert torch.equal(a, b)
    text = tokenizer.decode(a[0, ids.shape[1] :])
    assert other.decode(a[0, ids.shape[1] :]) == text
    assert any(c.isdigit() for c in text)


@has_gguf
def test_a_rule_that_is_known_is_named_by_its_expression() -> None:
    byte = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    for name, pattern in gguf_file.RULES.items():
        if pattern is None:
            continue
        split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        tokenizer = {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte]}}
        assert gguf_file.pre_tokenizer(tokenizer, []) == (name, [])


@has_gguf
def test_what_gguf_cannot_hold_is_refused(tmp_path: Path, call: Any) -> None:  # noqa: F811
    given = policy(tmp_path / "model")
    config = json.loads((given / "config.json").read_text())
    for change, said in (
        ({"model_type": "gpt_oss"}, "family gpt_oss is not supported"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4}}, r"scales its positions"),
    ):
        (given / "config.json").write_text(json.dumps({**config, **change}))
        code, _, err = call("export", str(given), "--to", "gguf", "--out", "x")
        assert code == 2 and said in err and "→" in err
        assert not (tmp_path / "x").exists()
    (given / "config.json").write_text(json.dumps(config))
    tokenizer = json.loads((given / "tokenizer.json").read_text())
    tokenizer["model"] = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
    (given / "tokenizer.json").write_text(json.dumps(tokenizer))
    code, _, err = call("export", str(given), "--to", "gguf", "--out", "x")
    assert code == 2 and "WordLevel tokenizer" in err


def test_gguf_without_its_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(UserError) as caught:
        gguf_file.library()
    assert "r1pipe[gguf]" in str(caught.value)


@pytest.mark.parametrize("repo", ["name", "a/b/c", "", "a b/c", "../x"])
def test_a_repository_s_name_is_checked_before_anything_is_written(repo: str, call: Any, tmp_path: Path) -> None:  # noqa: F811
    Made(tmp_path / "runs").step("base", model=data_dir() / "tiny-base")
    code, _, err = call("export", "tiny-full", "--push", repo)
    assert code == 2 and "owner/name" in err
    assert not (tmp_path / "exports").exists()


def test_a_push_that_fails_keeps_the_export_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UserError, match="could not be pushed") as caught:
        push.upload(tmp_path, "me/model", public=False)
    assert "hf auth login" in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_folder_without_safetensors_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text("{}")
    (tmp_path / "out").mkdir()
    with pytest.raises(UserError, match=r"no \*\.safetensors"):
        folder.copy(source.Source("m", tmp_path / "m"), tmp_path / "out")


@pytest.mark.slow
@has_gguf
@pytest.mark.parametrize("family", ["qwen2", "qwen3", "llama"])
def test_llama_cpp_says_the_same(family: str, tmp_path: Path) -> None:
    llama_cpp = pytest.importorskip("llama_cpp")
    given = policy(tmp_path / "model", family)
    made = gguf_file.write(source.Source("small", given), tmp_path)
    model, tokenizer = opened(given)
    other = llama_cpp.Llama(str(tmp_path / made.name), n_ctx=128, n_threads=1, verbose=False, logits_all=False)
    assert other.tokenize(PROMPT.encode(), add_bos=False, special=True) == tokenizer(PROMPT).input_ids
    made_text = other.create_completion(tokenizer(PROMPT).input_ids, max_tokens=12, temperature=0.0)["choices"][0][
        "text"
    ]
    # a random model writes bytes that are no UTF-8: llama-cpp-python leaves them out, transformers marks them
    assert made_text == greedy(model, tokenizer, PROMPT, 12).replace("\ufffd", "")


@pytest.mark.slow
@has_gguf
def test_llama_cpp_says_the_same_as_the_embedded_model(tmp_path: Path) -> None:
    """By token ids: llama.cpp has no rule that cuts text as its tokenizer does, and the export says so."""
    llama_cpp = pytest.importorskip("llama_cpp")
    made = gguf_file.write(source.Source("tiny", data_dir() / "tiny-base"), tmp_path)
    assert any("token ids" in note for note in made.notes)
    model, tokenizer = opened(data_dir() / "tiny-base")
    other = llama_cpp.Llama(str(tmp_path / made.name), n_ctx=128, n_threads=1, verbose=False)
    for prompt in ("23 plus 15 minus 12", "31加17等于"):
        text = other.create_completion(tokenizer(prompt).input_ids, max_tokens=16, temperature=0.0)["choices"][0][
            "text"
        ]
        assert text and greedy(model, tokenizer, prompt, 16).startswith(text)
