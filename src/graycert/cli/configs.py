"""The options that are the same whatever is certified, with defaults and constraints: flags, and keys of files.

Options of smoothings, threats and draws follow from their declarations, see `graycert.cli.declared`. This module is
read for `--help`, so it loads no torch.
"""

from typing import Annotated, Literal

from cyclopts import Group, Parameter
from pydantic import BaseModel, ConfigDict, Field

from graycert.cli.conditions import FAIL_UNDER, JUNIT


class Config(BaseModel):
    """Options that cannot change and refuse unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid")


NO_NEGATIVE = Parameter(negative=())

CALL = (
    "What readers call nodes, such as account,accounts; or edge=payment,payments, prediction=decision,decisions, "
    'features=entries, structure="who pays whom". May be repeated. What exactly is proved keeps its words.'
)

HEADINGS = (
    "Graph",
    "Tables",
    "Model",
    "Training",
    "Smoothing",
    "Threat",
    "Draws",
    "Conclusion",
    "Conditions",
    "Planning",
    "Machine",
)
GROUPS = {name: Group(name, sort_key=number) for number, name in enumerate(HEADINGS, start=1)}
"""Headings in the help, in this order; what has none stands first."""
IN_GRAPH, IN_MODEL, IN_TRAINING, IN_PLANNING, IN_MACHINE = (
    Parameter(group=GROUPS[name]) for name in ("Graph", "Model", "Training", "Planning", "Machine")
)

Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Level = Annotated[float, Field(gt=0.0, lt=1.0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0, lt=2**64)]
NumLayers = Annotated[
    Count | None, IN_MODEL, Field(description="Message-passing steps. Default: 2, or those of the model.")
]

Backend = Annotated[
    Literal["threads", "processes", "dask"],
    IN_MACHINE,
    Field(description="What works: threads of this process, processes of this machine, or a Dask cluster."),
]
NumWorkers = Annotated[
    Count | None,
    IN_MACHINE,
    Field(description="How many. Default: 1 with threads, else as many as there are cores, or Dask workers."),
]
Scheduler = Annotated[
    str | None, IN_MACHINE, Field(description="Address of the Dask scheduler. Default: a cluster of this machine.")
]

InTables = Annotated[str | None, Parameter(group=GROUPS["Tables"])]


class WorkersConfig(Config):
    """Who works, where much is computed; see `graycert.cli.declared.workers`."""

    backend: Backend = "processes"
    workers: NumWorkers = None
    scheduler: Scheduler = None


class GraphConfig(Config):
    """Which graph, and what is done to it first."""

    graph: Annotated[
        str,
        Field(description="Name (see `graycert datasets`) or file: .npz, .pt, .graphml, .csv, .tsv, .parquet, .toml."),
    ] = "wordnet_nouns"
    nodes: Annotated[str | None, Field(description="Node table that belongs to an edge table.")] = None
    label: InTables = Field(default=None, description="Column with the classes; empty if none has them.")
    source: InTables = Field(
        default=None, description="Column of the edge table with the node that an edge comes from."
    )
    target: InTables = Field(default=None, description="Column of the edge table with the node that an edge goes to.")
    id: InTables = Field(default=None, description="Column with the names of the nodes.")
    class_names: InTables = Field(
        default=None, description="Labels in the order of the model's outputs, with commas; or names of class numbers."
    )
    split_column: InTables = Field(
        default=None, description="Column that says train, validation or test; empty if none does."
    )
    one_hot: InTables = Field(
        default=None, description="Columns, with commas, to make one feature of each of their values."
    )
    fill: InTables = Field(default=None, description="What takes the place of missing numbers: median or zero.")
    drop: InTables = Field(default=None, description="Columns, with commas, that are no features.")
    separator: InTables = Field(
        default=None, description="Between values: a character, or comma, semicolon, tab, blank or bar. Default: found."
    )
    data_root: Annotated[str | None, IN_GRAPH, Field(description="Folder with graph files; else GRAYCERT_DATA.")] = None
    undirected: Annotated[
        bool | None,
        IN_GRAPH,
        Parameter(negative="--directed"),
        Field(description="Add the reverse of every edge, or leave edges directed. Named graphs: as in the paper."),
    ] = None
    drop_self_loops: Annotated[bool | None, IN_GRAPH, Field(description="Remove edges from a node to itself.")] = None
    coalesce: Annotated[bool | None, IN_GRAPH, Field(description="Merge parallel edges.")] = None
    largest_component: Annotated[bool | None, IN_GRAPH, Field(description="Keep only the largest component.")] = None
    binarize: Annotated[
        bool | None, IN_GRAPH, Field(description="Replace each feature by 1 where it is > 0, else 0.")
    ] = None


class ModelConfig(GraphConfig):
    """Which model, and how it is trained, but for smoothing in training: the paper's settings."""

    split: Annotated[
        Literal["inductive", "transductive"],
        IN_TRAINING,
        Field(description="inductive (held-out nodes are not in the training graph) or transductive."),
    ] = "inductive"
    per_class: Annotated[
        Count, IN_TRAINING, Field(description="Training nodes, and validation nodes, of each class.")
    ] = 20
    seed: Annotated[Seed, Field(description="Seeds the split, the weights, training, and the votes.")] = 0
    model: Annotated[str, Field(description="gat, gcn, gatv2 or sma; or package.module:Class.")] = "gat"
    skip: Annotated[
        bool | None,
        IN_MODEL,
        Field(description="Add a connection from a node's own features to its output. Default: yes, for a new model."),
    ] = None
    num_layers: NumLayers = None
    max_epochs: Annotated[Count, IN_TRAINING, Field(description="Limit of training epochs.")] = 1_000
    patience: Annotated[Count, IN_TRAINING, Field(description="Epochs without improvement before training stops.")] = 50
    learning_rate: Annotated[Positive, IN_TRAINING, Field(description="Of Adam.")] = 1e-3
    weight_decay: Annotated[float, IN_TRAINING, Field(ge=0.0, allow_inf_nan=False, description="Of Adam.")] = 5e-4


