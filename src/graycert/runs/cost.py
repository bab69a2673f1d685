"""What a guarantee costs, in words and tables, and warnings where a sound certificate is of a useless classifier."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from graycert._types import NO_CLASS, IntArray
from graycert.certificates import Certificates
from graycert.metrics.cost import COST_RADII, Cost, GroupCost, balanced_share, cost_of
from graycert.runs.floor import floor_paragraphs
from graycert.runs.shares import percent, percent_of

MOST_CLASSES = 20
"""Classes in a table; of more, those that lose the most targets."""

FEW = 5
"""Targets of a class that the model as trained does not find either, from which on that is worth a warning."""

NOT_AS_TRAINED = (
    "The model as trained does not find one of them either: train it so that rare classes count "
    '(graycert.train(..., class_weight="balanced", stop_on="balanced accuracy"); on the command line '
    '--class-weight balanced --stop-on "balanced accuracy").'
)
"""What to do where it is not the smoothing that loses a class."""

NOT_LEARNT = (
    "Train the model again, or check that its outputs are the classes in the order of the labels, and that its "
    "features are those that it was trained on."
)
"""What to do where the model as trained knows no class from another."""

OPENING = "What it costs: "
"""What the first of the paragraphs begins with, where no heading says it."""

NEARLY_ALL = 0.95
"""Share of the predictions from which on one class takes nearly all."""


@dataclass(frozen=True, kw_only=True)
class CostTable:
    """A table of a breakdown, as texts."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str


def cost(c: Certificates) -> Cost:
    """Return what the guarantee of a run costs, as counts."""
    return cost_of(
        c.prediction,
        c.labels,
        c.radius,
        c.num_eligible,
        num_classes=c.setup.num_classes,
        as_trained=c.prediction_as_trained,
        without_messages=c.prediction_without_messages,
        in_degree=c.in_degree,
        radius_by_distance=c.radius_by_distance,
    )


def class_word(c: Certificates, number: int) -> str:
    """Return the name of a class, or its number."""
    names = c.setup.class_names
    return names[number] if names else str(number)


def warnings_of(c: Certificates) -> tuple[str, ...]:
    """Return what makes a certificate worthless although it holds."""
    of_classes = (*_never_predicted(c), *_nearly_one_class(c))
    return (*(of_classes or _no_better_than_guessing(c)), *_nothing_shown(c))


def cost_paragraphs(c: Certificates) -> tuple[str, ...]:
    """Return in words what is correct as trained, smoothed and certified; without labels what is as before."""
    found = cost(c)
    paragraphs = [_accuracy(found)] if found.labelled else []
    if found.labelled and found.is_unequal:
        paragraphs.append(_balanced(found))
    if found.same_as_trained is not None:
        paragraphs.append(
            f"{'' if found.labelled else OPENING}For {percent(found.same_as_trained, len(c))} of the "
            f"{len(c):,} targets the smoothed classifier predicts what the model as trained predicts."
        )
    return (*paragraphs, *floor_paragraphs(c))


def cost_under_its_heading(c: Certificates) -> tuple[str, ...]:
    """Return the same paragraphs for a page whose heading says already what they are about."""
    said = (each.removeprefix(OPENING) for each in cost_paragraphs(c))
    return tuple(each[:1].upper() + each[1:] for each in said)


def cost_tables(c: Certificates) -> tuple[CostTable, ...]:
    """Return the breakdowns by class and by degree; none where there is nothing to compare with."""
    found = cost(c)
    if not found.labelled and found.same_as_trained is None:
        return ()
    last = COST_RADII[-1]
    columns = (
        "targets",
        *(["as trained"] if found.total.as_trained is not None else []),
        "smoothed",
        *(f"certified, ρ = {radius}" for radius in COST_RADII),
        f"or whole field, ρ = {last}",
    )
    what = "predicted correctly" if found.labelled else "predicted as the model as trained does"
    note = (
        f"Shares of the targets of each row that are {what}: by the model as trained, by the smoothed classifier "
        f"(abstaining is wrong), and with a certificate at ρ. Whole field: also targets with fewer than {last} "
        f"{c.setup.threat.unit} in reach that hold whatever all of them do."
    )
    if found.total.as_trained is None:
        note = note.replace("by the model as trained, by the smoothed classifier", "by the smoothed classifier")
    tables = []
    shown = sorted(found.classes, key=_lost, reverse=True)[:MOST_CLASSES]
    if len(found.classes) > 1:
        kept = [each for each in found.classes if each in shown]
        rest = len(found.classes) - len(kept)
        more = f" {rest:,} more classes, which lose less, are in summary.json." if rest else ""
        title = "By class" if found.labelled else "By class as trained"
        rows = tuple((class_word(c, each.group), *_cells(each)) for each in kept)
        tables.append(CostTable(title=title, columns=("class", *columns), rows=rows, note=note + more))
    if len(found.degrees) > 1:
        rows = tuple((degrees_in_words(each.group), *_cells(each)) for each in found.degrees)
        note = "The same by number of nodes with an edge into the target."
        tables.append(CostTable(title="By degree", columns=("in-degree", *columns), rows=rows, note=note))
    if found.distances:
        tables.append(_by_distance(c, found))
    return tuple(tables)


