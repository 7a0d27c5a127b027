"""Screenshots of a report for the docs: light and dark on a desk, and as a phone shows it. Needs Debian's chromium.

    python tools/screenshots.py runs/tiny-full --out docs

Writes OUT/report-light.png, report-dark.png, report-phone.png; with --compare OTHER also compare-light.png.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.server
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--enable-logging=stderr", "--v=0",
)  # fmt: skip
PHONE = 390  # CSS pixels


def chromium() -> str | None:
    return shutil.which("chromium")


def browse(url: str, *arguments: str, dark: bool = False, width: int = 1200, height: int = 900) -> tuple[str, str]:
    """Opens a page in a browser of its own; (stdout, lines of the console)."""
    binary = chromium()
    if binary is None:
        raise SystemExit("chromium is not installed: apt-get install chromium")
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [binary, *FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}",
             f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--virtual-time-budget=2000",
             *arguments, url],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if ":CONSOLE" in line)


def shoot(url: str, path: Path, *, dark: bool = False, width: int = 1200, height: int = 900) -> None:
    browse(url, f"--screenshot={path.absolute()}", dark=dark, width=width, height=height)
    if not path.is_file():
        raise SystemExit(f"chromium wrote no {path}")


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[str]:
    """A folder on 127.0.0.1, for frames: a browser lets no file look into another."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def frame(page: str, width: int, height: int) -> str:
    """A page that shows another as narrow as a phone: a window of chromium has at least 500 pixels."""
    return (
        "<!doctype html><style>body{margin:0}iframe{border:0;display:block}</style>"
        f'<iframe src="{page}" width="{width}" height="{height}"></iframe>'
    )


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--out", type=Path, default=Path("docs"))
    parser.add_argument("--compare", type=Path, help="another run folder, for a picture of a comparison")
    given = parser.parse_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        r1pipe = [sys.executable, "-m", "r1pipe"]
        subprocess.run([*r1pipe, "report", str(given.run), "--out", str(folder / "report.html")], check=True)
        (folder / "phone.html").write_text(frame("report.html", PHONE, 1700), encoding="utf-8")
        with serve(folder) as site:
            shoot(f"{site}/report.html", given.out / "report-light.png", height=1500)
            shoot(f"{site}/report.html", given.out / "report-dark.png", height=1500, dark=True)
            shoot(f"{site}/phone.html", given.out / "report-phone.png", width=PHONE, height=1700)
            if given.compare:
                page = folder / "compare.html"
                runs = [str(given.run), str(given.compare)]
                subprocess.run([*r1pipe, "compare", *runs, "--html", str(page)], check=True)
                shoot(f"{site}/compare.html", given.out / "compare-light.png", height=1300)
    for path in sorted(given.out.glob("*.png")):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
