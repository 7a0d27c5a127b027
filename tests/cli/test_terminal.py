from __future__ import annotations

import subprocess
import sys

import pytest

from r1pipe.cli import terminal


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;file:///etc\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;never ended", ""),
        ("\x1bPq...\x1b\\x", "x"),
        ("a\x08b\x07c\x00d\x7fe", "abcde"),
        ("\x9b2Jcleared", "cleared"),
        ("one\r\ntwo\rthree", "one\ntwothree"),
        ("ev\u202eil\u2066x", "evilx"),
        ("七乘六是 42。\n\ttab", "七乘六是 42。\n\ttab"),
        ("torn \ud83d", "torn "),
    ],
)
def test_clean_leaves_nothing_that_acts_on_the_terminal(text: str, expected: str) -> None:
    assert terminal.clean(text) == expected


def test_safe_is_not_read_as_markup() -> None:
    from rich.text import Text

    for text in ("[bold]x[/bold]", "[/]", "a [link=http://x]y", "back\\", "[1, 2]"):
        assert Text.from_markup(f"[red]{terminal.safe(text)}[/]").plain == text


def test_numbers_for_readers() -> None:
    assert [terminal.duration(s) for s in (-1, 0.44, 9.96, 59.6, 185, 3723)] == [
        "0.0s", "0.4s", "10s", "1:00", "3:05", "1:02:03"
    ]  # fmt: skip
    assert [terminal.size(n) for n in (0, 812, 3_250_586, 5 * 2**40)] == ["0 B", "812 B", "3.1 MiB", "5.0 TiB"]


def test_every_command_module_imports_light() -> None:
    code = (
        "import sys, importlib\n"
        "for m in ('app','run','status','verify','configs','chat','prune','doctor','live','panels','tables','runs'):\n"
        "    importlib.import_module('r1pipe.cli.' + m)\n"
        "heavy = {'torch','transformers','trl','datasets','numpy','rich.live','rich.table'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
