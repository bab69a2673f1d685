"""Levine and Feizi's randomized ablation on nodes (App. B)."""
