"""Print the zoo, with the verdict of graycert's audit."""

import torch

from graycert.audit import audit_model
from graycert.errors import GraycertError
from graycert.zoo import ZOO, zoo_graph


def main() -> None:
    """Print one line per model."""
    data = zoo_graph()
    print(f"{'model':36} {'kind':18} {'right':>6} {'depth':>5}  audit")
    for name, exhibit in ZOO.items():
        torch.manual_seed(0)
        try:
            report = audit_model(
                exhibit.make(data),
                exhibit.graph(data),
                num_layers=None if exhibit.counted else exhibit.depth,
                edge_inputs=exhibit.edge_inputs,
            )
            slugs = sorted({check.slug for check in report.checks if not check.passed})
            found = f"local, {report.num_layers} steps" if report.passed else ", ".join(slugs)
        except GraycertError as error:
            found = str(error)
        right = "local" if exhibit.local else "leaky"
        print(f"{name:36} {exhibit.kind:18} {right:>6} {exhibit.depth:5}  {found}", flush=True)


if __name__ == "__main__":
    main()
