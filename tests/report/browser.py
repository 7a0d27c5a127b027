"""Looks at a page in a real headless Chromium, in a frame as wide as asked, and tells what is wrong with it."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tools import screenshots

needs_chromium = pytest.mark.skipif(screenshots.chromium() is None, reason="chromium is not installed")

# What is wider than its place, outside of what scrolls by itself; what a reader cannot read; what has run.
_LOOK = """
const found = {}, frame = document.querySelector('iframe');
frame.onload = () => {
  const doc = frame.contentDocument, view = frame.contentWindow, root = doc.documentElement;
  doc.querySelectorAll('details').forEach(d => d.open = true);
  found.width = root.clientWidth; found.wide = root.scrollWidth;
  found.title = doc.title; found.scripts = doc.scripts.length; found.hacked = window.hacked || view.hacked || 0;
  found.background = view.getComputedStyle(doc.body).backgroundColor;
  found.ink = view.getComputedStyle(doc.body).color;
  found.sticking = [...doc.querySelectorAll('body *')].filter(e => {
    if (e.closest('.scroll,.dag,nav,svg')) return false;
    const r = e.getBoundingClientRect();
    return r.width && (r.right > root.clientWidth + 1 || r.left < -1);
  }).slice(0, 5).map(e => e.tagName + '.' + e.className);
  found.small = [...doc.querySelectorAll('p,li,td,th,div,span')].filter(e => e.childNodes.length && e.offsetParent &&
    e.textContent.trim() && parseFloat(view.getComputedStyle(e).fontSize) < 11).slice(0, 5).map(e => e.className);
  found.pictures = [...doc.querySelectorAll('svg')].filter(e => e.getBoundingClientRect().width > 0).length;
  found.requests = view.performance.getEntriesByType('resource').map(e => e.name);
  const said = Object.assign(document.createElement('pre'), {id: 'found', textContent: JSON.stringify(found)});
  document.body.append(said);
};
"""


def look(page: Path, *, width: int = 1200, dark: bool = False) -> dict[str, Any]:
    """What the script above found, and `console`: lines that the browser wrote there."""
    wrapper = page.with_name(f"look-{page.stem}.html")
    frame = screenshots.frame(page.name, width, 900)
    wrapper.write_text(f'{frame}<link rel="icon" href="data:,"><script>{_LOOK}</script>', encoding="utf-8")
    with screenshots.serve(page.parent) as site:
        out, console = screenshots.browse(f"{site}/{wrapper.name}", "--dump-dom", dark=dark, width=max(width, 500))
    match = re.search(r'<pre id="found">(.*?)</pre>', out, re.DOTALL)
    assert match, f"the page did not load: {out[:500]} {console}"
    return json.loads(html.unescape(match[1])) | {"console": console}


def luminance(colour: str) -> float:
    """Of `rgb(1, 2, 3)`, from 0 to 1, after WCAG."""
    parts = [int(n) / 255 for n in re.findall(r"\d+", colour)[:3]]
    r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def check(page: Path) -> None:
    """A page is whole in light and dark, on a desk and on a phone."""
    shades = {}
    for width, dark in ((1200, False), (1200, True), (390, False), (320, False)):
        found = look(page, width=width, dark=dark)
        where = f"{page.name}, {width} pixels, {'dark' if dark else 'light'}: {found}"
        assert found["console"] == "", where
        assert found["wide"] <= found["width"] == width, where
        assert not found["sticking"] and not found["small"] and not found["requests"], where
        assert not found["scripts"] and not found["hacked"] and found["pictures"] > 0, where
        background, ink = luminance(found["background"]), luminance(found["ink"])
        assert (max(background, ink) + 0.05) / (min(background, ink) + 0.05) > 7, where
        shades[dark] = background
    assert shades[True] < 0.1 < 0.8 < shades[False]
