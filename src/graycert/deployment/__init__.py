"""What was certified, to be run: the smoothed classifier, its files, and what holds of it.

Names are imported on first use.
"""

from typing import TYPE_CHECKING

from graycert._lazy import attach

if TYPE_CHECKING:
    from graycert.deployment.classifier import SmoothedClassifier as SmoothedClassifier

_HOME = {"SmoothedClassifier": "graycert.deployment.classifier"}

__getattr__, __dir__, __all__ = attach(__name__, _HOME)
