"""Pictures of certificates in matplotlib axes of the caller's, or new ones."""

from typing import TYPE_CHECKING, Any

from graycert.certificates import Certificates
from graycert.errors import InvalidParameterError
from graycert.runs.called import called_of
from graycert.runs.cost import class_word, cost
from graycert.runs.explain import proved_lead, row_of, votes_of
from graycert.runs.floor import LABEL, OF_LABELS, floor_of_labels, floor_of_run
from graycert.runs.words import shown_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours for readers with any colour vision (Okabe and Ito, 2008).
BLUE, GREEN, VERMILION, GREY = "#0072b2", "#009e73", "#d55e00", "#7f7f7f"


def new_axes(ax: "Axes | None") -> "Axes":
    """Return the axes given, or those of a new figure, which a notebook shows.

    Raises:
        InvalidParameterError: If matplotlib is not installed.
    """
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot as plt
    except ModuleNotFoundError as error:
        raise InvalidParameterError('figures need matplotlib: pip install "graycert[figures]".') from error
    return plt.subplots(layout="constrained")[1]


def plot(c: Certificates, ax: "Axes | None" = None) -> "Axes":
    """Do the work of `Certificates.plot`."""
    ax, rows, total = new_axes(ax), shown_rows(c), max(len(c), 1)
    say = called_of(c).say
    from matplotlib.ticker import MaxNLocator

    last = rows[-1]["radius"]
    radii = [row["radius"] for row in rows]

    def curve(key: str, **look: Any) -> None:
        ax.plot(radii, [row[key] / total for row in rows], drawstyle="steps-mid", linewidth=2, **look)

    curve("whole_field", label="certified, or whole field", color=GREY, linestyle=":")
    curve("certified", label="certified", color=BLUE)
    if c.labels is not None:
        curve("certified_and_correct", label="certified and correct", color=GREEN, linestyle="--")
    found = cost(c)
    if found.labelled:
        floor, memory = floor_of_run(c), floor_of_labels(c)
        levels = (
            ("correct as trained", found.total.as_trained),
            (LABEL, None if floor is None else floor.correct),
            (OF_LABELS, None if memory is None else memory.correct),
        )
        for (label, count), line in zip(levels, ("-.", (0, (1, 2)), (0, (4, 2, 1, 2, 1, 2))), strict=True):
            if count is not None:
                ax.axhline(count / found.total.targets, color=VERMILION, linestyle=line, linewidth=1, label=say(label))
    ax.set_xlim(-0.5, last + 0.5)
    ax.set_ylim(0.0, 1.02)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel(say(f"radius ρ: number of hostile {c.setup.threat.unit}"))
    ax.set_ylabel(say("share of the targets"))
    if not c.setup.the_rule.is_sound:
        ax.set_title("NOT a sound certificate (rule of the paper's implementation)")
    ax.legend(frameon=False)
    return ax


def plot_target(c: Certificates, node: int | str, ax: "Axes | None" = None) -> "Axes":
    """Do the work of `Certificates.plot_target`."""
    row = row_of(c, node)
    ax = new_axes(ax)
    name = str(c.targets[row]) if c.node_ids is None else str(c.node_ids[row])
    radius = int(c.radius[row])
    said = (
        called_of(c).say("no prediction")
        if radius < 0
        else f"'{class_word(c, int(c.prediction[row]))}', radius {radius}"
    )
    ax.set_title(f"{name}: {said}", parse_math=False)
    if c.delta_upper is None:
        _votes(c, row, ax)
    else:
        _deltas(c, row, ax)
    return ax


def _deltas(c: Certificates, row: int, ax: "Axes") -> None:
    """Draw Δ̄(ρ) against half the proved lead: where it is below, the prediction holds."""
    assert c.delta_upper is not None
    values = c.delta_upper[row]
    last = max(1, min(len(values), int(c.num_eligible[row])))
    shown = min(last, max(int(c.radius[row]), 0) + 3)
    radii = list(range(1, shown + 1))
    holds = [rho <= int(c.radius[row]) for rho in radii]
    ax.bar(radii, values[:shown], color=[BLUE if each else GREY for each in holds])
    lead = proved_lead(c, row)
    if lead is not None and lead > 0:
        ax.axhline(lead / 2, color=VERMILION, linestyle="--", label="half the proved lead")
        ax.legend(frameon=False)
    ax.set_ylim(0.0, 1.0)
    ax.set_xlim(0.4, shown + 0.6)
    ax.set_xticks(radii)
    ax.set_xlabel(called_of(c).say(f"number ρ of hostile {c.setup.threat.unit} (blue: the prediction holds)"))
    ax.set_ylabel("Δ̄(ρ), chance that a message of theirs arrives, at most")


def _votes(c: Certificates, row: int, ax: "Axes") -> None:
    counts, none, what = votes_of(c, row)
    names = [class_word(c, number) for number in range(counts.size)]
    colours = [BLUE if number == c.prediction[row] else GREY for number in range(counts.size)]
    places = range(counts.size)
    ax.bar(places, counts, color=colours)
    ax.set_xticks(places, names, rotation=30, ha="right", parse_math=False)
    ax.set_ylabel(f"{what or 'votes'}{f', {none:,} for no class' if none else ''}")
