from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Made


def test_intact_run_is_counted(made: Made, call: Any) -> None:
    code, out, _ = call("verify", "tiny-full")
    assert code == 0
    assert "intact: 5 manifests, 9 artifacts, 21 files" in out
    assert "5 links" in out
    code, out, _ = call("verify", str(made.store.root), "--json")  # a path does as well
    report = json.loads(out)
    assert (code, report["ok"], report["faults"], report["inputs"]) == (0, True, [], 5)


def test_a_changed_byte_is_found_though_size_and_time_are_as_sealed(made: Made, call: Any) -> None:
    attempt, _ = made.sealed["sft"]
    path = attempt.output("model") / "model.safetensors"
    stat = path.stat()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    code, out, _ = call("verify", "tiny-full")
    assert code == 1
    assert "digest mismatch" in out
    assert str(path) in out
    assert "1 faults" in out


@pytest.mark.parametrize("name", ["tokenizer.json", "chat_template.jinja"])
def test_tokenizer_and_template_are_named(made: Made, call: Any, name: str) -> None:
    (made.sealed["rl"][0].output("model") / name).write_text("another")
    _, out, _ = call("verify", "tiny-full")
    assert name.partition(".")[0].replace("_", " ") + " digest mismatch" in out


def edit(path: Path, change: Any) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value, indent=2) + "\n")


def test_an_edited_manifest_breaks_the_chain_below_it(made: Made, call: Any) -> None:
    edit(made.sealed["base"][0].manifest, lambda m: m["metrics"].update(accuracy=0.99))
    code, out, _ = call("verify", "tiny-full")
    assert code == 1
    assert out.count("is not the manifest it was made from") == 2  # sft and resft read base


def test_a_forged_digest_fingerprint_and_tokenizer_are_found(made: Made, call: Any) -> None:
    def forge(m: dict[str, Any]) -> None:
        m["outputs"]["model"]["digest"] = "0" * 64
        m["fingerprint_of"]["stage"] = "another"
        m["tokenizer_digest"] = "f" * 16

    edit(made.sealed["resft"][0].manifest, forge)
    code, out, _ = call("verify", "tiny-full")
    assert code == 1
    assert "digest is" in out
    assert "fingerprint is not the digest of its fingerprint_of" in out
    assert "tokenizer_digest is not that of the policy" in out


def test_rows_and_added_weights_and_missing_producers(made: Made, call: Any) -> None:
    edit(made.sealed["samples"][0].manifest, lambda m: m["outputs"]["rows"]["meta"].update(rows=7))
    (made.sealed["rl"][0].output("model") / "adapter.safetensors").write_bytes(b"x")
    made.sealed["base"][0].manifest.unlink()
    _, out, _ = call("verify", "tiny-full")
    assert "3 rows, its manifest sealed 7" in out
    assert "does not know: adapter.safetensors" in out
    assert out.count("which has no manifest any more") == 2
    assert "1 unsealed attempts" in out


def test_a_torn_manifest_is_a_fault_not_a_crash(made: Made, call: Any) -> None:
    path = made.sealed["sft"][0].manifest
    path.write_text(path.read_text()[:100])
    code, out, _ = call("verify", "tiny-full")
    assert code == 1
    assert "cannot be read" in out


def test_runs_that_are_not_there(made: Made, call: Any) -> None:
    code, _, err = call("verify", "tiny-ful")
    assert code == 2
    assert 'did you mean "tiny-full"?' in err
    empty = Made(made.store.runs_dir, "empty")
    code, _, err = call("verify", empty.store.run)
    assert code == 2
    assert "no sealed step" in err
