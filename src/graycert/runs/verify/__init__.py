"""Checking a run again from its votes and its graph, without trusting who made it."""

from graycert.runs.verify.comparisons import FLOAT_TOLERANCE
from graycert.runs.verify.findings import Verification, VerificationCheck
from graycert.runs.verify.graph_again import rebuild_graph
from graycert.runs.verify.verify import verify

__all__ = ["FLOAT_TOLERANCE", "Verification", "VerificationCheck", "rebuild_graph", "verify"]
