"""CASES C1 and C2: scores that single out no class never certify the lowest one."""

import numpy as np
import pytest

import graycert
from graycert._types import NO_CLASS
from graycert.errors import UnsoundSetupError
from support.open_scores import Biased, Constant, EndsWithRelu, HandWrittenMean, three_classes

SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.8)
OTHERS = graycert.NodeFeatureThreat(min_distance=1)


def certified(model, **changes):
    arguments = {
        "smoothing": SMOOTHING,
        "threat": OTHERS,
        "draws": graycert.Draws(num_selection=100, num_estimation=300),
        "num_layers": 2,
    }
    return graycert.certify(model, three_classes(), **{**arguments, **changes})


def test_a_mean_over_nobody_does_not_elect_class_0(tmp_path):
    said = []
    found = certified(HandWrittenMean(), execution=graycert.Execution(say=said.append))
    assert np.bincount(found.prediction).tolist() == [20, 20, 20]
    assert found.prediction.tolist() == three_classes().y.tolist()
    for_none, total = found.votes_for_no_class
    assert (found.estimation_votes.sum(axis=1) + found.estimation_no_class).tolist() == [300] * 60
    assert total == 60 * 400
    assert 0 < for_none < total / 2
    assert "single out no class" in found.summary()
    assert any("single out no class" in sentence for sentence in said)
    again = graycert.Certificates.load(found.save(tmp_path / "run"))
    np.testing.assert_array_equal(again.estimation_no_class, found.estimation_no_class)
    assert graycert.verify(tmp_path / "run", data=three_classes(), model=HandWrittenMean()).passed
    sharper = found.again(three_classes(), rule="difference")
    assert (sharper.radius >= found.radius).all()
    assert found.possible_labels(0).any(axis=1).all()


def test_without_open_scores_nothing_is_added():
    found = certified(Biased(2))
    assert found.votes_for_no_class == (0, 60 * 400)
    assert (found.selection_no_class, found.estimation_no_class) == (None, None)
    assert "single out no class" not in found.summary()


@pytest.mark.parametrize("model", [Constant(), EndsWithRelu(threshold=5.0)], ids=["constant", "dead relu"])
def test_mostly_open_scores_are_refused(model):
    with pytest.raises(UnsoundSetupError, match=r"none could be certified|no target's scores changed") as refused:
        certified(model, execution=graycert.Execution(engine="torch"))
    assert refused.value.slug in ("scores-single-out-no-class", "ignores-features")


def test_a_relu_at_the_end_certifies_no_more_than_any_way_to_break_its_ties():
    """Against the same model, whose ties are given to one class by a tiny bias: none certifies less."""
    found = certified(EndsWithRelu())
    assert found.votes_for_no_class[0] > 0

    for favoured in range(3):
        decided = certified(Biased(favoured))
        same = decided.prediction == found.prediction
        assert (found.radius[same] <= decided.radius[same]).all()
        assert (found.radius[~same] <= 0).all()


def test_bets_and_events_hold_with_them():
    stopped = certified(
        HandWrittenMean(),
        draws=graycert.UntilDecided(num_selection=100, max_estimation=300),
        targets=np.arange(0, 60, 7),
    )
    assert (stopped.num_samples <= 300).all()
    assert stopped.estimation_no_class.sum() == stopped.estimation_batches_no_class.sum() > 0
    rerun = stopped.again(three_classes(), alpha=0.01)
    np.testing.assert_array_equal(rerun.radius, stopped.radius)
    aware = certified(HandWrittenMean(), rule="event-aware", targets=np.arange(0, 60, 7))
    sound = certified(HandWrittenMean(), rule="sound", targets=np.arange(0, 60, 7))
    assert (aware.estimation_predictions == NO_CLASS).any()
    assert (aware.radius >= sound.radius).all()
    assert aware.radius.max() <= 20


def test_other_smoothings_count_them_too():
    targets = np.arange(0, 60, 9)
    levine = certified(
        EndsWithRelu(), smoothing=graycert.RandomizedAblation(scope="local", p_ablate=0.9), targets=targets
    )
    assert levine.votes_for_no_class[0] > 0
    voted = certified(EndsWithRelu(), smoothing=graycert.SubgraphVoting(num_subgraphs=3), draws=None, targets=targets)
    assert (voted.subgraph_predictions == NO_CLASS).any()
    assert (voted.radius[(voted.subgraph_predictions == NO_CLASS).sum(axis=1) > 1] == -1).all()
    kept = certified(
        EndsWithRelu(), smoothing=graycert.UniformRetention(keep_ratio="1/2", tau=100), targets=targets[:3]
    )
    assert kept.votes_for_no_class[1] > 0
    with pytest.raises(UnsoundSetupError, match="single out no class"):
        certified(Constant(), smoothing=graycert.FeaturesOnly(), draws=None)
