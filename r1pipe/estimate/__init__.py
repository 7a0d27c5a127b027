"""What a step will need: parameters, tokens, arithmetic, memory, disk, time, money. Only `probe` loads torch."""
