"""A class's server: takes hand-ins, grades them at once, and tells students what the instructor allows."""
