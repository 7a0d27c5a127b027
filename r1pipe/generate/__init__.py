"""Samplers: one protocol over transformers, vLLM, an OpenAI-compatible server, and scripted replies (tests)."""

from __future__ import annotations

from r1pipe.generate.base import Ask, Sample, Sampler, sample_seeds
from r1pipe.generate.factory import engine_arguments, make, resolve

__all__ = ["Ask", "Sample", "Sampler", "engine_arguments", "make", "resolve", "sample_seeds"]