class TrainingConfig(ModelConfig):
    """How a model is trained under smoothing."""

    test_fraction: Annotated[Level, IN_TRAINING, Field(description="Share of the labelled nodes to test on.")] = 0.1
    train_p_delete: Annotated[
        Probability, IN_TRAINING, Field(description="Chance of deleting an edge while training.")
    ] = 0.01
    train_p_ablate: Annotated[
        Probability, IN_TRAINING, Field(description="Chance of ablating a node while training.")
    ] = 0.6
    class_weight: Annotated[
        str | None,
        IN_TRAINING,
        Field(description="balanced, so that each class has the same say; or a weight per class, with commas."),
    ] = None
    stop_on: Annotated[
        Literal["loss", "accuracy", "balanced accuracy"],
        IN_TRAINING,
        Field(description="What is best on the validation nodes."),
    ] = "loss"
    without_edge_inputs: Annotated[
        bool,
        IN_MODEL,
        NO_NEGATIVE,
        Field(
            description="Give a class of yours no values per edge, though it takes some: files and tables keep none."
        ),
    ] = False

    @property
    def edge_inputs(self) -> tuple[str, ...] | None:
        """What `graycert.certify` is told of values per edge: that there are none, or nothing."""
        return () if self.without_edge_inputs else None


class TrainConfig(TrainingConfig):
    """Options of `graycert train`."""

    smoothing: Annotated[
        Literal["interception", "votes"],
        IN_TRAINING,
        Field(
            description="What the model is for: interception trains it under interception, for every smoothing of any "
            "model; votes distils it into a model of single nodes, by default from a teacher of its own (appnp)."
        ),
    ] = "interception"
    out: Annotated[str | None, Field(description="Weights file. Default: runs/train-GRAPH-TIME/model.safetensors.")] = (
        None
    )
    overwrite: Annotated[bool, NO_NEGATIVE, Field(description="Replace an existing file.")] = False


