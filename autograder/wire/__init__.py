"""How the grader and a worker talk: what crosses between them, and what stands for an object on the other side."""
