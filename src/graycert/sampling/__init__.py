"""Drawing from the smoothing distribution and counting votes."""

from graycert.sampling.arrivals import ArrivalRecorder, ArrivalRecords
from graycert.sampling.engines import ENGINES, choose_engine
from graycert.sampling.field_graph import FieldGraph, field_graph
from graycert.sampling.interception import InterceptionDraw, InterceptionSampler, ablate
from graycert.sampling.streams import CoinStream, Purpose
from graycert.sampling.voting import VotingEngine, build_engine, evaluation_mode

__all__ = [
    "ENGINES",
    "ArrivalRecorder",
    "ArrivalRecords",
    "CoinStream",
    "FieldGraph",
    "InterceptionDraw",
    "InterceptionSampler",
    "Purpose",
    "VotingEngine",
    "ablate",
    "build_engine",
    "choose_engine",
    "evaluation_mode",
    "field_graph",
]
