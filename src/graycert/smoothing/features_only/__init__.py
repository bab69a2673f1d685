"""The floor: a classifier that looks at the target's own features alone."""
