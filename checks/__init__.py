"""What each chapter checks: `visible` for students, `hidden` for marks, `mutants` as the proof of both."""
