"""Drawing from the smoothing distribution and counting votes."""

from graycert.sampling.arrivals import ArrivalRecorder, ArrivalRecords
from graycert.sampling.engines import ENGINES, choose_engine
from graycert.sampling.field_graph import FieldGraph, field_graph
from graycert.sampling.interception import InterceptionDraw, InterceptionSampler, ablate
from graycert.sampling.levine_ablation import RandomizedAblationEngine, build_randomized_ablation_engine
from graycert.sampling.node_retention import NodeRetentionEngine, build_retention_engine
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
    "NodeRetentionEngine",
    "Purpose",
    "RandomizedAblationEngine",
    "VotingEngine",
    "ablate",
    "build_engine",
    "build_randomized_ablation_engine",
    "build_retention_engine",
    "choose_engine",
    "evaluation_mode",
    "field_graph",
]
