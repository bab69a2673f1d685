"""What the architectures are called, known without loading torch."""

ARCHITECTURES = ("gcn", "gat", "gatv2", "sma")
