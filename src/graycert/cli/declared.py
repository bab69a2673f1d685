"""Options that follow from what smoothings, threats and draws declare, and the objects that they make.

A parameter that is declared with an option (`graycert._parameters.parameter`) is an option of its own name. Parameters
of the same name share one. This module is read for `--help`, so it loads no torch.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, cast

from cyclopts import Parameter
from pydantic import Field, create_model

from graycert._parameters import Parameters
from graycert.cli.configs import GROUPS, BoundsConfig, CertifyConfig, Config, TuneConfig, WorkersConfig
from graycert.draws import DRAWS, AnyDraws, Draws, UntilDecided
from graycert.errors import InvalidParameterError
from graycert.smoothing import SMOOTHINGS, InterceptionSmoothing, Smoothing
from graycert.threats import THREATS, NodeFeatureThreat, Threat

if TYPE_CHECKING:
    from graycert.cli.sweep_config import SweepConfig
    from graycert.problem import Execution

Kind = type[Parameters]
ParametersT = TypeVar("ParametersT", bound=Parameters)

DEFAULTS: Mapping[Kind, Mapping[str, Any]] = {InterceptionSmoothing: {"p_delete": 0.31, "p_ablate": 0.794}}
"""What the command line takes where Python has no default: the paper's main setting."""

BOUNDS_DEFAULTS: Mapping[Kind, Mapping[str, Any]] = {**DEFAULTS, NodeFeatureThreat: {"min_distance": 1}}

