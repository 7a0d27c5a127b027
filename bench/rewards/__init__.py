"""How fast, and how often right, the accuracy reward is beside math-verify and TRL's. See README.md."""
