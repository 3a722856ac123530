"""The plumbing that chapters share, so that their cells hold ideas: data, checkpoints, what ships trained."""
