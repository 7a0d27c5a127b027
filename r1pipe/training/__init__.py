"""The thin layer over TRL and transformers: arguments, models, callbacks, and one core a kind of training.

Nothing here is imported by `r1pipe --help`, `plan` or `status` except `fields` and `batch`, which load no torch.
"""
