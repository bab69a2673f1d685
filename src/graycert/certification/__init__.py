"""The orchestrators: model + graph + smoothing + threat -> certificates, one file per way to certify.

Names are imported on first use: one way does not load what the others need.
"""

from typing import TYPE_CHECKING

from graycert._lazy import attach

if TYPE_CHECKING:
    from graycert.certification.again import certify_again as certify_again
    from graycert.certification.by_retention import RetentionCertificates as RetentionCertificates
    from graycert.certification.by_retention import certify_by_retention as certify_by_retention
    from graycert.certification.collective import DEFAULT_BUDGETS as DEFAULT_BUDGETS
    from graycert.certification.collective import certify_collectively as certify_collectively
    from graycert.certification.monte_carlo import certify as certify
    from graycert.certification.randomized_ablation import (
        RandomizedAblationCertificates as RandomizedAblationCertificates,
    )
    from graycert.certification.randomized_ablation import certify_randomized_ablation as certify_randomized_ablation
    from graycert.certification.sequential import SequentialResult as SequentialResult
    from graycert.certification.sequential import certify_sequentially as certify_sequentially

_HOME = {
    "DEFAULT_BUDGETS": "graycert.certification.collective",
    "RandomizedAblationCertificates": "graycert.certification.randomized_ablation",
    "RetentionCertificates": "graycert.certification.by_retention",
    "SequentialResult": "graycert.certification.sequential",
    "certify": "graycert.certification.monte_carlo",
    "certify_again": "graycert.certification.again",
    "certify_by_retention": "graycert.certification.by_retention",
    "certify_collectively": "graycert.certification.collective",
    "certify_randomized_ablation": "graycert.certification.randomized_ablation",
    "certify_sequentially": "graycert.certification.sequential",
}

__getattr__, __dir__, __all__ = attach(__name__, _HOME)
