"""The kinds of rows."""
