"""Small models with the right verdict: test your own tool for locality with them, as graycert tests its audit.

``python -m graycert.zoo`` prints the table.
"""

from graycert.zoo.edge_input_models import GIVEN
from graycert.zoo.exhibit import Exhibit, attack_works, with_types, with_values, zoo_graph
from graycert.zoo.leaky_models import LEAKY
from graycert.zoo.local_models import LOCAL
from graycert.zoo.typed_models import TYPED

ZOO: dict[str, Exhibit] = {**LOCAL, **GIVEN, **TYPED, **LEAKY}

__all__ = [
    "GIVEN",
    "LEAKY",
    "LOCAL",
    "TYPED",
    "ZOO",
    "Exhibit",
    "attack_works",
    "with_types",
    "with_values",
    "zoo_graph",
]
