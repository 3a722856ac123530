"""The course's grading engine, hidden tests and mutants."""
