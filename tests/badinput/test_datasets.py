"""Odd datasets at every command that reads one: refused in a sentence, or read with every bad record counted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.badinput import nasties
from tests.badinput.conftest import Call, refused, sound

READERS = [
    ["data", "inspect", "{}"],
    ["data", "prepare", "{}", "--out", "runs/out"],
    ["data", "inspect", "rows.jsonl", "--against", "{}"],
    ["score", "{}", "--reward", "format"],
]


def _lines(path: str, *, against: bool = True) -> list[list[str]]:
    return [[part.format(path) for part in line] for line in READERS if against or "--against" not in line]


@pytest.mark.parametrize("name", nasties.DATASETS)
def test_a_bad_file_is_refused(name: str, call: Call, arena: Path) -> None:
    (arena / name).write_bytes(nasties.DATASETS[name])
    for line in _lines(name):
        if name in nasties.RECORDS and line[1] != "prepare":
            sound(call(line), line)
        else:
            refused(call(line), line)


@pytest.mark.parametrize("name", nasties.ROWS)
def test_a_strange_row_beside_a_good_one(name: str, call: Call, arena: Path) -> None:
    """One strange record is dropped and counted, or becomes a row; the good ones are read."""
    good = b'{"prompt": "1 + 1 = ?", "answer": "2", "completion": "<think>\\n1\\n</think>\\n<answer>2</answer>"}\n'
    (arena / "mixed.jsonl").write_bytes(good + nasties.ROWS[name] + b"\n")
    inspect = ["data", "inspect", "mixed.jsonl", "--use", "prompts", "--json"]
    said = call(inspect)
    sound(said, inspect)
    assert said.code == 0, said
    found = json.loads(said.out)
    assert found["records"] == 2
    assert found["rows"] + sum(found["dropped"].values()) == 2
    for line in (["data", "inspect", "mixed.jsonl"], ["data", "prepare", "mixed.jsonl", "--out", "runs/out"],
                 ["score", "mixed.jsonl", "--reward", "accuracy"], ["score", "mixed.jsonl", "--json"]):  # fmt: skip
        said = call(line)
        sound(said, [name, *line])
        assert not set("\x1b\x07\x9b\u202e") & set(said.out), (name, line, said)


def test_odd_things_in_place_of_a_file(call: Call, arena: Path) -> None:
    (arena / "folder.jsonl").mkdir()
    os.mkfifo(arena / "fifo.jsonl")
    os.mkfifo(arena / "fifo.yaml")
    (arena / "dangling.jsonl").symlink_to("nowhere")
    (arena / "loop.jsonl").symlink_to("loop.jsonl")
    (arena / "folder").mkdir()
    (arena / "folder" / "fifo.jsonl").symlink_to("../fifo.jsonl")
    (arena / "folder" / "up").symlink_to("..", target_is_directory=True)
    (arena / "folder.yaml").mkdir()
    (arena / "loop.yaml").symlink_to("loop.yaml")
    (arena / "socket.jsonl").symlink_to("/dev/null")
    for name in ("folder.jsonl", "fifo.jsonl", "dangling.jsonl", "loop.jsonl", "folder", "socket.jsonl",
                 "nowhere.jsonl", "./a/b.jsonl", "/dev/null", "/dev/zero", "/proc/self/mem"):  # fmt: skip
        for line in _lines(name):
            refused(call(line), line)
    for name in ("folder.yaml", "fifo.yaml", "loop.yaml", "/dev/zero", "/", "./"):
        for command in ("config validate", "config show", "plan -p", "pipeline -p", "status -p"):
            refused(call([*command.split(), name]), [command, name])


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read(call: Call, arena: Path) -> None:
    for name in ("rows.jsonl", "toys.yaml"):
        (arena / name).chmod(0)
    for line in (*_lines("rows.jsonl"), ["config", "validate", "toys.yaml"], ["plan", "-p", "toys.yaml"]):
        refused(call(line), line)


ODD_NAMES = ["a b.jsonl", "naïve 路径 \U0001f600.jsonl", "new\nline.jsonl", "-dash.jsonl", "%s.jsonl",
             "[x].jsonl", "bold [b]x[⁄b].jsonl", "esc\x1b]0;owned\x07.jsonl", "x" * 240 + ".jsonl"]  # fmt: skip


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_good_file_of_an_odd_name_is_read(name: str, call: Call, arena: Path) -> None:
    content = (arena / "rows.jsonl").read_bytes()
    (arena / "deep er").mkdir()
    path = arena / "deep er" / name
    path.write_bytes(content)
    for line in _lines(str(path)):
        said = call(line)
        sound(said, line)
        assert said.code == 0, (line, said)
        assert "\x1b" not in said.out


def test_a_name_that_is_not_utf_8_is_refused(call: Call, arena: Path) -> None:
    for line in _lines("bytes\udcff.jsonl"):
        refused(call(line), line)


def test_a_bom_and_windows_lines_are_read(call: Call, arena: Path) -> None:
    content = (arena / "rows.jsonl").read_bytes()
    (arena / "bom.jsonl").write_bytes(b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"))
    (arena / "bom.yaml").write_bytes(b"\xef\xbb\xbf" + (arena / "toys.yaml").read_bytes().replace(b"\n", b"\r\n"))
    for line in (*_lines("bom.jsonl"), ["config", "validate", "bom.yaml"], ["plan", "-p", "bom.yaml"]):
        said = call(line)
        assert said.code == 0, (line, said)


def test_a_link_out_of_the_tree_is_read_and_never_written_through(call: Call, arena: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "theirs.txt").write_text("theirs")
    (arena / "runs").mkdir()
    (arena / "runs" / "out").symlink_to(outside, target_is_directory=True)
    line = ["data", "prepare", "rows.jsonl", "--out", "runs/out"]
    refused(call(line), line)
    assert [p.name for p in outside.iterdir()] == ["theirs.txt"]
