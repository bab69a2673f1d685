"""Drawing from the smoothing distribution and counting votes."""

from graycert.sampling.field_graph import FieldGraph, field_graph
from graycert.sampling.interception import InterceptionDraw, InterceptionSampler, ablate
from graycert.sampling.streams import CoinStream, Purpose
from graycert.sampling.voting import VotingEngine, build_engine, evaluation_mode

__all__ = [
    "CoinStream",
    "FieldGraph",
    "InterceptionDraw",
    "InterceptionSampler",
    "Purpose",
    "VotingEngine",
    "ablate",
    "build_engine",
    "evaluation_mode",
    "field_graph",
]
