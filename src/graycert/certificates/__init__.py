"""Certificates from votes and Δ̄: the sound rule, the paper's for comparison, and what is reachable."""

from graycert.certificates.binary import binary_bounds, binary_margin
from graycert.certificates.foresight import Foresight, check_can_certify
from graycert.certificates.multiclass import intersection_union_bounds, multiclass_margin, paper_bounds
from graycert.certificates.radius import certified_radius
from graycert.certificates.status import Status
from graycert.certificates.vote_certificates import RULES, VoteCertificates, certify_votes

__all__ = [
    "RULES",
    "Foresight",
    "Status",
    "VoteCertificates",
    "binary_bounds",
    "binary_margin",
    "certified_radius",
    "certify_votes",
    "check_can_certify",
    "intersection_union_bounds",
    "multiclass_margin",
    "paper_bounds",
]
