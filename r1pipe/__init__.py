"""r1pipe: train a reasoning model the DeepSeek-R1 way, all stages, one command."""

__version__ = "0.1.0"
