"""What torch says about this machine: `python -m r1pipe.cli.probe` prints one JSON object.

A child of its own for `r1pipe doctor`: a broken install of torch can end the process that imports it.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from typing import Any


def probe() -> dict[str, Any]:
    import torch

    found: dict[str, Any] = {
        "version": torch.__version__,
        "threads": torch.get_num_threads(),
        "cuda_build": torch.version.cuda,
        "hip_build": torch.version.hip,
        "devices": [],
        "bf16_cuda": False,
        "distributed": torch.distributed.is_available(),
        "gloo": torch.distributed.is_available() and torch.distributed.is_gloo_available(),
        "nccl": torch.distributed.is_available() and torch.distributed.is_nccl_available(),
        "mps": bool(getattr(torch.backends, "mps", None) and torch.backends.mps.is_available()),
    }
    if torch.cuda.is_available():
        found["bf16_cuda"] = torch.cuda.is_bf16_supported(including_emulation=False)
        for i in range(torch.cuda.device_count()):
            device = torch.cuda.get_device_properties(i)
            found["devices"].append(
                {"name": device.name, "memory": device.total_memory, "capability": f"{device.major}.{device.minor}"}
            )
    if importlib.util.find_spec("torchvision"):
        try:
            importlib.import_module("torchvision")
        except Exception as error:  # noqa: BLE001  what it raises is the finding
            found["torchvision"] = f"{type(error).__name__}: {error}"
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(probe()) + "\n")
