"""Does Lemma 1 hold for this model?

Names are imported on first use, so that who asks nothing of a model loads no torch.
"""

from typing import TYPE_CHECKING

from graycert._lazy import attach

if TYPE_CHECKING:
    from graycert.audit.convolutions import convolution_of as convolution_of
    from graycert.audit.exposed_target import refuse_exposed_target as refuse_exposed_target
    from graycert.audit.hostile_values import check_hostile_values as check_hostile_values
    from graycert.audit.model_audit import audit_model as audit_model
    from graycert.audit.report import AuditCheck as AuditCheck
    from graycert.audit.report import AuditReport as AuditReport

_HOME = {
    "AuditCheck": "graycert.audit.report",
    "AuditReport": "graycert.audit.report",
    "audit_model": "graycert.audit.model_audit",
    "check_hostile_values": "graycert.audit.hostile_values",
    "convolution_of": "graycert.audit.convolutions",
    "refuse_exposed_target": "graycert.audit.exposed_target",
}

__getattr__, __dir__, __all__ = attach(__name__, _HOME)