def _by_distance(c: Certificates, found: Cost) -> CostTable:
    """Return what is certified if hostile nodes are kept farther away."""
    first = int(getattr(c.setup.threat, "min_distance", 0))
    rows = tuple(
        (f">= {first + place}", *(percent(count, found.total.targets) for count in counts))
        for place, counts in enumerate(found.distances)
    )
    return CostTable(
        title="By distance of hostile nodes",
        columns=("hops away", *(f"certified or whole field, ρ = {radius}" for radius in COST_RADII)),
        rows=rows,
        note="The same if every hostile node is at least so many hops away; the first row is the threat.",
    )


def cost_record(c: Certificates) -> dict[str, Any]:
    """Return all of it as plain values: counts, so that nothing is rounded, and balanced accuracies."""
    found = cost(c)
    record: dict[str, Any] = {
        "correct_means": "true class" if found.labelled else "class as trained",
        "radii": list(COST_RADII),
        "same_as_trained": found.same_as_trained,
        "total": _plain(found.total),
        "classes": [{"class": class_word(c, each.group), **_plain(each)} for each in found.classes],
        "distances": [
            {"min_distance": int(getattr(c.setup.threat, "min_distance", 0)) + place, "certified": list(counts)}
            for place, counts in enumerate(found.distances)
        ],
        "degrees": [{"in_degree": degrees_in_words(each.group), **_plain(each)} for each in found.degrees],
    }
    if found.labelled:
        record["balanced_accuracy"] = _balanced_values(found)
    return record


def _accuracy(found: Cost) -> str:
    total = found.total
    of = f"the {total.targets:,} targets" + ("" if total.targets == found.num_targets else " whose class is known")
    certified = ", ".join(
        f"{percent(count, total.targets)} at ρ = {radius}"
        for count, radius in zip(total.certified, COST_RADII, strict=True)
    )
    smoothed = percent(total.smoothed, total.targets)
    if total.as_trained is None:
        start = f"Smoothed accuracy: {smoothed} of {of} (abstaining is wrong)."
    else:
        start = (
            f"{OPENING}of {of}, the model as trained predicts {percent(total.as_trained, total.targets)} "
            f"correctly, the smoothed classifier {smoothed} (smoothed accuracy; abstaining is wrong)."
        )
    return f"{start} Certified and correct: {certified}."


def _balanced(found: Cost) -> str:
    values = _balanced_values(found)
    shown = [f"{percent_of(values['smoothed'])} smoothed"]
    if values["as_trained"] is not None:
        shown.insert(0, f"{percent_of(values['as_trained'])} as trained")
    shown += [
        f"{percent_of(value)} certified at ρ = {radius}"
        for value, radius in zip(values["certified"], COST_RADII, strict=True)
    ]
    return (
        "The classes differ in size, so that the largest ones decide these shares. Mean over classes of the share "
        f"found (balanced accuracy): {', '.join(shown)}."
    )


def _balanced_values(found: Cost) -> dict[str, Any]:
    columns = zip(*(each.certified for each in found.classes), strict=True)
    return {
        "as_trained": found.balanced([each.as_trained for each in found.classes]),
        "smoothed": found.balanced([each.smoothed for each in found.classes]),
        "certified": [found.balanced(counts) for counts in columns],
    }


