"""Certificates from votes and Δ̄: sound rules, the paper's for comparison, and what is reachable."""

from graycert.certificates.binary import binary_bounds, binary_margin
from graycert.certificates.collective import COLLECTIVE_METHODS, CollectiveCertificate, collective_certificate
from graycert.certificates.deterministic import DeterministicCertificate, certify_derandomized, holds_against
from graycert.certificates.difference import difference_leads_lower, difference_margin_lower
from graycert.certificates.foresight import Foresight, check_can_certify
from graycert.certificates.multiclass import intersection_union_bounds, multiclass_margin, paper_bounds
from graycert.certificates.prediction_sets import prediction_sets
from graycert.certificates.radius import certified_radius
from graycert.certificates.sequential import SequentialCertificates
from graycert.certificates.simultaneous import simultaneous_level
from graycert.certificates.status import Status
from graycert.certificates.vote_certificates import RULES, VOTE_RULES, VoteCertificates, certify_votes, is_sound

__all__ = [
    "COLLECTIVE_METHODS",
    "RULES",
    "VOTE_RULES",
    "CollectiveCertificate",
    "DeterministicCertificate",
    "Foresight",
    "SequentialCertificates",
    "Status",
    "VoteCertificates",
    "binary_bounds",
    "binary_margin",
    "certified_radius",
    "certify_derandomized",
    "certify_votes",
    "check_can_certify",
    "collective_certificate",
    "difference_leads_lower",
    "difference_margin_lower",
    "holds_against",
    "intersection_union_bounds",
    "is_sound",
    "multiclass_margin",
    "paper_bounds",
    "prediction_sets",
    "simultaneous_level",
]
