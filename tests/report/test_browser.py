"""The page in a real headless Chromium: whole in light and dark, on a desk and on a phone; hostile text runs
nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from r1pipe.report import compare, comparepage, page
from tests.cli.conftest import Made
from tests.report.browser import check, look, needs_chromium
from tests.report.conftest import build, load
from tests.report.test_compare import different
from tools import screenshots

pytestmark = needs_chromium


def test_a_report_is_whole_at_every_width(demo: Made, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page.html(load(demo), "now"), encoding="utf-8")
    check(path)


def test_hostile_text_runs_nothing_and_breaks_nothing(hostile: Made, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(page.html(load(hostile), "now"), encoding="utf-8")
    found = look(path)
    assert found["title"] == "tiny-full: r1pipe report"
    check(path)


def test_the_page_is_kept_by_its_policy_even_if_escaping_failed(demo: Made, tmp_path: Path) -> None:
    """The second wall: a script in the page is refused by the browser, which says so."""
    path = tmp_path / "torn.html"
    torn = page.html(load(demo), "now").replace("</main>", "<script>parent.hacked=1</script></main>")
    path.write_text(torn, encoding="utf-8")
    found = look(path)
    assert found["scripts"] == 1 and not found["hacked"]
    assert "Content Security Policy" in found["console"]


def test_a_comparison_is_whole(tmp_path: Path) -> None:
    a, b = build(tmp_path / "runs", "a", gain=0.1), build(tmp_path / "runs", "b", gain=0.3)
    different(b, "alignment-grpo")
    path = tmp_path / "compare.html"
    path.write_text(comparepage.html(compare.compare([load(a)], [load(b)]), "now"), encoding="utf-8")
    check(path)


@pytest.mark.parametrize("dark", [False, True])
def test_a_screenshot_is_taken(demo: Made, tmp_path: Path, dark: bool) -> None:
    path = tmp_path / "report.html"
    path.write_text(page.html(load(demo), "now"), encoding="utf-8")
    picture = tmp_path / "shot.png"
    screenshots.shoot(path.as_uri(), picture, dark=dark)
    assert picture.read_bytes()[:4] == b"\x89PNG" and picture.stat().st_size > 20_000
