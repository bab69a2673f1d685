"""Small models with the right verdict: test your own tool for locality with them, as graycert tests its audit.

``python -m graycert.zoo`` prints the table.
"""

from graycert.zoo.exhibit import Exhibit, attack_works, zoo_graph
from graycert.zoo.leaky_models import LEAKY
from graycert.zoo.local_models import LOCAL

ZOO: dict[str, Exhibit] = {**LOCAL, **LEAKY}

__all__ = ["LEAKY", "LOCAL", "ZOO", "Exhibit", "attack_works", "zoo_graph"]
