"""`r1pipe data inspect` and `r1pipe data prepare`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.data.test_files import jsonl

Call = Callable[..., tuple[int, str, str]]

RECORDS = (
    {"question": "Mia has 2 boxes of 3 pens. How many?", "answer": "2*3=<<2*3=6>>6\n#### 6"},
    {"question": "mia has 2 boxes of 3 pens. how many", "answer": "#### 6"},
    {"question": "Tim has 5 pens. How many?", "answer": "none is said"},
    {"question": "\x1b]0;owned\x07Ann [bold]has[/] 7 pens?", "answer": "#### 7"},
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return jsonl(tmp_path / "gsm.jsonl", *RECORDS)


def test_inspect(call: Call, source: Path) -> None:
    code, out, err = call("data", "inspect", "gsm.jsonl")
    assert (code, err) == (0, "")
    for said in ("schema", "gsm8k 3", "problem-answer 1", "gold from", "1 exact", "no_gold", "2 would be dropped",
                 "[bold]has[/]", "2 rows for prompts from 4 records", "r1pipe data prepare gsm.jsonl"):  # fmt: skip
        assert said in out, said
    assert "\x1b" not in out and "owned" not in out


def test_inspect_json(call: Call, source: Path) -> None:
    code, out, _ = call("data", "inspect", "gsm.jsonl", "--json", "--tokenizer", "builtin:tiny-base")
    report = json.loads(out)
    assert code == 0
    assert report["schemas"] == {"gsm8k": 3, "problem-answer": 1} and report["gold_from"] == {"answer": 4}
    assert report["records"] == 4 and report["rows"] == 2 and report["use"] == "prompts"
    assert report["golds"] == {"usable": 2, "unusable": 0, "missing": 1}
    assert report["duplicates"] == {"exact": 1, "with_another_gold": 0, "near": 0}
    assert report["dropped"] == {"duplicate": 1, "no_gold": 1}
    assert report["chars"]["question"]["n"] == 2 and report["tokens"]["question"]["n"] == 2
    assert len(report["examples"]) == 2 and report["examples"][0]["gold"] == "6"
    assert {d["reason"] for d in report["dropped_examples"]} == {"duplicate", "no_gold"}
    assert "\x1b" not in out


def test_inspect_other_uses(call: Call, tmp_path: Path) -> None:
    jsonl(
        tmp_path / "hh.jsonl",
        {"chosen": "\n\nHuman: Hi\n\nAssistant: Ho", "rejected": "\n\nHuman: Hi\n\nAssistant: No"},
    )
    report = json.loads(call("data", "inspect", "hh.jsonl", "--json")[1])
    assert report["use"] == "pairs" and report["schemas"] == {"hh-rlhf": 1} and set(report["chars"]) >= {"chosen"}
    assert json.loads(call("data", "inspect", "hh.jsonl", "--use", "traces", "--json")[1])["use"] == "traces"
    made = json.loads(
        call("data", "inspect", "generated:arithmetic", "--arg", "levels=[1]", "--rows", "20", "--json")[1]
    )
    assert made["levels"] == {"1": made["rows"]} and made["files"] is None
    jsonl(tmp_path / "own.jsonl", {"frage": "2+2?", "loesung": "4"})
    report = json.loads(
        call("data", "inspect", "own.jsonl", "--columns", "question=frage", "-c", "gold=loesung", "--json")[1]
    )
    assert report["gold_from"] == {"gold": 1}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("inspect", "nothing.jsonl"), "there is no data file"),
        (("inspect", "own.jsonl"), "no known schema"),
        (("inspect", "empty.jsonl"), "no rows"),
        (("inspect", "own.jsonl", "--columns", "question"), "not of the form key=value"),
        (("inspect", "own.jsonl", "--columns", "question=frag"), 'no column "frag" (did you mean "frage"?)'),
        (("inspect", "own.jsonl", "--columns", "qestion=frage"), 'did you mean "question"'),
        (("inspect", "some/dataset"), "no pinned revision"),
        (("inspect", "generated:arithmetics"), 'did you mean'),
        (("inspect", "reasoning-gym:graph_color"), "no single right answer"),
        (("inspect", "bad.jsonl"), "bad.jsonl line 2 is not JSON"),
        (("prepare", "gsm.jsonl", "--out", "."), "not of data prepare"),
        (("prepare", "gsm.jsonl", "--out", "D", "--pass-rate", "0.9", "0.1"), "two shares that rise"),
        (("prepare", "gsm.jsonl", "--out", "D", "--near-dup", "0.2"), "near_dup"),
        (("prepare", "gsm.jsonl", "--out", "D", "--against", "nothing.jsonl"), "there is no data file"),
        (("prepare", "gsm.jsonl"), "--out"),
    ],
)  # fmt: skip
def test_faults(call: Call, source: Path, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    jsonl(tmp_path / "own.jsonl", {"frage": "2+2?", "loesung": "4"})
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "bad.jsonl").write_text('{"problem": "1+1?", "answer": "2"}\n{"problem"\n')
    code, out, err = call("data", *arguments)
    assert code == 2 and said in err and "Traceback" not in err and not out
    assert not (tmp_path / "D").exists()


def test_a_hub_that_cannot_be_reached(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    code, _, err = call("data", "inspect", "openai/gsm8k", "--revision", "abc", "--arg", "name=main")
    assert code == 2 and "cannot load openai/gsm8k@abc" in err and "data.revision" in err


def test_prepare(call: Call, source: Path, tmp_path: Path) -> None:
    jsonl(tmp_path / "eval.jsonl", {"problem": "Zoe sold 80 pens?"}, {"problem": "tim has 5 pens how many"})
    code, out, err = call("data", "prepare", "gsm.jsonl", "--out", "D", "--against", "eval.jsonl", "--json")
    manifest = json.loads(out)
    assert (code, err, manifest["out"], manifest["rows"]) == (0, "", "D", 2)
    assert manifest["dropped"] == {"duplicate": 1, "no_gold": 1}
    code, out, _ = call(
        "data", "prepare", "gsm.jsonl", "--out", "D", "--no-dedup", "--language", "en", "--max-chars", "40"
    )
    assert code == 0 and "source: D" in out and "dropped.jsonl" in out and "no_gold" in out
    assert json.loads((tmp_path / "D" / "manifest.json").read_text())["clean"]["dedup"] is False
    code, out, _ = call("data", "inspect", "D", "--json")
    assert json.loads(out)["schemas"] == {"r1pipe": 3}


def test_a_prepared_folder_in_a_profile(call: Call, source: Path, tmp_path: Path) -> None:
    from r1pipe import config
    from r1pipe.fingerprint import sources

    call("data", "prepare", "gsm.jsonl", "--out", "D")
    profile = config.load("tiny", [f'sft.data=[{{"source": "{tmp_path / "D"}"}}]'])
    assert str(tmp_path / "D") in sources(profile.steps["sft"])
