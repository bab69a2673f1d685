"""Checking a run again from its votes and its graph, without trusting who made it."""

from graycert.verification.comparisons import FLOAT_TOLERANCE
from graycert.verification.findings import Verification, VerificationCheck
from graycert.verification.graph_again import rebuild_graph
from graycert.verification.verify import verify

__all__ = ["FLOAT_TOLERANCE", "Verification", "VerificationCheck", "rebuild_graph", "verify"]
