"""Message-interception smoothing: delete edges, ablate nodes (the paper's)."""
