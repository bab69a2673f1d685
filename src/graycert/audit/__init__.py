"""Does Lemma 1 hold for this model?"""

from graycert.audit.model_audit import audit_model
from graycert.audit.report import AuditCheck, AuditReport

__all__ = ["AuditCheck", "AuditReport", "audit_model"]