SHORT_FORMS = {"num_selection": "n0", "num_estimation": "n1"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chosen:
    """The classes that options choose; ``draws`` is None where nothing is drawn."""

    smoothing: type[Smoothing]
    threat: type[Threat]
    draws: type[AnyDraws] | None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Chosen":
        """Return the classes that the options ``smoothing``, ``threat`` and ``until_decided`` name."""
        smoothing = SMOOTHINGS[options.get("smoothing", CertifyConfig.model_fields["smoothing"].default)]
        draws: type[AnyDraws] | None = smoothing.draws_allowed[0] if smoothing.draws_allowed else None
        return cls(
            smoothing=smoothing,
            threat=THREATS[options.get("threat") or smoothing.claims[0].threat],
            draws=UntilDecided if options.get("until_decided") else draws,
        )

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """All that there are."""
        return tuple(kind for kind in (self.smoothing, self.threat, self.draws) if kind is not None)


def certify_config() -> type[CertifyConfig]:
    """Return the options of `graycert certify`, with those of all smoothings, threats and draws that there are."""
    first = {name: kind.claims[0].threat for name, kind in SMOOTHINGS.items()}
    usual = first[CertifyConfig.model_fields["smoothing"].default]
    others = [f"{threat} for {name}" for name, threat in first.items() if threat != usual]
    rules = dict.fromkeys(rule for kind in SMOOTHINGS.values() for claim in kind.claims for rule in claim.proofs)
    bounds = dict.fromkeys(bound for kind in SMOOTHINGS.values() for bound in kind.bounds)
    shown = [name for name, kind in SMOOTHINGS.items() if kind.shows_target]
    words = {
        (NodeFeatureThreat, "min_distance"): f"1 with a skip connection, and for {_listed(shown)}, else 0",
        (Draws, "num_estimation"): f"{Draws().num_estimation}, or what the smoothing needs",
    }
    return _extended(
        CertifyConfig,
        every_kind(),
        words=words,
        note=("threat", f"Default: {'; '.join([usual, *others])}."),
        smoothing=tuple(SMOOTHINGS),
        threat=tuple(THREATS),
        rule=tuple(rules),
        bound=tuple(bounds),
    )


def bounds_config() -> type[BoundsConfig]:
    """Return the options of `graycert bounds`, with those of interception and of the threats that it has bounds for."""
    threats = bounded_threats()
    return _extended(
        BoundsConfig,
        [InterceptionSmoothing, *threats.values()],
        words={
            **{(kind, name): str(value) for kind, values in BOUNDS_DEFAULTS.items() for name, value in values.items()},
            (NodeFeatureThreat, "min_distance"): "1; with a model, 0 if it has no skip connection",
        },
        threat=tuple(threats),
        bound=InterceptionSmoothing.bounds,
    )


def tune_config() -> type[TuneConfig]:
    """Return the options of `graycert tune`, with those of the threats that it chooses against, and of draws."""
    threats = bounded_threats()
    words: dict[tuple[Kind, str], str] = {(Draws, "num_selection"): "200", (Draws, "num_estimation"): "1000"}
    return _extended(
        TuneConfig,
        [*threats.values(), Draws],
        words=words | {(NodeFeatureThreat, "min_distance"): "1 with a skip connection, else 0"},
        threat=tuple(threats),
    )


def bounded_threats() -> dict[str, type[Threat]]:
    """Return the threats that interception has bounds for and that a graph without a model can be attacked by."""
    claimed = [claim.threat for claim in InterceptionSmoothing.claims]
    return {name: THREATS[name] for name in claimed if name in THREATS}  # values per edge are those of a model


def workers_of(config: "WorkersConfig | SweepConfig | TuneConfig") -> "Execution":
    """Return who works, as the options say."""
    from graycert.problem import Execution

    return Execution(backend=config.backend, workers=config.workers, scheduler=config.scheduler)


def every_kind() -> list[Kind]:
    """Return all smoothings, threats and draws."""
    return [*SMOOTHINGS.values(), *THREATS.values(), *DRAWS.values()]


def options_of(kind: Kind) -> dict[str, "dataclasses.Field[Any]"]:
    """Return the parameters of a class that are options, by name."""
    return {field.name: field for field in dataclasses.fields(kind) if field.metadata.get("option") is not None}


def refuse_foreign(config: Config, chosen: Iterable[Kind], *, among: Iterable[Kind]) -> None:
    """Refuse an option that is given but belongs to another smoothing, threat or way to draw.

    Raises:
        InvalidParameterError: Naming the option and what has it.
    """
    chosen = tuple(chosen)
    own = {name for kind in chosen for name in options_of(kind)}
    for name, owners in _owners(among).items():
        if name not in own and getattr(config, name) is not None:
            part = next((kind for kind in chosen if _part(kind) == _part(owners[0])), chosen[0])
            raise InvalidParameterError(
                f"`--{_dashed(name)}` belongs to {_listed(map(_flag, owners), 'or')}, got it with {_flag(part)}. "
                "Leave it out."
            )


def made(
    kind: type[ParametersT], config: Config, *, defaults: Mapping[Kind, Mapping[str, Any]] = DEFAULTS, **more: Any
) -> ParametersT:
    """Return the smoothing, threat or draws that the options describe.

    Args:
        kind: Its class.
        config: The options. Those that name nodes are left to ``more``.
        defaults: What is taken for an option that is not given, if not the default of the class.
        more: Parameters that are not taken from the options.

    Raises:
        InvalidParameterError: If a needed option is missing, or a value is out of its domain.
    """
    values = dict(defaults.get(kind, {}))
    for name, field in options_of(kind).items():
        value = getattr(config, name)
        if value is not None and field.metadata["option"] != "nodes":
            values[name] = value
        if name not in {*values, *more} and field.default is dataclasses.MISSING:
            raise InvalidParameterError(
                f"`--{_dashed(name)}` must be given with {_flag(kind)}, got nothing. {field.metadata['help']}"
            )
    return kind(**{**values, **more})


def made_draws(chosen: Chosen, config: CertifyConfig, smoothing: Smoothing) -> AnyDraws | None:
    """Return the draws that the options describe: those that the smoothing needs, but for what is said otherwise.

    Raises:
        InvalidParameterError: If the smoothing is not drawn from in this way, or a value is out of its domain.
    """
    if chosen.draws is None:
        return None
    if chosen.draws not in smoothing.draws_allowed:
        able = [f"--smoothing {name}" for name, kind in SMOOTHINGS.items() if chosen.draws in kind.draws_allowed]
        raise InvalidParameterError(
            f"{_flag(chosen.draws)} must be left out with --smoothing {smoothing.name}, because nothing is proved of "
            f"votes that stop when they decide. It goes with {_listed(able)}."
        )
    usual = smoothing.default_draws()
    needed = usual.stored()[0] if isinstance(usual, chosen.draws) else {}
    return made(chosen.draws, config, defaults={chosen.draws: needed})


def as_options(part: Parameters | None) -> dict[str, Any]:
    """Return the options that make a smoothing, a threat or draws; nodes and other arrays have none."""
    if part is None:
        return {}
    values, arrays = part.stored()
    return {name: values[name] for name in options_of(type(part)) if name in values and name not in arrays}


def without_replaced(options: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a run without those of a smoothing, threat or way to draw that flags replace by another."""
    before, after = Chosen.of(options), Chosen.of({**options, **given})
    lost = {name for kind in before.kinds if kind not in after.kinds for name in options_of(kind)}
    kept = {name for kind in after.kinds for name in options_of(kind)}
    if before != after:
        lost |= {"rule", "bound"}  # the defaults of the others
    return {name: value for name, value in options.items() if name not in lost - kept}


ConfigT = TypeVar("ConfigT", bound=Config)


def _extended(
    base: type[ConfigT],
    kinds: Iterable[Kind],
    *,
    words: Mapping[tuple[Kind, str], str],
    note: tuple[str, str] = ("", ""),
    **choices: tuple[str, ...],
) -> type[ConfigT]:
    """Return the options of ``base`` with those of some classes.

    Args:
        base: Options of the command.
        kinds: Classes whose parameters are added.
        words: What is said of the default of some of these.
        note: Name of an option, and what is said of it besides.
        choices: What some options of ``base`` must be one of.

    Raises:
        ValueError: If a parameter is called as an option that there is already.
    """
    kinds = tuple(kinds)
    fields: dict[str, Any] = {}
    for name, names in choices.items():
        field = base.model_fields[name]
        text = f"{field.description} {note[1]}" if name == note[0] else field.description
        one_of: Any = Literal.__getitem__(tuple(names))
        kind = one_of if field.default is not None else one_of | None
        fields[name] = _annotated(kind, *field.metadata, Field(description=text)), field.default
    for name, owners in _owners(kinds).items():
        if name in base.model_fields:
            raise ValueError(f"{owners[0].__name__}.{name} must not be called as an option of {base.__name__}")
        alias = f"--{SHORT_FORMS[name]}" if name in SHORT_FORMS else None
        look = Parameter(alias=alias, group=GROUPS[_part(owners[0])])
        fields[name] = (
            _annotated(_type(name, owners), look, Field(description=_help(name, owners, words, among=kinds))),
            None,
        )
    return cast("type[ConfigT]", create_model(base.__name__, __base__=base, __doc__=base.__doc__, **fields))


def _annotated(*parts: Any) -> Any:
    return Annotated.__class_getitem__(parts)  # type: ignore[attr-defined]


def _owners(kinds: Iterable[Kind]) -> dict[str, list[Kind]]:
    """Return the classes that have each option."""
    owners: dict[str, list[Kind]] = {}
    for kind in kinds:
        for name in options_of(kind):
            owners.setdefault(name, []).append(kind)
    return owners


def _type(name: str, owners: Iterable[Kind]) -> Any:
    found: Any = None
    kinds = {options_of(kind)[name].metadata["option"] for kind in owners}
    for kind in sorted((str if kind == "nodes" else kind for kind in kinds), key=_SIMPLE.index):
        found = kind if found is None else found | kind
    return found | None


_SIMPLE = (bool, int, float, str)


def _help(name: str, owners: list[Kind], words: Mapping[tuple[Kind, str], str], *, among: tuple[Kind, ...]) -> str:
    """Return what the option is and what it is by default, for which smoothings, threats or draws."""
    meant: dict[str, list[str]] = {}
    usual: dict[str, list[str]] = {}
    needed: list[str] = []
    for kind in owners:
        field = options_of(kind)[name]
        text = field.metadata["help"].removesuffix(".")
        if field.metadata["option"] == "nodes":
            text = f"File naming nodes, one a line: {text[0].lower()}{text[1:]}"
        meant.setdefault(text, []).append(_called(kind))
        default = words.get((kind, name), DEFAULTS.get(kind, {}).get(name, field.default))
        if default is dataclasses.MISSING:
            needed.append(_called(kind))
        elif default is not None:
            usual.setdefault(str(default), []).append(_called(kind))
    everywhere = len(owners) == sum(_part(kind) == _part(owners[0]) for kind in among) and len(meant) == 1
    sentences = [f"{text}." if everywhere else f"{text} ({', '.join(names)})." for text, names in meant.items()]
    several = len(usual) > 1 or sum(map(len, usual.values())) < len(owners)
    defaults = [f"{text} ({', '.join(names)})" if several else text for text, names in usual.items()]
    sentences += [f"To be given for {_listed(needed)}."] if needed else []
    sentences += [f"Default: {'; '.join(defaults)}."] if defaults else []
    return " ".join(sentences)


def _part(kind: Kind) -> str:
    return "Smoothing" if issubclass(kind, Smoothing) else "Threat" if issubclass(kind, Threat) else "Draws"


def _called(kind: Kind) -> str:
    return kind.name if issubclass(kind, Smoothing | Threat) else _flag(kind).removeprefix("a ")


def _flag(kind: Kind) -> str:
    if issubclass(kind, Smoothing | Threat):
        return f"--{_part(kind).lower()} {kind.name}"
    return "--until-decided" if kind is UntilDecided else "a fixed number of draws"


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _listed(names: Iterable[str], word: str = "and") -> str:
    *most, last = names
    return f"{', '.join(most)} {word} {last}" if most else last
