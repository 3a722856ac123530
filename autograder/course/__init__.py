"""Courses in this layout: a folder for each chapter, and a `curriculum.toml` that says what they promise."""
