"""The table of the targets: for data frames and for certificates.parquet."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graycert.certificates import NodeCertificates

DELTA_PREFIX = "delta_"


def to_columns(certificates: "NodeCertificates") -> dict[str, Any]:
    """Return the columns of the table, one entry per target each, in the order in which they are shown."""
    c = certificates
    columns: dict[str, Any] = {"target": c.targets}
    if c.node_ids is not None:
        columns["node_id"] = c.node_ids.tolist()
    if c.labels is not None:
        columns["label"] = c.labels
    columns["prediction"] = c.prediction
    if c.class_names is not None:
        columns["class_name"] = [c.class_names[index] for index in c.prediction]
    columns["status"] = c.status.tolist()
    columns["p_lower"] = c.p_lower
    columns["p_upper"] = c.p_upper
    columns["radius"] = c.radius
    columns["whole_field"] = c.whole_field
    columns["num_eligible"] = c.num_eligible
    columns["receptive_field_size"] = c.receptive_field_size
    if c.delta_methods is not None:
        columns["delta_method"] = c.delta_methods.tolist()
    for index in range(c.max_radius):
        columns[f"{DELTA_PREFIX}{index + 1}"] = c.delta_upper[:, index]
    return columns
