"""One module a chapter: wrong answers that must fail, each with its message, and right answers that must pass."""
