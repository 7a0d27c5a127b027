from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from r1pipe.cli import tables
from tests.cli.conftest import Made


def text(made: Made, width: int) -> str:
    out = Console(file=io.StringIO(), width=width)
    tables.show(out, tables.stage_rows(made.manifests, made.store.root), made.manifests)
    return out.file.getvalue()  # type: ignore[attr-defined]


def test_rows_compare_with_the_policy_that_the_step_started_from(made: Made) -> None:
    rows = {r["step"]: r for r in tables.stage_rows(made.manifests, made.store.root)}
    assert list(rows) == ["base", "sft", "rl", "resft"]  # no row for data
    assert {s: r["from"] for s, r in rows.items()} == {"base": None, "sft": "base", "rl": "sft", "resft": "base"}
    change = rows["rl"]["change"]["heldout"]["sample"]["accuracy"]
    assert change["delta"] == pytest.approx(0.3)
    assert change["low"] > 0.2  # paired, from the records
    assert change["n"] == 100
    assert rows["resft"]["change"]["heldout"]["sample"]["accuracy"]["delta"] == pytest.approx(0.65)
    assert rows["resft"]["cold_start"] == "sft"
    assert rows["resft"]["since_cold_start"]["heldout"]["greedy"]["accuracy"]["delta"] == pytest.approx(0.35)
    json.dumps(list(rows.values()))


def test_without_records_a_change_has_no_interval(made: Made) -> None:
    rows = tables.stage_rows(made.manifests)
    assert rows[1]["change"]["heldout"]["sample"]["accuracy"]["low"] is None
    assert "+30.0 |" in tables.markdown(rows)


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160, 220])
def test_no_table_is_broken_at_any_width(made: Made, width: int) -> None:
    said = text(made, width)
    lines = said.split("\n")
    assert all(len(line) <= width for line in lines if "against" not in line and ":" not in line)
    assert "…" not in said
    for part in ("80.0 [78.0, 82.0]", "97.0", "3.0", "+30.0 [", "20s", "1.0s", "5 %"):
        assert part in said
    assert "resft against sft" in said
    assert "kept rate 50.0 %" in said
    headers = [line for line in lines if line.startswith("step")]
    assert len(headers) == 2 if width >= 160 else len(headers) > 2


def test_a_change_that_leaves_out_zero_is_coloured(made: Made) -> None:
    cells = dict((h, c) for h, _, c in tables.columns(tables.stage_rows(made.manifests, made.store.root)))
    assert cells["change\n95 % interval"][0] == ("", "")
    assert cells["change\n95 % interval"][2][1] == "green"


def test_markdown_is_one_table(made: Made) -> None:
    lines = tables.markdown(tables.stage_rows(made.manifests, made.store.root)).split("\n")
    assert lines[0].startswith("| step | from | accuracy T=1, % | change 95 % interval | accuracy greedy, % | range")
    assert len({line.count("|") for line in lines[:6]}) == 1


def test_timing_counts_the_machinery_once(made: Made) -> None:
    row = tables.timing_rows(made.manifests)[0]
    assert row["machinery"] == pytest.approx(1.0)  # 20 s less work and evaluation; an overlapped start is no cost
    assert row["share"] == pytest.approx(0.05)
    assert row["startup"] == pytest.approx(0.75)


def test_hostile_names_do_not_reach_the_terminal(made: Made) -> None:
    rows: list[dict[str, Any]] = tables.stage_rows(made.manifests, made.store.root)
    rows[0]["step"] = "\x1b[31m[bold]x"
    out = Console(file=io.StringIO(), width=220)
    tables.show(out, rows, {})
    assert "[bold]x" in out.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b" not in out.file.getvalue()  # type: ignore[attr-defined]


def test_a_run_of_one_step_or_without_evaluation(tmp_path: Any) -> None:
    run = Made(tmp_path / "runs")
    run.step("base")
    assert "20s" in text(run, 80)
    assert tables.summary(tables.stage_rows(run.manifests)) == []
