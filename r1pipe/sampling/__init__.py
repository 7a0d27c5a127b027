"""Rejection sampling: prompts, shards on disk, the loop that fills them, filters, the choice of rows, their card.

Light: no torch. The stage `rejection-sampling` puts the parts together.
"""