class WeightsConfig(TrainingConfig):
    """A model that is trained first, or was trained already."""

    model: Annotated[
        str,
        Field(
            description="gat, gcn, gatv2 or sma; package.module:Class; or FILE.safetensors from `graycert train`. With "
            "--smoothing votes: what is distilled, by default appnp, unless it is a model of single nodes."
        ),
    ] = "gat"
    weights: Annotated[
        str | None,
        IN_MODEL,
        Field(description="FILE.safetensors for the model. Without it, a named model is trained first."),
    ] = None


class CertifyConfig(WeightsConfig):
    """Options of `graycert certify`, but for those that `graycert.cli.declared` adds and whose choices it fills in."""

    floor: Annotated[
        str | None,
        IN_MODEL,
        Field(
            description="Model of single nodes to compare with, right at every radius where it is right: distill "
            "(trains one, in seconds) or FILE.safetensors. Default: not computed."
        ),
    ] = None
    targets: Annotated[
        str | None,
        Field(description="test, all, or a file naming nodes, one a line. Default: test, or all without labels."),
    ] = None
    smoothing: Annotated[
        str, Parameter(group=GROUPS["Smoothing"]), Field(description="What the classifier is smoothed over.")
    ] = "interception"
    spread_labels: Annotated[
        bool,
        Parameter(group=GROUPS["Smoothing"], negative=()),
        Field(description="Add the labels of training nodes, spread over the structure, to the scores (votes)."),
    ] = False
    threat: Annotated[str | None, Parameter(group=GROUPS["Threat"]), Field(description="Who may do what.")] = None
    until_decided: Annotated[
        bool,
        Parameter(group=GROUPS["Draws"], negative=()),
        Field(description="Stop drawing for a target once its radius is decided."),
    ] = False
    rule: Annotated[
        str | None,
        Parameter(group=GROUPS["Conclusion"]),
        Field(
            description="How votes are concluded from. Default: the smoothing's own, sound for most. difference and "
            "event-aware are sound, too, and tighter; sequential belongs to --until-decided, exact to what draws "
            "nothing; paper is NOT sound and exists for comparison."
        ),
    ] = None
    bound: Annotated[
        str, Parameter(group=GROUPS["Conclusion"]), Field(description="Bound of Δ over sets of hostile nodes.")
    ] = "auto"
    alpha: Annotated[
        Level, Parameter(group=GROUPS["Conclusion"]), Field(description="Failure probability per target.")
    ] = 0.01
    simultaneous: Annotated[
        bool,
        Parameter(group=GROUPS["Conclusion"], negative=()),
        Field(description="Let alpha be the failure probability of all targets at once."),
    ] = False
    max_radius: Annotated[
        Count, Parameter(group=GROUPS["Conclusion"]), Field(description="Largest radius to examine.")
    ] = 20
    collective: Annotated[
        bool,
        Parameter(group=GROUPS["Conclusion"], negative=()),
        Field(description="Also bound how many targets survive one adversary who attacks all of them."),
    ] = False
    call: Annotated[
        list[str] | None,
        Parameter(group=GROUPS["Conclusion"], negative=()),
        Field(description=CALL),
    ] = None
    device: Annotated[
        str | None, IN_MACHINE, Field(description="Where votes are drawn: auto, cpu, cuda, cuda:1. Default: cpu.")
    ] = None
    engine: Annotated[
        Literal["auto", "compiled", "torch"],
        IN_MACHINE,
        Field(description="What draws: auto, compiled (refuses models without kernels) or torch."),
    ] = "auto"
    batch_size: Annotated[
        Count | None,
        IN_MACHINE,
        Field(description="Draws per forward pass (engine torch). Default: from a memory budget."),
    ] = None
    memory: Annotated[
        Count | None,
        IN_MACHINE,
        Field(description="MiB that drawing may take. Default: a quarter of what the machine has free."),
    ] = None
    block_size: Annotated[
        Count | None,
        IN_MACHINE,
        Field(description="Targets per block; finished blocks are kept. Default: from the memory budget."),
    ] = None
    backend: Backend = "threads"
    workers: NumWorkers = None
    scheduler: Scheduler = None
    out: Annotated[
        str | None,
        Field(description="Run directory; an interrupted run goes on. Default: runs/certify-GRAPH-TIME."),
    ] = None
    overwrite: Annotated[bool, NO_NEGATIVE, Field(description="Replace an earlier run directory.")] = False
    brief: Annotated[
        bool, NO_NEGATIVE, Field(description="Print what it costs and certifies in sentences; tables are in the run.")
    ] = False
    fail_under: Annotated[
        list[str] | None, Parameter(group=GROUPS["Conditions"], negative=()), Field(description=FAIL_UNDER)
    ] = None
    junit: Annotated[str | None, Parameter(group=GROUPS["Conditions"]), Field(description=JUNIT)] = None


