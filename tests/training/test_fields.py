"""Field names read from the sources are those of the real classes."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys

import pytest

from r1pipe.errors import UserError
from r1pipe.training import fields


def test_names_are_those_of_the_installed_classes() -> None:
    import peft
    import transformers
    import trl

    for cls in (trl.SFTConfig, trl.GRPOConfig, trl.RewardConfig, transformers.TrainingArguments, peft.LoraConfig):
        assert set(fields.known(cls.__name__)) == {f.name for f in dataclasses.fields(cls) if f.init}
    taken = set(inspect.signature(transformers.BitsAndBytesConfig).parameters) - {"kwargs"}
    assert set(fields.known("BitsAndBytesConfig")) == taken


def test_loads_no_torch_and_is_quick() -> None:
    code = (
        "import sys, time; t = time.perf_counter()\n"
        "from r1pipe.training import fields\n"
        "for name in ('SFTConfig', 'GRPOConfig', 'RewardConfig', 'LoraConfig', 'BitsAndBytesConfig'):\n"
        "    fields.known(name)\n"
        "assert not {'torch', 'trl', 'transformers', 'peft'} & set(sys.modules)\n"
        "print(time.perf_counter() - t)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(out.stdout) < 1.0  # 0.1 s alone; other work may share the cores


@pytest.mark.parametrize(
    ("cls", "mapping", "said"),
    [
        ("GRPOConfig", {"learning_rte": 1.0}, 'did you mean "learning_rate"'),
        ("GRPOConfig", {"beta": "1e-3"}, "with a point"),
        ("SFTConfig", {"max_steps": True}, "expected int"),
        ("SFTConfig", {"packing": 1}, "expected bool"),
        ("SFTConfig", {"num_generations": 8}, "no"),
        ("LoraConfig", {"rank": 8}, "LoraConfig has no"),
    ],
)
def test_faults(cls: str, mapping: dict, said: str) -> None:
    with pytest.raises(UserError) as error:
        fields.check_keys("trainer", mapping, cls)
    assert said in str(error.value) and "trainer." in str(error.value)


def test_good_keys_pass() -> None:
    fields.check_keys(
        "trainer", {"learning_rate": 1, "max_steps": -1, "warmup_steps": 0.1, "bf16": None}, "GRPOConfig"
    )
    fields.check_keys("lora", {"r": 8, "target_modules": ["q_proj"], "lora_alpha": 16}, "LoraConfig")
    fields.check_keys("q", {"load_in_4bit": True, "bnb_4bit_compute_dtype": "bfloat16"}, "BitsAndBytesConfig")


def test_defaults() -> None:
    import trl

    args = {f.name: f.default for f in dataclasses.fields(trl.GRPOConfig)}
    for name in ("num_generations", "max_completion_length", "per_device_train_batch_size", "num_iterations", "beta"):
        assert fields.default("GRPOConfig", name) == args[name]
