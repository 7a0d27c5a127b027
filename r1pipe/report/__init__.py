"""What a run did, for a reader: one HTML file, or Markdown; and the comparison of runs. No torch, no model."""
