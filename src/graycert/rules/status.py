"""What is known about a target."""

from enum import StrEnum


class Status(StrEnum):
    """Outcome for one target; ``help`` says what it means."""

    CERTIFIED = "certified"
    PREDICTED = "predicted"
    ABSTAINED = "abstained"

    @property
    def help(self) -> str:
        """What the outcome means, in a sentence.

        Example:
            >>> Status.PREDICTED.help.split(",")[0]
            'The classifier has a prediction'
        """
        return _HELP[self]


_HELP = {
    Status.CERTIFIED: "The classifier has a prediction, and `radius` >= 1 hostile nodes cannot change it.",
    Status.PREDICTED: "The classifier has a prediction, but it is not proved against even one hostile node (radius 0).",
    Status.ABSTAINED: "The votes do not single out a class: there is no prediction (radius -1).",
}
