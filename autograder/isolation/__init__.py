"""Where student code runs."""