class TuneConfig(WeightsConfig):
    """Options of `graycert tune`, but for those that `graycert.cli.declared` adds and whose choices it fills in."""

    smoothing: Annotated[
        Literal["interception", "votes"],
        Parameter(group=GROUPS["Smoothing"]),
        Field(
            description="What is chosen: p_d and p_a of interception; or votes, whose voters, weight, gate, power and "
            "labels are chosen by what is certified and correct at radius 1, 5 and 10."
        ),
    ] = "interception"
    want: Annotated[
        str | None,
        Field(
            description="What to reach: 'accuracy=0.9', 'balanced accuracy=0.9', 'radius=1', or 'radius=1 of CLASS' "
            "for most of a class. Default: most certificates at little loss of accuracy."
        ),
    ] = None
    settings: Annotated[
        str | None, Field(description="P_D:P_A to try, with commas, e.g. 0:0.6,0.3:0.8. Default: twelve.")
    ] = None
    training: Annotated[
        str | None,
        Field(description="P_D:P_A to train under, with commas, where the model is trained. Default: two."),
    ] = None
    sampler: Annotated[
        Literal["listed", "random", "nsga2", "tpe"],
        Field(description="listed tries the settings; the others look in the whole square, nsga2 and tpe with Optuna."),
    ] = "listed"
    budget: Annotated[str | None, Field(description='Of a sampler: trials ("24") or a time ("10min").')] = None
    threat: Annotated[str, Parameter(group=GROUPS["Threat"]), Field(description="Who may do what.")] = "node-features"
    alpha: Annotated[
        Level, Parameter(group=GROUPS["Conclusion"]), Field(description="Failure probability per node.")
    ] = 0.01
    out: Annotated[
        str | None, Field(description="Folder; one that holds a tuning goes on. Default: runs/tune-GRAPH-TIME.")
    ] = None
    backend: Backend = "threads"
    workers: NumWorkers = None
    scheduler: Scheduler = None


class BoundsConfig(GraphConfig):
    """Options of `graycert bounds`, but for those that `graycert.cli.declared` adds and whose choices it fills in."""

    model: Annotated[
        str | None,
        Field(
            description="Model that says how many steps it has, whether it has a skip connection and what its messages "
            "depend on: package.module:Class, FILE.safetensors, or gat, gcn, gatv2 or sma. Default: none."
        ),
    ] = None
    num_layers: NumLayers = None
    targets: Annotated[str, Field(description="all, or a file naming nodes, one a line.")] = "all"
    threat: Annotated[str, Parameter(group=GROUPS["Threat"]), Field(description="Who may do what.")] = "node-features"
    bound: Annotated[str, Field(description="Bound of Δ over sets of hostile nodes.")] = "auto"
    max_radius: Annotated[Count, Field(description="Largest radius to examine.")] = 20
    grid: Annotated[
        str | None,
        IN_PLANNING,
        Field(
            description="Count for many p_d and p_a instead: all, or values with commas, those of p_d before a colon, "
            "e.g. 0,0.3,0.6:0.7,0.8,0.9."
        ),
    ] = None
    radius: Annotated[Count, IN_PLANNING, Field(description="Radius that is wanted: its counts are shown.")] = 1
    heatmap: Annotated[
        str | None, IN_PLANNING, Field(description="File for a picture of the grid at that radius: .png, .pdf or .svg.")
    ] = None
    out: Annotated[
        str | None, Field(description="File for the values per node, or per pair of the grid: .csv or .parquet.")
    ] = None
    overwrite: Annotated[bool, NO_NEGATIVE, Field(description="Replace an existing file.")] = False
