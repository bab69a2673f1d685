"""Does Lemma 1 hold for this model?"""

from graycert.audit.convolutions import convolution_of
from graycert.audit.exposed_target import refuse_exposed_target
from graycert.audit.hostile_values import check_hostile_values
from graycert.audit.model_audit import audit_model
from graycert.audit.report import AuditCheck, AuditReport

__all__ = [
    "AuditCheck",
    "AuditReport",
    "audit_model",
    "check_hostile_values",
    "convolution_of",
    "refuse_exposed_target",
]
