"""Sources `reasoning-gym:TASK`: problems made by the generators of reasoning-gym (extra `gym`), scored by our rewards.

Its own scorers are never called: several evaluate the answer as code, and its default one pays for substrings. So only
tasks with one right answer are taken (KINDS), each with the kind of answer that our verifier compares. `args` are the
task's own settings, and `level`: a level of its curriculum, which sets those it is about.

The problems are made in a process of their own (`gymworker.py`): some tasks depend on the order of sets, which only
a fixed PYTHONHASHSEED holds, and some on the global random state.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from r1pipe.data import languages
from r1pipe.data.rows import Row, What, row_id
from r1pipe.errors import UserError, nearest
from r1pipe.settings import DataSpec

PREFIX = "reasoning-gym:"
VERSION = "1"  # of what is made of the tasks here

_KINDS = {
    "number": """
        aiw basic_arithmetic binary_alternation chain_sum circuit_logic coin_flip count_bits count_primes
        decimal_arithmetic decimal_chain_sum dice gcd gsm_symbolic largest_island lcm leg_counting letter_counting maze
        number_format number_sequence power_function products rectangle_count rotten_oranges self_reference
        simple_equations simple_geometry""",
    "math": "advanced_geometry knights_knaves",
    "number_list": "polynomial_equations",
    "json": "codeio game_of_life list_functions",
    "exact": """
        ab acre arc_1d arc_agi base_conversion bf binary_matrix bitwise_arithmetic caesar_cipher calendar_arithmetic
        color_cube_rotation course_schedule emoji_mystery family_relationships figlet_font fraction_simplification
        futoshiki game_of_life_halting isomorphic_strings letter_jumble mahjong_puzzle manipulate_matrix mini_sudoku
        modulo_grid needle_haystack number_filtering number_sorting path_star prime_factorization ransom_note rearc
        rotate_matrix sentence_reordering spell_backward spiral_matrix string_insertion string_manipulation
        string_splitting string_synthesis sudoku syllogism time_intervals tsumego word_sequence_reversal word_sorting
        zebra_puzzles""",
    "countdown": "countdown puzzle24",
}
KINDS = {task: kind for kind, tasks in _KINDS.items() for task in tasks.split()}
# Many answers are right, or none is given, or the question itself would be a right one (complex_arithmetic,
# polynomial_multiplication: an expression of equal value), or it has no one spelling (pool_matrix).
_OPEN = """
    boxnet complex_arithmetic composite cryptarithm graph_color group_anagrams intermediate_integration jugs kakurasu
    knight_swap n_queens palindrome_generation palindrome_partitioning polynomial_multiplication pool_matrix
    propositional_logic quantum_lock rubiks_cube rush_hour shortest_path simple_integration sokoban survo
    tower_of_hanoi word_ladder"""
OPEN = frozenset(_OPEN.split())


def task_of(spec: DataSpec) -> str:
    """The task of a source. Raises UserError for an unknown one, and for one that we cannot score."""
    task = spec.source.removeprefix(PREFIX)
    if task in OPEN:
        raise UserError(
            f"{spec.source} has no single right answer to compare with, and the package's scorer is not to be run on "
            "the output of a model",
            hint=f"tasks with one right answer: {', '.join(sorted(KINDS))}",
        )
    if task not in KINDS:
        raise UserError(f'reasoning-gym has no task "{task}"{nearest(task, KINDS)}', hint="correct data.source")
    return task


def version() -> str:
    """The installed version. Raises UserError where there is none."""
    try:
        return importlib.metadata.version("reasoning-gym")
    except importlib.metadata.PackageNotFoundError:
        raise UserError(
            f"sources {PREFIX}TASK need the package reasoning-gym, which is not installed",
            hint='pip install "r1pipe[gym]"',
        ) from None


def digest(spec: DataSpec) -> str:
    """Task and versions."""
    return f"{PREFIX}{task_of(spec)}@{version()}+{VERSION}"


def rows(spec: DataSpec, what: What, seed: int) -> list[Row]:
    """`spec.rows` problems; the same for the same task, arguments, split and seed."""
    task = task_of(spec)
    if what != "prompts":
        raise UserError(f"{spec.source} makes prompts, not {what}", hint="take another source for them")
    version()
    args = {k: v for k, v in spec.args.items() if k != "level"}
    level = spec.args.get("level")
    made = _run({"task": task, "args": args, "level": level, "size": spec.rows, "seed": _seed(spec, seed)})
    if "problem" in made:
        hint = made.get("hint") or "correct data.args"
        raise UserError(
            f"{spec.source}: {made['problem']}{nearest(*made['near']) if 'near' in made else ''}", hint=hint
        )
    return [row(spec, task, entry, level) for entry in made["entries"]]


def _seed(spec: DataSpec, seed: int) -> int:
    """Another seed for every split: held-out problems are other problems."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{spec.source}/{spec.split}".encode()).digest()[:4], "big")


def _run(request: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "made.json"  # not stdout: some tasks print
        done = subprocess.run(
            [sys.executable, "-m", "r1pipe.data.gymworker", str(answer)],
            input=json.dumps(request),
            text=True,
            capture_output=True,
            check=False,
            env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONSAFEPATH": "1"},
        )
        if not answer.is_file():
            last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise UserError(f"reasoning-gym could not make {request['task']}: {last[:300]}",
                            hint="python -m r1pipe.data.gymworker shows all of it")  # fmt: skip
        return json.loads(answer.read_text(encoding="utf-8"))


def row(spec: DataSpec, task: str, entry: dict[str, Any], level: int | None) -> Row:
    """The row of a problem as the worker gives it."""
    messages = [{"role": "user", "content": entry["question"]}]
    kind = KINDS[task]
    return {
        "id": row_id(messages),
        "messages": messages,
        "gold": None if kind == "countdown" else entry["answer"],
        "kind": kind,
        "language": languages.guess(entry["question"]),
        "level": level,
        "reference": entry.get("worked"),
        "source": spec.source,
        **({"extra": {"nums": entry["nums"], "target": entry["target"]}} if kind == "countdown" else {}),
    }
