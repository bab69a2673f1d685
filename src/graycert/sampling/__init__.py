"""Drawing from the smoothing distribution and counting votes.

Names are imported on first use, so that who concludes from votes throws coins again without loading torch.
"""

from typing import TYPE_CHECKING

from graycert._lazy import attach

if TYPE_CHECKING:
    from graycert.sampling.arrivals import ArrivalRecorder as ArrivalRecorder
    from graycert.sampling.arrivals import ArrivalRecords as ArrivalRecords
    from graycert.sampling.engines import ENGINES as ENGINES
    from graycert.sampling.engines import choose_engine as choose_engine
    from graycert.sampling.interception import InterceptionDraw as InterceptionDraw
    from graycert.sampling.interception import InterceptionSampler as InterceptionSampler
    from graycert.sampling.interception import ablate as ablate
    from graycert.sampling.streams import CoinStream as CoinStream
    from graycert.sampling.streams import Purpose as Purpose
    from graycert.sampling.voting import VotingEngine as VotingEngine
    from graycert.sampling.voting import build_engine as build_engine
    from graycert.sampling.voting import evaluation_mode as evaluation_mode

_HOME = {
    "ENGINES": "graycert.sampling.engines",
    "ArrivalRecorder": "graycert.sampling.arrivals",
    "ArrivalRecords": "graycert.sampling.arrivals",
    "CoinStream": "graycert.sampling.streams",
    "InterceptionDraw": "graycert.sampling.interception",
    "InterceptionSampler": "graycert.sampling.interception",
    "Purpose": "graycert.sampling.streams",
    "VotingEngine": "graycert.sampling.voting",
    "ablate": "graycert.sampling.interception",
    "build_engine": "graycert.sampling.voting",
    "choose_engine": "graycert.sampling.engines",
    "evaluation_mode": "graycert.sampling.voting",
}

__getattr__, __dir__, __all__ = attach(__name__, _HOME)
