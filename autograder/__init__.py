"""Grades nbgrader's notebooks: student code in a sandbox, the tests outside it."""