def _never_predicted(c: Certificates) -> list[str]:
    """Warn of classes that targets have, or that the model as trained predicts, and the smoothed classifier never."""
    found = cost(c)
    predicted = np.bincount(c.prediction[c.radius >= 0], minlength=c.setup.num_classes)
    before = _counts(c.prediction_as_trained, c.setup.num_classes)
    sentences: list[str] = []
    found_as_trained = False
    for each in found.classes if predicted.any() else ():
        if each.smoothed or (not each.as_trained and each.targets < FEW):
            continue
        word = f"'{class_word(c, each.group)}'"
        verb = f"finds no target of class {word}" if predicted[each.group] else f"never predicts class {word}"
        if not found.labelled:
            have = f"the model as trained predicts it for {before[each.group]:,} targets"
        else:
            have = f"it is the class of {each.targets:,} targets"
            have += "" if each.as_trained is None else f", of which the model as trained finds {each.as_trained:,}"
        sentences.append(f"The smoothed classifier {verb}: {have}.")
        found_as_trained |= each.as_trained != 0
    if not sentences:
        return []
    listed = " ".join(sentences[:MOST_CLASSES])
    return [
        f"{listed} What is certified below holds, but of a classifier that does not know "
        f"{'this class' if len(sentences) == 1 else 'these classes'}. "
        f"{c.setup.smoothing.remedy if found_as_trained else NOT_AS_TRAINED}"
    ]


def _nearly_one_class(c: Certificates) -> list[str]:
    """Warn where one class takes nearly all predictions, and what else there was has mostly gone."""
    counts = np.bincount(c.prediction[c.radius >= 0], minlength=c.setup.num_classes)
    total, top = int(counts.sum()), int(counts.argmax())
    if not total or counts[top] < NEARLY_ALL * total:
        return []
    compared = {"the model as trained predicts": c.prediction_as_trained, "targets have": c.labels}
    for who, classes in compared.items():
        theirs = _counts(classes, c.setup.num_classes)
        if 2 * (total - counts[top]) * theirs.sum() < (theirs.sum() - theirs[top]) * total:
            return [
                f"Of the predictions of the smoothed classifier {percent(int(counts[top]), total)} are "
                f"'{class_word(c, top)}', though {who} {percent(int(theirs[top]), int(theirs.sum()))} of that class: "
                "one class takes nearly all. What answers always the same is certified easily and says little."
            ]
    return []


def _no_better_than_guessing(c: Certificates) -> list[str]:
    """Warn where a classifier finds no more of a class, on average, than one that draws its answers by lot."""
    found = cost(c)
    classes = [each for each in found.classes if each.targets >= FEW]
    if not found.labelled or len(classes) < 2:
        return []
    guessing = 1 / len(classes)
    mean = {
        "smoothed classifier": balanced_share(classes, [each.smoothed for each in classes]),
        "model as trained": balanced_share(classes, [each.as_trained for each in classes]),
    }
    poor = [who for who, share in mean.items() if share is not None and share <= guessing + 1e-9]
    if not poor:
        return []
    shares = ", ".join(f"the {who} finds {percent_of(share)}" for who, share in mean.items() if share is not None)
    remedy = c.setup.smoothing.remedy if poor == ["smoothed classifier"] else NOT_LEARNT
    return [
        f"The {' and the '.join(poor)} {'is' if len(poor) == 1 else 'are'} no better than guessing: of a class with "
        f"at least {FEW} targets {shares} on average (balanced accuracy), and guessing among these {len(classes)} "
        f"classes finds {percent_of(guessing)}. What is certified below holds, but says little. {remedy}"
    ]


def _nothing_shown(c: Certificates) -> list[str]:
    """Warn where in most draws nothing of the features is left to decide by."""
    shares = c.setup.smoothing.nothing_shown(c.receptive_field_size)
    if shares is None:
        return []
    empty = int(np.count_nonzero(shares > 0.5))
    if 2 * empty <= len(c):
        return []
    return [
        f"For {empty:,} of {len(c):,} targets more than half of the draws show no node's features at all (nothing but "
        "what a skip connection shows of the target itself): the prediction hardly depends on features, and that "
        "hostile features do not change it says nothing. Lower p_ablate."
    ]


def _counts(classes: IntArray | None, num_classes: int) -> IntArray:
    known = np.zeros(0, dtype=np.int64) if classes is None else classes[classes != NO_CLASS]
    return np.bincount(known, minlength=num_classes)


def _lost(each: GroupCost) -> int:
    return (each.targets if each.as_trained is None else each.as_trained) - each.smoothed


def _cells(each: GroupCost) -> tuple[str, ...]:
    counts = [each.smoothed, *each.certified, each.whole_field[-1]]
    if each.as_trained is not None:
        counts.insert(0, each.as_trained)
    return (f"{each.targets:,}", *(percent(count, each.targets) for count in counts))


def degrees_in_words(low: int) -> str:
    """Return which degrees the bin from ``low`` on holds."""
    return str(low) if low < 2 else f"{low} to {2 * low - 1}"


def _plain(each: GroupCost) -> dict[str, Any]:
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(each).items()}
    del values["group"]
    return values
