"""Ways to smooth a classifier and to certify it: one folder each, with its parameters, draws, certificate and words."""
