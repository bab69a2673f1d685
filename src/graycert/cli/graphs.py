"""Loading the graph that the options name, and recording how."""

from collections.abc import Callable
from typing import Any

from graycert.cli.configs import GraphConfig, ModelConfig, TrainingConfig
from graycert.cli.console import Console, about
from graycert.errors import InvalidParameterError


def load(config: GraphConfig, console: Console) -> Any:
    """Return the graph; what was assumed of it and done to it is told."""
    from graycert.data import load_graph

    return _loaded(load_graph, config, console)


def load_arrays(config: GraphConfig, console: Console) -> Any:
    """Return the graph as arrays, for what calls no model; tells the same."""
    from graycert.data.load import load_arrays as load_without_torch

    return _loaded(load_without_torch, config, console)


def _loaded(load_from: Callable[..., Any], config: GraphConfig, console: Console) -> Any:
    with about("graph"):
        data = load_from(config.graph, nodes=config.nodes, data_root=config.data_root, **options_of_graph(config))
    tell(data, console)
    return data


def tell(data: Any, console: Console) -> None:
    """Tell what the graph is, what was assumed of it, and what was done to it."""
    classes = "" if data.get("y") is None else f", {int(data.y.max()) + 1} classes"
    console.say(
        f"graph {data.graph_name}: {data.num_nodes:,} nodes, {data.edge_index.shape[1]:,} directed edges{classes}"
    )
    for remark in data.preparation:
        console.say(f"  {remark}")


def make_split(config: TrainingConfig, data: Any) -> Any:
    """Return the split that the options describe."""
    from graycert.data import inductive_split, transductive_split

    split = inductive_split if config.split == "inductive" else transductive_split
    return split(data, **_how_to_split(config, data))


def test_nodes(config: TrainingConfig, data: Any) -> Any:
    """Return the test nodes of the split, which are those of either kind, without making graphs to train on."""
    from graycert.data import transductive_split

    return transductive_split(data, **_how_to_split(config, data)).test.nodes


def refuse_another_split(config: ModelConfig, data: Any) -> None:
    """Refuse to draw nodes where a sweep takes those of the graph's own split.

    Raises:
        InvalidParameterError: If so many nodes are asked for.
    """
    from graycert.data.split_nodes import has_masks

    if has_masks(data) and "per_class" in config.model_fields_set:
        raise InvalidParameterError(
            f"`--per-class` must be left out for a graph with a split of its own, which a sweep takes, got "
            f"{config.per_class}. Pass --split-column '' besides to draw the nodes."
        )


def graph_record(data: Any) -> dict[str, Any]:
    """Return what `verify` needs to load the graph again."""
    from graycert.data.origin import graph_record as record

    return record(data)


def split_record(config: TrainingConfig, data: Any) -> dict[str, Any]:
    """Return what is needed to make the split again."""
    return {"kind": config.split, **(_how_to_split(config, data) or {"masks": True})}


def undrawn(config: TrainingConfig, data: Any) -> dict[str, Any]:
    """Return the options that a run must not repeat, because they would draw a split: as None."""
    return {} if _how_to_split(config, data) else {"per_class": None, "test_fraction": None}


def _how_to_split(config: TrainingConfig, data: Any) -> dict[str, Any]:
    """Return how nodes are drawn: not at all where the graph has masks, unless numbers of nodes are asked for."""
    from graycert.data.split_nodes import has_masks

    if has_masks(data) and not {"per_class", "test_fraction"} & config.model_fields_set:
        return {}
    return {"seed": config.seed, "per_class": config.per_class, "test_fraction": str(config.test_fraction)}


def as_flags(config: GraphConfig) -> list[str]:
    """Return the flags that name the graph and say what it is."""
    words = ["--graph", config.graph] + ([] if config.nodes is None else ["--nodes", config.nodes])
    for name, value in options_of_graph(config).items():
        flag = name.replace("_", "-")
        negative = "--directed" if name == "undirected" else f"--no-{flag}"
        words += [f"--{flag}" if value else negative] if isinstance(value, bool) else [f"--{flag}", str(value)]
    return words


def options_of_graph(config: GraphConfig) -> dict[str, Any]:
    """Return what is said of the graph besides where it is, by names that `load_graph` has, too."""
    where = {"graph", "nodes", "data_root"}
    chosen = {name: getattr(config, name) for name in GraphConfig.model_fields if name not in where}
    return {name: value for name, value in chosen.items() if value is not None}
