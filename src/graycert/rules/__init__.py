"""Certificates from votes and Δ̄: sound rules, the paper's for comparison, and what is reachable."""

from graycert.rules.binary import binary_bounds, binary_margin
from graycert.rules.collective import COLLECTIVE_METHODS, CollectiveCertificate, collective_certificate
from graycert.rules.difference import difference_leads_lower, difference_margin_lower
from graycert.rules.foresight import Foresight, check_can_certify
from graycert.rules.multiclass import intersection_union_bounds, multiclass_margin, paper_bounds
from graycert.rules.prediction_sets import prediction_sets
from graycert.rules.radius import certified_radius
from graycert.rules.rule import COUNT_RULES, RULES, Lead, Rule, rule_named
from graycert.rules.sequential import SequentialCertificates
from graycert.rules.simultaneous import simultaneous_level
from graycert.rules.status import Status
from graycert.rules.vote_certificates import VoteCertificates, certify_counts, certify_votes, status_of

__all__ = [
    "COLLECTIVE_METHODS",
    "COUNT_RULES",
    "RULES",
    "CollectiveCertificate",
    "Foresight",
    "Lead",
    "Rule",
    "SequentialCertificates",
    "Status",
    "VoteCertificates",
    "binary_bounds",
    "binary_margin",
    "certified_radius",
    "certify_counts",
    "certify_votes",
    "check_can_certify",
    "collective_certificate",
    "difference_leads_lower",
    "difference_margin_lower",
    "intersection_union_bounds",
    "multiclass_margin",
    "paper_bounds",
    "prediction_sets",
    "rule_named",
    "simultaneous_level",
    "status_of",
]
