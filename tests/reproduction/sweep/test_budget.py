import pytest

from graycert.errors import InvalidParameterError
from graycert.reproduction.sweep import Budget


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("200", Budget(trials=200)),
        ("1 trial", Budget(trials=1)),
        (" 24 trials ", Budget(trials=24)),
        ("30min", Budget(seconds=1800)),
        ("1.5 h", Budget(seconds=5400)),
        ("2 Hours", Budget(seconds=7200)),
        ("90s", Budget(seconds=90)),
    ],
)
def test_trials_and_times_are_read(text: str, budget: Budget) -> None:
    assert Budget.parse(text) == budget


@pytest.mark.parametrize(
    "text", ["", "many", "0", "0 h", "-5", "1.5", "1.5 trials", "3 days", "2 h 30 min", "1e3", "٣"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameterError, match=r"`budget` must be .* Write \"200\""):
        Budget.parse(text)


@pytest.mark.parametrize(
    "values", [{}, {"trials": 3, "seconds": 1.0}, {"trials": 0}, {"seconds": float("inf")}, {"seconds": -1.0}]
)
def test_a_budget_is_one_positive_thing(values: dict[str, float]) -> None:
    with pytest.raises(InvalidParameterError):
        Budget(**values)
