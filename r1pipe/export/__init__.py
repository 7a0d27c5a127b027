"""A finished model for others: a folder with a model card, an adapter merged, a GGUF file, a repository of the hub."""
